//! Compares a state with the history.
//!
//! 1. The ledger shows each writer's last surviving commit; all earlier commits of the writer
//!    survived, too.
//! 2. This commit must not be older than the writer's last promised commit (L1), and must not be an
//!    aborted one (L3).
//! 3. No surviving commit began after a lost one was acknowledged (L2).
//! 4. Each key must have the value of a surviving commit that wrote it, and this commit must not be
//!    known to be older than another surviving commit that wrote the key (L3, L4). No key has a
//!    value that no writer wrote there (L5).
//! 5. All keys together must allow one order of the commits ([`super::order`], L4).

use std::collections::{BTreeMap, BTreeSet};

use crate::key::{Key, WRITERS_MAX};
use crate::protocol::Change;
use crate::value::Stamp;

use super::history::{Commit, Oracle, Outcome, State};
use super::order;
use super::violation::{Law, Violation};

/// Maximum number of writes to a key that a description of a violation lists; the newest is the
/// last.
const STORY_WRITES: usize = 12;

/// The counts of a check without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Entries compared.
    pub entries: u64,
    /// Surviving commits since the last check.
    pub survived: u64,
    /// Surviving commits whose outcome was not reported.
    pub unreported: u64,
    /// Lost commits that were acknowledged without a promise of survival.
    pub lost_unpromised: u64,
}

/// The state of a key after a surviving commit: an entry, or no entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left<'a> {
    pub(super) commit: &'a Commit,
    pub(super) stamp: Option<Stamp>,
}

impl Oracle {
    /// Compare `found`, the content of a reopened store, with all commits since the last check. If
    /// it is correct, the next check starts from `found`.
    ///
    /// # Errors
    /// The first broken law, with a counterexample.
    pub fn check(&mut self, found: State) -> Result<Verdict, Violation> {
        let mut verdict = Verdict {
            entries: found.len() as u64,
            ..Verdict::default()
        };
        let mut survived = Vec::new();
        for writer in 0..WRITERS_MAX {
            let last = self.last_of(writer, &found)?;
            let own = self.commits.iter().filter(|c| c.intent.writer == writer);
            for commit in own.filter(|c| c.outcome != Outcome::Aborted) {
                if commit.intent.counter <= last {
                    survived.push(commit);
                    verdict.unreported += u64::from(commit.outcome == Outcome::Unknown);
                } else {
                    verdict.lost_unpromised += u64::from(commit.outcome == Outcome::Acked);
                }
            }
        }
        verdict.survived = survived.len() as u64;
        survived.sort_by_key(|c| c.begun);
        self.no_holes(&found, &survived)?;
        let left = self.left(&survived);
        self.compare(&found, &left)?;
        order::explain(&survived, &left, &found)?;
        self.rebase(found);
        Ok(verdict)
    }

    /// The counter of `writer`'s last surviving commit, as the ledger shows it.
    fn last_of(&self, writer: u32, found: &State) -> Result<u64, Violation> {
        let key = Key::ledger(writer);
        let counter = |state: &State| state.get(&key).map_or(0, |stamp| stamp.counter);
        let (before, last) = (counter(&self.base), counter(found));
        let promised = self
            .promised
            .get(&writer)
            .copied()
            .unwrap_or(before)
            .max(before);
        if last < promised {
            let own = self.commits.iter().filter(|c| c.intent.writer == writer);
            let lost: Vec<&Commit> = own
                .filter(|c| last < c.intent.counter && c.intent.counter <= promised)
                .filter(|c| c.outcome == Outcome::Acked)
                .collect();
            let newest = lost
                .last()
                .map_or(String::new(), |c| format!("; {}", c.name()));
            let story = format!(
                "writer {writer} is at commit {last} and was promised up to {promised}: {} \
                 acknowledged commits are lost{newest} (promised: acknowledged at {} or above, \
                 or before a sync of everything that returned)",
                lost.len(),
                self.kept
            );
            return Err(Violation::new(Law::Durable, story));
        }
        if last == before {
            return Ok(last);
        }
        let mut own = self.commits.iter();
        let commit = own.find(|c| c.intent.writer == writer && c.intent.counter == last);
        match commit {
            Some(commit) if commit.outcome != Outcome::Aborted => Ok(last),
            Some(commit) => {
                let story = format!("the ledger shows {}", commit.name());
                Err(Violation::new(Law::Atomic, story))
            }
            None => {
                let story = format!("the ledger shows {writer}:{last}, which was not announced");
                Err(Violation::new(Law::Bytes, story))
            }
        }
    }

    /// Check that no surviving commit began after a lost commit was acknowledged.
    fn no_holes(&self, found: &State, survived: &[&Commit]) -> Result<(), Violation> {
        let lost = |c: &&Commit| {
            let last = found.get(&Key::ledger(c.intent.writer));
            c.outcome == Outcome::Acked && last.map_or(0, |s| s.counter) < c.intent.counter
        };
        let lost = self.commits.iter().filter(lost).min_by_key(|c| c.ended);
        let (Some(lost), Some(last)) = (lost, survived.last()) else {
            return Ok(());
        };
        if last.begun < lost.ended {
            return Ok(());
        }
        let story = format!("{} is lost, {} is there", lost.name(), last.name());
        Err(Violation::new(Law::Prefix, story))
    }

    /// For each changed key, its state after each surviving commit, in the order of the intents.
    fn left<'a>(&self, survived: &[&'a Commit]) -> BTreeMap<Key, Vec<Left<'a>>> {
        let mut known: BTreeSet<Key> = self.base.keys().copied().collect();
        for change in survived.iter().flat_map(|c| &c.intent.changes) {
            if let &Change::Put(key, _) = change {
                known.insert(key);
            }
        }
        let mut all: BTreeMap<Key, Vec<Left<'a>>> = BTreeMap::new();
        for &commit in survived {
            for (key, stamp) in effect(commit, &known) {
                all.entry(key).or_default().push(Left { commit, stamp });
            }
        }
        all
    }

    /// Check that every key has an allowed value.
    fn compare(&self, found: &State, left: &BTreeMap<Key, Vec<Left<'_>>>) -> Result<(), Violation> {
        let keys: BTreeSet<&Key> = found
            .keys()
            .chain(self.base.keys())
            .chain(left.keys())
            .collect();
        for &key in keys {
            let shown = found.get(&key).copied();
            match left.get(&key) {
                None if shown == self.base.get(&key).copied() => {}
                None => return Err(self.untouched(key, shown)),
                Some(writes) => self.explain(key, shown, writes)?,
            }
        }
        Ok(())
    }

    /// The violation that a key changed although no surviving commit wrote it.
    fn untouched(&self, key: Key, shown: Option<Stamp>) -> Violation {
        let base = text(self.base.get(&key).copied());
        let story = format!(
            "{key} shows {} and should show {base}, as at the last check: no surviving commit \
             has changed it{}",
            text(shown),
            self.author(shown)
        );
        let law = if shown.is_some() {
            Law::Atomic
        } else {
            Law::Durable
        };
        Violation::new(law, story)
    }

    /// Check that `shown` may be the value of `key` after `writes`.
    fn explain(
        &self,
        key: Key,
        shown: Option<Stamp>,
        writes: &[Left<'_>],
    ) -> Result<(), Violation> {
        let mut own = writes.iter().filter(|w| w.stamp == shown).peekable();
        if own.peek().is_none() {
            return Err(self.unexplained(Law::Atomic, key, shown, writes));
        }
        if own.any(|w| last_begun(writes) < w.commit.ended) {
            return Ok(());
        }
        Err(self.unexplained(Law::Order, key, shown, writes))
    }

    fn unexplained(
        &self,
        law: Law,
        key: Key,
        shown: Option<Stamp>,
        writes: &[Left<'_>],
    ) -> Violation {
        let mut story = format!("{key} shows {}{}", text(shown), self.author(shown));
        story.push_str("\n  surviving commits that wrote it, by their intents:");
        let skipped = writes.len().saturating_sub(STORY_WRITES);
        if 0 < skipped {
            story.push_str(&format!("\n    ({skipped} older ones)"));
        }
        for write in writes.iter().skip(skipped) {
            let left = text(write.stamp);
            story.push_str(&format!("\n    {} left {left}", write.commit.name()));
        }
        Violation::new(law, story)
    }

    /// The author of the value, if it was written since the last check; for messages.
    fn author(&self, shown: Option<Stamp>) -> String {
        let Some(stamp) = shown else {
            return String::new();
        };
        let same =
            |c: &&Commit| c.intent.writer == stamp.writer && c.intent.counter == stamp.counter;
        match self.commits.iter().find(same) {
            Some(commit) => format!(", of {}", commit.name()),
            None => ", of a commit not announced since the last check".to_owned(),
        }
    }
}

/// The latest time at which one of `writes` began.
fn last_begun(writes: &[Left<'_>]) -> u64 {
    writes.iter().map(|w| w.commit.begun).max().unwrap_or(0)
}

/// The state after `commit` of each key that it changes. A range delete changes those of the
/// `known` keys that it covers.
fn effect(commit: &Commit, known: &BTreeSet<Key>) -> BTreeMap<Key, Option<Stamp>> {
    let mut effect = BTreeMap::new();
    for &change in &commit.intent.changes {
        match change {
            Change::Put(key, len) => {
                let stamp = Stamp {
                    writer: commit.intent.writer,
                    counter: commit.intent.counter,
                    len,
                };
                effect.insert(key, Some(stamp));
            }
            Change::Delete(key) => {
                effect.insert(key, None);
            }
            Change::DeleteRange(from, to) => {
                effect.extend(known.range(from..to).map(|&key| (key, None)));
            }
        }
    }
    effect
}

fn text(stamp: Option<Stamp>) -> String {
    stamp.map_or("nothing".to_owned(), |stamp| stamp.to_string())
}
