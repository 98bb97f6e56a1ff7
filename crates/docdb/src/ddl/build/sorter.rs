//! External sort of index entries, for any number of entries.
//!
//! Entries beyond the memory limit are written to temporary files in sorted runs, which are merged
//! while the entries are inserted. In memory, entries share one buffer: an index build sorts
//! millions of small entries, and an allocation for each would cost more than the entries.

use query::execute::{Runs, Spill};
use query::{Code, Error, Result};

use crate::exec::{SpillFile, SpillPlace};

/// An entry of the index: key and value.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// Accepts entries in any order.
pub(super) struct Sorter {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// Bytes held in memory.
    memory: usize,
    place: SpillPlace,
    runs: Vec<Box<dyn Spill>>,
    count: u64,
}

/// Location of an entry in the byte buffer.
#[derive(Clone, Copy)]
struct Place {
    /// The first bytes of the key: most comparisons end here.
    prefix: u64,
    start: usize,
    key: u32,
    value: u32,
}

/// Sorted entries.
pub(super) enum Sorted {
    Held(Held),
    Merged(Runs<Entry, ()>),
}

/// Sorted entries in memory.
pub(super) struct Held {
    bytes: Vec<u8>,
    places: std::vec::IntoIter<Place>,
}

impl Place {
    fn key(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start..)
            .and_then(|b| b.get(..self.key as usize))
            .unwrap_or_default()
    }

    fn value(self, bytes: &[u8]) -> &[u8] {
        let start = self.start + self.key as usize;
        bytes
            .get(start..)
            .and_then(|b| b.get(..self.value as usize))
            .unwrap_or_default()
    }
}

impl Sorter {
    /// Hold at most `memory` bytes in memory, and the rest in temporary files of a directory.
    pub(super) fn new(memory: usize, place: SpillPlace) -> Sorter {
        Sorter {
            bytes: Vec::new(),
            places: Vec::new(),
            memory,
            place,
            runs: Vec::new(),
            count: 0,
        }
    }

    /// The number of entries added.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Add an entry.
    ///
    /// # Errors
    /// I/O errors of temporary files.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let length = |part: &[u8]| u32::try_from(part.len()).map_err(|_| wrong());
        let mut prefix = [0; 8];
        prefix
            .iter_mut()
            .zip(key)
            .for_each(|(to, from)| *to = *from);
        self.places.push(Place {
            prefix: u64::from_be_bytes(prefix),
            start: self.bytes.len(),
            key: length(key)?,
            value: length(value)?,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += 1;
        let held = self.bytes.len() + self.places.len() * size_of::<Place>();
        if self.memory < held {
            self.write_run()?;
        }
        Ok(())
    }

    /// Finish sorting and return all entries in order.
    ///
    /// # Errors
    /// I/O errors of temporary files.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted::Held(Held {
                bytes: self.bytes,
                places: self.places.into_iter(),
            }));
        }
        self.write_run()?;
        Ok(Sorted::Merged(Runs::new(self.runs, &mut |record| {
            read(record)
        })?))
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let rest = |place: &Place| (place.key(bytes), place.value(bytes));
        self.places.sort_unstable_by(|a, b| {
            let first = a.prefix.cmp(&b.prefix);
            first.then_with(|| rest(a).cmp(&rest(b)))
        });
    }

    fn write_run(&mut self) -> Result<()> {
        self.sort();
        let mut file = SpillFile::create(&self.place)?;
        let mut record = Vec::new();
        for place in self.places.drain(..) {
            record.clear();
            record.extend_from_slice(&place.key.to_le_bytes());
            record.extend_from_slice(place.key(&self.bytes));
            record.extend_from_slice(place.value(&self.bytes));
            file.append(&record)?;
        }
        self.bytes.clear();
        self.runs.push(Box::new(file));
        Ok(())
    }
}

impl Sorted {
    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// I/O errors of temporary files.
    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        match self {
            Sorted::Held(held) => Ok(held.next()),
            Sorted::Merged(runs) => Ok(runs
                .next(&mut |record| read(record))?
                .map(|(entry, ())| entry)),
        }
    }
}

impl Held {
    fn next(&mut self) -> Option<Entry> {
        let place = self.places.next()?;
        let (key, value) = (place.key(&self.bytes), place.value(&self.bytes));
        Some((key.to_vec(), value.to_vec()))
    }
}

/// Decode an entry of a run.
fn read(record: &[u8]) -> Result<(Entry, ())> {
    let split = || {
        let (length, rest) = record.split_first_chunk::<4>()?;
        rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
    };
    let (key, value) = split().ok_or_else(wrong)?;
    Ok(((key.to_vec(), value.to_vec()), ()))
}

fn wrong() -> Error {
    Error::new(
        Code::INTERNAL_ERROR,
        "a temporary file of an index build holds wrong bytes",
    )
}

#[cfg(test)]
mod tests {
    use stdx::Rng;

    use super::*;

    fn place(directory: &std::path::Path) -> SpillPlace {
        SpillPlace {
            directory: directory.to_owned(),
            encrypted: false,
        }
    }

    #[test]
    fn entries_come_in_order_from_memory_and_from_runs() {
        let directory = tempfile::tempdir().unwrap();
        let seed = 7;
        let mut rng = Rng::new(seed);
        let mut random = |most: u64| -> Vec<u8> {
            let length = rng.below(most);
            (0..length)
                .map(|_| u8::try_from(rng.below(3)).unwrap())
                .collect()
        };
        let mut entries: Vec<Entry> = (0..2000).map(|_| (random(14), random(3))).collect();
        for memory in [usize::MAX, 10_000, 0] {
            let mut sorter = Sorter::new(memory, place(directory.path()));
            for (key, value) in entries.iter().take(if memory == 0 { 50 } else { 2000 }) {
                sorter.push(key, value).unwrap();
            }
            let pushed = if memory == 0 { 50 } else { 2000 };
            let runs = sorter.runs.len();
            assert_eq!(
                runs,
                match memory {
                    0 => 50,
                    10_000 => runs.max(5),
                    _ => 0,
                }
            );
            let mut sorted = sorter.finish().unwrap();
            let mut expected = entries.get(..pushed).unwrap().to_vec();
            expected.sort();
            for (at, entry) in expected.into_iter().enumerate() {
                let given = sorted.next().unwrap();
                assert_eq!(
                    given,
                    Some(entry),
                    "seed {seed}, memory {memory}, entry {at}"
                );
            }
            assert_eq!(sorted.next().unwrap(), None);
            entries.reverse();
        }
    }
}
