//! The writes of a transaction before it commits: in memory, and beyond a share of it in private
//! runs of the data file.
//!
//! A set of writes that has grown too large is sorted and written out as a run that no tree names.
//! Reads of the transaction look into the set, then into the runs, newest first. Eight runs of one
//! tier are merged into one of the next, so that a transaction of a thousand spills has about
//! thirty, and each of its writes is written four times at most. At the end the runs go back to the
//! space at once; after a crash they are free, since no image names them.
//!
//! The seq of an entry in a private run says nothing of commits: it is `2 * spill + checked`, with
//! spills numbered from 1, so newer writes of a key have greater seqs.
//!
//! - I1. Whatever is in memory is newer than whatever is in a run; earlier runs in the list are
//!   newer than later ones.
//! - I2. The memory of all transactions together is counted in the governor, and a transaction that
//!   holds more than its share gives memory back before it takes a further write. A write is
//!   refused when the transactions hold all they may and this one has nothing worth spilling.
//!
//! It belongs to one transaction, which is used by one thread at a time.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::bulk::{Changes, Chunks};
use super::core::Core;
use crate::buffer::{SortedWrites, WriteSet};
use crate::cursor::Own;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{Merger, Source};
use crate::run::{Run, RunCursor, RunOptions, RunWriter};
use crate::space::Purpose;
use crate::types::{Direction, Entry, Op, Seq, TreeId};

/// Number of runs of one tier that are merged into one of the next.
const FAN_IN: usize = 8;
/// Filter bits a key: own writes are looked up before each read and insert.
const FILTER_BITS: u8 = 10;

/// The writes of a transaction to one tree.
#[derive(Default)]
struct TreeWrites {
    writes: WriteSet,
    /// Newest first (I1).
    runs: Vec<Arc<Run>>,
    /// The tier of each run.
    tiers: Vec<u32>,
}

/// The writes of a transaction.
pub(crate) struct OwnWrites {
    core: Arc<Core>,
    trees: BTreeMap<TreeId, TreeWrites>,
    /// Memory held, as recorded in the governor.
    held: usize,
    /// Bytes of keys and values pushed.
    bytes: usize,
    /// Number of the next spill.
    spill: u64,
}

impl OwnWrites {
    /// No writes.
    pub(crate) fn new(core: &Arc<Core>) -> OwnWrites {
        OwnWrites {
            core: Arc::clone(core),
            trees: BTreeMap::new(),
            held: 0,
            bytes: 0,
            spill: 1,
        }
    }

    /// Whether there are no writes.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// The sets in memory with their trees, if nothing was spilled and all of it is at most `most`
    /// bytes.
    pub(crate) fn small(&self, most: usize) -> Option<impl Iterator<Item = (TreeId, &WriteSet)>> {
        let spilled = self.trees.values().any(|tree| !tree.runs.is_empty());
        let sets = self.trees.iter().map(|(&id, tree)| (id, &tree.writes));
        (!spilled && self.bytes <= most).then_some(sets)
    }

    /// The writes to `tree`, for reading.
    pub(crate) fn of(&self, tree: TreeId) -> Option<Own<'_>> {
        let tree = self.trees.get(&tree)?;
        Some(Own {
            writes: &tree.writes,
            runs: &tree.runs,
        })
    }

    /// Get the last write of `key`; its value overwrites `value`.
    pub(crate) fn get(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<Option<Op>> {
        let Some(tree) = self.trees.get(&tree) else {
            return Ok(None);
        };
        if let Some(op) = tree.writes.get(key, value) {
            return Ok(Some(op));
        }
        for run in &tree.runs {
            if let Some((_, op)) = run.get(key, Seq::MAX, value)? {
                return Ok(Some(op));
            }
        }
        Ok(None)
    }

    /// Add a write; it counts in place of earlier ones of its key.
    ///
    /// # Errors
    /// `Full`, `Io` when memory has to be given back and cannot, `Full` when other transactions
    /// hold all the memory there is for them: the write is not added.
    pub(crate) fn push(
        &mut self,
        tree: TreeId,
        op: Op,
        key: &[u8],
        value: &[u8],
        checked: bool,
    ) -> Result<()> {
        if self.is_large() {
            self.give_back()?;
        }
        if self.core.memory.private_is_full() {
            self.leave_room()?;
        }
        let writes = &mut self.trees.entry(tree).or_default().writes;
        let before = writes.bytes();
        writes.push(op, key, value, checked);
        assert!(before <= writes.bytes(), "a write takes memory");
        let grown = writes.bytes() - before;
        self.bytes += key.len() + value.len();
        if 0 < grown {
            self.held += grown;
            self.core.memory.grow_private(grown);
        }
        if self.core.memory.private_is_full() {
            // This write took the last of it, and the transaction may be idle from now on. Where
            // that fails the write stands, and the next one reports it.
            let _ = self.leave_room();
        }
        Ok(())
    }

    fn is_large(&self) -> bool {
        self.core.memory.spills_above(self.core.tuning.own_max) < self.held
    }

    /// Spill all that is worth it while transactions hold all the memory they may.
    ///
    /// # Errors
    /// As spilling; `Full` when it is the others that hold it.
    #[cold]
    fn leave_room(&mut self) -> Result<()> {
        while self.core.memory.private_is_full() {
            if !self.is_large() {
                let message = "the open transactions hold all the memory there is for their \
                               writes; commit or roll back some, or raise `memory`";
                return Err(Error::new(ErrorKind::Full, message));
            }
            self.give_back()?;
        }
        Ok(())
    }

    /// Spill the sets that are as large as the average or larger (I2).
    #[cold]
    fn give_back(&mut self) -> Result<()> {
        let sets = self.trees.values().filter(|t| 0 < t.writes.entries());
        let average = self.held / sets.count().max(1);
        let large = |tree: &TreeWrites| 0 < tree.writes.entries() && average <= tree.writes.bytes();
        let ids: Vec<TreeId> = self
            .trees
            .iter()
            .filter(|(_, tree)| large(tree))
            .map(|(&id, _)| id)
            .collect();
        assert!(!ids.is_empty(), "some set is as large as the average");
        for id in ids {
            self.spill(id)?;
        }
        Ok(())
    }

    fn spill(&mut self, id: TreeId) -> Result<()> {
        let tree = self.trees.get_mut(&id).expect("the caller found it");
        let plain = Seq(self.spill << 1);
        let core = &self.core;
        let run = core.or_freed(|| write(core, id, &mut tree.writes.sorted(plain)))?;
        self.spill += 1;
        let freed = std::mem::take(&mut tree.writes).bytes();
        assert!(freed <= self.held, "I2: what is given back was held");
        self.held -= freed;
        self.core.memory.shrink_private(freed);
        tree.runs.insert(0, run);
        tree.tiers.insert(0, 0);
        tree.merge_tiers(&self.core, id)
    }

    /// The last write of each key of `tree`, in key order.
    pub(crate) fn merged(&self, tree: TreeId) -> Result<Merged<'_>> {
        let tree = self.trees.get(&tree).expect("asked of a tree written to");
        let mut sources = Vec::with_capacity(tree.runs.len() + 1);
        sources.push(Part::Writes(tree.writes.sorted(Seq(self.spill << 1))));
        for run in &tree.runs {
            sources.push(Part::open(run)?);
        }
        Merged::new(sources)
    }

    /// The trees that were written to.
    pub(crate) fn trees(&self) -> impl Iterator<Item = TreeId> {
        self.trees.keys().copied()
    }
}

impl TreeWrites {
    /// Merge the newest runs while there are enough of one tier.
    fn merge_tiers(&mut self, core: &Arc<Core>, id: TreeId) -> Result<()> {
        while let Some(&tier) = self.tiers.first() {
            assert_eq!(self.runs.len(), self.tiers.len(), "each run has a tier");
            debug_assert!(
                self.tiers.is_sorted(),
                "I1: later runs are older, and larger"
            );
            let same = self.tiers.iter().take_while(|&&t| t == tier).count();
            if same < FAN_IN {
                break;
            }
            let run = match self.merge_newest(core, id, same) {
                // On a full disk the transaction has more runs, and the next spill tries again.
                Err(error) if error.kind() == ErrorKind::Full => break,
                run => run?,
            };
            for old in self.runs.splice(..same, [run]) {
                old.discard();
            }
            self.tiers.splice(..same, [tier + 1]);
        }
        assert_eq!(self.runs.len(), self.tiers.len(), "a tier for each run");
        Ok(())
    }

    /// One run of the newest `count` runs.
    fn merge_newest(&self, core: &Arc<Core>, id: TreeId, count: usize) -> Result<Arc<Run>> {
        let sources: Result<Vec<Part<'_>>> = self.runs.iter().take(count).map(Part::open).collect();
        write(core, id, &mut Merged::new(sources?)?)
    }
}

impl Drop for OwnWrites {
    fn drop(&mut self) {
        self.core.memory.shrink_private(self.held);
        for run in self.trees.values().flat_map(|tree| &tree.runs) {
            run.discard();
        }
    }
}

/// In the order of trees and keys, each key once.
impl Changes for OwnWrites {
    fn pass(&self, out: &mut Chunks<'_>) -> Result<()> {
        for tree in self.trees() {
            let mut merged = self.merged(tree)?;
            while let Some(entry) = merged.current() {
                match entry.op {
                    Op::Put => out.put(tree, entry.key, entry.value)?,
                    Op::Delete => out.delete(tree, entry.key)?,
                }
                merged.advance()?;
            }
        }
        Ok(())
    }
}

fn write(core: &Core, tree: TreeId, source: &mut impl Source) -> Result<Arc<Run>> {
    let options = RunOptions {
        codec: core.options.delta_codec(),
        page_raw: core.tuning.page,
        filter_bits: FILTER_BITS,
        purpose: Purpose::Other,
    };
    let mut writer = RunWriter::new(&core.runs, tree, core.next_run(), options);
    while let Some(entry) = source.current() {
        writer.push(entry)?;
        source.advance()?;
    }
    writer.finish()
}

/// One sorted source of a tree's writes.
enum Part<'a> {
    Writes(SortedWrites<'a>),
    /// Page by page through the cache: a transaction may have thirty runs.
    Run(Box<RunCursor>),
}

impl Part<'_> {
    fn open(run: &Arc<Run>) -> Result<Self> {
        let mut cursor = run.cursor(Direction::Forward);
        cursor.seek(Bound::Unbounded)?;
        Ok(Part::Run(Box::new(cursor)))
    }
}

impl Source for Part<'_> {
    fn current(&self) -> Option<Entry<'_>> {
        match self {
            Part::Writes(writes) => writes.current(),
            Part::Run(run) => run.entry(),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Part::Writes(writes) => writes.advance(),
            Part::Run(run) => run.advance(),
        }
    }
}

/// The last write of each key; it is checked if any write of the key was checked.
pub(crate) struct Merged<'a> {
    merger: Merger<Part<'a>>,
    key: Vec<u8>,
    value: Vec<u8>,
    seq: Seq,
    op: Op,
    standing: bool,
}

impl<'a> Merged<'a> {
    /// Merge `sources`, newest first.
    fn new(sources: Vec<Part<'a>>) -> Result<Merged<'a>> {
        let mut merged = Merged {
            merger: Merger::new(sources),
            key: Vec::new(),
            value: Vec::new(),
            seq: Seq::ANCIENT,
            op: Op::Put,
            standing: false,
        };
        merged.advance()?;
        Ok(merged)
    }

    /// Whether the current key takes part in conflict detection.
    pub(crate) fn checked(&self) -> bool {
        self.seq.0 & 1 == 1
    }
}

impl Source for Merged<'_> {
    fn current(&self) -> Option<Entry<'_>> {
        self.standing.then_some(Entry {
            key: &self.key,
            seq: self.seq,
            op: self.op,
            value: &self.value,
        })
    }

    fn advance(&mut self) -> Result<()> {
        let Some(newest) = self.merger.current() else {
            self.standing = false;
            return Ok(());
        };
        self.key.clear();
        self.key.extend_from_slice(newest.key);
        self.value.clear();
        self.value.extend_from_slice(newest.value);
        (self.seq, self.op, self.standing) = (newest.seq, newest.op, true);
        self.merger.advance()?;
        while let Some(older) = self.merger.current()
            && older.key == self.key
        {
            self.seq = Seq(self.seq.0 | older.seq.0 & 1);
            self.merger.advance()?;
        }
        Ok(())
    }
}
