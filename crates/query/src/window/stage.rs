//! One type for the stages `$setWindowFields`, `$fill` and `$densify`.

use bson::Bson;

use super::partition::{Partition, Partitioning};
use super::{Densify, Fill, SetWindowFields};
use crate::expr::Variables;
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
    /// Parses the stage `name`; `None` for other stages.
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

    /// How rows are partitioned and ordered; `None` when each row is computed by itself.
    pub(crate) fn partitioning(&self) -> Option<&Partitioning> {
        match self {
            WindowStage::SetFields(stage) => Some(&stage.by),
            WindowStage::Fill(stage) => stage.partitioning(),
            WindowStage::Densify(stage) => Some(stage.partitioning()),
        }
    }
}

/// The execution of a stage: the caller adds partitions in order and gets rows.
pub(crate) struct Run {
    stage: WindowStage,
    variables: Variables,
    /// Documents that `$densify` has made.
    made: usize,
    /// Partitions held back because the stage needs all of them before its first row.
    waiting: Vec<Partition>,
}

impl Run {
    pub(crate) fn new(stage: WindowStage, settings: &Settings) -> Run {
        Run {
            stage,
            variables: settings.variables.clone(),
            made: 0,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn stage(&self) -> &WindowStage {
        &self.stage
    }

    /// Whether the stage returns no row before the last partition was added.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.stage, WindowStage::Densify(stage) if stage.needs_all())
    }

    /// Adds the next partition, and returns the rows that are complete.
    ///
    /// # Errors
    /// Errors of expressions, and of values that a function does not accept.
    pub(crate) fn add(&mut self, partition: Partition) -> Result<Vec<Row>> {
        let _scope = meter::scope();
        if self.waits() {
            self.waiting.push(partition);
            return Ok(Vec::new());
        }
        match &self.stage {
            WindowStage::SetFields(stage) => {
                let partition = stage.compute(partition, &self.variables)?;
                Ok(partition.into_rows().collect())
            }
            WindowStage::Fill(stage) => stage.compute(partition, &self.variables),
            WindowStage::Densify(stage) => stage.densify(partition, None, &mut self.made),
        }
    }

    /// Returns the remaining rows, after the last partition was added.
    ///
    /// # Errors
    /// As [`Run::add`].
    pub(crate) fn finish(&mut self) -> Result<Vec<Row>> {
        let _scope = meter::scope();
        let mut rows = Vec::new();
        if let WindowStage::Densify(stage) = &self.stage {
            let waiting = std::mem::take(&mut self.waiting);
            let extent = stage.extent(waiting.iter().flat_map(|p| &p.documents))?;
            for partition in waiting {
                rows.extend(stage.densify(partition, extent.as_ref(), &mut self.made)?);
            }
        }
        Ok(rows)
    }
}
