//! `$sort`: in memory while the rows fit, else in sorted runs that are merged (see
//! [`super::sorter`]). A run contains only documents; their keys are computed again when it is
//! read.

use std::sync::Arc;

use bson::RawDocumentBuf;

use super::sorter::{Codec, Sorted, Sorter};
use super::{Host, Rows, Spill, memory, spill};
use crate::collation::Collator;
use crate::sort::{Sort, SortKey};
use crate::{Result, Row};

/// `$sort`.
pub(super) struct SortRows {
    keys: Keys,
    limit: Option<u64>,
    state: State,
    total: u64,
    /// Whether returned rows carry the key by which they were sorted.
    keyed: bool,
}

enum State {
    Unread(Box<dyn Rows>),
    Sorted(Sorted<SortKey, Row>),
    Done,
}

impl SortRows {
    pub(super) fn new(
        input: Box<dyn Rows>,
        sort: Sort,
        limit: Option<u64>,
        collator: Option<Arc<Collator>>,
    ) -> SortRows {
        SortRows {
            keys: Keys { sort, collator },
            limit,
            state: State::Unread(input),
            total: 0,
            keyed: false,
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

    /// Reads the input, and writes sorted runs when it does not fit in memory.
    fn gather(&mut self, mut input: Box<dyn Rows>, host: &mut dyn Host) -> Result<State> {
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok());
        let mut sorter = Sorter::new(limit);
        while let Some(row) = input.next(host)? {
            host.check()?;
            let key = self.keys.of(&row)?;
            let row = row.compact()?;
            let bytes = memory::row(&row)? + key.memory();
            sorter.push(key, row, bytes);
            let excess = sorter.excess(host.memory_limit(), host.allow_disk_use())?;
            if memory::allowed("$sort", excess)? {
                sorter.spill(host.spill()?, &mut self.keys)?;
            }
        }
        self.total = sorter.total();
        let sorted = sorter.finish(&mut self.keys, &mut || host.spill())?;
        Ok(State::Sorted(sorted))
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
        let next = match &mut self.state {
            State::Sorted(rows) => rows.next(&mut self.keys)?,
            State::Unread(_) | State::Done => None,
        };
        if next.is_some()
            && let Some(left) = &mut self.limit
        {
            *left -= 1;
        }
        Ok(next.map(|(key, row)| match self.keyed {
            true => row.sorted_by(&key),
            false => row,
        }))
    }
}

/// Computes the sort keys of rows.
struct Keys {
    sort: Sort,
    collator: Option<Arc<Collator>>,
}

impl Keys {
    fn of(&self, row: &Row) -> Result<SortKey> {
        self.sort.key(row.raw()?, self.collator.as_deref())
    }
}

impl Codec<SortKey, Row> for Keys {
    fn write(&mut self, row: &Row, run: &mut dyn Spill) -> Result<()> {
        spill::put(run, row)
    }

    fn read(&mut self, record: &mut Vec<u8>) -> Result<(SortKey, Row)> {
        let row = RawDocumentBuf::from_bytes(std::mem::take(record))?;
        let row = Row::from_raw(row);
        Ok((self.of(&row)?, row))
    }
}
