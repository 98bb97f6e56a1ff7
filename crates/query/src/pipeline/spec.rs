//! A parsed pipeline.

use bson::{Bson, RawArray, RawArrayBuf, RawBsonRef};

use crate::meter::{self, Held, Parsing};
use crate::settings::Settings;
use crate::stage::Stage;
use crate::{Code, Error, Result};

/// Maximum number of stages, as MongoDB's `internalPipelineLengthLimit`.
const MAX_STAGES: usize = 1000;
/// The stage that splits large events of a change stream.
const SPLIT: &str = "$changeStreamSplitLargeEvent";

/// Stages in order, with the collation, the variables and the time of their operation.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    pub(super) stages: Vec<Stage>,
    pub(super) settings: Settings,
    /// Estimated bytes of the stages, as they were parsed.
    pub(super) bytes: usize,
}

impl Pipeline {
    /// Parses the stages and checks their order.
    ///
    /// # Errors
    /// As [`Pipeline::parse_raw`].
    pub fn parse(stages: &[Bson], settings: &Settings) -> Result<Pipeline> {
        Pipeline::parse_raw(&RawArrayBuf::try_from(stages.to_vec())?, settings)
    }

    /// Parses the stages and checks their order. They are parsed from bytes, because a filter may
    /// have several conditions on one field (`{a: .., a: ..}`), of which an owned document keeps
    /// only the last.
    ///
    /// # Errors
    /// `TypeMismatch` for a stage that is not an object, 40323 for a stage with several names,
    /// 40413 for an option that is given twice, 31250 for a path of a projection that is given
    /// twice, 40324 for an unknown stage, 40601 and 40602 for a misplaced stage, and the errors of
    /// each stage's parser.
    pub fn parse_raw(stages: &RawArray, settings: &Settings) -> Result<Pipeline> {
        super::check_pipeline(stages)?;
        let bytes = meter::parsed_size_of(stages)?;
        let mut held = Held::new();
        held.require("A pipeline", bytes)?;
        let _whole = Parsing::begin();
        let parsed = Pipeline::parse_checked(stages, settings)?;
        Ok(Pipeline { bytes, ..parsed })
    }

    /// Estimated bytes of the stages, which the owner of the pipeline reserves.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// As [`Pipeline::parse_raw`], for a pipeline nested in one that was already checked.
    pub(crate) fn parse_checked(stages: &RawArray, settings: &Settings) -> Result<Pipeline> {
        Pipeline::parse_nested(stages, settings, &|_| None)
    }

    /// As [`Pipeline::parse_checked`], with the errors of `refuse` for stages that must not be in
    /// this pipeline, at whatever place.
    pub(crate) fn parse_nested(
        stages: &RawArray,
        settings: &Settings,
        refuse: &dyn Fn(&Stage) -> Option<Error>,
    ) -> Result<Pipeline> {
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
            // Storage executes it, behind the stages that run here.
            if name == SPLIT && matches!(parsed.first(), Some(Stage::ChangeStream(_))) {
                check_split(spec)?;
                continue;
            }
            parsed.extend(Stage::parse(name.as_str(), spec, settings)?);
        }
        if let Some(error) = parsed.iter().find_map(refuse) {
            return Err(error);
        }
        check_order(&parsed)?;
        Ok(Pipeline {
            stages: parsed,
            settings: settings.clone(),
            bytes: 0,
        })
    }

    /// A pipeline of parsed stages.
    #[must_use]
    pub fn from_stages(stages: Vec<Stage>, settings: &Settings) -> Pipeline {
        Pipeline {
            stages,
            settings: settings.clone(),
            bytes: 0,
        }
    }

    /// The stages.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Consumes the pipeline and returns its stages.
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

    /// Whether the first stage produces documents itself, so that no collection is read.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.stages.first().is_some_and(Stage::is_source)
    }

    /// Whether a stage reads the key by which documents were sorted.
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        let reads = |stage: &Stage| matches!(stage, Stage::Transform(t) if t.reads_sort_key());
        self.stages.iter().any(reads)
    }

    /// Whether the last stage writes to a collection.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.stages.last().is_some_and(Stage::writes)
    }

    /// The pipeline `view` followed by this pipeline.
    ///
    /// # Errors
    /// 40602 when this pipeline has a stage that must come first.
    pub fn behind(self, mut view: Pipeline) -> Result<Pipeline> {
        view.stages.extend(self.stages);
        check_order(&view.stages)?;
        view.settings = self.settings;
        view.bytes = view.bytes.saturating_add(self.bytes);
        Ok(view)
    }
}

/// Checks the argument of `$changeStreamSplitLargeEvent`, `{}`.
fn check_split(spec: RawBsonRef<'_>) -> Result<()> {
    match spec {
        RawBsonRef::Document(options) if options.is_empty() => Ok(()),
        _ => Err(Error::new(
            Code::TYPE_MISMATCH,
            format!("{SPLIT} stage expects an empty document as argument"),
        )),
    }
}

/// Checks that stages which produce documents come first, and stages which write come last.
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
