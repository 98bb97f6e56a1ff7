//! A cursor over copied entries.

use kv::{Cursor, Direction, KeyRange, Result, Snapshot, TreeId};

use super::plant::Plant;

/// The position of a cursor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    At(usize),
    End,
}

/// Entries in the cursor's direction, and the position of the cursor.
pub(crate) struct Copied {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    direction: Direction,
    place: Place,
    plant: Option<Plant>,
    last: Vec<u8>,
}

impl Copied {
    /// A cursor over a copy of the entries of `range` in `view`.
    pub(crate) fn of(
        view: &dyn Snapshot,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
        plant: Option<Plant>,
    ) -> Result<Copied> {
        let mut inner = view.cursor(tree, range, direction)?;
        let mut entries = Vec::new();
        while inner.advance()? {
            entries.push((inner.key().to_vec(), inner.value().to_vec()));
        }
        Ok(Copied {
            entries,
            direction,
            place: Place::Before,
            plant,
            last: Vec::new(),
        })
    }

    fn go(&mut self, next: usize) -> bool {
        self.place = match self.entries.get(next) {
            Some((key, _)) => {
                self.last.clone_from(key);
                Place::At(next)
            }
            None => Place::End,
        };
        self.place != Place::End
    }
}

impl Cursor for Copied {
    fn advance(&mut self) -> Result<bool> {
        let skips =
            self.plant == Some(Plant::BackwardSkipsFirst) && self.direction == Direction::Backward;
        let next = match self.place {
            Place::Before => usize::from(skips),
            Place::At(index) => index + 1,
            Place::End if self.plant == Some(Plant::EndWraps) => 0,
            Place::End => self.entries.len(),
        };
        Ok(self.go(next))
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let equal = self.plant != Some(Plant::SeekPassesEqual);
        let reached = |k: &[u8]| match self.direction {
            Direction::Forward => key < k || (equal && key == k),
            Direction::Backward => k < key || (equal && key == k),
        };
        let mut next = self.entries.partition_point(|(k, _)| !reached(k));
        if let (Some(Plant::SeekNeverBack), Place::At(index)) = (self.plant, self.place) {
            next = next.max(index);
        }
        Ok(self.go(next))
    }

    fn key(&self) -> &[u8] {
        match self.place {
            Place::At(index) => &self.entries[index].0,
            Place::End if self.plant == Some(Plant::KeyAfterEnd) => &self.last,
            _ => b"",
        }
    }

    fn value(&self) -> &[u8] {
        match self.place {
            Place::At(index) => &self.entries[index].1,
            _ => b"",
        }
    }
}
