//! A scan of records or of an index, in chunks.
//!
//! S1: no engine cursor outlives a chunk; the scan keeps the key of the last item it returned and
//!     continues after it, in the view of the store passed then.
//! S2: items read ahead but not returned are discarded between two views ([`Scan::save`]), so that
//!     no document deleted in the meantime is returned.
//! S3: a seek moves strictly past the key the cursor is at: no key is visited twice.
//! S4: the entry of a truncated key proves nothing about the part after the truncation. The whole
//!     filter and the range's edges are evaluated on its document.

use std::collections::{HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use kv::{Cursor, Direction, KeyRange, TreeId};
use query::{Code, Error, Result};

use super::cx::Cx;
use super::item::{Counts, Item, Step};
use super::output::{Output, Shape};
use crate::collection::OPLOG;
use crate::error::{corrupt, engine};
use crate::examined::Leaf;
use crate::index::{Index, is_cut};
use crate::plan::{ByteRange, KeyRanges, Verdict, leads_on};
use crate::record::RecordId;

/// Items read in the first chunk, and the maximum per chunk.
const CHUNK: (usize, usize) = (16, 256);
/// Maximum units of work of one chunk, even if it yields few items: a cursor stays open during the
/// scan of a chunk.
const CHUNK_WORK: usize = 4096;

/// The tree that is scanned.
#[derive(Clone)]
pub(crate) enum Source {
    /// The records.
    Records,
    /// An index; if it is not multikey, its keys prove the plan's bounds.
    Index {
        /// The index.
        index: Arc<Index>,
        /// Whether it was multikey when the plan was made.
        multikey: bool,
    },
}

/// Start and end of a key range.
type Span = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// An item read ahead, with the key it was found at.
struct Ahead {
    key: Vec<u8>,
    item: Item,
}

/// A scan.
pub(crate) struct Scan {
    source: Source,
    tree: TreeId,
    ranges: Arc<KeyRanges>,
    /// Whether the ranges exclude any key.
    bounded: bool,
    backward: bool,
    output: Output,
    /// The key up to which the scan is done: that of the last item returned, or of a later entry
    /// when nothing read ahead is left to return.
    position: Option<Vec<u8>>,
    /// The last key that was read.
    scanned: Option<Vec<u8>>,
    ended: bool,
    /// Whether more items may arrive after the end, as in a capped collection.
    tailing: bool,
    ahead: VecDeque<Ahead>,
    chunk: usize,
    /// Records already visited, if one may be visited again.
    seen: Option<HashSet<RecordId>>,
    scratch: Vec<u8>,
    counts: Counts,
}

/// Arguments of [`Scan::new`].
pub(crate) struct Parts {
    pub(crate) source: Source,
    pub(crate) ranges: Option<Arc<KeyRanges>>,
    pub(crate) backward: bool,
    pub(crate) output: Output,
    /// Whether a document may be visited twice and no stage above removes duplicates.
    pub(crate) dedupe: bool,
    pub(crate) tailing: bool,
}

impl Scan {
    pub(crate) fn new(parts: Parts) -> Scan {
        let tree = match &parts.source {
            Source::Records => parts.output.records.tree,
            Source::Index { index, .. } => index.tree(),
        };
        Scan {
            tree,
            source: parts.source,
            bounded: parts.ranges.is_some(),
            ranges: parts.ranges.unwrap_or_else(everything),
            backward: parts.backward,
            output: parts.output,
            position: None,
            scanned: None,
            ended: false,
            tailing: parts.tailing,
            ahead: VecDeque::new(),
            chunk: CHUNK.0,
            seen: parts.dedupe.then(HashSet::new),
            scratch: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The index it reads; `None` for a scan of records.
    pub(crate) fn index(&self) -> Option<&Arc<Index>> {
        match &self.source {
            Source::Records => None,
            Source::Index { index, .. } => Some(index),
        }
    }

    /// The plan leaf.
    pub(crate) fn leaf(&self) -> Leaf {
        let counts = matches!(self.output.shape, Shape::Record) && self.output.filter.is_none();
        match &self.source {
            // As in MongoDB, bounds of the oplog are those of a scan of the collection.
            Source::Records if self.tree == OPLOG => Leaf::plain("COLLSCAN"),
            Source::Records if self.bounded => Leaf::plain("CLUSTERED_IXSCAN"),
            Source::Records => Leaf::plain("COLLSCAN"),
            Source::Index { index, .. } => {
                Leaf::of_index(if counts { "COUNT_SCAN" } else { "IXSCAN" }, index)
            }
        }
    }

    /// The next item.
    pub(crate) fn next(&mut self, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        loop {
            if let Some(ahead) = self.ahead.pop_front() {
                self.position = Some(ahead.key);
                self.counts.returned += 1;
                return Ok(Step::Row(ahead.item));
            }
            if self.ended {
                return Ok(Step::End);
            }
            if cx.exhausted() {
                return Ok(Step::Pause);
            }
            self.fill(cx)?;
        }
    }

    /// Release the current view of the store (S2).
    pub(crate) fn save(&mut self) {
        if self.tailing {
            self.ended = false;
        }
        if self.ahead.is_empty() {
            self.position.clone_from(&self.scanned);
            return;
        }
        self.scanned.clone_from(&self.position);
        self.ended = false;
        for ahead in self.ahead.drain(..) {
            if let Some(seen) = &mut self.seen {
                seen.remove(&ahead.item.record);
            }
        }
    }

    /// Check that the position of a tailing scan, or of a scan of the oplog from old to new, still
    /// exists: otherwise records it has not seen may have been evicted.
    ///
    /// # Errors
    /// `CappedPositionLost`.
    pub(crate) fn check_position(&mut self, cx: &Cx<'_>) -> Result<()> {
        let evicted = self.tailing || (self.tree == OPLOG && !self.backward);
        let Some(position) = self.position.as_ref().filter(|_| evicted) else {
            return Ok(());
        };
        let found = cx.snapshot.get_into(self.tree, position, &mut self.scratch);
        if found.map_err(engine)? {
            return Ok(());
        }
        Err(Error::new(
            Code::CAPPED_POSITION_LOST,
            "CollectionScan died due to position in capped collection being deleted. Last seen \
             record was deleted",
        ))
    }

    /// Read a chunk.
    fn fill(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        let ranges = Arc::clone(&self.ranges);
        let Some((from, to)) = self.span(&ranges.ranges) else {
            self.ended = true;
            return Ok(());
        };
        let wanted = self.chunk.min(cx.rows_left.max(1));
        self.chunk = (self.chunk * 2).min(CHUNK.1);
        let direction = if self.backward {
            Direction::Backward
        } else {
            Direction::Forward
        };
        let range = KeyRange {
            start: from.as_ref().map(Vec::as_slice),
            end: to.as_ref().map(Vec::as_slice),
        };
        let snapshot = cx.snapshot;
        let mut cursor = snapshot
            .cursor(self.tree, range, direction)
            .map_err(engine)?;
        self.counts.seeks += 1;
        let mut there = cursor.advance().map_err(engine)?;
        for _ in 0..CHUNK_WORK {
            if !there {
                self.ended = true;
                return Ok(());
            }
            match self.verdict(&ranges, cursor.key(), cursor.value()) {
                Verdict::Inside => {
                    self.meet(cursor.as_ref(), ranges.edges.as_ref(), cx)?;
                    self.done_with(cursor.key());
                    if wanted <= self.ahead.len() || cx.exhausted() {
                        return Ok(());
                    }
                    there = cursor.advance().map_err(engine)?;
                }
                Verdict::Outside => {
                    self.look(cx)?;
                    self.done_with(cursor.key());
                    there = cursor.advance().map_err(engine)?;
                }
                Verdict::Seek(target) => {
                    assert!(leads_on(cursor.key(), &target, self.backward), "S3");
                    self.look(cx)?;
                    self.done_with(cursor.key());
                    self.counts.seeks += 1;
                    there = cursor.seek(&target).map_err(engine)?;
                }
                Verdict::Done => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The key range left to read: from the last key read to the end of the last range.
    fn span(&self, ranges: &[ByteRange]) -> Option<Span> {
        let (first, last) = (ranges.first()?, ranges.last()?);
        let mut start = Bound::Included(first.start.clone());
        let mut end = Bound::Excluded(last.end.clone());
        if let Some(scanned) = &self.scanned {
            if self.backward {
                end = Bound::Excluded(scanned.clone());
            } else {
                start = Bound::Excluded(scanned.clone());
            }
        }
        Some((start, end))
    }

    /// Whether a key matches the ranges, the check and the edges.
    fn verdict(&self, ranges: &KeyRanges, key: &[u8], value: &[u8]) -> Verdict {
        let list = &ranges.ranges;
        if self.backward {
            let after = list.partition_point(|range| range.start.as_slice() <= key);
            let Some(range) = after.checked_sub(1).and_then(|at| list.get(at)) else {
                return Verdict::Done;
            };
            if range.end.as_slice() <= key {
                return Verdict::seek(key, range.end.clone(), true);
            }
        } else {
            let at = list.partition_point(|range| range.end.as_slice() <= key);
            let Some(range) = list.get(at) else {
                return Verdict::Done;
            };
            if key < range.start.as_slice() {
                return Verdict::seek(key, range.start.clone(), false);
            }
        }
        let cut = || matches!(self.source, Source::Index { .. }) && is_cut(value);
        match (&ranges.check, &ranges.edges) {
            (Some(check), _) => check.judge(key, cut(), self.backward),
            (None, Some(edges)) if !cut() && !edges.holds(key) => Verdict::Outside,
            (None, _) => Verdict::Inside,
        }
    }

    fn look(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        self.counts.works += 1;
        if matches!(self.source, Source::Index { .. }) {
            self.counts.keys += 1;
        }
        cx.work()
    }

    /// Process an entry that matches, or whose truncated key may lie between the edges.
    fn meet(
        &mut self,
        cursor: &dyn Cursor,
        edges: Option<&ByteRange>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        self.look(cx)?;
        let item = match &self.source {
            Source::Records => {
                self.counts.documents += 1;
                let clustered = self.output.records.clustered;
                let record = RecordId::from_key(cursor.key(), clustered)
                    .ok_or_else(|| corrupt("the key of a record"))?;
                self.output.of_document(record, cursor.value())?
            }
            Source::Index { index, multikey } => {
                let entry = index
                    .read_entry(cursor.key(), cursor.value())
                    .ok_or_else(|| corrupt(format_args!("an entry of index {}", index.name())))?;
                let cut = is_cut(entry.type_bits);
                if cut
                    && let Some(edges) = edges
                    && !self
                        .output
                        .is_within(edges, &entry, index, cx, &mut self.counts)?
                {
                    return Ok(());
                }
                if self.seen.is_none() && index.is_multikey() {
                    // The index became multikey after planning: from here on, skip documents
                    // already visited.
                    self.seen = Some(HashSet::new());
                }
                if let Some(seen) = &mut self.seen
                    && !seen.insert(entry.record.clone())
                {
                    self.counts.duplicates += 1;
                    return Ok(());
                }
                let doubtful = cut || (!multikey && index.is_multikey());
                let counts = &mut self.counts;
                self.output
                    .of_entry(&entry, doubtful, cx, &mut self.scratch, counts)?
            }
        };
        if let Some(item) = item {
            self.ahead.push_back(Ahead {
                key: cursor.key().to_vec(),
                item,
            });
        }
        Ok(())
    }

    fn done_with(&mut self, key: &[u8]) {
        let scanned = self.scanned.get_or_insert_default();
        scanned.clear();
        scanned.extend_from_slice(key);
    }
}

fn everything() -> Arc<KeyRanges> {
    Arc::new(KeyRanges {
        ranges: vec![ByteRange {
            start: Vec::new(),
            end: vec![0xFF],
        }],
        check: None,
        cut: false,
        edges: None,
    })
}
