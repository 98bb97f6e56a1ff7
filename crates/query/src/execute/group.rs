//! `$group`: a hash table of groups.
//!
//! When the table is full, its groups stay and continue to take rows; rows of other groups are
//! spilled, in partitions by the hash of their key. When the input ends, the table's groups are
//! returned; then each partition is grouped in the same way, with another hash. So a group gets its
//! rows in the order of the input, as `$first` and `$push` require.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use bson::{Bson, Document};

use super::spill::Spilled;
use super::{Host, Rows, Spill, memory, spill};
use crate::accumulator::State;
use crate::expr::{Env, Variables};
use crate::meter::Held;
use crate::settings::Settings;
use crate::stage::Group;
use crate::value::equivalence_key;
use crate::{Result, Row};

/// Number of partitions into which spilled rows are divided.
const PARTITIONS: u64 = 16;
/// Maximum number of times that rows are divided by a new hash. After that they stay in one
/// partition, and every pass over it completes the groups of one full table.
const MAX_LEVEL: u32 = 6;
/// Bytes of a group without its key and its states.
const GROUP_BYTES: usize = 128;

/// `$group`.
pub(super) struct GroupRows {
    group: Arc<Group>,
    settings: Settings,
    /// Inputs still to be grouped, each with the number of times it was divided; the last one is
    /// next.
    pending: Vec<(Box<dyn Rows>, u32)>,
    ready: std::vec::IntoIter<Entry>,
    /// Memory reserved in the budget of all operations.
    held: Held,
}

/// One group.
struct Entry {
    id: Bson,
    states: Vec<State>,
}

impl GroupRows {
    pub(super) fn new(input: Box<dyn Rows>, group: Group, settings: &Settings) -> GroupRows {
        GroupRows {
            group: Arc::new(group),
            settings: settings.clone(),
            pending: vec![(input, 0)],
            ready: Vec::new().into_iter(),
            held: Held::new(),
        }
    }

    /// Groups one input until it ends, and spills rows for which the table has no room.
    fn gather(&mut self, mut input: Box<dyn Rows>, level: u32, host: &mut dyn Host) -> Result<()> {
        let mut table = Table::new(&self.group, &self.settings.variables);
        let mut partitions: Vec<Option<Box<dyn Spill>>> = Vec::new();
        while let Some(row) = input.next(host)? {
            host.check()?;
            let id = self
                .group
                .id
                .evaluate_or_null(&Env::new(row.document()?, &self.settings.variables))?;
            let key = equivalence_key(&id, self.settings.collator.as_deref());
            let full = !partitions.is_empty();
            match table.add(key, id, &row, full)? {
                Added::Yes => {
                    // The states of groups in the table may grow beyond the limit; spilling does
                    // not help against that.
                    if !full && memory::must_spill("$group", &mut self.held, table.bytes, host)? {
                        partitions.resize_with(usize::try_from(PARTITIONS).unwrap_or(1), || None);
                    } else if full {
                        if table.bytes / 2 > host.memory_limit() {
                            return Err(memory::exceeded("$group"));
                        }
                        self.held.require("$group", table.bytes)?;
                    }
                }
                Added::No(key) => {
                    let at = partition(&key, level);
                    if let Some(slot) = partitions.get_mut(at) {
                        let file = match slot {
                            Some(file) => file,
                            None => slot.insert(host.spill()?),
                        };
                        spill::put(file.as_mut(), &row)?;
                    }
                }
            }
        }
        let rest = partitions.into_iter().flatten().rev();
        let below = (level + 1).min(MAX_LEVEL);
        for file in rest {
            self.pending.push((Box::new(Spilled(file)), below));
        }
        self.ready = table.entries.into_iter();
        Ok(())
    }

    fn result(&self, entry: Entry) -> Row {
        let mut document = Document::new();
        document.insert("_id", entry.id);
        for ((name, accumulator), state) in self.group.fields.iter().zip(entry.states) {
            document.insert(name.as_str(), accumulator.finish(state));
        }
        Row::from_document(document)
    }
}

impl Rows for GroupRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        loop {
            if let Some(entry) = self.ready.next() {
                return Ok(Some(self.result(entry)));
            }
            let Some((input, level)) = self.pending.pop() else {
                return Ok(None);
            };
            self.gather(input, level, host)?;
        }
    }
}

/// The partition of a key; each level uses another hash.
fn partition(key: &[u8], level: u32) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((level, key));
    usize::try_from(hash % PARTITIONS).unwrap_or(0)
}

/// The groups, in the order in which their first rows came.
struct Table<'a> {
    group: &'a Group,
    variables: &'a Variables,
    places: HashMap<Vec<u8>, usize>,
    entries: Vec<Entry>,
    bytes: usize,
}

enum Added {
    Yes,
    /// The row's group is not in the table, and the table is full; the key is returned.
    No(Vec<u8>),
}

impl<'a> Table<'a> {
    fn new(group: &'a Group, variables: &'a Variables) -> Table<'a> {
        Table {
            group,
            variables,
            places: HashMap::new(),
            entries: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, key: Vec<u8>, id: Bson, row: &Row, full: bool) -> Result<Added> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if full => return Ok(Added::No(key)),
            None => {
                let place = self.entries.len();
                self.bytes += key.len() + memory::value(&id) + GROUP_BYTES;
                self.bytes += self.group.fields.len() * size_of::<State>();
                self.places.insert(key, place);
                let entry = self.start(id)?;
                self.entries.push(entry);
                place
            }
        };
        let env = Env::new(row.document()?, self.variables);
        if let Some(entry) = self.entries.get_mut(place) {
            for ((_, accumulator), state) in self.group.fields.iter().zip(&mut entry.states) {
                let before = state.memory();
                accumulator.add(state, &env)?;
                self.bytes = (self.bytes + state.memory()).saturating_sub(before);
            }
        }
        Ok(Added::Yes)
    }

    /// A new group with the key `id`, before its first row.
    fn start(&self, id: Bson) -> Result<Entry> {
        let mut key = Document::new();
        key.insert("_id", id);
        let env = Env::new(&key, self.variables);
        let states = self.group.fields.iter();
        let states = states.map(|(_, accumulator)| accumulator.start(&env));
        let states = states.collect::<Result<_>>()?;
        Ok(Entry {
            id: key.remove("_id").unwrap_or(Bson::Null),
            states,
        })
    }
}
