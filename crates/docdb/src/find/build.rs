//! Builds the executor of a chosen plan.

use std::sync::Arc;

use bson::{Document, RawBson};
use query::Result;
use query::collation::Collator;
use query::filter::Filter;
use query::sort::Sort;

use super::express::Express;
use crate::collection::Collection;
use crate::exec::{
    Executor, Input, Keyed, Merge, Or, Output, Parts, Point, Records, Scan, Shape, SortLimits,
    Sorter, Source, SpillPlace, Tail,
};
use crate::plan::{Access, Candidate, Cover, IndexScan, Keys};

/// Maximum bytes that a sort holds in memory before it spills to disk (MongoDB's limit).
pub(crate) const SORT_MEMORY: usize = 100 * 1024 * 1024;

/// The parts of a query that its execution needs.
#[derive(Clone)]
pub(crate) struct Purpose {
    /// The filter that documents must match.
    pub(crate) filter: Arc<Filter>,
    /// The requested sort order.
    pub(crate) sort: Option<Arc<Sort>>,
    /// The collator for strings; `None` compares bytes.
    pub(crate) collator: Option<Arc<Collator>>,
    /// Skip, limit, projection.
    pub(crate) tail: Tail,
    /// Only the record ids of matching documents are wanted.
    pub(crate) records_only: bool,
    /// The paths that the projection includes, if it does nothing else.
    pub(crate) kept: Option<Vec<String>>,
    /// The projection as it was given.
    pub(crate) projection: Option<Document>,
    /// Where spill files of sorts are made; `None` if spilling is not allowed.
    pub(crate) spill: Option<SpillPlace>,
    /// Maximum bytes that a sort may hold in memory.
    pub(crate) memory: usize,
    /// Whether the scan waits at its end for more documents.
    pub(crate) tailable: bool,
    /// Documents may change between two items and must still be returned only once.
    pub(crate) once: bool,
    /// MongoDB's express plan for a lookup of one `_id`; `None` means `IDHACK`.
    pub(crate) express: Option<Express>,
}

/// The executor of `candidate`.
///
/// # Errors
/// An `_id` that cannot be written as BSON.
pub(crate) fn build(
    collection: &Arc<Collection>,
    candidate: &Candidate,
    purpose: &Purpose,
) -> Result<Executor> {
    let builder = Builder {
        collection,
        candidate,
        purpose,
    };
    let input = builder.input(&candidate.access, false)?;
    let sorter = match &purpose.sort {
        Some(sort) if !candidate.sorted => {
            let limit = purpose.tail.limit.map(|limit| {
                usize::try_from(limit.saturating_add(purpose.tail.skip)).unwrap_or(usize::MAX)
            });
            let limits = SortLimits {
                memory: purpose.memory,
                place: purpose.spill.clone(),
                clustered: collection.is_clustered(),
            };
            Some(Sorter::new(
                Arc::clone(sort),
                purpose.collator.clone(),
                limit,
                limits,
            ))
        }
        _ => None,
    };
    Ok(Executor::new(input, sorter, purpose.tail.clone()))
}

struct Builder<'a> {
    collection: &'a Arc<Collection>,
    candidate: &'a Candidate,
    purpose: &'a Purpose,
}

impl Builder<'_> {
    /// `looked`: a stage above removes duplicates.
    fn input(&self, access: &Access, looked: bool) -> Result<Input> {
        Ok(match access {
            Access::Nothing => Input::Nothing,
            Access::Id(id) => {
                let id = RawBson::try_from(id.clone())?;
                let collection = Arc::clone(self.collection);
                let output = self.output(self.plain(Keyed::Id));
                let leaf = self.purpose.point(&collection);
                Input::Point(Point::new(id, collection, output, leaf))
            }
            Access::Collection { backward, ranges } => {
                let output = self.output(self.plain(Keyed::Nothing));
                Input::Scan(Box::new(Scan::new(Parts {
                    source: Source::Records,
                    ranges: ranges.clone(),
                    backward: *backward,
                    output,
                    dedupe: false,
                    tailing: self.purpose.tailable,
                })))
            }
            Access::Index(scan) => self.scan(scan, looked),
            Access::Or(inputs) => Input::Or(Or::new(self.inputs(inputs)?)),
            Access::Merge(inputs) => {
                let Some(sort) = &self.purpose.sort else {
                    return Ok(Input::Or(Or::new(self.inputs(inputs)?)));
                };
                Input::Merge(Merge::new(
                    self.inputs(inputs)?,
                    Arc::clone(sort),
                    self.purpose.collator.clone(),
                    self.output(self.plain(Keyed::Nothing)),
                ))
            }
        })
    }

    fn inputs(&self, inputs: &[Access]) -> Result<Vec<Input>> {
        inputs.iter().map(|input| self.input(input, true)).collect()
    }

    fn scan(&self, scan: &IndexScan, looked: bool) -> Input {
        let Some(index) = scan.index.source() else {
            return Input::Nothing;
        };
        let shape = if self.candidate.covered && !self.purpose.records_only {
            self.covered(scan)
        } else {
            self.plain(Keyed::Entry(Arc::new(Keys::new(&scan.index))))
        };
        Input::Scan(Box::new(Scan::new(Parts {
            source: Source::Index {
                index: Arc::clone(index),
                multikey: scan.index.multikey(),
            },
            ranges: Some(Arc::clone(&scan.ranges)),
            backward: scan.backward,
            output: self.output(shape),
            dedupe: !looked && (self.purpose.once || scan.index.multikey()),
            tailing: false,
        })))
    }

    /// The shape of whole documents; `keyed` is the key they are found by.
    fn plain(&self, keyed: Keyed) -> Shape {
        if self.purpose.records_only {
            Shape::Record
        } else if self.purpose.tail.return_key {
            Shape::Keyed(keyed)
        } else {
            Shape::Document
        }
    }

    /// The shape of documents built from the key. They are the client's result if no later stage
    /// reads other fields.
    fn covered(&self, scan: &IndexScan) -> Shape {
        let candidate = self.candidate;
        let kept = self.purpose.kept.as_ref().filter(|kept| {
            candidate.exact
                && self.purpose.sort.as_ref().is_none_or(|sort| {
                    let reads = |path: &str| kept.iter().any(|kept| kept == path);
                    let merged = !matches!(candidate.access, Access::Index(_));
                    (candidate.sorted && !merged)
                        || sort.fields().iter().all(|(path, _)| reads(path.as_str()))
                })
        });
        let cover = match kept {
            Some(kept) => Cover::new(&scan.index, &|path| kept.iter().any(|kept| kept == path)),
            None => Cover::new(&scan.index, &|_| true),
        };
        Shape::Covered {
            cover: Arc::new(cover),
            projected: kept.is_some(),
        }
    }

    fn output(&self, shape: Shape) -> Output {
        let full = Some(Arc::clone(&self.purpose.filter));
        Output {
            records: Records {
                tree: self.collection.records(),
                clustered: self.collection.is_clustered(),
            },
            filter: full.clone().filter(|_| !self.candidate.exact),
            full,
            shape,
        }
    }
}
