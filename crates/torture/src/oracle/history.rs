//! The commits announced and acknowledged since the last successful check.
//!
//! Every message gets the next number as its time. A commit happened between the times of its
//! intent and its outcome; without an outcome it happened at any time after its intent, or not at
//! all.
//!
//! - I1: a writer has at most one commit in progress.
//! - I2: a writer's counters ascend.
//! - I3: a promise is never revoked: `promised` only grows between two checks.

use std::collections::BTreeMap;

use kv::Durability;

use crate::key::Key;
use crate::protocol::{Event, Intent};
use crate::value::Stamp;

use super::violation::{Law, Violation};

/// All entries of a store.
pub type State = BTreeMap<Key, Stamp>;

/// The outcome of a commit, as far as the worker reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Not reported.
    Unknown,
    /// The commit was acknowledged.
    Acked,
    /// The commit was rolled back or refused.
    Aborted,
}

/// A commit that was announced.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) intent: Intent,
    pub(super) begun: u64,
    /// The time of the outcome; `u64::MAX` without one.
    pub(super) ended: u64,
    pub(super) outcome: Outcome,
}

impl Commit {
    /// The commit as messages name it.
    pub(super) fn name(&self) -> String {
        let Intent {
            writer,
            counter,
            durability,
            ..
        } = self.intent;
        let kind = if self.intent.transaction {
            "transaction"
        } else {
            "batch"
        };
        let outcome = match self.outcome {
            Outcome::Unknown => "outcome not reported".to_owned(),
            Outcome::Acked => format!("acknowledged at {}", self.ended),
            Outcome::Aborted => format!("aborted at {}", self.ended),
        };
        let begun = self.begun;
        format!("{writer}:{counter} ({kind}, {durability}, announced at {begun}, {outcome})")
    }
}

/// Counts over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commits announced.
    pub announced: u64,
    /// Commits acknowledged.
    pub acked: u64,
    /// Commits acknowledged at a level that promises survival.
    pub promised: u64,
    /// Commits aborted.
    pub aborted: u64,
    /// Syncs of all commits that returned.
    pub syncs: u64,
}

/// The oracle: the supervisor's record of commits.
#[derive(Debug)]
pub struct Oracle {
    /// The weakest level whose acknowledgement promises survival of a kill.
    pub(super) kept: Durability,
    /// The state at the last successful check.
    pub(super) base: State,
    /// The commits since the last check, in the order of their intents.
    pub(super) commits: Vec<Commit>,
    /// Each writer's commit in progress: its index in `commits`.
    under_way: BTreeMap<u32, usize>,
    /// Each writer's last acknowledged commit.
    pub(super) acked: BTreeMap<u32, u64>,
    /// Each writer's last commit that must survive.
    pub(super) promised: BTreeMap<u32, u64>,
    /// `acked` at the beginning of the sync in progress.
    syncing: Option<BTreeMap<u32, u64>>,
    moment: u64,
    counter_max: u64,
    counts: Counts,
}

impl Oracle {
    /// An oracle for an empty store. Acknowledged commits at `kept` and stronger levels must
    /// survive.
    #[must_use]
    pub fn new(kept: Durability) -> Oracle {
        Oracle {
            kept,
            base: State::new(),
            commits: Vec::new(),
            under_way: BTreeMap::new(),
            acked: BTreeMap::new(),
            promised: BTreeMap::new(),
            syncing: None,
            moment: 0,
            counter_max: 0,
            counts: Counts::default(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A counter that no writer has used.
    #[must_use]
    pub fn next_counter(&self) -> u64 {
        self.counter_max + 1
    }

    /// Record `event` from the worker.
    ///
    /// # Errors
    /// A violation that `event` reports, or that follows from a contradiction with earlier events.
    pub fn observe(&mut self, event: &Event) -> Result<(), Violation> {
        self.moment += 1;
        match event {
            Event::Intend(intent) => self.intend(intent),
            &Event::Acked(writer, counter) => self.end(writer, counter, Outcome::Acked),
            &Event::Aborted(writer, counter) => self.end(writer, counter, Outcome::Aborted),
            Event::SyncBegun => {
                self.syncing = Some(self.acked.clone());
                Ok(())
            }
            Event::Synced => self.synced(),
            Event::Wrong(message) => Err(Violation::new(Law::Behaviour, message.as_str())),
            Event::Opened
            | Event::Verified(_)
            | Event::Entry { .. }
            | Event::Dumped
            | Event::Closed => Ok(()),
        }
    }

    fn intend(&mut self, intent: &Intent) -> Result<(), Violation> {
        let (writer, counter) = (intent.writer, intent.counter);
        let before = self
            .commits
            .iter()
            .rev()
            .find(|c| c.intent.writer == writer);
        if self.under_way.contains_key(&writer) {
            return Err(confused(writer, counter, "I1: announced beside another"));
        }
        if before.is_some_and(|c| counter <= c.intent.counter) {
            return Err(confused(writer, counter, "I2: announced after a later one"));
        }
        self.under_way.insert(writer, self.commits.len());
        self.counter_max = self.counter_max.max(counter);
        self.counts.announced += 1;
        self.commits.push(Commit {
            intent: intent.clone(),
            begun: self.moment,
            ended: u64::MAX,
            outcome: Outcome::Unknown,
        });
        Ok(())
    }

    fn end(&mut self, writer: u32, counter: u64, outcome: Outcome) -> Result<(), Violation> {
        let place = self.under_way.remove(&writer);
        let commit = place.and_then(|place| self.commits.get_mut(place));
        let Some(commit) = commit.filter(|c| c.intent.counter == counter) else {
            return Err(confused(writer, counter, "I1: ended and is not under way"));
        };
        commit.outcome = outcome;
        commit.ended = self.moment;
        if outcome == Outcome::Aborted {
            self.counts.aborted += 1;
            return Ok(());
        }
        self.counts.acked += 1;
        self.acked.insert(writer, counter);
        if self.kept <= commit.intent.durability {
            self.counts.promised += 1;
            promise(&mut self.promised, writer, counter);
        }
        Ok(())
    }

    fn synced(&mut self) -> Result<(), Violation> {
        let Some(before) = self.syncing.take() else {
            let story = "the worker says a sync returned that it never began";
            return Err(Violation::new(Law::Behaviour, story));
        };
        for (writer, counter) in before {
            promise(&mut self.promised, writer, counter);
        }
        self.counts.syncs += 1;
        Ok(())
    }

    /// Record that the store was closed in order: all acknowledged commits must exist.
    pub fn closed(&mut self) {
        for (&writer, &counter) in &self.acked {
            promise(&mut self.promised, writer, counter);
        }
    }

    /// Record that the next worker gets a new store.
    pub fn forget(&mut self) {
        self.rebase(State::new());
    }

    /// Make `found`, which passed the check, the base of the next check.
    pub(super) fn rebase(&mut self, found: State) {
        self.base = found;
        self.commits.clear();
        self.under_way.clear();
        self.acked.clear();
        self.promised.clear();
        self.syncing = None;
        self.moment = 0;
    }
}

/// Record that the commit must survive (I3).
fn promise(promised: &mut BTreeMap<u32, u64>, writer: u32, counter: u64) {
    let last = promised.entry(writer).or_insert(counter);
    *last = (*last).max(counter);
}

fn confused(writer: u32, counter: u64, what: &str) -> Violation {
    let story = format!("the worker contradicts itself: commit {writer}:{counter} was {what}");
    Violation::new(Law::Behaviour, story)
}
