//! A parsed projection.

use std::sync::Arc;

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use super::extra;
use super::tree::{Child, Fields};
use super::{parse, raw};
use crate::expr::{Dependencies, SORT_KEY, Variables};
use crate::filter::{Details, Filter};
use crate::meter::{Held, hold_parsed};
use crate::path::Path;
use crate::repeated;
use crate::settings::Settings;
use crate::sort::SortKey;
use crate::{Error, Result};

/// A parsed projection.
#[derive(Debug, Clone)]
pub struct Projection {
    pub(super) mode: Mode,
    pub(super) fields: Fields,
    /// The path before the positional `.$`.
    pub(super) positional: Option<String>,
    pub(super) variables: Variables,
    /// The memory of the projection of a `find`; nothing for a small one.
    pub(super) _held: Option<Arc<Held>>,
}

/// Treatment of the fields that the projection does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are dropped; listed fields are kept.
    Include,
    /// They are kept; listed fields are dropped.
    Exclude,
    /// They are kept; no field is dropped.
    Add,
}

impl Projection {
    /// Parses the projection of `find`. `filter` is the query, which a positional projection needs.
    ///
    /// # Errors
    /// MongoDB's 31249 to 31395: mixed inclusion and exclusion, paths of which one contains the
    /// other, misplaced operators.
    pub fn parse(
        spec: &RawDocument,
        settings: &Settings,
        filter: Option<&Filter>,
    ) -> Result<Projection> {
        repeated::check_paths(spec)?;
        let held = hold_parsed("A projection", spec)?;
        let parsed = parse::find(spec, settings, filter.is_some())?;
        Ok(Projection {
            _held: held,
            ..parsed
        })
    }

    /// Parses `$project`.
    ///
    /// # Errors
    /// As [`Projection::parse`].
    pub fn parse_stage(spec: &Document, settings: &Settings) -> Result<Projection> {
        parse::project(spec, settings)
    }

    /// Parses `$addFields`.
    ///
    /// # Errors
    /// As [`Projection::parse`].
    pub fn parse_add_fields(spec: &Document, settings: &Settings) -> Result<Projection> {
        parse::add_fields(spec, settings)
    }

    /// The projection that drops `paths`.
    ///
    /// # Errors
    /// As [`Projection::parse`].
    pub fn unset(paths: &[&str]) -> Result<Projection> {
        parse::unset(paths)
    }

    /// Applies the projection of `find` to bytes. `details` says which element the query matched.
    ///
    /// # Errors
    /// Errors of expressions, and 51246 when a positional projection has no element.
    pub fn apply(
        &self,
        document: &RawDocument,
        details: Option<&Details>,
    ) -> Result<RawDocumentBuf> {
        self.apply_with(document, details, &self.variables)
    }

    /// As [`Projection::apply`], for a document that a sort has ordered by `key`.
    ///
    /// # Errors
    /// As [`Projection::apply`].
    pub fn apply_sorted(
        &self,
        document: &RawDocument,
        details: Option<&Details>,
        key: &SortKey,
    ) -> Result<RawDocumentBuf> {
        let mut variables = self.variables.clone();
        variables.set(SORT_KEY, Some(Bson::Array(key.values().to_vec())));
        self.apply_with(document, details, &variables)
    }

    fn apply_with(
        &self,
        document: &RawDocument,
        details: Option<&Details>,
        variables: &Variables,
    ) -> Result<RawDocumentBuf> {
        if self.is_simple() {
            return raw::apply(self, document);
        }
        let before = Document::try_from(document)?;
        let Some(path) = &self.positional else {
            let after = self.apply_document(before, variables)?;
            return Ok(RawDocumentBuf::try_from(after)?);
        };
        let mut after = self.apply_document(before.clone(), variables)?;
        let index = details.and_then(|details| details.array_index);
        extra::positional(&mut after, &before, path, index)?;
        Ok(RawDocumentBuf::try_from(after)?)
    }

    /// Whether the projection only keeps or drops whole fields, so that it works on bytes.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        self.mode != Mode::Add && self.positional.is_none() && !self.fields.complex
    }

    /// Whether the projection has the positional `$`, so that the query must report the array
    /// element that it matched.
    #[must_use]
    pub fn needs_match(&self) -> bool {
        self.positional.is_some()
    }

    /// Whether the projection reads the key by which documents were sorted (`{$meta: "sortKey"}`).
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        let mut found = Dependencies::default();
        self.dependencies(&mut found);
        found.reads_sort_key()
    }

    /// Whether the projection keeps only the fields that it names.
    #[must_use]
    pub fn is_inclusion(&self) -> bool {
        self.mode == Mode::Include
    }

    /// The paths that the projection reads; `None` when it reads the whole document.
    #[must_use]
    pub fn required_fields(&self) -> Option<Vec<Path>> {
        if self.mode != Mode::Include || self.positional.is_some() {
            return None;
        }
        let mut dependencies = Dependencies::default();
        self.dependencies(&mut dependencies);
        if dependencies.whole {
            return None;
        }
        let paths = dependencies.fields.iter().map(|path| Path::parse(path));
        paths.collect::<Result<_, Error>>().ok()
    }

    /// Adds what the projection reads of the document. A projection that keeps the fields it does
    /// not name adds only what its expressions read, not the fields it passes on.
    pub fn dependencies(&self, found: &mut Dependencies) {
        let include = self.mode == Mode::Include;
        let mut paths = Vec::new();
        self.fields.visit("", &mut |path, child| match child {
            Child::Computed(expr) => {
                expr.dependencies(found);
                // Each element of an array on the path gets the value, so the result depends on
                // what the parent path holds.
                if let Some((parent, _)) = path.rsplit_once('.') {
                    paths.push(parent.to_owned());
                }
            }
            Child::ElemMatch(_) => paths.push(path.to_owned()),
            Child::Listed | Child::Slice(_) if include => paths.push(path.to_owned()),
            Child::Listed | Child::Slice(_) | Child::Fields(_) => {}
        });
        found.fields.extend(paths);
        if self.positional.is_some() {
            found.whole = true;
        }
    }

    /// Whether a filter on `path` gives the same result on every document before and after this
    /// projection.
    ///
    /// Filters read a number in a path as an index, projections as a name. A path with a number
    /// therefore counts as everything below its first name.
    #[must_use]
    pub fn preserves(&self, path: &Path) -> bool {
        let indexed = path.components().iter().any(|c| c.index().is_some());
        let Ok(path) = Path::parse(if indexed { path.head() } else { path.as_str() }) else {
            return false;
        };
        let mut listed = false;
        let mut disturbed = self.positional.is_some();
        self.fields.visit("", &mut |named, child| {
            let Ok(named) = Path::parse(named) else {
                disturbed = true;
                return;
            };
            match child {
                Child::Listed if self.mode == Mode::Include && named.covers(&path) => listed = true,
                Child::Listed => disturbed |= named.overlaps(&path),
                // Computing a field below a name replaces a value there that is not a document.
                _ => disturbed |= named.head() == path.head(),
            }
        });
        !disturbed && (listed || self.mode != Mode::Include)
    }

    /// The names of top-level fields that the result may have; `None` when the projection passes on
    /// other fields.
    #[must_use]
    pub fn output_fields(&self) -> Option<Vec<String>> {
        (self.mode == Mode::Include).then(|| {
            self.fields
                .iter()
                .map(|(name, _)| name.to_owned())
                .collect()
        })
    }
}
