//! A member of the set: the state machine of the protocol.
//!
//! [`Node::step`] takes one [`Event`] and returns the [`Effect`]s to be done, in order. It neither
//! waits nor reads a clock: time is an event. In these files: `election` (campaigns, votes, terms),
//! `sync` (copying a log, rolling back), `commit` (durable positions, the commit point),
//! `reconfig` (configurations), `handover` (stepping down).
//!
//! - N1. The log contains the commit point, and nothing at or before it is rolled back.
//! - N2. The term, and within a term the vote, never changes back while the member runs.
//! - N3. What a member reports to others as durable (vote, configuration, position) is durable.
//! - N4. A restarted member is no primary, whatever it was.

mod commit;
mod election;
mod handover;
mod reconfig;
#[cfg(test)]
mod rename;
mod sync;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::config::Config;
use crate::event::{Effect, Event, Hard, Refusal, State};
use crate::log::{Log, Run};
use crate::message::{Envelope, Heartbeat, Message};
use crate::plant::Plant;
use crate::position::{MemberId, Position, Term};
use commit::Primary;
use election::Candidate;

/// A member of a replica set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub(crate) me: MemberId,
    /// The state that the node acts on.
    pub(crate) hard: Hard,
    /// The part of it that is durable.
    pub(crate) stable: Hard,
    /// The candidate that gets its answer as soon as the vote is durable.
    pub(crate) asked: Option<MemberId>,
    pub(crate) log: Log,
    pub(crate) durable: Position,
    pub(crate) commit: Position,
    /// The member that it fetches from.
    pub(crate) source: Option<MemberId>,
    pub(crate) role: Role,
    #[cfg(test)]
    pub(crate) plant: Option<Plant>,
}

/// What a member does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Startup2,
    Recovering,
    Secondary,
    Candidate(Candidate),
    Primary(Primary),
    /// Undoing the entries after this one.
    Rollback(Position),
    Arbiter,
    Removed,
}

impl Node {
    /// A member that starts with what its disk has: the file, the log, and how much of it is known
    /// to be committed.
    ///
    /// # Panics
    ///
    /// If the log does not contain `commit`.
    #[must_use]
    pub fn start(me: MemberId, hard: Hard, log: Log, commit: Position) -> Self {
        assert!(log.contains(commit), "N1: the log has the commit point");
        let mut node = Self {
            me,
            stable: hard.clone(),
            hard,
            asked: None,
            durable: log.last(),
            log,
            commit,
            source: None,
            role: Role::Removed,
            #[cfg(test)]
            plant: None,
        };
        // A log can be ahead of the file, which is not written for each term.
        node.hard.term = node.hard.term.max(node.log.last().term);
        if node.hard.term != node.stable.term {
            node.hard.voted_for = None;
        }
        node.role = node.resting();
        node
    }

    /// Takes an event; returns what is to be done.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let before = (self.hard.term, self.hard.voted_for, self.commit);
        let mut out = Vec::new();
        self.take(event, &mut out);
        assert!(before.0 <= self.hard.term, "N2: the term never falls");
        let voted = before.1.is_some() && before.0 == self.hard.term;
        assert!(
            !voted || before.1 == self.hard.voted_for || self.planted(Plant::VoteTwice),
            "N2: a vote does not change within a term"
        );
        assert!(before.2 <= self.commit, "N1: the commit point never falls");
        out
    }

    fn take(&mut self, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Receive(envelope) => self.receive(envelope, out),
            Event::Campaign { dry_run, takeover } => self.campaign((dry_run, takeover), out),
            Event::Beat(to) => self.beat(to, out),
            Event::Fetch(from) => self.fetch(from, out),
            Event::Durable(at) => self.durable_to(at, out),
            Event::Persisted(hard) => self.persisted(hard, out),
            Event::CatchUpEnded => self.catch_up_ended(out),
            Event::Drained { ts } => self.drained(ts, out),
            Event::Append { ts } => self.append(ts, out),
            Event::RolledBack => self.rolled_back(out),
            Event::Reconfig(members) => self.reconfig(members, out),
            Event::StepDown => self.step_down(out),
            Event::StepDownEnded { force } => self.step_down_ended(force, out),
            Event::InitialSync => self.pause(true, Role::Startup2, out),
            Event::Synced(log) => self.synced(log, out),
            Event::Maintenance(on) => self.pause(on, Role::Recovering, out),
        }
    }

    /// The state, as clients see it.
    #[must_use]
    pub fn state(&self) -> State {
        match &self.role {
            Role::Startup2 => State::Startup2,
            Role::Recovering => State::Recovering,
            Role::Secondary | Role::Candidate(_) => State::Secondary,
            Role::Primary(primary) => State::Primary {
                writable: primary.is_writable(),
            },
            Role::Rollback(_) => State::Rollback,
            Role::Arbiter => State::Arbiter,
            Role::Removed => State::Removed,
        }
    }

    /// The newest term that the member knows.
    #[must_use]
    pub fn term(&self) -> Term {
        self.hard.term
    }

    /// The configuration in use.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.hard.config
    }

    /// The last entry of its log.
    #[must_use]
    pub fn last(&self) -> Position {
        self.log.last()
    }

    /// The last entry that survives a crash.
    #[must_use]
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// The last entry that is known to be committed.
    #[must_use]
    pub fn commit(&self) -> Position {
        self.commit
    }

    /// The member that it fetches from.
    #[must_use]
    pub fn source(&self) -> Option<MemberId> {
        self.source
    }

    /// The last durable entry of a member as it reported it to this primary in its term;
    /// [`Position::ZERO`] if this is no primary.
    #[must_use]
    pub fn durable_of(&self, member: MemberId) -> Position {
        match &self.role {
            Role::Primary(primary) => primary.durable(member),
            _ => Position::ZERO,
        }
    }

    /// Whether a primary may still fetch entries that it lacks.
    #[must_use]
    pub fn is_catching_up(&self) -> bool {
        matches!(&self.role, Role::Primary(primary) if primary.is_catching_up())
    }

    /// Whether it is a candidate.
    #[must_use]
    pub fn is_candidate(&self) -> bool {
        matches!(self.role, Role::Candidate(_))
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests plant bugs in a single node")]
    pub(crate) const fn planted(&self, _: Plant) -> bool {
        false
    }

    #[cfg(test)]
    pub(crate) fn planted(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }

    /// What a restarted primary does under the plant of N4.
    #[cfg(test)]
    pub(crate) fn resume(&mut self) {
        if self.planted(Plant::ResumeTermAfterRestart) && self.hard.voted_for == Some(self.me) {
            self.role = Role::Primary(Primary::resumed());
        }
    }

    /// Whether a heartbeat of this member can change anything at `peer`.
    #[cfg(test)]
    pub(crate) fn informs(&self, peer: &Self) -> bool {
        let older = peer.hard.term < self.hard.term;
        let news = peer.hard.config.id < self.hard.config.id || peer.commit < self.commit;
        let attentive = matches!(peer.role, Role::Primary(_) | Role::Candidate(_));
        older || (peer.hard.term == self.hard.term && (news || attentive))
    }

    fn receive(&mut self, envelope: Envelope, out: &mut Vec<Effect>) {
        let Envelope {
            from,
            term,
            message,
            to,
        } = envelope;
        if to != self.me || from == self.me {
            return;
        }
        let any_term = self.planted(Plant::CountOtherTerm)
            && matches!(message, Message::Batch { .. } | Message::Positions(_));
        if !any_term {
            self.observe(term, out);
        }
        // What a member of an older term reports is outdated; its questions are answered.
        let stale = term < self.hard.term && !any_term;
        match message {
            Message::VoteRequest(request) => self.vote_requested(from, request, out),
            Message::VoteReply {
                dry_run,
                election,
                granted,
            } => self.vote_replied(from, (dry_run, election), granted, out),
            Message::Fetch { after } => self.fetch_requested(from, after, out),
            Message::Heartbeat(beat) if !stale => self.heartbeat(from, &beat, out),
            Message::Batch {
                after,
                runs,
                commit,
            } if !stale => self.batch(after, &runs, commit, out),
            Message::Diverged { runs } if !stale => self.diverged(from, runs, out),
            Message::Positions(row) if !stale => self.row(from, row, out),
            Message::TakeOver if !stale => self.campaign((false, true), out),
            _ => {}
        }
    }

    fn beat(&mut self, to: MemberId, out: &mut Vec<Effect>) {
        let beat = Heartbeat {
            last: self.log.last(),
            durable: self.reported(),
            commit: self.commit,
            config: self.reported_config(),
            body: self.must_send_config(to).then(|| self.hard.config.clone()),
            primary: matches!(self.role, Role::Primary(_)),
        };
        self.send(to, Message::Heartbeat(beat), out);
    }

    fn heartbeat(&mut self, from: MemberId, beat: &Heartbeat, out: &mut Vec<Effect>) {
        if let Some(config) = &beat.body
            && self.hard.config.id < config.id
        {
            self.install(config.clone(), out);
        }
        if beat.primary && matches!(self.role, Role::Candidate(_)) {
            self.rest(out);
        }
        if self.planted(Plant::LearnFromHeartbeat) {
            self.believe(beat.commit, out);
        }
        self.learn(beat.commit, out);
        self.progress(from, beat, out);
    }

    fn append(&mut self, ts: u64, out: &mut Vec<Effect>) {
        let writable = matches!(&self.role, Role::Primary(primary) if primary.is_writable());
        let run = Run {
            term: self.hard.term,
            last: ts,
        };
        if !writable || !self.log.takes(&[run]) {
            return out.push(Effect::Refused(Refusal::NotPrimary));
        }
        self.log.append(&[run]);
    }

    /// Enters or leaves a state in which the member neither votes nor serves entries.
    fn pause(&mut self, on: bool, role: Role, out: &mut Vec<Effect>) {
        match (&self.role, on) {
            (Role::Secondary | Role::Candidate(_), true) => self.change(role, out),
            (Role::Startup2 | Role::Recovering, false) => self.rest(out),
            _ => {}
        }
    }

    /// The role of a member that does nothing in particular.
    fn resting(&self) -> Role {
        match self.hard.config.member(self.me) {
            None => Role::Removed,
            Some(member) if member.arbiter => Role::Arbiter,
            Some(_) => Role::Secondary,
        }
    }

    fn rest(&mut self, out: &mut Vec<Effect>) {
        self.change(self.resting(), out);
    }

    fn change(&mut self, role: Role, out: &mut Vec<Effect>) {
        let before = self.state();
        self.role = role;
        if before != self.state() {
            out.push(Effect::Role(self.state()));
        }
    }

    fn send(&self, to: MemberId, message: Message, out: &mut Vec<Effect>) {
        out.push(Effect::Send(Envelope {
            to,
            from: self.me,
            term: self.hard.term,
            message,
        }));
    }

    fn persist(&self, out: &mut Vec<Effect>) {
        out.push(Effect::Persist(self.hard.clone()));
    }
}
