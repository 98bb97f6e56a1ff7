//! A plan as a tree of stages with MongoDB's names.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use bson::{Bson, Document, doc};
use query::filter::Filter;
use query::meter::{self, Held};

use crate::exec::{Counts, Executor, Input};
use crate::find::{Express, Purpose};
use crate::plan::{Access, Candidate, IndexScan, Interval, Intervals};

/// The use of the documents at the root of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Documents are returned.
    Find,
    /// They are counted.
    Count,
}

/// Maximum bytes that the filters, projections and bounds of an explanation take in memory
/// (MongoDB's limit for the BSON of the plans). The filter is repeated in each stage that evaluates
/// it, and the plan in the statistics; with the command the explanation must fit a reply.
const SHOWN_BYTES: usize = 10 << 20;

/// Estimated bytes of a stage without filter and bounds.
const STAGE: usize = 1024;

/// The bytes that are left for an explanation, in its limit and in the common budget.
pub(crate) struct Room {
    left: Cell<usize>,
    held: RefCell<Held>,
}

impl Room {
    pub(crate) fn new() -> Room {
        Room {
            left: Cell::new(SHOWN_BYTES),
            held: RefCell::new(Held::new()),
        }
    }

    /// Takes bytes; false if fewer are left, and then none are.
    fn take(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        let left = left.filter(|_| self.held.borrow_mut().add(bytes));
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// A copy of a document; `None` if there is no room for it.
    fn copy(&self, document: &Document) -> Option<Document> {
        let fits = self.take(meter::document_size(document));
        fits.then(|| document.clone())
    }
}

/// Renders a plan, with its statistics if it was executed.
pub(crate) struct Tree<'a> {
    pub(crate) candidate: &'a Candidate,
    pub(crate) purpose: &'a Purpose,
    pub(crate) used_for: Use,
    /// The executed plan.
    pub(crate) executor: Option<&'a Executor>,
    pub(crate) room: &'a Room,
}

impl Tree<'_> {
    /// The whole tree.
    pub(crate) fn document(&self) -> Document {
        if let Access::Id(_) = self.candidate.access
            && self.used_for == Use::Find
            && let Some(express) = self.purpose.express()
        {
            return self.express(express);
        }
        let mut stage = self.access(&self.candidate.access, self.executor.map(Executor::input));
        let returned = self.executor.map(|executor| executor.counts().returned);
        if let Some(sort) = &self.purpose.sort
            && !self.candidate.sorted
        {
            stage = self.sort(sort.to_document(), stage);
        }
        let tail = &self.purpose.tail;
        if tail.return_key {
            let mut outer = self.stage("RETURN_KEY", returned);
            outer.insert("inputStage", stage);
            stage = outer;
        } else if let Some(projection) = &self.purpose.projection {
            let name = if self.candidate.covered {
                "PROJECTION_COVERED"
            } else if self.purpose.kept.is_some() {
                "PROJECTION_SIMPLE"
            } else {
                "PROJECTION_DEFAULT"
            };
            let mut outer = self.stage(name, returned);
            self.add_projection(&mut outer, "transformBy", projection);
            outer.insert("inputStage", stage);
            stage = outer;
        }
        if tail.skip != 0 {
            let mut outer = self.stage("SKIP", returned);
            outer.insert("skipAmount", number(tail.skip));
            outer.insert("inputStage", stage);
            stage = outer;
        }
        if let Some(limit) = tail.limit
            && (self.candidate.sorted || self.purpose.sort.is_none())
        {
            let mut outer = self.stage("LIMIT", returned);
            outer.insert("limitAmount", number(limit));
            outer.insert("inputStage", stage);
            stage = outer;
        }
        if self.used_for == Use::Count {
            let mut outer = self.stage("COUNT", Some(0).filter(|_| self.executor.is_some()));
            if let Some(returned) = returned {
                outer.insert("nCounted", number(returned));
                outer.insert("nSkipped", number(tail.skip));
            }
            outer.insert("inputStage", stage);
            stage = outer;
        }
        stage
    }

    /// The single stage of an express lookup, with the fields that MongoDB reports.
    fn express(&self, express: Express) -> Document {
        let name = express.write.unwrap_or(express.scan());
        let mut stage = doc! { "isCached": false, "stage": name };
        if !express.clustered {
            stage.insert("keyPattern", "{ _id: 1 }");
            stage.insert("indexName", "_id_");
        }
        if let Some(projection) = &self.purpose.projection {
            self.add_projection(&mut stage, "projection", projection);
            stage.insert("projectionCovered", false);
        }
        if let Some(counts) = self.executor.map(Executor::counts) {
            stage.insert("keysExamined", number(counts.keys));
            stage.insert("docsExamined", number(counts.documents));
            stage.insert("nReturned", number(counts.returned));
        }
        stage
    }

    fn add_projection(&self, stage: &mut Document, name: &str, projection: &Document) {
        match self.room.copy(projection) {
            Some(projection) => stage.insert(name, projection),
            None => stage.insert("warning", NO_PROJECTION),
        };
    }

    fn sort(&self, pattern: Document, input: Document) -> Document {
        let returned = self.executor.map(|executor| executor.counts().returned);
        let mut stage = self.stage("SORT", returned);
        stage.insert("sortPattern", pattern);
        let memory = i64::try_from(self.purpose.memory).unwrap_or(i64::MAX);
        stage.insert("memLimit", memory);
        let tail = &self.purpose.tail;
        if let Some(limit) = tail.limit {
            stage.insert("limitAmount", number(limit.saturating_add(tail.skip)));
        }
        stage.insert("type", "simple");
        if let Some(sorter) = self.executor.and_then(Executor::sorter) {
            let usage = sorter.usage();
            stage.insert(
                "totalDataSizeSorted",
                i64::try_from(usage.peak).unwrap_or(i64::MAX),
            );
            stage.insert("usedDisk", usage.runs != 0);
            stage.insert("spills", number(usage.runs));
        }
        stage.insert("inputStage", input);
        stage
    }

    /// A stage with the execution statistics common to all stages.
    fn stage(&self, name: &str, returned: Option<u64>) -> Document {
        let mut stage = doc! { "stage": name };
        if let Some(returned) = returned {
            stage.insert("nReturned", number(returned));
            stage.insert("executionTimeMillisEstimate", 0);
            stage.insert("works", number(returned + 1));
            stage.insert("advanced", number(returned));
            stage.insert("needTime", 0);
            stage.insert("needYield", 0);
            stage.insert("saveState", 0);
            stage.insert("restoreState", 0);
            stage.insert("isEOF", 1);
        }
        stage
    }

    fn counted(&self, name: &str, counts: Option<Counts>) -> Document {
        let mut stage = self.stage(name, counts.map(|counts| counts.returned));
        if let Some(counts) = counts {
            let works = counts.works.max(counts.returned) + 1;
            stage.insert("works", number(works));
            stage.insert("needTime", number(works - counts.returned - 1));
        }
        stage
    }

    fn access(&self, access: &Access, input: Option<&Input>) -> Document {
        if !self.room.take(STAGE) {
            return doc! { "warning": "stats tree exceeded BSON size limit for explain" };
        }
        let counts = input.map(Input::counts);
        match access {
            Access::Nothing => self.counted("EOF", counts),
            Access::Id(_) => {
                let mut stage = self.counted("IDHACK", counts);
                if let Some(counts) = counts {
                    stage.insert("keysExamined", number(counts.keys));
                    stage.insert("docsExamined", number(counts.documents));
                }
                stage
            }
            Access::Collection { backward, ranges } => {
                let name = if ranges.is_some() {
                    "CLUSTERED_IXSCAN"
                } else {
                    "COLLSCAN"
                };
                let mut stage = self.counted(name, counts);
                self.add_filter(&mut stage);
                stage.insert("direction", direction(*backward));
                if let Some(counts) = counts {
                    stage.insert("docsExamined", number(counts.documents));
                }
                stage
            }
            Access::Index(scan) => self.index(scan, counts),
            Access::Or(parts) | Access::Merge(parts) => {
                let merge = matches!(access, Access::Merge(_));
                let name = if merge { "SORT_MERGE" } else { "OR" };
                let mut stage = self.counted(name, counts);
                if merge && let Some(sort) = &self.purpose.sort {
                    stage.insert("sortPattern", sort.to_document());
                }
                if let Some(counts) = counts {
                    stage.insert("dupsDropped", number(counts.duplicates));
                }
                let inputs = input.map(Input::inputs);
                let stages: Vec<Bson> = parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| {
                        let input = inputs.and_then(|inputs| inputs.get(at));
                        Bson::Document(self.access(part, input))
                    })
                    .collect();
                stage.insert("inputStages", stages);
                stage
            }
        }
    }

    /// `FETCH` over `IXSCAN`, or one of them.
    fn index(&self, scan: &IndexScan, counts: Option<Counts>) -> Document {
        let bare = self.candidate.covered || (self.purpose.records_only && self.candidate.exact);
        let counting = self.used_for == Use::Count && bare;
        let name = if counting { "COUNT_SCAN" } else { "IXSCAN" };
        let scanned = counts.map(|counts| Counts {
            returned: if bare {
                counts.returned
            } else {
                counts.keys - counts.duplicates
            },
            ..counts
        });
        let mut stage = self.counted(name, scanned);
        if bare {
            self.add_filter(&mut stage);
        }
        let view = &scan.index;
        stage.insert("keyPattern", view.key.clone());
        stage.insert("indexName", view.name.clone());
        if let Some(collation) = &view.collation {
            stage.insert("collation", collation.clone());
        }
        stage.insert("isMultiKey", view.multikey());
        let mut arrays = Document::new();
        for field in &view.fields {
            let paths = prefixes(field.path.as_str(), field.arrays);
            arrays.insert(field.path.as_str(), paths);
        }
        stage.insert("multiKeyPaths", arrays);
        stage.insert("isUnique", view.unique);
        stage.insert("isSparse", view.sparse);
        stage.insert("isPartial", view.partial.is_some());
        stage.insert("indexVersion", 2);
        stage.insert("direction", direction(scan.backward));
        self.add_bounds(&mut stage, scan);
        if let Some(counts) = counts {
            stage.insert("keysExamined", number(counts.keys));
            stage.insert("seeks", number(counts.seeks));
            stage.insert(
                "dupsTested",
                number(if view.multikey() { counts.keys } else { 0 }),
            );
            stage.insert("dupsDropped", number(counts.duplicates));
        }
        if bare {
            return stage;
        }
        let mut fetch = self.counted("FETCH", counts);
        self.add_filter(&mut fetch);
        if let Some(counts) = counts {
            fetch.insert("docsExamined", number(counts.documents));
            fetch.insert("alreadyHasObj", 0);
        }
        fetch.insert("inputStage", stage);
        fetch
    }

    fn add_bounds(&self, stage: &mut Document, scan: &IndexScan) {
        let warning = "index bounds omitted due to BSON size limit for explain";
        match bounds(scan, self.room) {
            Some(bounds) => stage.insert("indexBounds", bounds),
            None => stage.insert("warning", warning),
        };
    }

    fn add_filter(&self, stage: &mut Document) {
        if self.candidate.exact || self.room.left.get() == 0 {
            return;
        }
        match shown(&self.purpose.filter, self.room) {
            Some(filter) if filter.is_empty() => {}
            Some(filter) => {
                stage.insert("filter", filter);
            }
            None => {
                stage.insert("warning", NO_ROOM);
            }
        }
    }
}

/// Shown in the place of a filter that does not fit.
pub(crate) const NO_ROOM: &str = "filter omitted due to BSON size limit for explain";

/// Shown in the place of a projection that does not fit.
const NO_PROJECTION: &str = "projection omitted due to BSON size limit for explain";

/// A filter as a document; `None` if there is no room for it, and then it is not made.
pub(crate) fn shown(filter: &Filter, room: &Room) -> Option<Document> {
    let mut left = room.left.get();
    let shown = filter.to_document_within(&mut left);
    // More than is left, if it does not fit.
    let bytes = shown
        .as_ref()
        .map_or(usize::MAX, |_| room.left.get() - left);
    let fits = room.take(bytes);
    shown.filter(|_| fits)
}

/// The bounds of each field; for several scans combined into one, those of each scan in turn.
/// `None` if there is no room for them.
fn bounds(scan: &IndexScan, room: &Room) -> Option<Document> {
    let mut all = Document::new();
    for (at, field) in scan.index.fields.iter().enumerate() {
        let mut shown: Vec<Bson> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        for set in scan.sets.iter().filter_map(|sets| sets.get(at)) {
            for interval in directed(set, field.descending) {
                let text = interval.to_string();
                if seen.contains(&text) {
                    continue;
                }
                // The text is in the reply, and in the set of texts.
                if !room.take(2 * (size_of::<Bson>() + text.len())) {
                    return None;
                }
                seen.insert(text.clone());
                shown.push(Bson::String(text));
            }
        }
        if scan.backward {
            shown.reverse();
        }
        all.insert(field.path.as_str(), shown);
    }
    Some(all)
}

/// The intervals in the direction of the field.
fn directed(set: &Intervals, descending: bool) -> Box<dyn Iterator<Item = Interval> + '_> {
    let list = set.list().iter();
    if descending {
        Box::new(list.rev().map(Interval::reversed))
    } else {
        Box::new(list.cloned())
    }
}

/// The prefixes of a path that are arrays.
fn prefixes(path: &str, arrays: u64) -> Vec<Bson> {
    let parts: Vec<&str> = path.split('.').collect();
    (0..parts.len())
        .filter(|at| *at < 64 && arrays >> at & 1 == 1)
        .filter_map(|at| parts.get(..=at).map(|parts| Bson::String(parts.join("."))))
        .collect()
}

fn direction(backward: bool) -> &'static str {
    if backward { "backward" } else { "forward" }
}

/// A count as MongoDB shows it: int32 where it fits.
pub(crate) fn number(count: u64) -> Bson {
    match i32::try_from(count) {
        Ok(small) => Bson::Int32(small),
        Err(_) => Bson::Int64(i64::try_from(count).unwrap_or(i64::MAX)),
    }
}
