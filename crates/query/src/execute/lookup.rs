//! `$lookup`.
//!
//! Without a pipeline, the foreign collection is queried for equal values, for which the host may
//! use an index. With a pipeline, its variables are bound to their values and the pipeline runs for
//! every row; if it does not depend on the row, it runs only once.

use std::sync::Arc;

use bson::{Bson, Document};

use super::host::equal_to_one;
use super::simple::Listed;
use super::unwind::put;
use super::{Host, Rows, build, memory};
use crate::expr::FieldPath;
use crate::meter::{self, Held};
use crate::path::Path;
use crate::pipeline::Pipeline;
use crate::stage::{Lookup, Stage, bindings};
use crate::{Error, Namespace, Result, Row};

/// `$lookup`.
pub(super) struct LookupRows {
    input: Box<dyn Rows>,
    lookup: Lookup,
    /// The array of every row, once it is known; set only if the lookup does not depend on the row.
    same: Option<Vec<Document>>,
    /// The row whose array a following `$unwind` returns one by one, with the rest of the array.
    current: Option<Current>,
    /// Memory reserved in the budget of all operations: for `same`, and for the array of one row.
    kept: Held,
    held: Held,
}

struct Current {
    document: Document,
    /// The sort key of the row.
    key: Option<Arc<[Bson]>>,
    found: Box<dyn Rows>,
    next: i64,
}

impl LookupRows {
    pub(super) fn new(input: Box<dyn Rows>, lookup: Lookup) -> LookupRows {
        LookupRows {
            input,
            lookup,
            same: None,
            current: None,
            kept: Held::new(),
            held: Held::new(),
        }
    }

    /// The documents of the foreign collection that match one local document.
    fn find(&mut self, document: &Document, host: &mut dyn Host) -> Result<Box<dyn Rows>> {
        if !self.lookup.is_uncorrelated() {
            return self.run(document, host);
        }
        if let Some(same) = &self.same {
            // Every row gets a copy of the array.
            meter::read(self.kept.bytes())?;
            self.held.require("$lookup", self.kept.bytes())?;
            return Ok(listed(same));
        }
        let mut rows = self.run(document, host)?;
        let found = collect(rows.as_mut(), host, &mut self.kept)?;
        let rows = listed(&found);
        self.same = Some(found);
        Ok(rows)
    }

    fn run(&self, document: &Document, host: &mut dyn Host) -> Result<Box<dyn Rows>> {
        let lookup = &self.lookup;
        let ns = match &lookup.from {
            Some(target) => target.resolve(host.database())?,
            None => Namespace::collectionless(host.database()),
        };
        let equal: Option<(Vec<Bson>, &Path)> = lookup
            .on
            .as_ref()
            .map(|(local, foreign)| (local_values(document, local), foreign));
        let Some(sub) = &lookup.pipeline else {
            let Some((values, path)) = equal else {
                return Ok(listed(&[]));
            };
            if values.is_empty() {
                return Ok(listed(&[]));
            }
            return host.find_equal(&ns, path, &values, &lookup.settings);
        };
        let variables = bindings(&lookup.variables, document, &lookup.settings.variables)?;
        let mut pipeline = sub.bind(&variables)?;
        if let Some((values, path)) = equal {
            // The filter has the variables of `let`, because adjacent filters are merged and keep
            // only one set of variables.
            let filter = equal_to_one(path, &values, pipeline.settings())?;
            let first = Pipeline::from_stages(vec![Stage::Match(filter)], pipeline.settings());
            pipeline = pipeline.behind(first)?;
        }
        if lookup.from.is_none() {
            return build(pipeline.optimize(), listed(&[]));
        }
        host.aggregate(&ns, pipeline)
    }

    /// The next row: the current local document with one found document in place of the array.
    fn unwound(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        loop {
            if let Some(mut current) = self.current.take() {
                if let Some(found) = current.found.next(host)? {
                    let mut document = current.document.clone();
                    put(
                        &mut document,
                        &self.lookup.r#as,
                        found.into_document()?.into(),
                    );
                    self.index(&mut document, Bson::Int64(current.next));
                    current.next += 1;
                    let row = Row::from_document(document).with_sort_key(current.key.clone());
                    self.current = Some(current);
                    return Ok(Some(row));
                }
                let preserve = self.lookup.unwind.as_ref().is_some_and(|u| u.preserve);
                if current.next == 0 && preserve {
                    let mut document = current.document;
                    super::unwind::remove(&mut document, &self.lookup.r#as);
                    self.index(&mut document, Bson::Null);
                    let row = Row::from_document(document);
                    return Ok(Some(row.with_sort_key(current.key)));
                }
            }
            host.check()?;
            let Some(row) = self.input.next(host)? else {
                return Ok(None);
            };
            let key = row.sort_key();
            let document = row.into_document()?;
            let found = self.find(&document, host)?;
            self.current = Some(Current {
                document,
                key,
                found,
                next: 0,
            });
        }
    }

    fn index(&self, document: &mut Document, index: Bson) {
        let unwind = self.lookup.unwind.as_ref();
        if let Some(path) = unwind.and_then(|unwind| unwind.index.as_ref()) {
            put(document, path, index);
        }
    }
}

impl Rows for LookupRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if self.lookup.unwind.is_some() {
            return self.unwound(host);
        }
        let Some(row) = self.input.next(host)? else {
            return Ok(None);
        };
        host.check()?;
        let key = row.sort_key();
        let mut document = row.into_document()?;
        let mut rows = self.find(&document, host)?;
        let found = collect(rows.as_mut(), host, &mut self.held)?.into_iter();
        let found = found.map(Bson::Document).collect();
        put(&mut document, &self.lookup.r#as, Bson::Array(found));
        Ok(Some(Row::from_document(document).with_sort_key(key)))
    }
}

/// The rows of an array that is kept in memory.
fn listed(documents: &[Document]) -> Box<dyn Rows> {
    let rows = documents.iter().cloned().map(Row::from_document);
    Box::new(Listed::new(rows.collect()))
}

/// Reads all rows, within the memory limit of a stage.
pub(super) fn collect(
    rows: &mut dyn Rows,
    host: &mut dyn Host,
    held: &mut Held,
) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next(host)? {
        host.check()?;
        let document = row.into_document()?;
        bytes += memory::document(&document);
        if bytes > host.memory_limit() {
            return Err(Error::location(
                4_568,
                format!(
                    "Total size of documents in a $lookup's matching pipeline's result exceeds {} \
                     bytes",
                    host.memory_limit()
                ),
            ));
        }
        held.require("$lookup", bytes)?;
        documents.push(document);
    }
    Ok(documents)
}

/// The values to search for in the foreign field: the values at `path`, the elements of an array
/// one by one, and null if there is no value.
pub(super) fn local_values(document: &Document, path: &FieldPath) -> Vec<Bson> {
    let mut values = Vec::new();
    let mut missing = true;
    visit(document, path.names(), &mut values, &mut missing);
    if missing && values.is_empty() {
        values.push(Bson::Null);
    }
    values
}

/// Recursion is bounded by the length of the path.
fn visit(document: &Document, names: &[Box<str>], values: &mut Vec<Bson>, missing: &mut bool) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    match document.get(&**name) {
        None => {}
        Some(Bson::Array(array)) if rest.is_empty() => {
            *missing = false;
            values.extend(array.iter().cloned());
        }
        Some(value) if rest.is_empty() => values.push(value.clone()),
        Some(Bson::Document(inner)) => visit(inner, rest, values, missing),
        Some(Bson::Array(array)) => {
            for inner in array.iter().filter_map(Bson::as_document) {
                visit(inner, rest, values, missing);
            }
        }
        Some(_) => {}
    }
}
