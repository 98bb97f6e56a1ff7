//! A parsed pipeline.

use bson::{Bson, RawArray, RawArrayBuf, RawBsonRef};

use crate::settings::Settings;
use crate::stage::Stage;
use crate::{Error, Result};

/// How many stages a pipeline may have, as MongoDB's `internalPipelineLengthLimit`.
const MAX_STAGES: usize = 1000;

/// Stages in order, with the collation, the variables and the time of their operation.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    pub(super) stages: Vec<Stage>,
    pub(super) settings: Settings,
}

impl Pipeline {
    /// Parses the stages and checks their order.
    ///
    /// # Errors
    /// As [`Pipeline::parse_raw`].
    pub fn parse(stages: &[Bson], settings: &Settings) -> Result<Pipeline> {
        Pipeline::parse_raw(&RawArrayBuf::try_from(stages.to_vec())?, settings)
    }

    /// Parses the stages and checks their order. Bytes are parsed, and not a tree, because a filter
    /// may have several conditions on one field (`{a: .., a: ..}`), of which a tree keeps the last.
    ///
    /// # Errors
    /// `TypeMismatch` for stages that are no objects, 40323 for those with several names, 40413 for
    /// options of stages that are given twice, 31250 for paths of projections that are, 40324 for
    /// unknown stages, 40601 and 40602 for misplaced ones, and those of the stages.
    pub fn parse_raw(stages: &RawArray, settings: &Settings) -> Result<Pipeline> {
        super::check_pipeline(stages)?;
        Pipeline::parse_checked(stages, settings)
    }

    /// As [`Pipeline::parse_raw`] of stages in a pipeline that was checked as a whole.
    pub(crate) fn parse_checked(stages: &RawArray, settings: &Settings) -> Result<Pipeline> {
        let mut parsed = Vec::new();
        for (at, stage) in stages.into_iter().enumerate() {
            if at >= MAX_STAGES {
                return Err(Error::location(
                    7_749_501,
                    format!("Pipeline length must be no longer than {MAX_STAGES} stages."),
                ));
            }
            let RawBsonRef::Document(stage) = stage? else {
                return Err(Error::type_mismatch(
                    "Each element of the 'pipeline' array must be an object",
                ));
            };
            let mut entries = stage.iter();
            let (Some(entry), None) = (entries.next().transpose()?, entries.next()) else {
                return Err(Error::location(
                    40_323,
                    "A pipeline stage specification object must contain exactly one field.",
                ));
            };
            let (name, spec) = entry;
            parsed.extend(Stage::parse(name.as_str(), spec, settings)?);
        }
        check_order(&parsed)?;
        Ok(Pipeline {
            stages: parsed,
            settings: settings.clone(),
        })
    }

    /// A pipeline of stages that are parsed already.
    #[must_use]
    pub fn from_stages(stages: Vec<Stage>, settings: &Settings) -> Pipeline {
        Pipeline {
            stages,
            settings: settings.clone(),
        }
    }

    /// The stages.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The stages, taken out.
    #[must_use]
    pub fn into_stages(self) -> Vec<Stage> {
        self.stages
    }

    /// Collation, variables and time of the operation.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether there are no stages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether the first stage makes documents out of nothing, so that no collection is read.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.stages.first().is_some_and(Stage::is_source)
    }

    /// Whether a stage asks for the key that documents were sorted by.
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        let reads = |stage: &Stage| matches!(stage, Stage::Transform(t) if t.reads_sort_key());
        self.stages.iter().any(reads)
    }

    /// Whether the last stage writes.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.stages.last().is_some_and(Stage::writes)
    }

    /// The pipeline of a view with this one behind it.
    ///
    /// # Errors
    /// 40602 when this one must come first.
    pub fn behind(self, mut view: Pipeline) -> Result<Pipeline> {
        view.stages.extend(self.stages);
        check_order(&view.stages)?;
        view.settings = self.settings;
        Ok(view)
    }
}

/// Sources first, writers last.
fn check_order(stages: &[Stage]) -> Result<()> {
    let last = stages.len().saturating_sub(1);
    for (at, stage) in stages.iter().enumerate() {
        if stage.is_source() && at > 0 {
            return Err(Error::location(
                40_602,
                format!(
                    "{} is only valid as the first stage in a pipeline",
                    stage.name()
                ),
            ));
        }
        if stage.writes() && at < last {
            return Err(Error::location(
                40_601,
                format!(
                    "{} can only be the final stage in the pipeline",
                    stage.name()
                ),
            ));
        }
    }
    Ok(())
}
