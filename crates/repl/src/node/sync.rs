//! Copying the log of a sync source, and rolling back to the point where two logs diverge.
//!
//! - S1. Entries are appended only directly after the entry that preceded them at the source.
//! - S2. A member rolls back only to follow a log whose last entry has a newer term.

use super::{Node, Role};
use crate::event::Effect;
use crate::log::{Log, Run};
use crate::message::Message;
use crate::plant::Plant;
use crate::position::{MemberId, Position};

impl Node {
    /// Asks for entries. A candidate gives up for that: its own vote stands, those of others come
    /// too late.
    pub(super) fn fetch(&mut self, from: MemberId, out: &mut Vec<Effect>) {
        if matches!(self.role, Role::Candidate(_)) {
            self.rest(out);
        }
        if self.copies() && from != self.me {
            self.source = Some(from);
            let after = self.log.last();
            self.send(from, Message::Fetch { after }, out);
        }
    }

    /// Whether it appends entries of others.
    fn copies(&self) -> bool {
        matches!(self.role, Role::Secondary) || self.is_catching_up()
    }

    pub(super) fn fetch_requested(&self, from: MemberId, after: Position, out: &mut Vec<Effect>) {
        if !matches!(
            self.role,
            Role::Secondary | Role::Candidate(_) | Role::Primary(_)
        ) {
            return;
        }
        let message = if self.log.contains(after) {
            Message::Batch {
                after,
                runs: self.log.after(after),
                commit: self.commit,
            }
        } else {
            Message::Diverged {
                runs: self.log.runs().to_vec(),
            }
        };
        self.send(from, message, out);
    }

    pub(super) fn batch(
        &mut self,
        after: Position,
        runs: &[Run],
        commit: Position,
        out: &mut Vec<Effect>,
    ) {
        if !self.copies() {
            return;
        }
        let matches = after == self.log.last() || self.planted(Plant::AppendUnmatched);
        if matches && self.log.takes(runs) {
            self.log.append(runs);
            if !runs.is_empty() {
                out.push(Effect::Write {
                    after,
                    runs: runs.to_vec(),
                });
            }
        }
        self.learn(commit, out);
    }

    pub(super) fn diverged(&mut self, from: MemberId, runs: Vec<Run>, out: &mut Vec<Effect>) {
        let Some(theirs) = Log::of(runs).filter(|_| matches!(self.role, Role::Secondary)) else {
            return;
        };
        let common = self.log.common(theirs.runs());
        if self.planted(Plant::LearnFromDivergedSource) {
            self.believe(theirs.last(), out);
        }
        let newer =
            self.log.last().term < theirs.last().term || self.planted(Plant::RollBackToOlderLog);
        if theirs.contains(self.log.last()) || !newer || common < self.commit {
            self.source = None;
            return out.push(Effect::SourceRefused(from));
        }
        self.source = None;
        self.change(Role::Rollback(common), out);
        out.push(Effect::Rollback(common));
    }

    /// Initial sync has given the member a log. Until now it had no entries, has not voted and has
    /// reported none as durable, so it is as if it had fetched them just now. They need not be
    /// committed.
    pub(super) fn synced(&mut self, log: Log, out: &mut Vec<Effect>) {
        let waits = matches!(self.role, Role::Startup2 | Role::Removed);
        if !waits || self.log.last() != Position::ZERO {
            return;
        }
        let term = log.last().term;
        self.durable = log.last();
        self.log = log;
        self.observe(term, out);
        self.rest(out);
    }

    pub(super) fn rolled_back(&mut self, out: &mut Vec<Effect>) {
        let Role::Rollback(common) = self.role else {
            return;
        };
        assert!(self.commit <= common, "N1: committed entries stay");
        self.log.truncate(common);
        self.durable = self.durable.min(common);
        self.rest(out);
    }
}
