//! Durable positions and the commit point.
//!
//! - P1. An entry is committed when a majority of voters, counting only persistent ones with data,
//!   has it durably and reported so in the primary's term, and it is of that term. Then all entries
//!   before it are committed too.
//! - P2. A member learns a commit point only for entries that its own log contains.

use super::{Node, Role};
use crate::config::{ConfigId, Member};
use crate::event::{Effect, Refusal};
use crate::log::Run;
use crate::message::{HOPS_MAX, Heartbeat, Message, Row};
use crate::plant::Plant;
use crate::position::{MemberId, Position};

/// What a primary knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Primary {
    phase: Phase,
    /// What members reported in this term, by member.
    pub(super) progress: Vec<Progress>,
}

/// How far a primary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// It fetches entries that it lacks.
    CatchUp,
    /// It applies its log.
    Drain,
    /// It accepts writes.
    Writable,
    /// It refuses writes and waits for a member to hand over to.
    Quiesce,
}

/// What a member reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    pub(super) member: MemberId,
    durable: Position,
    config: ConfigId,
}

impl Primary {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::CatchUp,
            progress: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) const fn resumed() -> Self {
        Self {
            phase: Phase::Writable,
            progress: Vec::new(),
        }
    }

    pub(super) fn is_writable(&self) -> bool {
        self.phase == Phase::Writable
    }

    pub(super) fn is_catching_up(&self) -> bool {
        self.phase == Phase::CatchUp
    }

    pub(super) fn is_quiescing(&self) -> bool {
        self.phase == Phase::Quiesce
    }

    pub(super) fn quiesce(&mut self, on: bool) {
        self.phase = match (self.phase, on) {
            (Phase::Writable, true) => Phase::Quiesce,
            (Phase::Quiesce, false) => Phase::Writable,
            (phase, _) => phase,
        };
    }

    fn of(&self, member: MemberId) -> Option<&Progress> {
        self.progress.iter().find(|p| p.member == member)
    }

    /// The last entry that a member has durably, as far as it reported.
    pub(super) fn durable(&self, member: MemberId) -> Position {
        self.of(member).map_or(Position::ZERO, |p| p.durable)
    }

    /// Whether a member has stored this configuration durably.
    pub(super) fn has_config(&self, member: MemberId, id: ConfigId) -> bool {
        self.of(member).is_some_and(|p| p.config == id)
    }

    /// Messages arrive in any order; within a term a member's reports only grow.
    fn update(&mut self, member: MemberId, durable: Position, config: ConfigId) {
        match self.progress.iter_mut().find(|p| p.member == member) {
            Some(known) => {
                known.durable = known.durable.max(durable);
                known.config = known.config.max(config);
            }
            None => {
                self.progress.push(Progress {
                    member,
                    durable,
                    config,
                });
                self.progress.sort_unstable_by_key(|p| p.member);
            }
        }
    }
}

impl Node {
    pub(super) fn catch_up_ended(&mut self, out: &mut Vec<Effect>) {
        if let Role::Primary(primary) = &mut self.role
            && primary.phase == Phase::CatchUp
        {
            primary.phase = Phase::Drain;
            self.source = None;
            out.push(Effect::Role(self.state()));
        }
    }

    pub(super) fn drained(&mut self, ts: u64, out: &mut Vec<Effect>) {
        let term = self.hard.term;
        let Role::Primary(primary) = &mut self.role else {
            return;
        };
        let noop = Run { term, last: ts };
        if primary.phase == Phase::Drain && self.log.takes(&[noop]) {
            primary.phase = Phase::Writable;
            self.log.append(&[noop]);
            out.push(Effect::WriteNoop(self.log.last()));
            out.push(Effect::Role(self.state()));
        }
    }

    /// The position that the member may report.
    pub(super) fn reported(&self) -> Position {
        if self.planted(Plant::ReportUnsynced) {
            return self.log.last();
        }
        self.durable
    }

    pub(super) fn durable_to(&mut self, at: Position, out: &mut Vec<Effect>) {
        // A sync can end after a rollback removed what it synced.
        if !self.log.contains(at) || at <= self.durable {
            return;
        }
        self.durable = at;
        if let Some(source) = self.source {
            let row = Row {
                member: self.me,
                term: self.hard.term,
                durable: self.reported(),
                hops: HOPS_MAX,
            };
            self.send(source, Message::Positions(row), out);
        }
        self.advance(out);
    }

    pub(super) fn row(&mut self, from: MemberId, row: Row, out: &mut Vec<Effect>) {
        let current = row.term == self.hard.term || self.planted(Plant::CountOtherTerm);
        match &mut self.role {
            Role::Primary(primary) if current => {
                primary.update(row.member, row.durable, ConfigId::default());
                self.advance(out);
                self.hand_over(out);
            }
            Role::Secondary if row.member != self.me && 0 < row.hops => {
                let row = Row {
                    hops: row.hops - 1,
                    ..row
                };
                if let Some(source) = self.source.filter(|s| *s != from && *s != row.member) {
                    self.send(source, Message::Positions(row), out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn progress(&mut self, from: MemberId, beat: &Heartbeat, out: &mut Vec<Effect>) {
        if let Role::Primary(primary) = &mut self.role {
            primary.update(from, beat.durable, beat.config);
            self.advance(out);
            self.hand_over(out);
        }
    }

    /// Advances the commit point of a primary by what it knows.
    pub(super) fn advance(&mut self, out: &mut Vec<Effect>) {
        let Role::Primary(primary) = &self.role else {
            return;
        };
        let counts = |member: &&Member| {
            member.acknowledges()
                || (member.votes && !member.persistent && self.planted(Plant::CountVolatile))
                || (member.arbiter && self.planted(Plant::CountArbiter))
        };
        let durable = |member: &Member| {
            let own = member.id == self.me && self.planted(Plant::CountOwnUnsynced);
            if own || (member.arbiter && self.planted(Plant::CountArbiter)) {
                self.log.last()
            } else if member.id == self.me {
                self.durable
            } else {
                primary.durable(member.id)
            }
        };
        let of_term = |at: &Position| {
            at.term == self.hard.term
                || (self.planted(Plant::CommitOlderTerm) && self.log.contains(*at))
        };
        let members = self.hard.config.members.iter().filter(counts);
        let mut points: Vec<Position> = members.map(durable).filter(of_term).collect();
        points.sort_unstable_by(|a, b| b.cmp(a));
        let majority = self.hard.config.majority();
        let Some(&point) = points.get(majority - 1).filter(|p| self.commit < **p) else {
            return;
        };
        assert!(
            self.log.contains(point),
            "P1: no member has more of a term than its primary"
        );
        self.committed(point, out);
    }

    /// Learns a commit point of another member.
    pub(super) fn learn(&mut self, commit: Position, out: &mut Vec<Effect>) {
        let last = self.log.last();
        let known = if self.log.contains(commit) {
            commit
        } else if commit.term == last.term {
            // The last entry is of the same primary, and before the commit point.
            last
        } else {
            return;
        };
        if self.commit < known {
            self.committed(known, out);
        }
    }

    fn committed(&mut self, at: Position, out: &mut Vec<Effect>) {
        assert!(
            self.log.contains(at),
            "P2: only entries of the log are committed"
        );
        self.commit = at;
        out.push(Effect::Committed(at));
    }

    /// Learns a commit point without looking at the branch; only plants do.
    pub(super) fn believe(&mut self, commit: Position, out: &mut Vec<Effect>) {
        let known = commit.min(self.log.last());
        if self.commit < known {
            self.committed(known, out);
        }
    }

    pub(super) fn refuse(out: &mut Vec<Effect>, why: Refusal) {
        out.push(Effect::Refused(why));
    }
}
