//! A state of the exploration: members, their disks, the network, and what happened so far.

use std::sync::Arc;

use super::scenario::{AtOnce, Scenario};
use crate::config::{Config, ConfigId};
use crate::event::{Effect, Event, Hard, State};
use crate::log::{Log, Run};
use crate::message::{Envelope, Message};
use crate::node::{Node, Role};
use crate::position::{MemberId, Position, Term};

/// A state.
#[derive(Clone, Debug, Hash)]
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) disks: Vec<Disk>,
    /// Messages under way: sorted, without duplicates.
    pub(super) net: Vec<Envelope>,
    pub(super) spent: Spent,
    pub(super) past: Past,
}

/// What a member has stored.
#[derive(Clone, Debug, Hash)]
pub(super) struct Disk {
    pub(super) entries: Vec<Position>,
    /// How many entries survive a crash.
    pub(super) durable: usize,
    pub(super) hard: Hard,
    /// A write of the file that is under way.
    pub(super) pending: Option<Hard>,
}

/// What of the bounds is used.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Spent {
    entries: u32,
    repeats: u32,
    restarts: u32,
    reconfigs: u32,
}

/// The history that laws need.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Past {
    /// The primary of each term.
    pub(super) primaries: Vec<(Term, MemberId)>,
    /// The committed entries, each with the term of the primary that committed it.
    pub(super) committed: Vec<(Position, Term)>,
    /// The greatest term in which a member was a candidate.
    pub(super) campaigned: Term,
    /// The entries that primaries wrote.
    pub(super) written: Vec<Position>,
    /// The law that was broken while effects were done.
    pub(super) broken: Option<&'static str>,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Campaign(u8),
    Beat(u8, u8),
    Fetch(u8, u8),
    SyncLog(u8),
    SyncFile(u8),
    /// A primary ends its catch-up, drains and writes its noop.
    Begin(u8),
    Write(u8),
    Deliver(u8),
    Repeat(u8),
    Lose(u8),
    /// The member restarts with what is durable, or with all it wrote.
    Restart(u8, bool),
    /// The voters become those of the set of bits.
    Reconfig(u8, u8),
    StepDown(u8),
}

impl World {
    pub(super) fn begin(scenario: &Scenario) -> Self {
        let members = scenario.members.iter().take(scenario.configured).copied();
        let config = Arc::new(Config {
            id: ConfigId {
                term: Term(0),
                version: 1,
            },
            members: members.collect(),
        });
        let newest = scenario.logs.iter().flatten().max().copied().unwrap_or(0);
        let mut world = Self {
            nodes: Vec::new(),
            disks: Vec::new(),
            net: Vec::new(),
            spent: Spent::default(),
            past: Past {
                campaigned: Term(newest),

                ..Past::default()
            },
        };
        for (member, terms) in scenario.members.iter().zip(&scenario.logs) {
            let entry = |(term, ts): (&u64, u64)| Position {
                term: Term(*term),
                ts,
            };
            let entries: Vec<Position> = terms.iter().zip(1..).map(entry).collect();
            let hard = Hard {
                term: Term(newest),
                voted_for: None,
                config: config.clone(),
            };
            let log = shape(&entries);
            let node = Node::start(member.id, hard.clone(), log, Position::ZERO);
            world.nodes.push(node);
            world.disks.push(Disk {
                durable: entries.len(),
                entries,
                hard,
                pending: None,
            });
        }
        let quiet = Scenario {
            at_once: AtOnce::all(),
            network: 0,
            plant: None,
            ..scenario.clone()
        };
        for action in &scenario.prefix {
            world.act(*action, &quiet);
        }
        world.spent = Spent::default();
        for node in &mut world.nodes {
            node.plant = scenario.plant;
        }
        world
    }

    /// What can happen next.
    pub(super) fn actions(&self, scenario: &Scenario, out: &mut Vec<Action>) {
        out.clear();
        for (a, node) in (0_u8..).zip(&self.nodes) {
            self.of_member(a, node, scenario, out);
            for (b, peer) in (0_u8..).zip(&self.nodes) {
                let known = node.config().member(peer.me).is_some();
                if a == b || !known {
                    continue;
                }
                if !scenario.at_once.heartbeats || node.informs(peer) {
                    out.push(Action::Beat(a, b));
                }
                let worth = node.log != peer.log || node.commit < peer.commit;
                if worth && node.config().member(node.me).is_some_and(|m| !m.arbiter) {
                    out.push(Action::Fetch(a, b));
                }
            }
        }
        let full = self.net.len() == scenario.network;
        for (i, _) in (0_u8..).zip(&self.net) {
            out.push(Action::Deliver(i));
            if self.spent.repeats < scenario.repeats {
                out.push(Action::Repeat(i));
            }
            // A message that is never delivered is as good as lost: only the room matters.
            if full {
                out.push(Action::Lose(i));
            }
        }
    }

    fn of_member(&self, a: u8, node: &Node, scenario: &Scenario, out: &mut Vec<Action>) {
        let disk = &self.disks[usize::from(a)];
        let room = self.spent.entries < scenario.entries;
        if node.term().0 < scenario.terms
            && matches!(node.role, Role::Secondary | Role::Candidate(_))
        {
            out.push(Action::Campaign(a));
        }
        if let State::Primary { writable } = node.state() {
            if writable && room {
                out.push(Action::Write(a));
            }
            if room && node.is_catching_up() {
                out.push(Action::Begin(a));
            }
            if scenario.hand_over {
                out.push(Action::StepDown(a));
            }
            if writable && self.spent.reconfigs < scenario.reconfigs {
                let sets = 1_u8 << scenario.members.len();
                out.extend((1..sets).map(|set| Action::Reconfig(a, set)));
            }
        }
        if disk.durable < disk.entries.len() {
            out.push(Action::SyncLog(a));
        }
        // A term alone binds no other member: a restart keeps or loses it.
        let matters =
            |hard: &Hard| hard.voted_for.is_some() || hard.config.id != disk.hard.config.id;
        if disk.pending.as_ref().is_some_and(matters) {
            out.push(Action::SyncFile(a));
        }
        if self.spent.restarts < scenario.restarts {
            out.push(Action::Restart(a, false));
            if disk.durable < disk.entries.len() || disk.pending.is_some() {
                out.push(Action::Restart(a, true));
            }
        }
    }

    /// Does an action.
    pub(super) fn act(&mut self, action: Action, scenario: &Scenario) {
        match action {
            Action::Campaign(a) => {
                let dry_run = scenario.dry_run;
                // Nodes do not decide by the reason.
                let takeover = false;
                self.give(a, Event::Campaign { dry_run, takeover }, scenario);
            }
            Action::Beat(a, b) => self.give(a, Event::Beat(self.id(b)), scenario),
            Action::Fetch(a, b) => self.give(a, Event::Fetch(self.id(b)), scenario),
            Action::SyncLog(a) => self.sync_log(a, scenario),
            Action::SyncFile(a) => self.sync_file(a, scenario),
            Action::Begin(a) => self.begin_term(a, scenario),
            Action::Write(a) => {
                self.spent.entries += 1;
                let before = self.node(a).last();
                self.give(a, Event::Append { ts: before.ts + 1 }, scenario);
                let at = self.node(a).last();
                if at != before {
                    self.created(at);
                    self.wrote(a, &[at], scenario);
                }
            }
            Action::Deliver(i) => {
                let envelope = self.net.remove(usize::from(i));
                self.deliver(envelope, scenario);
            }
            Action::Repeat(i) => {
                self.spent.repeats += 1;
                self.deliver(self.net[usize::from(i)].clone(), scenario);
            }
            Action::Lose(i) => {
                self.net.remove(usize::from(i));
            }
            Action::Restart(a, kept) => self.restart(a, kept, scenario),
            Action::Reconfig(a, set) => {
                self.spent.reconfigs += 1;
                let bits = (0..).zip(&scenario.members);
                let chosen = bits.filter(|(bit, _)| set >> bit & 1 == 1);
                let members = chosen.map(|(_, member)| *member).collect();
                self.give(a, Event::Reconfig(members), scenario);
            }
            Action::StepDown(a) => {
                self.give(a, Event::StepDown, scenario);
                let is_primary = matches!(self.node(a).role, Role::Primary(_));
                if is_primary {
                    self.give(a, Event::StepDownEnded { force: true }, scenario);
                }
            }
        }
        self.net.sort_unstable();
        self.net.dedup();
        if scenario.forgets_sources() {
            self.nodes.iter_mut().for_each(|node| node.source = None);
        }
    }

    fn begin_term(&mut self, a: u8, scenario: &Scenario) {
        self.spent.entries += 1;
        self.give(a, Event::CatchUpEnded, scenario);
        let ts = self.node(a).last().ts + 1;
        self.give(a, Event::Drained { ts }, scenario);
    }

    fn sync_log(&mut self, a: u8, scenario: &Scenario) {
        let disk = &mut self.disks[usize::from(a)];
        disk.durable = disk.entries.len();
        let at = disk.entries.last().copied().unwrap_or(Position::ZERO);
        self.give(a, Event::Durable(at), scenario);
    }

    fn sync_file(&mut self, a: u8, scenario: &Scenario) {
        let disk = &mut self.disks[usize::from(a)];
        if let Some(hard) = disk.pending.take() {
            disk.hard = hard.clone();
            self.give(a, Event::Persisted(hard), scenario);
        }
    }

    fn restart(&mut self, a: u8, kept: bool, scenario: &Scenario) {
        self.spent.restarts += 1;
        let disk = &mut self.disks[usize::from(a)];
        let pending = disk.pending.take();
        if kept {
            disk.hard = pending.unwrap_or_else(|| disk.hard.clone());
        } else {
            disk.entries.truncate(disk.durable);
        }
        if !scenario.members[usize::from(a)].persistent {
            disk.entries.clear();
        }
        disk.durable = disk.entries.len();
        let log = shape(&disk.entries);
        let hard = disk.hard.clone();
        let before = &self.nodes[usize::from(a)];
        let commit = before.commit.min(log.last());
        let mut node = Node::start(before.me, hard, log, commit);
        node.plant = before.plant;
        node.resume();
        self.nodes[usize::from(a)] = node;
    }

    /// Gives an event to a member and does the effects.
    fn give(&mut self, a: u8, event: Event, scenario: &Scenario) {
        let effects = self.nodes[usize::from(a)].step(event);
        for effect in effects {
            self.effect(a, effect, scenario);
        }
    }

    fn effect(&mut self, a: u8, effect: Effect, scenario: &Scenario) {
        match effect {
            Effect::Send(envelope) => self.send(envelope, scenario),
            Effect::Persist(hard) => {
                if hard.voted_for == Some(self.id(a)) {
                    self.past.campaigned = self.past.campaigned.max(hard.term);
                }
                self.disks[usize::from(a)].pending = Some(hard);
                if scenario.at_once.file {
                    self.sync_file(a, scenario);
                }
            }
            Effect::Write { after, runs } => {
                self.wrote(a, &expand(after.ts, &runs), scenario);
            }
            Effect::WriteNoop(at) => {
                self.created(at);
                self.wrote(a, &[at], scenario);
            }
            Effect::Rollback(to) => {
                self.roll_back(a, to);
                self.give(a, Event::RolledBack, scenario);
            }
            Effect::Committed(at) => self.committed(a, at),
            Effect::Role(State::Primary { writable: false }) => self.elected(a),

            Effect::Installed(_)
            | Effect::Role(_)
            | Effect::SourceRefused(_)
            | Effect::Refused(_) => {}
        }
    }

    fn wrote(&mut self, a: u8, entries: &[Position], scenario: &Scenario) {
        self.disks[usize::from(a)]
            .entries
            .extend_from_slice(entries);
        if scenario.at_once.log {
            self.sync_log(a, scenario);
        }
    }

    fn send(&mut self, envelope: Envelope, scenario: &Scenario) {
        let at_once = match envelope.message {
            Message::Heartbeat(_) => scenario.at_once.heartbeats,
            Message::Fetch { .. } => scenario.at_once.fetches,
            Message::Batch { .. } | Message::Diverged { .. } => scenario.at_once.batches,
            Message::Positions(_) => scenario.at_once.positions,
            Message::VoteRequest(_) | Message::VoteReply { .. } => scenario.at_once.votes,
            Message::TakeOver => false,
        };
        if at_once {
            self.deliver(envelope, scenario);
        } else if self.net.len() < scenario.network && !self.net.contains(&envelope) {
            self.net.push(envelope);
        }
    }

    fn deliver(&mut self, envelope: Envelope, scenario: &Scenario) {
        let to = self.nodes.iter().position(|node| node.me == envelope.to);
        let to = u8::try_from(to.expect("members have nodes")).unwrap();
        self.give(to, Event::Receive(envelope), scenario);
    }

    pub(super) fn node(&self, a: u8) -> &Node {
        &self.nodes[usize::from(a)]
    }

    fn id(&self, a: u8) -> MemberId {
        self.node(a).me
    }
}

/// The shape of a list of entries.
pub(super) fn shape(entries: &[Position]) -> Log {
    let mut log = Log::default();
    for entry in entries {
        log.append(&[Run {
            term: entry.term,
            last: entry.ts,
        }]);
    }
    log
}

/// The entries of runs after the timestamp `last`: timestamps increase by one here.
fn expand(mut last: u64, runs: &[Run]) -> Vec<Position> {
    let mut entries = Vec::new();
    for run in runs {
        let of_run = (last + 1..=run.last).map(|ts| Position { term: run.term, ts });
        entries.extend(of_run);
        last = run.last;
    }
    entries
}
