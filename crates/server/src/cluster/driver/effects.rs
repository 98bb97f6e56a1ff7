//! Does the effects of the state machine, in order.

use std::sync::Arc;

use bson::{DateTime, doc};
use repl::config::Config;
use repl::event::{Effect, Hard, State};
use repl::message::{Envelope, Heartbeat, Message};
use repl::position::{MemberId, Position};

use super::jobs::Job;
use super::{Driver, Election, Report, Vote};
use crate::cluster::config::SetConfig;
use crate::cluster::file::Stored;
use crate::cluster::letter::{Letter, Note};
use crate::cluster::standing::Standing;
use crate::long::long;

impl Driver {
    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if self.halted.is_some() {
                return;
            }
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Send(envelope) => self.send(envelope),
            Effect::Persist(hard) => self.persist(hard),
            Effect::Write { after: _, runs } => self.write(&runs),
            // It was put before the state machine knew it.
            Effect::WriteNoop(_) => self.wrote(),
            Effect::Rollback(to) => {
                let message = "Rolling back: this member undoes entries that the set does not \
                     have; documents that it changes are kept in files below rollback";
                self.warn(9_100_010, message, doc! {"to": shown(to)});
                self.jobs.log(Job::RollBack(to));
            }
            Effect::SourceRefused(source) => {
                let host = self.host_of(source.0);
                let message = "The sync source cannot be followed: its log is older";
                self.log(9_100_011, message, doc! {"source": host});
            }
            Effect::Role(state) => self.role(state),
            Effect::Committed(at) => self.committed(at),
            Effect::Installed(core) => self.installed(&core),
            Effect::Refused(why) => {
                if let Some(seat) = &mut self.seat {
                    seat.refused = Some(why);
                }
            }
        }
    }

    fn send(&mut self, envelope: Envelope) {
        let Some(seat) = &mut self.seat else { return };
        match &envelope.message {
            Message::Fetch { .. } => return self.begin_fetch(envelope),
            Message::Batch { .. } | Message::Diverged { .. } => {
                seat.served = Some(envelope);
                return;
            }
            _ => {}
        }
        let mut letter = Letter::plain(envelope);
        if let Message::Heartbeat(beat) = &letter.envelope.message {
            let node = seat.replica.node();
            letter.note = Note {
                standing: match Standing::of(node.state()) {
                    Standing::Secondary if seat.shows_nothing() => Standing::Startup2,
                    other => other,
                },
                source: node.source().map(|source| source.0),
                applied: seat.applied,
                elected: seat.elected,
                engine: Some(seat.engine.clone()),
            };
            // One that is silent may have lost its data, and with them what it has reported.
            let election = seat.config.timing().election;
            let report = seat.reports.get(&letter.envelope.to.0);
            let silent = report.is_none_or(|report| election < report.at.elapsed());
            let needed = beat.body.is_some() || silent;
            letter.config = needed.then(|| Arc::clone(&seat.config));
        }
        if let Message::VoteReply {
            granted: true,
            dry_run: false,
            election,
        } = letter.envelope.message
        {
            let newest = seat.reports.values().map(|report| report.last).max();
            let last = seat.replica.node().last();
            seat.vote = Some(Arc::new(Vote {
                candidate: letter.envelope.to.0,
                date: DateTime::now(),
                term: election.0,
                applied: seat.applied,
                newest: newest.map_or(last, |newest| newest.max(last)),
            }));
        }
        self.network.send(letter);
    }

    fn persist(&mut self, hard: Hard) {
        let Some(config) = self.full(&hard.config) else {
            return self.halt("the protocol stores a configuration that the server does not have");
        };
        let Some(seat) = &self.seat else { return };
        let stored = Stored {
            me: seat.me,
            term: hard.term.0,
            voted_for: hard.voted_for.map(|candidate| candidate.0),
            config: SetConfig::clone(&config),
        };
        self.jobs.persist(stored, hard);
    }

    /// The whole configuration that the protocol's form belongs to.
    fn full(&self, core: &Config) -> Option<Arc<SetConfig>> {
        let seat = self.seat.as_ref()?;
        let known = [seat.incoming.as_ref(), Some(&seat.config)];
        let mut known = known.into_iter().flatten();
        let same = known.find(|config| config.id() == core.id);
        // A new primary only gives the configuration its term.
        let made = || Arc::new(seat.config.with_id(core.id));
        let full = same.cloned().unwrap_or_else(made);
        (full.core() == *core).then_some(full)
    }

    fn installed(&mut self, core: &Config) {
        let Some(config) = self.full(core) else {
            return self
                .halt("the protocol installs a configuration that the server does not have");
        };
        let Some(seat) = &mut self.seat else { return };
        seat.config = Arc::clone(&config);
        seat.replica.set_timing(config.timing());
        seat.reports.retain(|id, _| config.member(*id).is_some());
        seat.unreached.retain(|id, _| config.member(*id).is_some());
        let me = seat.me;
        self.network.configure(&config, me);
        self.host.configured(&config);
        let id = config.id();
        self.log(
            9_100_012,
            "New configuration of the replica set",
            doc! {
                "version": long(id.version), "term": long(id.term.0),
                "members": long(config.members.len()),
            },
        );
    }

    fn role(&mut self, state: State) {
        let Some(seat) = &mut self.seat else { return };
        let node = seat.replica.node();
        let term = long(node.term().0);
        match state {
            State::Primary { writable: false } if node.is_catching_up() => {
                let now = DateTime::now();
                seat.elected = Some(now);
                seat.election = Some(Arc::new(Election {
                    reason: seat.replica.reason(),
                    date: now,
                    term: node.term().0,
                    committed: node.commit(),
                    last: node.last(),
                    began: None,
                    majority: None,
                }));
                self.log(9_100_013, "Election won; catching up", doc! {"term": term});
            }
            State::Primary { writable: false } => self.waits_to_write(),
            State::Primary { writable: true } => self.may_write(),
            other => {
                seat.elected = None;
                seat.election = None;
                let state = Standing::of(other).name();
                self.log(
                    9_100_014,
                    "State of this member",
                    doc! {"state": state, "term": term},
                );
                self.rests();
            }
        }
    }

    fn committed(&mut self, at: Position) {
        let Some(seat) = &mut self.seat else { return };
        if let Some(election) = &mut seat.election
            && election.majority.is_none()
            && election.term == at.term.0
        {
            Arc::make_mut(election).majority = Some(DateTime::now());
        }
        let primary = matches!(
            seat.replica.node().state(),
            State::Primary { writable: true }
        );
        self.jobs.log(match primary {
            true => Job::Committed(at),
            false => Job::Apply {
                to: at,
                committed: true,
            },
        });
    }

    /// Remember what a member reports.
    pub(super) fn note(&mut self, letter: &Letter) {
        let Message::Heartbeat(beat) = &letter.envelope.message else {
            return;
        };
        let Some(seat) = &mut self.seat else { return };
        let from = letter.envelope.from.0;
        if seat.config.member(from).is_none() {
            return;
        }
        let mut report = report(beat, letter);
        let silent = 2 * std::time::Duration::from_millis(seat.config.settings.election_ms);
        let before = seat.reports.get(&from);
        if let Some(before) = before.filter(|before| report.at <= before.at + silent) {
            report.since = before.since;
        }
        seat.reports.insert(from, report);
        self.limit();
    }

    /// The least of the limits of all members that have reported holds for the set.
    pub(super) fn limit(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        let own = (&seat.engine, seat.me);
        let holds_data = |id: &u32| seat.config.member(*id).is_some_and(|m| !m.arbiter);
        let reports = seat.reports.iter().filter(|(id, _)| holds_data(id));
        let others = reports.filter_map(|(id, report)| Some((report.note.engine.as_ref()?, *id)));
        let least = others.chain([own]).min_by_key(|(engine, _)| engine.key_max);
        let Some((engine, id)) = least.filter(|(engine, _)| engine.key_max != seat.key_max) else {
            return;
        };
        let attributes = doc! {
            "host": seat.config.host(id), "engine": &*engine.name,
            "keyMaxBytes": long(engine.key_max),
        };
        seat.key_max = engine.key_max;
        let key_max = seat.key_max;
        self.host.limited(key_max);
        let message = "The longest keys that all members of the replica set store";
        self.log(9_100_090, message, attributes);
    }

    pub(super) fn host_of(&self, member: u32) -> String {
        let seat = self.seat.as_ref();
        seat.map_or_else(String::new, |seat| seat.config.host(member).to_owned())
    }
}

fn report(beat: &Heartbeat, letter: &Letter) -> Report {
    let now = stdx::time::now();
    Report {
        at: now,
        since: now,
        at_date: DateTime::now(),
        last: beat.last,
        durable: beat.durable,
        config_version: beat.config.version,
        config_term: beat.config.term.0,
        note: letter.note.clone(),
        term: letter.envelope.term.0,
    }
}

/// A position in the log of the server.
pub(super) fn shown(at: Position) -> bson::Document {
    crate::cluster::letter::position(at)
}

/// The other members of a configuration.
pub(super) fn others(config: &SetConfig, me: u32) -> impl Iterator<Item = MemberId> + '_ {
    let others = config.members.iter().filter(move |m| m.id != me);
    others.map(|member| MemberId(member.id))
}
