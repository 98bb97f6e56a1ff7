//! Campaigns, votes and terms.
//!
//! - E1. A member votes once in a term, and answers only when its vote is durable.
//! - E2. It votes only for a voter of its configuration whose log and configuration are at least as
//!   new as its own.
//! - E3. A dry run changes nothing at the voter.

use super::{Node, Role};
use crate::config::{Config, ConfigId};
use crate::event::{Effect, Hard, Refusal};
use crate::message::{Message, VoteRequest};
use crate::plant::Plant;
use crate::position::{MemberId, Term};

/// A member that wants to become primary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Candidate {
    dry_run: bool,
    takeover: bool,
    election: Term,
    /// The voters that agreed, in order.
    pub(super) granted: Vec<MemberId>,
}

impl Node {
    pub(super) fn campaign(&mut self, (dry_run, takeover): (bool, bool), out: &mut Vec<Effect>) {
        let member = self.hard.config.member(self.me);
        let electable = member.is_some_and(crate::config::Member::is_electable);
        let free = matches!(self.role, Role::Secondary | Role::Candidate(_));
        if !electable || !free {
            return out.push(Effect::Refused(Refusal::NotElectable));
        }
        let election = self.hard.term.next();
        self.role = Role::Candidate(Candidate {
            dry_run,
            takeover,
            election,
            granted: Vec::new(),
        });
        self.source = None;
        if dry_run {
            self.ask(out);
            return self.granted(self.me, out);
        }
        self.hard.term = election;
        self.hard.voted_for = Some(self.me);
        self.asked = None;
        self.persist(out);
        if self.planted(Plant::VoteBeforeDurable) {
            self.ask(out);
            self.granted(self.me, out);
        }
    }

    /// The file is durable: answers and campaigns that waited for it continue.
    pub(super) fn persisted(&mut self, hard: Hard, out: &mut Vec<Effect>) {
        self.stable = hard;
        let voted =
            self.stable.term == self.hard.term && self.stable.voted_for == self.hard.voted_for;
        if let Some(candidate) = self.asked.take_if(|_| voted) {
            assert_eq!(
                self.stable.voted_for,
                Some(candidate),
                "E1: the vote is durable"
            );
            self.reply((false, self.hard.term), true, candidate, out);
        }
        let waits = |c: &Candidate| !c.dry_run && c.granted.is_empty();
        if voted && matches!(&self.role, Role::Candidate(c) if waits(c)) {
            self.ask(out);
            self.granted(self.me, out);
        }
        // A primary counts itself for its configuration.
        self.advance(out);
    }

    fn ask(&mut self, out: &mut Vec<Effect>) {
        let Role::Candidate(candidate) = &self.role else {
            return;
        };
        let request = VoteRequest {
            dry_run: candidate.dry_run,
            takeover: candidate.takeover,
            election: candidate.election,
            last: self.log.last(),
            config: self.hard.config.id,
        };
        for voter in self.hard.config.voters().filter(|v| v.id != self.me) {
            self.send(voter.id, Message::VoteRequest(request), out);
        }
    }

    pub(super) fn vote_requested(
        &mut self,
        from: MemberId,
        request: VoteRequest,
        out: &mut Vec<Effect>,
    ) {
        if request.dry_run && self.planted(Plant::DryRunRaisesTerm) {
            self.observe(request.election, out);
        }
        let election = (request.dry_run, request.election);
        if !self.would_vote(from, &request) {
            return self.reply(election, false, from, out);
        }
        if request.dry_run {
            return self.reply(election, true, from, out);
        }
        if self.hard.voted_for != Some(from) {
            self.hard.voted_for = Some(from);
            self.asked = Some(from);
            self.persist(out);
        }
        let durable = self.stable.term == self.hard.term && self.stable.voted_for == Some(from);
        if durable || self.planted(Plant::VoteBeforeDurable) {
            self.asked = None;
            self.reply(election, true, from, out);
        }
    }

    fn would_vote(&self, from: MemberId, request: &VoteRequest) -> bool {
        let able = matches!(
            self.role,
            Role::Secondary
                | Role::Candidate(_)
                | Role::Primary(_)
                | Role::Rollback(_)
                | Role::Arbiter
        );
        let term = if request.dry_run {
            self.hard.term < request.election
        } else {
            let free = self.hard.voted_for.is_none_or(|to| to == from);
            self.hard.term == request.election && (free || self.planted(Plant::VoteTwice))
        };
        let newer = self.log.last() <= request.last || self.planted(Plant::VoteForOlderLog);
        let config =
            self.hard.config.id <= request.config || self.planted(Plant::VoteForOlderConfig);
        let voters = self.hard.config.is_voter(self.me);
        // E2: the candidate is known only if the configurations are the same.
        let known = self.hard.config.is_voter(from)
            || self.hard.config.id < request.config
            || self.planted(Plant::VoteForOlderConfig);
        able && term && newer && config && known && voters
    }

    fn reply(
        &self,
        (dry_run, election): (bool, Term),
        granted: bool,
        to: MemberId,
        out: &mut Vec<Effect>,
    ) {
        let message = Message::VoteReply {
            dry_run,
            election,
            granted,
        };
        self.send(to, message, out);
    }

    pub(super) fn vote_replied(
        &mut self,
        from: MemberId,
        (dry_run, election): (bool, Term),
        granted: bool,
        out: &mut Vec<Effect>,
    ) {
        let Role::Candidate(candidate) = &self.role else {
            return;
        };
        let mine = candidate.dry_run == dry_run && candidate.election == election;
        // Before its own vote is durable a candidate has asked no voter of this term.
        if granted && mine && candidate.granted.contains(&self.me) {
            self.granted(from, out);
        }
    }

    fn granted(&mut self, voter: MemberId, out: &mut Vec<Effect>) {
        let Role::Candidate(candidate) = &mut self.role else {
            return;
        };
        if !candidate.granted.contains(&voter) {
            candidate.granted.push(voter);
            candidate.granted.sort_unstable();
        }
        let config = &self.hard.config;
        let votes = candidate
            .granted
            .iter()
            .filter(|v| config.is_voter(**v))
            .count();
        if votes < config.majority() {
            return;
        }
        if candidate.dry_run {
            let takeover = candidate.takeover;
            self.role = Role::Secondary;
            return self.campaign((false, takeover), out);
        }
        assert_eq!(
            candidate.election, self.hard.term,
            "E1: elected in the term of the votes"
        );
        self.become_primary(out);
    }

    /// A message carried `term`. If it is newer than the member's own, the member leaves its office
    /// or campaign and adopts it.
    pub(super) fn observe(&mut self, term: Term, out: &mut Vec<Effect>) {
        if term <= self.hard.term {
            return;
        }
        self.hard.term = term;
        self.hard.voted_for = None;
        self.asked = None;
        self.persist(out);
        match &self.role {
            Role::Primary(_) if self.planted(Plant::PrimaryOutlivesTerm) => {}
            Role::Primary(_) | Role::Candidate(_) => self.rest(out),
            _ => {}
        }
    }

    fn become_primary(&mut self, out: &mut Vec<Effect>) {
        self.source = None;
        self.change(Role::Primary(super::Primary::new()), out);
        // The configuration gets the new term, so that it replaces those of older primaries.
        let config = Config {
            id: ConfigId {
                term: self.hard.term,
                version: self.hard.config.id.version,
            },
            members: self.hard.config.members.clone(),
        };
        self.install(config.into(), out);
    }
}
