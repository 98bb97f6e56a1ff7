//! The versions that a snapshot sees, one per key, from a sequence of all versions.
//!
//! Invariants:
//! - I1: the entry it stands on is the newest version of its key that the snapshot sees.
//! - I2: going forward the inner cursor stands on that entry; going backward it has passed all
//!   versions of the key, and the entry is a copy - unless every key has one version that all see
//!   (`plain`), when the inner cursor's entry is the entry in both directions.
//! - I3: while it advances, and until it advances again, `left` is the key it has left.

use std::ops::Bound;

use super::source::Source;
use super::stop::{Step, Stop};
use crate::error::{Error, Result};
use crate::types::{Direction, Entry, Op, Seq};

/// A cursor over all versions of a sorted sequence, in both directions: backward is the exact
/// reverse of forward, so the oldest version of a key comes first.
pub(super) trait Versions {
    /// Move to the first entry within `from`.
    fn seek(&mut self, from: Bound<&[u8]>) -> Result<()>;

    /// The current entry.
    fn entry(&self) -> Option<Entry<'_>>;

    /// Move to the next entry. If that fails because its data are gone, the current entry stays.
    fn advance(&mut self) -> Result<()>;

    /// Whether its data are gone for good.
    fn is_gone(&self) -> bool;

    /// The current key, or at the end the last one. There must have been a current entry.
    fn passed(&self) -> &[u8];
}

/// The versions of `C` that a snapshot sees.
pub(super) struct Visible<C> {
    inner: C,
    snapshot: Seq,
    plain: bool,
    /// Whether the snapshot sees the newest version of every key.
    sees_all: bool,
    direction: Direction,
    held: Held,
    /// Whether the key it has left is in `held` or `before`; otherwise the inner cursor has it.
    copied: bool,
    /// Backward: the key it has left.
    before: Vec<u8>,
}

/// A copy of the current entry (backward), or of the key whose versions are being skipped
/// (forward).
struct Held {
    full: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    seq: Seq,
    op: Op,
}

impl<C: Versions> Visible<C> {
    /// The versions of `inner` that `snapshot` sees; `max_seq` is the largest sequence number of
    /// `inner`.
    pub(super) fn new(inner: C, direction: Direction, snapshot: Seq, max_seq: Seq) -> Visible<C> {
        let held = Held {
            full: false,
            key: Vec::new(),
            value: Vec::new(),
            seq: Seq::ANCIENT,
            op: Op::Put,
        };
        Visible {
            inner,
            snapshot,
            // Sequence numbers of one key strictly decrease, so a key has at most one version with
            // 0.
            plain: max_seq == Seq::ANCIENT,
            sees_all: max_seq <= snapshot,
            direction,
            held,
            copied: false,
            before: Vec::new(),
        }
    }

    /// Forward: skip the versions that the snapshot does not see.
    fn settle(&mut self) -> Result<()> {
        while let Some(entry) = self.inner.entry() {
            if entry.seq <= self.snapshot {
                break;
            }
            self.inner.advance()?;
        }
        Ok(())
    }

    /// Forward: skip the older versions of the current key.
    fn pass(&mut self) -> Result<()> {
        let Some(entry) = self.inner.entry() else {
            return Ok(());
        };
        let oldest = entry.seq == Seq::ANCIENT;
        // Then a single step suffices, and the inner cursor still has the key.
        self.copied = !(oldest && self.sees_all);
        if self.copied {
            self.held.key.clear();
            self.held.key.extend_from_slice(entry.key);
        }
        if oldest {
            return self.inner.advance();
        }
        loop {
            self.inner.advance()?;
            let same = |entry: Entry<'_>| entry.key == self.held.key;
            if !self.inner.entry().is_some_and(same) {
                return Ok(());
            }
        }
    }

    /// Backward: move to the newest visible version of the next key that has one.
    fn take(&mut self) -> Result<()> {
        std::mem::swap(&mut self.held.key, &mut self.before);
        self.copied = true;
        self.held.full = false;
        while let Some(entry) = self.inner.entry() {
            if self.held.full && entry.key != self.held.key {
                break;
            }
            if entry.seq <= self.snapshot {
                debug_assert!(
                    !self.held.full || self.held.seq < entry.seq,
                    "I1: versions come from the oldest on"
                );
                self.held.copy(entry);
            }
            self.inner.advance()?;
        }
        Ok(())
    }

    /// I3.
    pub(super) fn left(&self) -> &[u8] {
        match self.direction {
            _ if !self.copied => self.inner.passed(),
            Direction::Forward => &self.held.key,
            Direction::Backward => &self.before,
        }
    }

    /// Convert an error of the inner cursor for a cursor that leaves `left`.
    #[cold]
    fn stop(&self, error: Error, left: Option<&[u8]>) -> Stop {
        if self.inner.is_gone() {
            Stop::Gone(left.map(Box::from))
        } else {
            Stop::Failed(error)
        }
    }

    #[inline]
    fn copies(&self) -> bool {
        !self.plain && self.direction == Direction::Backward
    }
}

impl Held {
    fn copy(&mut self, entry: Entry<'_>) {
        if !self.full {
            self.key.clear();
            self.key.extend_from_slice(entry.key);
        }
        self.value.clear();
        self.value.extend_from_slice(entry.value);
        self.seq = entry.seq;
        self.op = entry.op;
        self.full = true;
    }
}

impl<C: Versions> Source for Visible<C> {
    fn seek(&mut self, from: Bound<&[u8]>) -> Step {
        let sought = self.inner.seek(from);
        let found = match (self.plain, self.direction) {
            (true, _) => sought,
            (false, Direction::Forward) => sought.and_then(|()| self.settle()),
            (false, Direction::Backward) => sought.and_then(|()| self.take()),
        };
        found.map_err(|error| self.stop(error, None))?;
        debug_assert!(
            self.entry().is_none_or(|entry| entry.seq <= self.snapshot),
            "I1: the snapshot sees it"
        );
        Ok(())
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        if !self.copies() {
            return self.inner.entry();
        }
        self.held.full.then_some(Entry {
            key: &self.held.key,
            seq: self.held.seq,
            op: self.held.op,
            value: &self.held.value,
        })
    }

    #[inline]
    fn advance(&mut self) -> Step {
        let gone_on = if self.plain {
            self.inner.advance()
        } else {
            match self.direction {
                Direction::Forward => self.pass().and_then(|()| self.settle()),
                Direction::Backward => self.take(),
            }
        };
        gone_on.map_err(|error| self.stop(error, Some(self.left())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Memory, Version};
    use super::*;

    fn versions() -> Vec<Version> {
        let version = |key: &str, seq, op| Version::new(key.as_bytes(), seq, op, b"");
        vec![
            version("a", 7, Op::Put),
            version("a", 4, Op::Delete),
            version("a", 0, Op::Put),
            version("b", 9, Op::Put),
            version("c", 3, Op::Put),
            version("c", 2, Op::Put),
            version("d", 0, Op::Delete),
        ]
    }

    fn seen(direction: Direction, snapshot: u64, from: Bound<&[u8]>) -> String {
        let memory = Memory::new(versions(), direction);
        let mut visible = Visible::new(memory, direction, Seq(snapshot), Seq(9));
        visible.seek(from).unwrap();
        let mut text = String::new();
        while let Some(entry) = visible.entry() {
            let key = str::from_utf8(entry.key).unwrap();
            text += &format!(
                "{key}{}{} ",
                entry.seq,
                if entry.op == Op::Put { "" } else { "-" }
            );
            visible.advance().unwrap();
        }
        text.trim_end().to_owned()
    }

    #[test]
    fn each_key_shows_its_newest_visible_version() {
        let all = |snapshot| seen(Direction::Forward, snapshot, Bound::Unbounded);
        assert_eq!(all(9), "a7 b9 c3 d0-");
        assert_eq!(all(8), "a7 c3 d0-");
        assert_eq!(all(6), "a4- c3 d0-");
        assert_eq!(all(2), "a0 c2 d0-");
        assert_eq!(all(0), "a0 d0-");
    }

    #[test]
    fn backward_is_forward_reversed() {
        for snapshot in 0..=10 {
            let forward = seen(Direction::Forward, snapshot, Bound::Unbounded);
            let backward = seen(Direction::Backward, snapshot, Bound::Unbounded);
            let reversed: Vec<&str> = forward.split(' ').rev().collect();
            assert_eq!(backward, reversed.join(" "), "snapshot {snapshot}");
        }
    }

    #[test]
    fn seeks_land_on_visible_versions() {
        let up = |from| seen(Direction::Forward, 8, from);
        let down = |from| seen(Direction::Backward, 8, from);
        assert_eq!(up(Bound::Included(b"b")), "c3 d0-");
        assert_eq!(up(Bound::Excluded(b"c")), "d0-");
        assert_eq!(down(Bound::Included(b"b")), "a7");
        assert_eq!(down(Bound::Excluded(b"a")), "");
    }
}
