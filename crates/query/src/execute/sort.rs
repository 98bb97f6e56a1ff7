//! `$sort`: in memory while the rows fit, else in sorted runs that are merged. With a limit of N,
//! at most N rows are kept.
//!
//! The sort is stable: rows with equal keys stay in input order. This holds across runs, too: runs
//! are written in input order, and the merge prefers the earlier run. A run contains only
//! documents; their keys are computed again when it is read.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{Host, Rows, Spill, memory, spill};
use crate::collation::Collator;
use crate::sort::{Sort, SortKey};
use crate::{Result, Row, meter};

/// `$sort`.
pub(super) struct SortRows {
    sort: Sort,
    limit: Option<u64>,
    collator: Option<Arc<Collator>>,
    state: State,
    total: u64,
    /// Whether returned rows carry the key by which they were sorted.
    keyed: bool,
    /// Memory reserved in the budget of all operations.
    reserved: meter::Held,
}

enum State {
    Unread(Box<dyn Rows>),
    Memory(std::vec::IntoIter<Entry>),
    Runs(Merge),
    Done,
}

/// A row with its sort key and its position in the input.
struct Entry {
    key: SortKey,
    place: u64,
    row: Row,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        let order = self.key.cmp(&other.key);
        order.then(self.place.cmp(&other.place))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl SortRows {
    pub(super) fn new(
        input: Box<dyn Rows>,
        sort: Sort,
        limit: Option<u64>,
        collator: Option<Arc<Collator>>,
    ) -> SortRows {
        SortRows {
            sort,
            limit,
            collator,
            state: State::Unread(input),
            total: 0,
            keyed: false,
            reserved: meter::Held::new(),
        }
    }

    /// Sets whether returned rows carry the key by which they were sorted.
    pub(super) fn keyed(mut self, keyed: bool) -> SortRows {
        self.keyed = keyed;
        self
    }

    /// Number of input rows, known once the first row has been returned.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    fn entry(&self, row: Row, place: u64) -> Result<Entry> {
        let key = self.sort.key(row.raw()?, self.collator.as_deref())?;
        Ok(Entry {
            key,
            place,
            row: row.compact()?,
        })
    }

    /// Reads the input, and writes sorted runs when it does not fit in memory.
    fn gather(&mut self, mut input: Box<dyn Rows>, host: &mut dyn Host) -> Result<State> {
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok());
        let mut held = Held {
            entries: BinaryHeap::new(),
            bytes: 0,
        };
        let mut runs: Vec<Box<dyn Spill>> = Vec::new();
        let mut place = 0;
        while let Some(row) = input.next(host)? {
            host.check()?;
            held.push(self.entry(row, place)?, limit)?;
            place += 1;
            if memory::must_spill("$sort", &mut self.reserved, held.bytes, host)? {
                runs.push(held.into_run(host)?);
                self.reserved.clear();
                held = Held {
                    entries: BinaryHeap::new(),
                    bytes: 0,
                };
            }
        }
        self.total = place;
        if runs.is_empty() {
            return Ok(State::Memory(held.into_sorted()?.into_iter()));
        }
        if !held.entries.is_empty() {
            runs.push(held.into_run(host)?);
            self.reserved.clear();
        }
        Ok(State::Runs(Merge::new(self, runs)?))
    }
}

impl Rows for SortRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if self.limit == Some(0) {
            return Ok(None);
        }
        if let State::Unread(_) = self.state
            && let State::Unread(input) = std::mem::replace(&mut self.state, State::Done)
        {
            self.state = self.gather(input, host)?;
        }
        let entry = match &mut self.state {
            State::Memory(entries) => entries.next(),
            State::Runs(merge) => merge.next(&self.sort, self.collator.as_deref())?,
            State::Unread(_) | State::Done => None,
        };
        if entry.is_some()
            && let Some(left) = &mut self.limit
        {
            *left -= 1;
        }
        Ok(entry.map(|entry| match self.keyed {
            true => entry.row.sorted_by(&entry.key),
            false => entry.row,
        }))
    }
}

/// Rows in memory: a max-heap, so that a limit drops the greatest row first.
struct Held {
    entries: BinaryHeap<Entry>,
    bytes: usize,
}

impl Held {
    fn push(&mut self, entry: Entry, limit: Option<usize>) -> Result<()> {
        if let Some(limit) = limit
            && limit <= self.entries.len()
        {
            match self.entries.peek() {
                Some(greatest) if entry < *greatest => {
                    if let Some(dropped) = self.entries.pop() {
                        self.bytes = self.bytes.saturating_sub(size(&dropped)?);
                    }
                }
                _ => return Ok(()),
            }
        }
        self.bytes += size(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    /// The entries in order; entries with equal keys stay in input order.
    fn into_sorted(self) -> Result<Vec<Entry>> {
        meter::sort_by(self.entries.into_vec(), Entry::cmp)
    }

    fn into_run(self, host: &mut dyn Host) -> Result<Box<dyn Spill>> {
        let mut run = host.spill()?;
        for entry in self.into_sorted()? {
            spill::put(run.as_mut(), &entry.row)?;
        }
        Ok(run)
    }
}

fn size(entry: &Entry) -> Result<usize> {
    Ok(memory::row(&entry.row)? + entry.key.memory())
}

/// A merge of sorted runs; the position of an entry is the number of its run.
struct Merge {
    runs: Vec<Box<dyn Spill>>,
    heads: BinaryHeap<Reverse<Entry>>,
}

impl Merge {
    fn new(sort: &SortRows, runs: Vec<Box<dyn Spill>>) -> Result<Merge> {
        let mut merge = Merge {
            heads: BinaryHeap::with_capacity(runs.len()),
            runs,
        };
        for run in 0..merge.runs.len() {
            merge.advance(run, &sort.sort, sort.collator.as_deref())?;
        }
        Ok(merge)
    }

    fn advance(&mut self, run: usize, sort: &Sort, collator: Option<&Collator>) -> Result<()> {
        let Some(rows) = self.runs.get_mut(run) else {
            return Ok(());
        };
        if let Some(row) = spill::take(rows.as_mut())? {
            let key = sort.key(row.raw()?, collator)?;
            let place = u64::try_from(run).unwrap_or(u64::MAX);
            self.heads.push(Reverse(Entry { key, place, row }));
        }
        Ok(())
    }

    fn next(&mut self, sort: &Sort, collator: Option<&Collator>) -> Result<Option<Entry>> {
        let Some(Reverse(least)) = self.heads.pop() else {
            return Ok(None);
        };
        let run = usize::try_from(least.place).unwrap_or(usize::MAX);
        self.advance(run, sort, collator)?;
        Ok(Some(least))
    }
}
