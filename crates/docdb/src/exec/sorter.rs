//! Blocking sort, for orders that no scan provides: reads all items, then returns them sorted. The
//! sort itself is that of `$sort` ([`query::execute::Sorter`]); this stage pauses with its input.

use std::sync::Arc;

use bson::RawDocumentBuf;
use query::collation::Collator;
use query::execute::{self, Codec, Excess, SortUsage, Sorted, Spill};
use query::sort::{Sort, SortKey};
use query::{Code, Error, Result};

use super::cx::Cx;
use super::input::Input;
use super::item::{Item, Step};
use super::spill::{SpillFile, SpillPlace};
use crate::record::RecordId;

/// Estimated bytes of one item in addition to its document: key, record, list slots.
const ITEM_OVERHEAD: usize = 128;

/// Memory and disk limits of a sorter.
#[derive(Debug, Clone)]
pub(crate) struct SortLimits {
    /// Maximum bytes held in memory.
    pub(crate) memory: usize,
    /// Where spill files are made; `None` if spilling is not allowed.
    pub(crate) place: Option<SpillPlace>,
    /// Whether record ids are numbers.
    pub(crate) clustered: bool,
}

/// Sorts the items of an input.
pub(crate) struct Sorter {
    records: Records,
    limits: SortLimits,
    left: usize,
    phase: Phase,
}

enum Phase {
    Taking(execute::Sorter<SortKey, Item>),
    Giving(Sorted<SortKey, Item>),
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
            records: Records {
                sort,
                collator,
                clustered: limits.clustered,
                record: Vec::new(),
            },
            limits,
            left: limit.unwrap_or(usize::MAX),
            phase: Phase::Taking(execute::Sorter::new(limit)),
        }
    }

    /// Whether all items were returned.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 || matches!(&self.phase, Phase::Giving(sorted) if sorted.is_over())
    }

    /// Peak bytes held in memory, and the number of runs written to disk.
    pub(crate) fn usage(&self) -> SortUsage {
        match &self.phase {
            Phase::Taking(sorter) => sorter.usage(),
            Phase::Giving(sorted) => sorted.usage(),
        }
    }

    /// The next item of `input` in sort order.
    pub(crate) fn next(&mut self, input: &mut Input, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        if matches!(self.phase, Phase::Taking(_)) {
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
            Phase::Taking(_) => None,
            Phase::Giving(sorted) => sorted.next(&mut self.records)?,
        };
        Ok(next.map_or(Step::End, |(_, item)| Step::Row(item)))
    }

    /// Read all of the input; false when the work budget is used up first.
    fn take_all(&mut self, input: &mut Input, cx: &mut Cx<'_>) -> Result<bool> {
        let Phase::Taking(sorter) = &mut self.phase else {
            return Ok(true);
        };
        let (limits, records) = (&self.limits, &mut self.records);
        loop {
            match input.next(cx)? {
                Step::Row(item) => {
                    let key = records.sort_key(&item)?;
                    let bytes = item.document.as_bytes().len() + key.memory() + ITEM_OVERHEAD;
                    sorter.push(key, item, bytes);
                    match sorter.excess(limits.memory, limits.place.is_some())? {
                        Excess::None => {}
                        Excess::Spill => sorter.spill(limits.run()?, records)?,
                        Excess::Refused => return Err(limits.refused()),
                    }
                }
                Step::Pause => return Ok(false),
                Step::End => break,
            }
        }
        let sorter = std::mem::replace(sorter, execute::Sorter::new(None));
        let sorted = sorter.finish(records, &mut || limits.run())?;
        self.phase = Phase::Giving(sorted);
        Ok(true)
    }
}

impl SortLimits {
    /// An empty run.
    fn run(&self) -> Result<Box<dyn Spill>> {
        let place = self.place.as_ref().ok_or_else(|| self.refused())?;
        Ok(Box::new(SpillFile::create(place)?))
    }

    fn refused(&self) -> Error {
        Error::new(
            Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
            format!(
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                self.memory
            ),
        )
    }
}

/// Encodes the items of runs, and computes their keys.
struct Records {
    sort: Arc<Sort>,
    collator: Option<Arc<Collator>>,
    clustered: bool,
    record: Vec<u8>,
}

impl Records {
    fn sort_key(&self, item: &Item) -> Result<SortKey> {
        self.sort.key(&item.document, self.collator.as_deref())
    }
}

impl Codec<SortKey, Item> for Records {
    fn write(&mut self, item: &Item, run: &mut dyn Spill) -> Result<()> {
        let record = &mut self.record;
        record.clear();
        record.push(u8::from(item.projected));
        let key = item.record.key();
        let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&key);
        record.extend_from_slice(item.document.as_bytes());
        run.append(record)
    }

    fn read(&mut self, record: &mut Vec<u8>) -> Result<(SortKey, Item)> {
        let item = parse(record, self.clustered).ok_or_else(|| {
            Error::new(Code::INTERNAL_ERROR, "a temporary file holds wrong bytes")
        })?;
        Ok((self.sort_key(&item)?, item))
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
