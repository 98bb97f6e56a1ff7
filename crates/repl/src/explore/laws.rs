//! The laws of every state that is explored.
//!
//! - A1. Election safety: a term has at most one primary.
//! - A2. Leader completeness: a primary has every entry that a primary of an older term committed.
//! - A3. State-machine safety: members agree on the committed entries, in order.
//! - A4. Log matching: two logs that contain the same entry are equal up to it.
//! - A5. A committed entry is never rolled back.
//! - A6. Two configurations with the same identity have the same members.
//! - A7. Terms rise only by elections, not by dry runs.
//! - A8. What the state machine believes of its log is true of the disk.
//! - A9. A position names one entry: no primary writes it twice.
//!
//! That the commit point never falls is asserted by the state machine itself (N1).

use super::world::{World, shape};
use crate::node::Role;
use crate::position::Position;

impl World {
    /// The law that this state breaks.
    pub(super) fn broken(&self) -> Option<&'static str> {
        if self.past.broken.is_some() {
            return self.past.broken;
        }
        for (node, disk) in self.nodes.iter().zip(&self.disks) {
            if self.past.campaigned < node.term() {
                return Some("A7: a term without an election");
            }
            if node.log != shape(&disk.entries) {
                return Some("A8: the log is not what was written");
            }
            let primary = matches!(node.role, Role::Primary(_));
            for (at, (entry, term)) in self.past.committed.iter().enumerate() {
                if primary && *term < node.term() && disk.entries.get(at) != Some(entry) {
                    return Some("A2: a primary lacks a committed entry");
                }
            }
        }
        for (i, a) in self.nodes.iter().enumerate() {
            for b in self.nodes.iter().skip(i + 1) {
                let (c, d) = (a.config(), b.config());
                if c.id == d.id && c != d {
                    return Some("A6: two configurations have one identity");
                }
                let primaries = [a, b].map(|node| matches!(node.role, Role::Primary(_)));
                if a.term() == b.term() && primaries == [true, true] {
                    return Some("A1: two primaries in one term");
                }
            }
        }
        self.mismatched()
            .then_some("A4: logs with a common entry differ before it")
    }

    fn mismatched(&self) -> bool {
        self.disks.iter().enumerate().any(|(i, a)| {
            self.disks.iter().skip(i + 1).any(|b| {
                let common = a
                    .entries
                    .iter()
                    .rposition(|entry| b.entries.contains(entry));
                common.is_some_and(|at| a.entries.get(..=at) != b.entries.get(..=at))
            })
        })
    }

    pub(super) fn elected(&mut self, a: u8) {
        let node = self.node(a);
        let one = (node.term(), node.me);
        let mut known = self
            .past
            .primaries
            .iter()
            .filter(|(term, _)| *term == one.0);
        if known.any(|known| *known != one) {
            self.past.broken = Some("A1: a term with two primaries");
        }
        self.past.primaries.push(one);
        self.past.primaries.sort_unstable();
        self.past.primaries.dedup();
    }

    pub(super) fn committed(&mut self, a: u8, at: Position) {
        let term = self.node(a).term();
        let entries = &self.disks[usize::from(a)].entries;
        let count = entries.iter().position(|e| *e == at).map_or(0, |i| i + 1);
        for (i, entry) in entries.iter().take(count).enumerate() {
            match self.past.committed.get(i) {
                Some((known, _)) if known != entry => {
                    self.past.broken = Some("A3: two entries are committed at one place");
                }
                Some(_) => {}
                None => self.past.committed.push((*entry, term)),
            }
        }
    }

    pub(super) fn roll_back(&mut self, a: u8, to: Position) {
        let disk = &mut self.disks[usize::from(a)];
        let kept = disk
            .entries
            .iter()
            .position(|e| *e == to)
            .map_or(0, |i| i + 1);
        let removed = disk.entries.split_off(kept);
        disk.durable = disk.durable.min(kept);
        let committed = |e: &Position| self.past.committed.iter().any(|(known, _)| known == e);
        if removed.iter().any(committed) {
            self.past.broken = Some("A5: a committed entry is rolled back");
        }
    }

    pub(super) fn created(&mut self, at: Position) {
        if self.past.written.contains(&at) {
            self.past.broken = Some("A9: two entries have one position");
        }
        self.past.written.push(at);
        self.past.written.sort_unstable();
    }
}
