//! The `arrayFilters` of an update: the array elements that `$[id]` stands for.

use std::collections::HashSet;
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf};

use super::tree::identifier;
use crate::filter::Filter;
use crate::keyed::Keyed;
use crate::settings::Settings;
use crate::{Code, Error, Result, show};

/// Filters by identifier.
#[derive(Debug, Clone, Default)]
pub(super) struct ArrayFilters {
    filters: Keyed<Arc<Filter>>,
}

impl ArrayFilters {
    /// Parses the array; each filter must be about exactly one identifier.
    pub(super) fn parse(specs: &[RawDocumentBuf], settings: &Settings) -> Result<ArrayFilters> {
        let mut filters: Keyed<Arc<Filter>> = Keyed::default();
        for spec in specs {
            let filter = Filter::parse_plain(spec, settings)
                .map_err(|error| in_filter(error.code, &error.message))?;
            let id = identifier_of(&Document::try_from(spec)?)?;
            if filters.get(&id).is_some() {
                return Err(Error::parse(format!(
                    "Found multiple array filters with the same top-level field name {id}"
                )));
            }
            filters.set(&id, Arc::new(filter));
        }
        Ok(ArrayFilters { filters })
    }

    /// Whether a filter has this identifier, or the identifier is empty (`$[]`, every element).
    pub(super) fn knows(&self, id: &str) -> bool {
        id.is_empty() || self.filters.get(id).is_some()
    }

    /// Whether `element` matches the filter of `id`.
    pub(super) fn matches(&self, id: &str, element: &Bson) -> Result<bool> {
        if id.is_empty() {
            return Ok(true);
        }
        let Some(filter) = self.filters.get(id) else {
            return Ok(false);
        };
        let mut holder = Document::new();
        holder.insert(id, element.clone());
        filter.matches(&RawDocumentBuf::try_from(&holder)?)
    }

    /// Checks that every filter's identifier occurs in one of `paths`.
    pub(super) fn check_used(&self, update: &Document, paths: &[String]) -> Result<()> {
        if self.filters.len() == 0 {
            return Ok(());
        }
        let names = paths.iter().flat_map(|path| path.split('.'));
        let used: HashSet<&str> = names.filter_map(identifier).collect();
        for (id, _) in self.filters.iter() {
            if !used.contains(id) {
                return Err(Error::parse(format!(
                    "The array filter for identifier '{id}' was not used in the update {}",
                    show::document(update)
                )));
            }
        }
        Ok(())
    }
}

/// The identifier of a filter: the first name of the paths of all its conditions, which must be the
/// same.
fn identifier_of(filter: &Document) -> Result<String> {
    let mut found: Option<String> = None;
    gather(filter, &mut found)?;
    let Some(id) = found else {
        return Err(Error::parse(
            "Cannot use an expression without a top-level field name in arrayFilters",
        ));
    };
    let mut letters = id.chars();
    let lower = letters.next().is_some_and(|c| c.is_ascii_lowercase());
    if !lower || !letters.all(|c| c.is_ascii_alphanumeric()) {
        return Err(in_filter(
            Code::BAD_VALUE,
            &format!(
                "The top-level field name must be an alphanumeric string beginning with a \
                 lowercase letter, found '{id}'"
            ),
        ));
    }
    Ok(id)
}

/// Descends through `$and`, `$or` and `$nor`. Recursion is bounded by the nesting of documents on
/// the wire.
fn gather(filter: &Document, found: &mut Option<String>) -> Result<()> {
    for (name, value) in filter {
        if let (true, Bson::Array(clauses)) = (name.starts_with('$'), value) {
            for clause in clauses.iter().filter_map(Bson::as_document) {
                gather(clause, found)?;
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        let head = name.split('.').next().unwrap_or_default();
        match found {
            None => *found = Some(head.to_owned()),
            Some(known) if known == head => {}
            Some(known) => {
                return Err(in_filter(
                    Code::FAILED_TO_PARSE,
                    &format!(
                        "Expected a single top-level field name, found '{known}' and '{head}'"
                    ),
                ));
            }
        }
    }
    Ok(())
}

fn in_filter(code: Code, message: &str) -> Error {
    Error::new(
        code,
        format!("Error parsing array filter :: caused by :: {message}"),
    )
}
