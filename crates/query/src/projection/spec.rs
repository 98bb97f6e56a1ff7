//! A parsed projection.

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use super::extra;
use super::tree::{Child, Fields};
use super::{parse, raw};
use crate::expr::{Dependencies, SORT_KEY, Variables};
use crate::filter::{Details, Filter};
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
    /// The path before `.$`.
    pub(super) positional: Option<String>,
    pub(super) variables: Variables,
}

/// Treatment of the fields that the projection does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They go.
    Include,
    /// They stay, and those that are listed go.
    Exclude,
    /// They stay, and nothing goes.
    Add,
}

impl Projection {
    /// Parses the projection of `find`. `filter` is the query, which a positional projection needs.
    ///
    /// # Errors
    /// MongoDB's 31249 to 31395: mixed inclusion and exclusion, paths that meet, misplaced
    /// operators.
    pub fn parse(
        spec: &RawDocument,
        settings: &Settings,
        filter: Option<&Filter>,
    ) -> Result<Projection> {
        repeated::check_paths(spec)?;
        parse::find(spec, settings, filter.is_some())
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

    /// Excludes `paths`.
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

    /// As [`Projection::apply`] of a document that was sorted by `key`.
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

    /// Whether fields are only chosen, so that bytes are enough.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        self.mode != Mode::Add && self.positional.is_none() && !self.fields.complex
    }

    /// Whether the positional `$` is in it, so that the query must say which element it matched.
    #[must_use]
    pub fn needs_match(&self) -> bool {
        self.positional.is_some()
    }

    /// Whether it asks for the key that documents were sorted by (`{$meta: "sortKey"}`).
    #[must_use]
    pub fn reads_sort_key(&self) -> bool {
        let mut found = Dependencies::default();
        self.dependencies(&mut found);
        found.reads_sort_key()
    }

    /// Whether it names the fields that stay.
    #[must_use]
    pub fn is_inclusion(&self) -> bool {
        self.mode == Mode::Include
    }

    /// The paths that are enough to compute the result; none when it takes the whole document.
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

    /// Adds what is read of the document; for projections that keep what they do not name, that is
    /// what the expressions read, not what passes through.
    pub fn dependencies(&self, found: &mut Dependencies) {
        let include = self.mode == Mode::Include;
        let mut paths = Vec::new();
        self.fields.visit("", &mut |path, child| match child {
            Child::Computed(expr) => {
                expr.dependencies(found);
                // A value goes into each element of an array on the way to its field, so what is
                // there decides on the shape of the result.
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
    /// A number in a path is an index to filters and a name to projections, so behind the first
    /// name such a path counts as all that is below it.
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
                // Computing below a name makes documents of what is no document there.
                _ => disturbed |= named.head() == path.head(),
            }
        });
        !disturbed && (listed || self.mode != Mode::Include)
    }

    /// The names of top-level fields after an inclusion; none when they are not known.
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
