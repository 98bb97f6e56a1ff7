//! A parsed update, and how it is applied.

use std::sync::Arc;

use bson::{Bson, DateTime, Document, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp};

use super::array_filter::ArrayFilters;
use super::tree::Fields;
use super::{apply, identical, parse, replacement};
use crate::expr::check_in_pipeline;
use crate::meter::{Held, Parsing, hold_parsed};
use crate::path::array_index;
use crate::repeated::check_paths_of;
use crate::settings::Settings;
use crate::transform::Transform;
use crate::{Error, Result, meter};

/// A parsed update.
#[derive(Debug, Clone)]
pub struct Update {
    pub(super) kind: Kind,
    pub(super) settings: Settings,
    /// The memory of a replacement or a pipeline; nothing for a small one.
    _held: Option<Arc<Held>>,
}

/// The three forms of an update.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// The new document; only `_id` is kept.
    Replacement(Document),
    /// Operators, such as `{$set: ..}`.
    Operators(Operators),
    /// Stages of an aggregation.
    Pipeline(Vec<Transform>),
}

/// The tree of operators, and what applying it needs.
#[derive(Debug, Clone)]
pub(super) struct Operators {
    pub(super) fields: Fields,
    /// The memory of the tree.
    pub(super) held: Arc<Held>,
    pub(super) filters: ArrayFilters,
    /// Every path as it is written in the update, for [`Update::touches`].
    pub(super) paths: Vec<String>,
    /// The first names of the paths and `_id`, sorted, each once.
    pub(super) names: Vec<Box<str>>,
}

/// What applying an update needs besides the document.
#[derive(Debug, Clone)]
pub struct Position {
    /// The index of the array element that the query matched, which `$` stands for.
    pub array_index: Option<usize>,
    /// Whether the document is being inserted by an upsert: `$setOnInsert` applies, and `_id` may
    /// still be set.
    pub inserting: bool,
    /// The time of the operation, for `$currentDate`.
    pub now: DateTime,
    /// The logical time of the operation, for timestamps of `$currentDate` and for zero timestamps
    /// in a replacement.
    pub timestamp: Timestamp,
}

impl Default for Position {
    fn default() -> Position {
        Position::at(DateTime::from_millis(0))
    }
}

impl Position {
    /// For an operation at `now` on an existing document, without a matched array element.
    #[must_use]
    pub fn at(now: DateTime) -> Position {
        let seconds = now.timestamp_millis().div_euclid(1000);
        Position {
            array_index: None,
            inserting: false,
            now,
            timestamp: Timestamp {
                time: u32::try_from(seconds).unwrap_or(0),
                increment: 1,
            },
        }
    }

    /// Returns this position with `index` as the matched array element.
    #[must_use]
    pub fn with_array_index(mut self, index: Option<usize>) -> Position {
        self.array_index = index;
        self
    }

    /// Returns this position for the insert of an upsert.
    #[must_use]
    pub fn inserting(mut self) -> Position {
        self.inserting = true;
        self
    }
}

impl Update {
    /// Parses the `u` of an update statement: a document, or a pipeline as an array.
    ///
    /// # Errors
    /// `FailedToParse` for unknown operators, `ConflictingUpdateOperators` for paths of which one
    /// contains the other, `BadValue`, `TypeMismatch` and other MongoDB codes for invalid operands.
    pub fn parse(
        spec: RawBsonRef<'_>,
        array_filters: &[RawDocumentBuf],
        settings: &Settings,
    ) -> Result<Update> {
        match spec {
            RawBsonRef::Document(document) => {
                let held = hold_parsed("An update", document)?;
                let _whole = Parsing::begin();
                let tree = parse::merged(document)?;
                let parsed = Update::of(tree, Some(document), array_filters, settings)?;
                Ok(Update {
                    _held: held,
                    ..parsed
                })
            }
            RawBsonRef::Array(stages) => {
                for stage in stages {
                    check_in_pipeline(stage?)?;
                }
                for stage in stages {
                    if let RawBsonRef::Document(stage) = stage?
                        && let Some(Ok((name, RawBsonRef::Document(spec)))) = stage.iter().next()
                    {
                        check_paths_of(name.as_str(), spec)?;
                    }
                }
                let mut held = Held::new();
                held.require("An update", meter::parsed_size_of(stages)?)?;
                let _whole = Parsing::begin();
                let stages = Vec::<Bson>::try_from(stages)?;
                let parsed = Update::from_pipeline(&stages, array_filters, settings)?;
                Ok(Update {
                    _held: Some(Arc::new(held)),
                    ..parsed
                })
            }
            _ => Err(Error::parse(
                "Update argument must be either an object or an array",
            )),
        }
    }

    /// As [`Update::parse`], from an owned document.
    ///
    /// # Errors
    /// As [`Update::parse`].
    pub fn from_document(
        document: Document,
        array_filters: &[RawDocumentBuf],
        settings: &Settings,
    ) -> Result<Update> {
        Update::of(document, None, array_filters, settings)
    }

    fn of(
        document: Document,
        raw: Option<&RawDocument>,
        array_filters: &[RawDocumentBuf],
        settings: &Settings,
    ) -> Result<Update> {
        let operators = document.keys().next().is_some_and(|k| k.starts_with('$'));
        let kind = if operators {
            Kind::Operators(parse::operators(&document, raw, array_filters, settings)?)
        } else {
            if !array_filters.is_empty() {
                return Err(Error::parse(
                    "Cannot specify arrayFilters for a replacement-style update",
                ));
            }
            Kind::Replacement(document)
        };
        Ok(Update {
            kind,
            settings: settings.clone(),
            _held: None,
        })
    }

    /// A replacement by a whole document, even if its first name begins with `$`: it has no
    /// operators.
    #[must_use]
    pub fn replacement(document: Document, settings: &Settings) -> Update {
        Update {
            kind: Kind::Replacement(document),
            settings: settings.clone(),
            _held: None,
        }
    }

    /// Parses a pipeline of `$set`, `$unset`, `$project`, `$replaceWith` and their aliases.
    ///
    /// # Errors
    /// The errors of these stages' parsers; `InvalidOptions` for other stages.
    pub fn from_pipeline(
        stages: &[Bson],
        array_filters: &[RawDocumentBuf],
        settings: &Settings,
    ) -> Result<Update> {
        if !array_filters.is_empty() {
            return Err(Error::parse(
                "Cannot specify arrayFilters for a pipeline-style update",
            ));
        }
        Ok(Update {
            kind: Kind::Pipeline(parse::pipeline(stages, settings)?),
            settings: settings.clone(),
            _held: None,
        })
    }

    /// Whether the update is a replacement.
    #[must_use]
    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }

    /// Whether the update is a pipeline.
    #[must_use]
    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, Kind::Pipeline(_))
    }

    /// Whether a path has the positional `$`, so that the query must report the array element it
    /// matched.
    #[must_use]
    pub fn needs_match(&self) -> bool {
        match &self.kind {
            Kind::Operators(operators) => operators
                .paths
                .iter()
                .any(|path| path.split('.').any(|name| name == "$")),
            _ => false,
        }
    }

    /// Applies the update to `current`; `None` if nothing changes. A replacement is a change unless
    /// it is identical to the document, including `_id`.
    ///
    /// # Errors
    /// `ImmutableField` when `_id` would change, `DollarPrefixedFieldName` when a top-level field
    /// that begins with `$` would be written to an existing document, `PathNotViable`,
    /// `TypeMismatch`, `BadValue` and others by operator.
    pub fn apply(&self, current: &Document, at: &Position) -> Result<Option<Document>> {
        match &self.kind {
            Kind::Replacement(document) => replacement::apply(document.clone(), current, at, true),
            Kind::Operators(operators) => {
                let next = apply::operators(operators, current, at, &self.settings)?;
                Ok(next.filter(|next| !identical(next, current)))
            }
            Kind::Pipeline(stages) => {
                let mut next = meter::copy_stored(current, meter::document_size(current))?;
                for stage in stages {
                    next = stage.apply(next, &self.settings.variables)?;
                }
                replacement::apply(next, current, at, false)
            }
        }
    }

    /// Whether the update may change the value at `path`, or whether it exists. An index on other
    /// paths keeps its entries.
    #[must_use]
    pub fn touches(&self, path: &str) -> bool {
        match &self.kind {
            Kind::Operators(operators) => {
                operators.paths.iter().any(|touched| overlap(touched, path))
            }
            _ => true,
        }
    }
}

/// Whether two paths are equal or one contains the other; array indexes and `$` names are ignored.
fn overlap(left: &str, right: &str) -> bool {
    let significant = |name: &&str| !name.starts_with('$') && array_index(name).is_none();
    let mut left = left.split('.').filter(significant);
    let mut right = right.split('.').filter(significant);
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => return false,
            _ => return true,
        }
    }
}
