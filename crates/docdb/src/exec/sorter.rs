//! Blocking sort, for orders that no scan provides: reads all items, then returns them sorted.
//!
//! O1: with a limit, at most twice the limit of items is kept, or 16.
//! O2: beyond the memory limit, items are written to temporary files in sorted runs, which are
//!     merged. Items that compare equal keep their input order.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use bson::RawDocumentBuf;
use query::collation::Collator;
use query::meter::{self, Held};
use query::sort::{Sort, SortKey};
use query::{Code, Error, Result};

use super::cx::Cx;
use super::input::Input;
use super::item::{Item, Step};
use super::runs::Runs;
use super::spill::SpillFile;
use crate::record::RecordId;

/// Estimated bytes of one item in addition to its document: key, record, list slots.
const ITEM_OVERHEAD: usize = 128;
/// Minimum bytes spilled when other operations use up the shared memory: smaller spills would
/// create too many files.
const SPILL_LEAST: usize = 4 << 20;

/// Memory and disk limits of a sorter.
#[derive(Debug, Clone)]
pub(crate) struct SortLimits {
    /// Maximum bytes held in memory.
    pub(crate) memory: usize,
    /// Directory for spill files; `None` if spilling is not allowed.
    pub(crate) directory: Option<PathBuf>,
    /// Whether record ids are numbers.
    pub(crate) clustered: bool,
}

struct Keyed {
    key: SortKey,
    item: Item,
}

impl Keyed {
    /// Approximate memory in bytes.
    fn memory(&self) -> usize {
        self.item.document.as_bytes().len() + self.key.memory() + ITEM_OVERHEAD
    }
}

enum Phase {
    Taking,
    Giving(VecDeque<Keyed>),
    Merging(Runs<SortKey, Item>),
}

/// Sorts the items of an input.
pub(crate) struct Sorter {
    sort: Arc<Sort>,
    collator: Option<Arc<Collator>>,
    limit: Option<usize>,
    limits: SortLimits,
    rows: Vec<Keyed>,
    bytes: usize,
    /// The memory it has reserved from the budget shared by all operations.
    held: Held,
    peak: usize,
    runs: Vec<SpillFile>,
    spilled: u64,
    left: usize,
    phase: Phase,
}

impl Sorter {
    /// A sorter that returns at most `limit` items.
    pub(crate) fn new(
        sort: Arc<Sort>,
        collator: Option<Arc<Collator>>,
        limit: Option<usize>,
        limits: SortLimits,
    ) -> Sorter {
        Sorter {
            sort,
            collator,
            limit,
            limits,
            rows: Vec::new(),
            bytes: 0,
            held: Held::new(),
            peak: 0,
            runs: Vec::new(),
            spilled: 0,
            left: limit.unwrap_or(usize::MAX),
            phase: Phase::Taking,
        }
    }

    /// Whether all items were returned.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 || matches!(&self.phase, Phase::Giving(rows) if rows.is_empty())
    }

    /// Peak bytes held in memory, and the number of runs written to disk.
    pub(crate) fn usage(&self) -> (usize, u64) {
        (self.peak, self.spilled)
    }

    /// The next item of `input` in sort order.
    pub(crate) fn next(&mut self, input: &mut Input, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        if matches!(self.phase, Phase::Taking) {
            let rows_left = std::mem::replace(&mut cx.rows_left, usize::MAX);
            let taken = self.take_all(input, cx);
            cx.rows_left = rows_left;
            if !taken? {
                return Ok(Step::Pause);
            }
        }
        if self.left == 0 {
            return Ok(Step::End);
        }
        self.left -= 1;
        let next = match &mut self.phase {
            Phase::Taking => None,
            Phase::Giving(rows) => rows.pop_front().map(|row| row.item),
            Phase::Merging(_) => self.merge()?,
        };
        Ok(next.map_or(Step::End, Step::Row))
    }

    /// Read all of the input; false when the work budget is used up first.
    fn take_all(&mut self, input: &mut Input, cx: &mut Cx<'_>) -> Result<bool> {
        loop {
            match input.next(cx)? {
                Step::Row(item) => self.push(item)?,
                Step::Pause => return Ok(false),
                Step::End => break,
            }
        }
        self.order()?;
        if self.runs.is_empty() {
            self.phase = Phase::Giving(std::mem::take(&mut self.rows).into());
        } else {
            self.write_run()?;
            let files = std::mem::take(&mut self.runs);
            let reader = self.reader();
            let runs = Runs::new(files, &|bytes| reader.read(bytes))?;
            self.phase = Phase::Merging(runs);
        }
        Ok(true)
    }

    fn push(&mut self, item: Item) -> Result<()> {
        let key = self.sort.key(&item.document, self.collator.as_deref())?;
        let keyed = Keyed { key, item };
        self.bytes += keyed.memory();
        self.peak = self.peak.max(self.bytes);
        self.rows.push(keyed);
        if let Some(limit) = self.limit
            && most(limit) < self.rows.len()
        {
            self.order()?;
            assert!(self.rows.len() <= most(limit), "O1: few items are kept");
        }
        if self.must_spill()? {
            self.order()?;
            if self.must_spill()? {
                self.write_run()?;
            }
        }
        Ok(())
    }

    /// Whether the sorter holds more than its own limit, or more than the shared memory has left.
    fn must_spill(&mut self) -> Result<bool> {
        if self.limits.memory < self.bytes {
            return Ok(true);
        }
        match self.held.require("$sort", self.bytes) {
            Ok(()) => Ok(false),
            Err(_) if self.limits.directory.is_some() && SPILL_LEAST <= self.bytes => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Sort the held items, and drop those beyond the limit.
    fn order(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.rows = meter::sort_by(rows, |a, b| a.key.cmp(&b.key))?;
        if let Some(limit) = self.limit {
            self.rows.truncate(limit);
            self.bytes = self.rows.iter().map(Keyed::memory).sum();
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        let Some(directory) = &self.limits.directory else {
            return Err(Error::new(
                Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                format!(
                    "Executor error during find command :: caused by :: Sort exceeded memory limit \
                     of {} bytes, but did not opt in to external sorting.",
                    self.limits.memory
                ),
            ));
        };
        let mut file = SpillFile::create(directory)?;
        let mut bytes = Vec::new();
        for row in self.rows.drain(..) {
            bytes.clear();
            bytes.push(u8::from(row.item.projected));
            let key = row.item.record.key();
            let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&key);
            bytes.extend_from_slice(row.item.document.as_bytes());
            file.append(&bytes)?;
        }
        self.bytes = 0;
        self.held.clear();
        self.spilled += 1;
        self.runs.push(file);
        Ok(())
    }

    /// The next item of the merged runs.
    fn merge(&mut self) -> Result<Option<Item>> {
        let mut phase = std::mem::replace(&mut self.phase, Phase::Taking);
        let reader = self.reader();
        let next = match &mut phase {
            Phase::Merging(runs) => runs.next(&|bytes| reader.read(bytes))?,
            _ => None,
        };
        self.phase = phase;
        Ok(next.map(|(_, item)| item))
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            sort: &self.sort,
            collator: self.collator.as_deref(),
            clustered: self.limits.clustered,
        }
    }
}

/// The number of items that are kept with a limit (O1).
fn most(limit: usize) -> usize {
    limit.saturating_mul(2).max(16)
}

/// Decodes the items of runs.
struct Reader<'a> {
    sort: &'a Sort,
    collator: Option<&'a Collator>,
    clustered: bool,
}

impl Reader<'_> {
    fn read(&self, bytes: &[u8]) -> Result<(SortKey, Item)> {
        let item = parse(bytes, self.clustered).ok_or_else(|| {
            Error::new(Code::INTERNAL_ERROR, "a temporary file holds wrong bytes")
        })?;
        let key = self.sort.key(&item.document, self.collator)?;
        Ok((key, item))
    }
}

fn parse(bytes: &[u8], clustered: bool) -> Option<Item> {
    let (projected, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (key, document) = rest.split_at_checked(length)?;
    Some(Item {
        record: RecordId::from_key(key, clustered)?,
        document: RawDocumentBuf::from_bytes(document.to_vec()).ok()?,
        projected: *projected == 1,
    })
}
