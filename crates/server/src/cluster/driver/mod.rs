//! The driver: one task that owns the protocol's state machine of this member. It gives events in
//! order and does effects in order; what blocks is done by the threads of `jobs`.
//!
//! - D1. Clients write only while the gate is open, and the gate is shut whenever the state machine
//!   is no primary: what could end its term is held back until writes under way have ended and the
//!   state machine knows their entries.
//! - D2. After a failed sync or an error of the store the member halts: it sends and accepts
//!   nothing more until a restart.

mod asks;
mod effects;
mod fetching;
mod gate;
mod jobs;
mod lags;
mod publish;
mod serving;
mod syncing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bson::{DateTime, doc};
use query::Result;
use repl::event::{Event, Hard, Refusal};
use repl::message::Envelope;
use repl::node::Node;
use repl::position::{MemberId, Position};
use repl::replica::Replica;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub(crate) use asks::{Ask, not_initialized};
use fetching::Fetching;
use gate::{Gate, Leaving};
use jobs::{Job, Jobs};
use lags::Lags;
use serving::Parked;
pub(crate) use serving::Served;
use syncing::Syncing;

use super::config::SetConfig;
use super::file::Stored;
use super::host::{Host, Line};
use super::letter::{EngineNote, Letter};
use super::network::{Fetched, Network};
use super::storage::{Started, Storage, StoredEntry};
use super::sync::status::Status;
use super::sync::task::Outcome;
use super::traffic::Traffic;
use super::view::{Election, Progress, Report, View, Vote};

/// Time between looks at the timers.
const TICK: Duration = Duration::from_millis(20);

/// Letters that wait for the end of writes: some from each member.
const HELD_MAX: usize = 256;

/// Reasons why a member is not reached that are logged until it is.
const REASONS_MAX: usize = 8;

/// Inputs that wait for the driver. Letters beyond that are lost, which members bear.
pub(crate) const INPUTS: usize = 1_024;

/// An input from outside.
pub(crate) enum Input {
    /// A message of a member, and the key of the set that its sender belongs to.
    Letter(String, Box<Letter>),
    /// A member asks for entries.
    Fetch(String, Envelope, oneshot::Sender<Result<Served>>),
    /// An operator asks.
    Ask(Ask, oneshot::Sender<Result<()>>),
    /// Clients have written.
    Wrote,
    /// How the connections to a member are.
    Link(u32, Reach),
}

/// How the connections to a member are.
pub(crate) enum Reach {
    /// It answers again, or for the first time.
    Works,
    /// One cannot be used.
    Broken {
        /// Whether the machine of the member has closed or refused it.
        closed: bool,
        reason: String,
    },
}

/// The end of something that the driver began.
#[derive(Debug)]
pub(crate) enum Done {
    Persisted(Hard),
    /// Clients have written up to this.
    Wrote(Position),
    Durable(Position),
    RolledBack,
    Applied(Position),
    Led(Position),
    Followed(Position),
    /// No write of a client is under way.
    Idle,
    /// The answer to the fetch with this number.
    Fetched(u64, std::result::Result<Fetched, String>),
    /// The end of the attempt of an initial sync with this number.
    Copied(u64, Outcome),
    Failed(String),
}

/// What a driver is made of.
pub(crate) struct Parts {
    /// The name of the set.
    pub(crate) set: String,
    pub(crate) file: PathBuf,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) view: Arc<ArcSwap<View>>,
    pub(crate) progress: watch::Sender<Progress>,
    /// The progress of an initial sync.
    pub(crate) status: Arc<Status>,
    pub(crate) inputs: mpsc::Receiver<Input>,
}

/// The driver of a member.
pub(crate) struct Driver {
    set: String,
    storage: Arc<dyn Storage>,
    traffic: Arc<Traffic>,
    network: Arc<dyn Network>,
    host: Arc<dyn Host>,
    view: Arc<ArcSwap<View>>,
    progress: watch::Sender<Progress>,
    status: Arc<Status>,
    inputs: mpsc::Receiver<Input>,
    jobs: Jobs,
    done: mpsc::UnboundedReceiver<Done>,
    report: mpsc::UnboundedSender<Done>,
    begun: Instant,
    /// The member, once it belongs to a set.
    seat: Option<Seat>,
    /// A step-down that waits for the end of writes.
    leaving: Option<Leaving>,
    /// Why it takes no part any more (D2).
    halted: Option<String>,
}

/// A member of a set.
pub(super) struct Seat {
    me: u32,
    replica: Replica,
    config: Arc<SetConfig>,
    /// The configuration that a message or an operator brings, while it is given to the state
    /// machine.
    incoming: Option<Arc<SetConfig>>,
    gate: Gate,
    /// Messages of a newer term, while writes end (D1).
    held: VecDeque<Letter>,
    fetching: Fetching,
    /// The entries of the batch that is given to the state machine.
    batch: Vec<StoredEntry>,
    parked: BTreeMap<u32, Parked>,
    /// The answer to a fetch that the state machine gives.
    served: Option<Envelope>,
    reports: BTreeMap<u32, Report>,
    /// Why the state machine refused the last request.
    refused: Option<Refusal>,
    applied: Position,
    syncing: Syncing,
    /// What must be committed before the data of an initial sync are shown.
    floor: Position,
    elected: Option<DateTime>,
    election: Option<Arc<Election>>,
    vote: Option<Arc<Vote>>,
    lags: Lags,
    engine: EngineNote,
    /// The longest key that the engines of all members store.
    key_max: usize,
    /// Campaign as soon as a majority has the first configuration.
    eager: bool,
    /// Why the member is no secondary.
    info: String,
    /// Members that are not reached, and the reasons that were logged.
    unreached: BTreeMap<u32, BTreeSet<String>>,
    /// The last terms and primary that were logged.
    seen_primary: Option<u32>,
}

impl Driver {
    /// A driver of a member that continues with what its file has, if it has one.
    ///
    /// # Errors
    /// Those of the store; when the system has no thread for it.
    pub(crate) fn new(parts: Parts, stored: Option<Stored>) -> Result<Driver> {
        let (report, done) = mpsc::unbounded_channel();
        let jobs = Jobs::start(&parts.storage, parts.file, &report).map_err(|error| {
            let message = format!("no thread for the replica set: {error}");
            query::Error::new(query::Code::INTERNAL_ERROR, message)
        })?;
        let mut driver = Driver {
            set: parts.set,
            storage: parts.storage,
            traffic: parts.traffic,
            network: parts.network,
            host: parts.host,
            view: parts.view,
            progress: parts.progress,
            status: parts.status,
            inputs: parts.inputs,
            jobs,
            done,
            report,
            begun: Instant::now(),
            seat: None,
            leaving: None,
            halted: None,
        };
        if let Some(stored) = stored {
            let started = driver.storage.start()?;
            driver.sit(stored, started);
        }
        driver.publish();
        Ok(driver)
    }

    /// Take a seat in a set: what `stored` says is durable.
    fn sit(&mut self, stored: Stored, started: Started) {
        let hard = hard_of(&stored);
        let me = MemberId(stored.me);
        let node = Node::start(me, hard, started.log, started.commit);
        let config = Arc::new(stored.config);
        let replica = Replica::new(node, me, config.timing(), self.now());
        self.network.configure(&config, stored.me);
        self.host.configured(&config);
        let applied = self.storage.applied();
        let commit = replica.node().commit();
        self.seat = Some(Seat {
            me: stored.me,
            replica,
            config,
            incoming: None,
            gate: Gate::Shut,
            held: VecDeque::new(),
            fetching: Fetching::default(),
            batch: Vec::new(),
            parked: BTreeMap::new(),
            served: None,
            reports: BTreeMap::new(),
            refused: None,
            applied,
            syncing: Syncing::default(),
            floor: self.storage.floor(),
            elected: None,
            election: None,
            vote: None,
            lags: Lags::default(),
            engine: self.storage.engine(),
            key_max: usize::MAX,
            eager: false,
            info: String::new(),
            unreached: BTreeMap::new(),
            seen_primary: None,
        });
        if applied < commit {
            self.jobs.log(Job::Apply {
                to: commit,
                committed: true,
            });
        }
        self.log(
            9_100_001,
            "Member of the replica set",
            doc! {
                "set": self.set.clone(), "member": i64::from(stored.me),
            },
        );
        self.resume_sync();
    }

    /// Drive the member until the other side of its inputs is gone.
    pub(crate) async fn run(mut self) {
        let mut timer = tokio::time::interval(TICK);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(done) = self.done.recv() => self.ended(done),
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => return,
                },
                _ = timer.tick() => self.notice(),
            }
            self.settle();
        }
    }

    /// Do what is due, and show the outcome.
    fn settle(&mut self) {
        if self.halted.is_none() {
            self.synchronize();
            self.tick();
            self.follow_primary();
            self.answer_parked();
            self.promote();
        }
        self.publish();
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Give the state machine an event, and do its effects.
    fn step(&mut self, event: Event) {
        let now = self.now();
        if let Some(seat) = &mut self.seat {
            let effects = seat.replica.step(now, event);
            self.perform(effects);
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        if seat.gate.may_put() && seat.replica.loses_majority(now) {
            // The state machine would step down now.
            return self.shut("this primary does not reach a majority of the voters");
        }
        let effects = seat.replica.tick(now);
        self.perform(effects);
    }

    /// Look for entries that came without a notice: those of the server itself, and those of
    /// clients that were behind an open slot when the client was done.
    fn notice(&mut self) {
        self.measure();
        self.storage.tend();
        let Some(seat) = &self.seat else { return };
        let known = seat.replica.node().last();
        if self.halted.is_none() && seat.gate.may_put() && known < self.storage.last() {
            self.jobs.log(Job::Pump);
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Letter(key, letter) if self.halted.is_none() => self.receive(&key, *letter),
            Input::Letter(..) => {}
            Input::Fetch(key, envelope, answer) => self.serve(&key, envelope, answer),
            Input::Ask(ask, answer) => self.ask(ask, answer),
            Input::Wrote => self.wrote(),
            Input::Link(member, reach) => self.link(member, reach),
        }
    }

    /// Each reason why a member is not reached is logged once.
    fn link(&mut self, member: u32, reach: Reach) {
        let (now, host) = (self.now(), self.host_of(member));
        let Some(seat) = &mut self.seat else { return };
        if seat.config.member(member).is_none() {
            return;
        }
        match reach {
            Reach::Works => {
                if seat.unreached.remove(&member).is_some() {
                    self.log(9_100_071, "A member is reached", doc! {"host": host});
                }
            }
            Reach::Broken { closed, reason } => {
                if closed {
                    seat.replica.hint_lost(now, MemberId(member));
                }
                let known = seat.unreached.entry(member).or_default();
                if known.len() < REASONS_MAX && known.insert(reason.clone()) {
                    let attributes = doc! {"host": host, "error": reason};
                    self.warn(9_100_070, "A member is not reached", attributes);
                }
            }
        }
    }

    /// A message of another member.
    fn receive(&mut self, key: &str, letter: Letter) {
        let Some(seat) = &mut self.seat else {
            return self.invited(key, letter);
        };
        let envelope = &letter.envelope;
        if key != key_of(&seat.config) || envelope.to.0 != seat.me {
            return;
        }
        if seat.gate.may_put() && seat.replica.node().term() < envelope.term {
            // D1.
            if HELD_MAX <= seat.held.len() {
                seat.held.pop_front();
            }
            seat.held.push_back(letter);
            return self.shut("another member has a newer term");
        }
        self.deliver(letter);
    }

    /// Give a message to the state machine.
    fn deliver(&mut self, letter: Letter) {
        self.note(&letter);
        let Some(seat) = &mut self.seat else { return };
        seat.incoming = letter.config;
        self.step(Event::Receive(letter.envelope));
        if let Some(seat) = &mut self.seat {
            seat.incoming = None;
        }
    }

    /// A member of a set sends its configuration to this one, which belongs to none yet.
    fn invited(&mut self, key: &str, letter: Letter) {
        let Some(config) = letter.config else { return };
        let me = letter.envelope.to.0;
        let fits = config.name == self.set && key == key_of(&config);
        if !fits || config.member(me).is_none() {
            return;
        }
        let stored = Stored {
            me,
            term: letter.envelope.term.0,
            voted_for: None,
            config: SetConfig::clone(&config),
        };
        match self.storage.start() {
            Ok(started) if started.log.last() == Position::ZERO => self.join(stored, started),
            Ok(_) => {
                let message = "This server has data of its own, and cannot join the replica set; \
                     start it with an empty data directory";
                self.warn(9_100_002, message, doc! {"set": self.set.clone()});
            }
            Err(error) => self.halt(&error.message),
        }
    }

    /// Take a seat whose file is not written yet: its content counts as durable from the first
    /// write on, and nothing is reported before.
    fn join(&mut self, stored: Stored, started: Started) {
        let hard = hard_of(&stored);
        // The state machine begins with a configuration that is older than any.
        let blank = Stored {
            config: stored.config.with_id(repl::config::ConfigId::default()),
            ..stored.clone()
        };
        self.sit(blank, started);
        let config = Arc::new(stored.config);
        if let Some(seat) = &mut self.seat {
            seat.incoming = Some(Arc::clone(&config));
        }
        let from = config.members.iter().find(|m| m.id != stored.me);
        let from = from.map_or(256, |member| member.id);
        self.step(Event::Receive(asks::carrier(
            from, stored.me, &hard, &config,
        )));
        if let Some(seat) = &mut self.seat {
            seat.incoming = None;
        }
    }

    /// Stop taking part (D2).
    fn halt(&mut self, why: &str) {
        if self.halted.is_some() {
            return;
        }
        self.halted = Some(why.to_owned());
        let message = "This member takes no part in the replica set any more; restart it once the \
             reason is gone";
        self.warn(9_100_003, message, doc! {"error": why});
        drop(tokio::spawn(self.host.shut()));
        if let Some(seat) = &mut self.seat {
            seat.parked.clear();
        }
    }

    fn ended(&mut self, done: Done) {
        if self.halted.is_some() {
            return;
        }
        match done {
            Done::Persisted(hard) => self.step(Event::Persisted(hard)),
            Done::Wrote(last) => self.put(last),
            Done::Durable(last) => self.step(Event::Durable(last)),
            Done::RolledBack => self.step(Event::RolledBack),
            Done::Applied(to) => self.applied(to),
            Done::Led(first) => self.led(first),
            Done::Followed(last) => self.followed(last),
            Done::Idle => self.jobs.log(Job::Follow),
            Done::Fetched(number, result) => self.fetched(number, result),
            Done::Copied(number, outcome) => self.copied(number, outcome),
            Done::Failed(why) => self.halt(&why),
        }
    }

    fn applied(&mut self, to: Position) {
        let Some(seat) = &mut self.seat else { return };
        seat.applied = seat.applied.max(to);
        self.host.applied();
        self.drained();
    }

    pub(super) fn log(&self, id: i32, message: &'static str, attributes: bson::Document) {
        self.host.log(Line {
            warning: false,
            id,
            message,
            attributes,
        });
    }

    pub(super) fn warn(&self, id: i32, message: &'static str, attributes: bson::Document) {
        self.host.log(Line {
            warning: true,
            id,
            message,
            attributes,
        });
    }
}

/// What the state machine has of the content of the file.
fn hard_of(stored: &Stored) -> Hard {
    Hard {
        term: repl::position::Term(stored.term),
        voted_for: stored.voted_for.map(MemberId),
        config: Arc::new(stored.config.core()),
    }
}

/// The key by which members recognize their set: its name, and the number made at its beginning.
pub(crate) fn key_of(config: &SetConfig) -> String {
    match config.settings.id {
        Some(id) => format!("{}:{id}", config.name),
        None => config.name.clone(),
    }
}
