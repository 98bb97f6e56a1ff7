//! The three stages as one.

use bson::Bson;

use super::{Densify, Fill, SetWindowFields};
use crate::settings::Settings;
use crate::{Result, Row, meter};

/// A stage over ordered partitions.
#[derive(Debug, Clone)]
pub enum WindowStage {
    /// `$setWindowFields`.
    SetFields(SetWindowFields),
    /// `$fill`.
    Fill(Fill),
    /// `$densify`.
    Densify(Densify),
}

impl WindowStage {
    /// Parses the stage `name`; `None` when it is none of the three.
    pub fn parse(name: &str, spec: &Bson, settings: &Settings) -> Result<Option<WindowStage>> {
        Ok(Some(match name {
            "$setWindowFields" => {
                WindowStage::SetFields(SetWindowFields::parse(spec, &settings.scope())?)
            }
            "$fill" => WindowStage::Fill(Fill::parse(spec, &settings.scope())?),
            "$densify" => WindowStage::Densify(Densify::parse(spec, &settings.scope())?),
            _ => return Ok(None),
        }))
    }

    /// The name of the stage, with its dollar.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            WindowStage::SetFields(_) => "$setWindowFields",
            WindowStage::Fill(_) => "$fill",
            WindowStage::Densify(_) => "$densify",
        }
    }

    /// The result over all rows of the input; `keyed` says that rows are told what they are sorted
    /// by.
    pub fn apply(&self, rows: Vec<Row>, settings: &Settings, keyed: bool) -> Result<Vec<Row>> {
        let _scope = meter::scope();
        match self {
            WindowStage::SetFields(stage) => stage.apply(rows, &settings.variables, keyed),
            WindowStage::Fill(stage) => stage.apply(rows, &settings.variables, keyed),
            WindowStage::Densify(stage) => stage.apply(rows, keyed),
        }
    }
}
