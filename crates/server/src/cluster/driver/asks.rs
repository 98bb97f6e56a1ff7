//! What operators ask of a member: `replSetInitiate`, `replSetReconfig`, `replSetStepDown` and
//! others.

use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use query::{Code, Error, Result};
use repl::config::{ConfigError, ConfigId};
use repl::event::{Event, Hard, Refusal, State};
use repl::message::{Envelope, Heartbeat, Message};
use repl::position::{MemberId, Position};
use repl::replica::StepDownRequest;
use tokio::sync::oneshot;

use super::gate::{Gate, Leaving};
use super::{Driver, Seat};
use crate::cluster::config::SetConfig;
use crate::cluster::file::Stored;
use crate::cluster::rules;
use crate::cluster::standing::Standing;
use crate::long::long;

/// How much a forced configuration increases the version: other changes of the same term, which the
/// operator may not know, have lower ones.
const FORCED: u64 = 10_000;

/// What an operator asks.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Begin a set with this configuration, of which this is the member `me`.
    Initiate {
        config: Box<SetConfig>,
        me: u32,
    },
    /// Change the configuration.
    Reconfig {
        config: Box<SetConfig>,
        force: bool,
    },
    StepDown {
        /// How long to wait for a member to hand over to.
        wait: Duration,
        force: bool,
        /// How long not to campaign afterwards.
        frozen: Duration,
    },
    StepUp,
    /// Do not campaign for so long; zero ends it.
    Freeze(Duration),
    Maintenance(bool),
    /// Fetch from this member.
    SyncFrom(u32),
    /// Accept writes without the entries that are still fetched.
    AbortCatchUp,
}

impl Driver {
    pub(super) fn ask(&mut self, ask: Ask, answer: oneshot::Sender<Result<()>>) {
        let outcome = match (ask, &self.halted) {
            (_, Some(why)) => Err(Error::new(
                Code::NOT_PRIMARY_OR_SECONDARY,
                format!("this member takes no part in the set: {why}"),
            )),
            (
                Ask::StepDown {
                    wait,
                    force,
                    frozen,
                },
                None,
            ) => {
                let request = StepDownRequest {
                    wait,
                    force,
                    frozen,
                };
                match self.leave(Leaving { request, answer }) {
                    None => return,
                    Some((answer, error)) => return give(answer, Err(error)),
                }
            }
            (Ask::Initiate { config, me }, None) => self.initiate(*config, me),
            (Ask::Reconfig { config, force }, None) => self.reconfig(*config, force),
            (Ask::StepUp, None) => self.step_up(),
            (Ask::Freeze(limit), None) => self.freeze(limit),
            (Ask::Maintenance(on), None) => self.maintain(on),
            (Ask::SyncFrom(source), None) => self.sync_from(source),
            (Ask::AbortCatchUp, None) => self.abort_catch_up(),
        };
        // Who asked sees what has changed.
        self.publish();
        give(answer, outcome);
    }

    fn seat(&mut self) -> Result<&mut Seat> {
        self.seat.as_mut().ok_or_else(not_initialized)
    }

    fn initiate(&mut self, config: SetConfig, me: u32) -> Result<()> {
        if self.seat.is_some() {
            return Err(Error::new(Code::ALREADY_INITIALIZED, "already initialized"));
        }
        if config.name != self.set {
            return Err(rules::invalid(format!(
                "the configuration names the set {}, this server belongs to {}",
                config.name, self.set
            )));
        }
        if !config
            .member(me)
            .is_some_and(|member| member.is_electable())
        {
            let message = "this server would not be electable; send replSetInitiate to another \
                member, or give this one a priority and a vote";
            return Err(rules::invalid(message));
        }
        let started = self.storage.start()?;
        let stored = Stored {
            me,
            term: started.log.last().term.0,
            voted_for: None,
            config,
        };
        self.join(stored, started);
        self.seat()?.eager = true;
        Ok(())
    }

    /// The first election does not wait for a timeout, but for members to have the configuration.
    /// New members that have copied the log get their votes.
    pub(super) fn promote(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        if seat.eager {
            let (me, id) = (seat.me, seat.config.id());
            let has = |member: u32| {
                let report = seat.reports.get(&member);
                let reported = report.map(|r| (r.config_term, r.config_version));
                member == me || reported == Some((id.term.0, id.version))
            };
            let core = seat.replica.node().config();
            let ready = core.voters().filter(|voter| has(voter.id.0)).count();
            if core.majority() <= ready {
                seat.eager = false;
                self.step(Event::Campaign {
                    dry_run: false,
                    takeover: false,
                });
            }
            return;
        }
        if !matches!(
            seat.replica.node().state(),
            State::Primary { writable: true }
        ) {
            return;
        }
        let commit = seat.replica.node().commit();
        let synced = |id: u32| {
            let report = seat.reports.get(&id);
            report.is_some_and(|r| r.note.standing == Standing::Secondary && commit <= r.durable)
        };
        let new = seat
            .config
            .members
            .iter()
            .find(|m| m.newly_added && synced(m.id));
        let Some(id) = new.map(|member| member.id) else {
            return;
        };
        let mut config = SetConfig::clone(&seat.config);
        let added = config.members.iter_mut().find(|member| member.id == id);
        if let Some(member) = added {
            member.newly_added = false;
        }
        // It is refused while the last change is not on a majority, and tried again.
        if self.install(config).is_ok() {
            let host = self.host_of(id);
            self.log(
                9_100_040,
                "A new member has the data and gets its vote",
                doc! {"host": host},
            );
        }
    }

    fn reconfig(&mut self, mut config: SetConfig, force: bool) -> Result<()> {
        let seat = self.seat()?;
        let old = Arc::clone(&seat.config);
        rules::check_change(&old, &config, force)?;
        config.settings.id = old.settings.id;
        if force {
            return self.force(config);
        }
        if !matches!(
            seat.replica.node().state(),
            State::Primary { writable: true }
        ) {
            return Err(not_primary("replSetReconfig"));
        }
        for member in &mut config.members {
            let known = old.member(member.id);
            let voted = known.is_some_and(|known| known.votes && !known.newly_added);
            // Arbiters have nothing to copy.
            member.newly_added = member.votes && !member.arbiter && !voted;
        }
        self.install(config)
    }

    /// Change the configuration by the rules of the protocol.
    fn install(&mut self, config: SetConfig) -> Result<()> {
        let now = self.now();
        let seat = self.seat()?;
        let id = ConfigId {
            term: seat.replica.node().term(),
            version: seat.config.version + 1,
        };
        let config = config.with_id(id);
        rules::check(&config)?;
        let members = config.core().members;
        seat.incoming = Some(Arc::new(config));
        seat.refused = None;
        let effects = seat.replica.step(now, Event::Reconfig(members));
        self.perform(effects);
        let seat = self.seat()?;
        seat.incoming = None;
        seat.refused.take().map_or(Ok(()), |why| Err(refusal(why)))
    }

    /// Change the configuration without the consent of a majority.
    fn force(&mut self, config: SetConfig) -> Result<()> {
        let seat = self.seat()?;
        let term = seat.replica.node().term();
        let version = seat.config.version.max(config.version) + FORCED;
        let config = Arc::new(config.with_id(ConfigId { term, version }));
        if config.member(seat.me).is_none() {
            return Err(rules::invalid(
                "this server is no member of the new configuration",
            ));
        }
        let hard = Hard {
            term,
            voted_for: None,
            config: Arc::new(config.core()),
        };
        let me = seat.me;
        seat.incoming = Some(Arc::clone(&config));
        self.warn(
            9_100_041,
            "A configuration is installed by force",
            doc! {
                "version": long(version), "term": long(term.0),
            },
        );
        self.step(Event::Receive(carrier(256, me, &hard, &config)));
        self.seat()?.incoming = None;
        Ok(())
    }

    /// Begin to step down. Returns the answer and an error if that is not possible.
    fn leave(&mut self, leaving: Leaving) -> Option<(oneshot::Sender<Result<()>>, Error)> {
        let Some(seat) = &self.seat else {
            return Some((leaving.answer, not_initialized()));
        };
        if self.leaving.is_some() || matches!(seat.gate, Gate::HandingOver(_)) {
            let message = "this primary steps down already";
            let error = Error::new(Code::CONFLICTING_OPERATION_IN_PROGRESS, message);
            return Some((leaving.answer, error));
        }
        if !matches!(seat.gate, Gate::Open) {
            return Some((leaving.answer, not_primary("replSetStepDown")));
        }
        self.leaving = Some(leaving);
        self.shut("an operator asks this primary to step down");
        None
    }

    fn step_up(&mut self) -> Result<()> {
        let seat = self.seat()?;
        if matches!(seat.replica.node().state(), State::Primary { .. }) {
            return Ok(());
        }
        seat.refused = None;
        self.step(Event::Campaign {
            dry_run: true,
            takeover: true,
        });
        let refused = self.seat()?.refused.take();
        refused.map_or(Ok(()), |why| Err(refusal(why)))
    }

    fn abort_catch_up(&mut self) -> Result<()> {
        if !self.seat()?.replica.node().is_catching_up() {
            let message = "The node is not in catch-up mode.";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        self.step(Event::CatchUpEnded);
        Ok(())
    }

    fn freeze(&mut self, limit: Duration) -> Result<()> {
        let now = self.now();
        let seat = self.seat()?;
        if matches!(seat.replica.node().state(), State::Primary { .. }) {
            let message = "cannot freeze node when primary or running for election. state: Primary";
            return Err(Error::new(Code::NOT_SECONDARY, message));
        }
        seat.replica.freeze(now + limit);
        Ok(())
    }

    fn maintain(&mut self, on: bool) -> Result<()> {
        let seat = self.seat()?;
        let state = seat.replica.node().state();
        let fits = match on {
            true => state == State::Secondary,
            false => state == State::Recovering,
        };
        if !fits {
            let name = Standing::of(state).name();
            let message = format!("the member is {name}; only a SECONDARY enters maintenance");
            return Err(Error::new(Code::NOT_SECONDARY, message));
        }
        seat.info = if on {
            "in maintenance".to_owned()
        } else {
            String::new()
        };
        self.step(Event::Maintenance(on));
        Ok(())
    }

    fn sync_from(&mut self, source: u32) -> Result<()> {
        let seat = self.seat()?;
        if seat.replica.node().state() != State::Secondary {
            let message = "only a secondary has a sync source";
            return Err(Error::new(Code::NOT_SECONDARY, message));
        }
        if source == seat.me || seat.config.member(source).is_none_or(|m| m.arbiter) {
            let message = "the sync source must be another member that holds data";
            return Err(Error::bad_value(message));
        }
        seat.fetching.wanted = Some(source);
        Ok(())
    }
}

/// A message that gives the state machine a configuration as if a member `from` had sent it.
pub(super) fn carrier(from: u32, me: u32, hard: &Hard, config: &SetConfig) -> Envelope {
    Envelope {
        to: MemberId(me),
        from: MemberId(from),
        term: hard.term,
        message: Message::Heartbeat(Heartbeat {
            last: Position::ZERO,
            durable: Position::ZERO,
            commit: Position::ZERO,
            config: config.id(),
            body: Some(Arc::clone(&hard.config)),
            primary: false,
        }),
    }
}

fn give(answer: oneshot::Sender<Result<()>>, outcome: Result<()>) {
    // One who does not wait any more gets no answer.
    let _: std::result::Result<(), _> = answer.send(outcome);
}

/// The error of a member that belongs to no set yet.
pub(crate) fn not_initialized() -> Error {
    let message = "no replset config has been received; send replSetInitiate";
    Error::new(Code::NOT_YET_INITIALIZED, message)
}

fn not_primary(command: &str) -> Error {
    let message = format!("{command} should only be run on a writable PRIMARY");
    Error::new(Code::NOT_WRITABLE_PRIMARY, message)
}

fn refusal(why: Refusal) -> Error {
    let code = match why {
        Refusal::NotElectable => Code::NODE_NOT_ELECTABLE,
        Refusal::ConfigNotCommitted | Refusal::NothingCommitted => Code::CONFIGURATION_IN_PROGRESS,
        Refusal::Config(ConfigError::TwoVoters | ConfigError::RemovesPrimary) => {
            Code::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE
        }
        Refusal::Config(_) => Code::INVALID_REPLICA_SET_CONFIG,
        _ => Code::NOT_WRITABLE_PRIMARY,
    };
    Error::new(code, why.to_string())
}
