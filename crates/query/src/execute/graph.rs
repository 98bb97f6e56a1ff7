//! `$graphLookup`: a breadth-first search, so that every document is found at its smallest depth.

use std::collections::HashSet;
use std::sync::Arc;

use bson::{Bson, Document};

use super::host::equal_to_one;
use super::lookup::local_values;
use super::unwind::{put, remove};
use super::{Host, Rows, memory};
use crate::expr::Env;
use crate::meter::Held;
use crate::pipeline::Pipeline;
use crate::stage::{GraphLookup, Stage};
use crate::value::equivalence_key;
use crate::{Error, Namespace, Result, Row, meter};

/// Maximum number of values that one query searches for.
const BATCH: usize = 1000;
/// Bytes of a set entry in addition to its key.
const KEY: usize = 64;

/// `$graphLookup`.
pub(super) struct GraphRows {
    input: Box<dyn Rows>,
    lookup: GraphLookup,
    current: Option<Current>,
    /// Memory reserved in the budget of all operations.
    held: Held,
}

/// A row whose array of found documents a following `$unwind` returns one by one.
struct Current {
    document: Document,
    /// The sort key of the row.
    key: Option<Arc<[Bson]>>,
    found: std::iter::Enumerate<std::vec::IntoIter<Document>>,
}

/// The search for one input document.
struct Search {
    /// Equivalence keys of the values that were searched for.
    asked: HashSet<Vec<u8>>,
    /// Equivalence keys of the `_id`s of found documents.
    known: HashSet<Vec<u8>>,
    found: Vec<Document>,
    bytes: usize,
}

impl GraphRows {
    pub(super) fn new(input: Box<dyn Rows>, lookup: GraphLookup) -> GraphRows {
        GraphRows {
            input,
            lookup,
            current: None,
            held: Held::new(),
        }
    }

    fn search(&mut self, document: &Document, host: &mut dyn Host) -> Result<Vec<Document>> {
        let lookup = &self.lookup;
        let ns = lookup.from.resolve(host.database())?;
        let env = Env::new(document, &lookup.settings.variables);
        let mut frontier = match lookup.start_with.evaluate(&env)? {
            Some(Bson::Array(values)) => values,
            Some(value) => vec![value],
            None => vec![Bson::Null],
        };
        let mut search = Search {
            asked: HashSet::new(),
            known: HashSet::new(),
            found: Vec::new(),
            bytes: 0,
        };
        let mut depth: u64 = 0;
        while !frontier.is_empty() && lookup.max_depth.is_none_or(|most| depth <= most) {
            frontier = self.step(&ns, frontier, depth, &mut search, host)?;
            self.held.require("$graphLookup", search.bytes)?;
            depth += 1;
        }
        Ok(search.found)
    }

    /// Finds the documents whose field has a value of `frontier`; returns the values for the next
    /// step.
    fn step(
        &self,
        ns: &Namespace,
        frontier: Vec<Bson>,
        depth: u64,
        search: &mut Search,
        host: &mut dyn Host,
    ) -> Result<Vec<Bson>> {
        let collator = self.lookup.settings.collator.as_deref();
        let mut new = Vec::new();
        for value in frontier {
            meter::step()?;
            let key = equivalence_key(&value, collator);
            let bytes = KEY + key.len();
            if search.asked.insert(key) {
                search.count(bytes + memory::value(&value), host)?;
                new.push(value);
            }
        }
        let mut next = Vec::new();
        for values in new.chunks(BATCH) {
            let mut rows = self.ask(ns, values, host)?;
            while let Some(row) = rows.next(host)? {
                host.check()?;
                let mut document = row.into_document()?;
                let id = document.get("_id").unwrap_or(&Bson::Null);
                let key = equivalence_key(id, None);
                let bytes = KEY + key.len();
                if !search.known.insert(key) {
                    continue;
                }
                search.count(bytes, host)?;
                // The search ends at a document without the field `connectFromField`.
                if has(&document, self.lookup.connect_from.names()) {
                    let values = local_values(&document, &self.lookup.connect_from);
                    let bytes = values.iter().map(memory::value).sum();
                    search.count(bytes, host)?;
                    next.extend(values);
                }
                if let Some(field) = &self.lookup.depth_field {
                    let depth = i64::try_from(depth).unwrap_or(i64::MAX);
                    put(&mut document, field, Bson::Int64(depth));
                }
                search.keep(document, host)?;
            }
        }
        Ok(next)
    }

    fn ask(&self, ns: &Namespace, values: &[Bson], host: &mut dyn Host) -> Result<Box<dyn Rows>> {
        let lookup = &self.lookup;
        let Some(restrict) = &lookup.restrict else {
            return host.find_equal(ns, &lookup.connect_to, values, &lookup.settings);
        };
        let filter = equal_to_one(&lookup.connect_to, values, &lookup.settings)?;
        let filter = filter.and(restrict.clone());
        let stages = vec![Stage::Match(filter)];
        host.aggregate(ns, Pipeline::from_stages(stages, &lookup.settings))
    }

    fn index(&self, document: &mut Document, index: Bson) {
        let unwind = self.lookup.unwind.as_ref();
        if let Some(path) = unwind.and_then(|unwind| unwind.index.as_ref()) {
            put(document, path, index);
        }
    }

    fn unwound(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some((at, element)) = current.found.next() {
                    let mut document = current.document.clone();
                    let key = current.key.clone();
                    put(&mut document, &self.lookup.r#as, element.into());
                    let at = i64::try_from(at).unwrap_or(i64::MAX);
                    self.index(&mut document, Bson::Int64(at));
                    return Ok(Some(Row::from_document(document).with_sort_key(key)));
                }
                self.current = None;
            }
            let Some(row) = self.input.next(host)? else {
                return Ok(None);
            };
            let key = row.sort_key();
            let mut document = row.into_document()?;
            let found = self.search(&document, host)?;
            let preserve = self.lookup.unwind.as_ref().is_some_and(|u| u.preserve);
            if found.is_empty() && preserve {
                remove(&mut document, &self.lookup.r#as);
                self.index(&mut document, Bson::Null);
                return Ok(Some(Row::from_document(document).with_sort_key(key)));
            }
            self.current = Some(Current {
                document,
                key,
                found: found.into_iter().enumerate(),
            });
        }
    }
}

impl Search {
    fn keep(&mut self, document: Document, host: &dyn Host) -> Result<()> {
        self.count(memory::document(&document), host)?;
        self.found.push(document);
        Ok(())
    }

    /// Counts memory that the search holds until it ends; fails above the memory limit.
    fn count(&mut self, bytes: usize, host: &dyn Host) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > host.memory_limit() {
            return Err(Error::location(
                40_099,
                "$graphLookup reached maximum memory consumption",
            ));
        }
        Ok(())
    }
}

impl Rows for GraphRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if self.lookup.unwind.is_some() {
            return self.unwound(host);
        }
        let Some(row) = self.input.next(host)? else {
            return Ok(None);
        };
        let key = row.sort_key();
        let mut document = row.into_document()?;
        let found = self.search(&document, host)?;
        let found = found.into_iter().map(Bson::Document).collect();
        put(&mut document, &self.lookup.r#as, Bson::Array(found));
        Ok(Some(Row::from_document(document).with_sort_key(key)))
    }
}

/// Whether the document has a value at the path, also within arrays.
fn has(document: &Document, names: &[Box<str>]) -> bool {
    let Some((name, rest)) = names.split_first() else {
        return true;
    };
    match document.get(&**name) {
        None => false,
        Some(_) if rest.is_empty() => true,
        Some(Bson::Document(inner)) => has(inner, rest),
        Some(Bson::Array(array)) => array
            .iter()
            .filter_map(Bson::as_document)
            .any(|inner| has(inner, rest)),
        Some(_) => false,
    }
}
