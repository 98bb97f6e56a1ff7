//! A node with its timers: when it campaigns, sends heartbeats, fetches, and gives up.
//!
//! [`Replica::step`] and [`Replica::tick`] take the time as an argument, measured from any fixed
//! moment by a clock that never goes back. What a timer does is give the node an event that could
//! come at any moment, so no choice made here can break a law of the protocol: timers decide how
//! fast the set reacts, not whether it is right.
//!
//! - T1. A member campaigns only when it has received nothing from a primary for an election
//!   timeout, or has a higher priority than the primary and all its entries.
//! - T2. A primary that has received no heartbeats of a majority for an election timeout steps
//!   down.
//! - T3. A frozen member does not campaign.
//! - T4. A member that is the primary of a majority, or had word of a primary within one and a
//!   half heartbeats, answers no dry run of a candidate that believes the primary lost. So a member
//!   that alone does not reach the primary does not disturb it.
//! - T5. A closed or refused connection to the primary, or its word that it is none any more, is a
//!   hint: it shortens the wait of T1 to two heartbeats since the last word of the primary, and the
//!   next word of any primary ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::ConfigId;
use crate::event::{Effect, Event, State};
use crate::message::{Heartbeat, Message};
use crate::node::Node;
use crate::position::{MemberId, Position, Term};

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Between heartbeats (500 ms).
    pub heartbeat: Duration,
    /// Without a primary, until a member campaigns; it waits up to 15 % longer, by its number and
    /// the term (2 s; `electionTimeoutMillis`).
    pub election: Duration,
    /// How long a new primary fetches entries that it lacks (2 s).
    pub catch_up: Duration,
    /// Between fetches while nothing is written (100 ms). A source may answer a fetch later, when
    /// it has something.
    pub fetch: Duration,
    /// How long a refused source is left alone (1 s).
    pub refused: Duration,
    /// Whether members may fetch from secondaries (`chainingAllowed`).
    pub chaining: bool,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(500),
            election: Duration::from_secs(2),
            catch_up: Duration::from_secs(2),
            fetch: Duration::from_millis(100),
            refused: Duration::from_secs(1),
            chaining: true,
        }
    }
}

/// A member with its timers.
#[derive(Clone, Debug)]
pub struct Replica {
    node: Node,
    timing: Timing,
    me: MemberId,
    peers: BTreeMap<MemberId, Peer>,
    beat_at: Duration,
    campaign_at: Duration,
    /// When it campaigned last.
    campaigned_at: Duration,
    fetch_at: Duration,
    /// When it became primary.
    elected_at: Duration,
    frozen_until: Duration,
    /// The last configuration that was stored durably.
    kept: ConfigId,
    quiet: Option<StepDown>,
    /// The primary whose machine has closed or refused a connection, until the next word of a
    /// primary (T5).
    lost: Option<MemberId>,
    reason: Reason,
}

/// What a member reported last.
#[derive(Clone, Copy, Debug)]
struct Peer {
    at: Duration,
    last: Position,
    primary: bool,
    refused_until: Duration,
}

/// A step-down under way.
#[derive(Clone, Copy, Debug)]
struct StepDown {
    until: Duration,
    force: bool,
    /// How long it does not campaign afterwards.
    frozen: Duration,
}

/// Why a member campaigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has had no word of a primary.
    Timeout,
    /// It has a higher priority than the primary.
    Priority,
    /// An operator asked for it.
    StepUp,
    /// The primary has handed over.
    HandOver,
}

/// A request to step down (`replSetStepDown`).
#[derive(Clone, Copy, Debug)]
pub struct StepDownRequest {
    /// How long to wait for a member to hand over to.
    pub wait: Duration,
    /// Whether to step down without one (`force`).
    pub force: bool,
    /// How long not to campaign afterwards.
    pub frozen: Duration,
}

impl Replica {
    /// A replica of a node that starts at `now`.
    #[must_use]
    pub fn new(node: Node, me: MemberId, timing: Timing, now: Duration) -> Self {
        let mut replica = Self {
            node,
            timing,
            me,
            peers: BTreeMap::new(),
            beat_at: now,
            campaign_at: now,
            campaigned_at: now,
            fetch_at: now,
            elected_at: now,
            frozen_until: now,
            kept: ConfigId {
                term: Term(0),
                version: 0,
            },
            quiet: None,
            lost: None,
            reason: Reason::Timeout,
        };
        replica.wait_for_primary(now);
        replica
    }

    /// The state machine.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Gives the node an event.
    pub fn step(&mut self, now: Duration, event: Event) -> Vec<Effect> {
        if self.is_needless(now, &event) {
            return Vec::new();
        }
        self.note(now, &event);
        if let Event::Persisted(hard) = &event
            && self.kept != hard.config.id
        {
            // The primary waits for this report when it hands over or changes members.
            self.kept = hard.config.id;
            self.beat_at = now;
        }
        let effects = self.node.step(event);
        self.react(now, &effects);
        effects
    }

    /// Does what is due at `now`.
    pub fn tick(&mut self, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        for event in self.due(now) {
            let reason = match event {
                Event::Campaign { takeover: true, .. } => Some(Reason::Priority),
                Event::Campaign { .. } => Some(Reason::Timeout),
                _ => None,
            };
            effects.extend(self.step(now, event));
            self.reason = reason.unwrap_or(self.reason);
        }
        effects
    }

    /// Why the member campaigned last.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The machine of a member has closed or refused a connection (T5). That a member does not
    /// answer is no such hint.
    pub fn hint_lost(&mut self, now: Duration, member: MemberId) {
        let known = self.peers.get(&member);
        if let Some(peer) = known.filter(|peer| peer.primary && self.lost.is_none()) {
            self.lose(now, member, peer.at);
        }
    }

    /// The primary is probably none any more; its last word was at `heard`.
    fn lose(&mut self, now: Duration, member: MemberId, heard: Duration) {
        let silent = heard + 2 * self.timing.heartbeat;
        self.lost = Some(member);
        let early = now.max(silent) + self.slot(member);
        self.campaign_at = self.campaign_at.min(early);
    }

    /// Does not campaign until `until`; a time that is past ends it (`replSetFreeze`).
    pub fn freeze(&mut self, until: Duration) {
        self.frozen_until = until;
    }

    /// Begins to step down.
    pub fn step_down(&mut self, now: Duration, request: StepDownRequest) -> Vec<Effect> {
        self.quiet = Some(StepDown {
            until: now + request.wait,
            force: request.force,
            frozen: request.frozen,
        });
        self.step(now, Event::StepDown)
    }

    /// Fetches from this member (`replSetSyncFrom`).
    pub fn sync_from(&mut self, now: Duration, source: MemberId) -> Vec<Effect> {
        self.step(now, Event::Fetch(source))
    }

    /// The member that reported last that it is the primary, if that was not long ago.
    #[must_use]
    pub fn primary(&self, now: Duration) -> Option<MemberId> {
        let fresh = |peer: &Peer| peer.primary && self.is_fresh(peer, now);
        let found = self.peers.iter().find(|(_, peer)| fresh(peer));
        found.map(|(id, _)| *id)
    }

    /// The member to fetch from while none is known to be ahead: the primary, unless it refused.
    #[must_use]
    pub fn followed(&self, now: Duration) -> Option<MemberId> {
        let primary = self.primary(now)?;
        let peer = self.peers.get(&primary)?;
        (peer.refused_until <= now).then_some(primary)
    }

    /// Whether the next [`Replica::tick`] makes a primary step down because it does not reach a
    /// majority (T2).
    #[must_use]
    pub fn loses_majority(&self, now: Duration) -> bool {
        matches!(self.node.state(), State::Primary { .. }) && !self.reaches_majority(now)
    }

    /// Use other times, those of another configuration.
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    fn others(&self) -> Vec<MemberId> {
        let members = self.node.config().members.iter().map(|m| m.id);
        members.filter(|id| *id != self.me).collect()
    }

    fn due(&mut self, now: Duration) -> Vec<Event> {
        let mut events = Vec::new();
        if self.beat_at <= now {
            self.beat_at = now + self.timing.heartbeat;
            events.extend(self.others().into_iter().map(Event::Beat));
        }
        match self.node.state() {
            State::Primary { .. } => self.due_as_primary(now, &mut events),
            State::Secondary => self.due_as_secondary(now, &mut events),
            _ => {}
        }
        events
    }

    fn due_as_primary(&mut self, now: Duration, events: &mut Vec<Event>) {
        if !self.reaches_majority(now) {
            return events.push(Event::StepDownEnded { force: true });
        }
        if let Some(quiet) = self.quiet.take_if(|quiet| quiet.until <= now) {
            if quiet.force {
                self.frozen_until = now + quiet.frozen;
            }
            events.push(Event::StepDownEnded { force: quiet.force });
        }
        if !self.node.is_catching_up() {
            return;
        }
        let ahead = self.source(now);
        if ahead.is_none() || self.elected_at + self.timing.catch_up <= now {
            events.push(Event::CatchUpEnded);
        } else if self.fetch_at <= now {
            self.fetch_at = now + self.timing.fetch;
            events.extend(ahead.map(Event::Fetch));
        }
    }

    fn due_as_secondary(&mut self, now: Duration, events: &mut Vec<Event>) {
        // Answers of voters that are later than a heartbeat are not waited for: a candidate that is
        // not elected must not stay behind.
        let over = self.campaigned_at + self.timing.heartbeat <= now;
        if self.fetch_at <= now && (over || !self.node.is_candidate()) {
            self.fetch_at = now + self.timing.fetch;
            events.extend(self.source(now).map(Event::Fetch));
        }
        if self.campaign_at <= now && self.frozen_until <= now {
            self.wait_for_primary(now);
            events.push(Event::Campaign {
                dry_run: true,
                takeover: false,
            });
        } else if self.frozen_until <= now && self.outranks(now) {
            events.push(Event::Campaign {
                dry_run: true,
                takeover: true,
            });
        }
    }

    /// T1: whether the member has a higher priority than the primary, and all its entries.
    fn outranks(&self, now: Duration) -> bool {
        let priority = |id| self.node.config().member(id).map(|member| member.priority);
        let primary = self
            .peers
            .iter()
            .find(|(_, peer)| peer.primary && self.is_fresh(peer, now));
        primary.is_some_and(|(id, peer)| {
            priority(*id) < priority(self.me)
                && peer.last <= self.node.last()
                && !self.node.is_candidate()
        })
    }

    /// The member to fetch from: the primary if it is ahead, else the member that is most.
    fn source(&self, now: Duration) -> Option<MemberId> {
        let usable = |peer: &Peer| {
            self.is_fresh(peer, now) && peer.refused_until <= now && self.node.last() < peer.last
        };
        let chaining = self.timing.chaining || self.node.is_catching_up();
        let peers = self.peers.iter().filter(|(_, peer)| usable(peer));
        peers
            .filter(|(_, peer)| chaining || peer.primary)
            .max_by_key(|(id, peer)| (peer.primary, peer.last, std::cmp::Reverse(**id)))
            .map(|(id, _)| *id)
    }

    fn is_fresh(&self, peer: &Peer, now: Duration) -> bool {
        now <= peer.at + self.timing.election
    }

    fn reaches_majority(&self, now: Duration) -> bool {
        let config = self.node.config();
        let reached = |id| {
            let peer = self.peers.get(&id);
            id == self.me || peer.is_some_and(|peer| self.is_fresh(peer, now))
        };
        let voters = config.voters().filter(|voter| reached(voter.id)).count();
        let settled = now <= self.elected_at + self.timing.election;
        settled || config.majority() <= voters
    }

    /// T4: whether the event is a dry run of a candidate that is wrong about the primary. Not to
    /// answer is as good as to refuse, and as a lost message.
    fn is_needless(&self, now: Duration, event: &Event) -> bool {
        let Event::Receive(envelope) = event else {
            return false;
        };
        let Message::VoteRequest(request) = &envelope.message else {
            return false;
        };
        let leads = matches!(self.node.state(), State::Primary { .. });
        let lately = self.timing.heartbeat * 3 / 2;
        let heard = |peer: &Peer| peer.primary && now < peer.at + lately;
        let served = (leads && self.reaches_majority(now)) || self.peers.values().any(heard);
        request.dry_run && !request.takeover && served
    }

    /// Members that have lost a primary at the same moment campaign one after the other: by
    /// priority, and differently in each term.
    fn slot(&self, lost: MemberId) -> Duration {
        let rank = |id: MemberId, priority: u32| (std::cmp::Reverse(priority), self.mixed(id), id);
        let config = self.node.config();
        let own = config.member(self.me).map_or(0, |member| member.priority);
        let own = rank(self.me, own);
        let others = config.members.iter().filter(|m| m.id != lost);
        let others = others.filter(|m| m.is_electable() && rank(m.id, m.priority) < own);
        let before = u32::try_from(others.count()).unwrap_or(u32::MAX);
        self.timing.heartbeat * before / 8
    }

    /// A number that differs by member and by term.
    fn mixed(&self, id: MemberId) -> u64 {
        u64::from(id.0)
            .wrapping_add(self.node.term().0.wrapping_mul(31))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn wait_for_primary(&mut self, now: Duration) {
        if let Some(lost) = self.lost {
            self.campaign_at = now + self.timing.heartbeat + self.slot(lost);
            return;
        }
        // Members wait differently, and differently in each term, so that one of them is first.
        let share = u32::try_from(self.mixed(self.me) >> 56).unwrap_or(0);
        self.campaign_at = now + self.timing.election + self.timing.election * 15 * share / 25_600;
    }

    /// Remembers what an event says of other members.
    fn note(&mut self, now: Duration, event: &Event) {
        if matches!(event, Event::Campaign { .. }) {
            self.campaigned_at = now;
            self.reason = Reason::StepUp;
        }
        let Event::Receive(envelope) = event else {
            return;
        };
        if envelope.term < self.node.term() {
            return;
        }
        if matches!(envelope.message, Message::TakeOver) {
            self.campaigned_at = now;
            self.reason = Reason::HandOver;
        }
        if let Message::Heartbeat(Heartbeat { last, primary, .. }) = envelope.message {
            let known = self.peers.get(&envelope.from).copied();
            let peer = Peer {
                at: now,
                last,
                primary,
                refused_until: known.map_or(Duration::ZERO, |peer| peer.refused_until),
            };
            if primary {
                // The one of an older term is none any more.
                self.peers
                    .values_mut()
                    .for_each(|peer| peer.primary = false);
                self.lost = None;
                self.wait_for_primary(now);
            }
            let led = known.is_some_and(|peer| peer.primary);
            self.peers.insert(envelope.from, peer);
            if led && !primary {
                self.lose(now, envelope.from, now);
            }
        }
    }

    fn react(&mut self, now: Duration, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Send(envelope) => {
                    if let Message::VoteReply {
                        granted: true,
                        dry_run: false,
                        ..
                    } = envelope.message
                    {
                        self.wait_for_primary(now);
                    }
                }
                Effect::Write { .. } => self.fetch_at = now,
                Effect::SourceRefused(source) => {
                    if let Some(peer) = self.peers.get_mut(source) {
                        peer.refused_until = now + self.timing.refused;
                    }
                }
                Effect::Installed(config) => {
                    // The others get it with the next heartbeat.
                    self.beat_at = now;
                    self.peers.retain(|id, _| config.member(*id).is_some());
                }
                Effect::Role(State::Primary { writable: false }) if self.node.is_catching_up() => {
                    self.elected_at = now;
                    self.beat_at = now;
                }
                Effect::Role(State::Secondary) => self.stepped_down(now),
                _ => {}
            }
        }
    }

    fn stepped_down(&mut self, now: Duration) {
        self.wait_for_primary(now);
        self.beat_at = now;
        if let Some(quiet) = self.quiet.take() {
            self.frozen_until = now + quiet.frozen;
        }
    }
}

#[cfg(test)]
mod tests;
