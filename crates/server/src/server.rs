//! The server: everything commands share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use bson::DateTime;
use docdb::Store;
use query::{Code, Error, Result};
use tokio::sync::{Semaphore, watch};

use crate::auth::Users;
use crate::auth::users::random;
use crate::commands;
use crate::config::Config;
use crate::limits::{RESERVED, WORKERS};
use crate::state::clock::{self, Clock};
use crate::state::concerns::Concerns;
use crate::state::failpoint::FailPoints;
use crate::state::freeze::Freeze;
use crate::state::log::Log;
use crate::state::metrics::Metrics;
use crate::state::operations::Operations;
use crate::state::parameters::Parameters;
use crate::state::pool::Pool;
use crate::state::profiler::Profiler;
use crate::state::topology::Topology;
use crate::state::usage::Usages;

/// What commands share.
pub(crate) struct Server {
    /// How it was set up.
    pub(crate) config: Config,
    /// The documents.
    pub(crate) store: Arc<Store>,
    /// The users.
    pub(crate) users: Users,
    /// Makes salts for users that are not there.
    pub(crate) secret: Vec<u8>,
    /// The log.
    pub(crate) log: Log,
    /// Parameters.
    pub(crate) parameters: Parameters,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// How collections are used.
    pub(crate) usages: Usages,
    /// The concerns of commands that name none.
    pub(crate) concerns: Concerns,
    /// Holds writes up.
    pub(crate) freeze: Freeze,
    /// Logical time.
    pub(crate) clock: Clock,
    /// The deployment.
    pub(crate) topology: Topology,
    /// Faults that tests order.
    pub(crate) failpoints: FailPoints,
    /// What is logged and kept as slow.
    pub(crate) profiler: Profiler,
    /// Commands in work.
    pub(crate) operations: Operations,
    /// Threads that may block.
    pub(crate) pool: Pool,
    /// Permits for them.
    pub(crate) admission: Semaphore,
    /// Permits for commands that are not held up.
    pub(crate) reserved: Semaphore,
    /// Who is connected.
    pub(crate) connections: Arc<Connections>,
    /// When it started, for measuring.
    pub(crate) started: Instant,
    /// When it started, for showing.
    pub(crate) started_at: DateTime,
    stop: watch::Sender<bool>,
}

impl Server {
    /// A server that does not listen yet; `port` is the one it will.
    ///
    /// # Errors
    /// A bad parameter, or a log file that cannot be opened.
    pub(crate) fn new(config: Config, port: u16, store: Arc<Store>) -> Result<Server> {
        let log = Log::open(config.log_path.as_deref(), config.log_append, config.quiet).map_err(
            |error| {
                let path = config.log_path.clone().unwrap_or_default();
                let message = format!("cannot open the log {}: {error}", path.display());
                Error::new(Code::LOG_WRITE_FAILED, message)
            },
        )?;
        let host = config.bind_ip.first().map_or("127.0.0.1", String::as_str);
        // Clients are sent to this name: one that only this server understands helps nobody.
        let host = if matches!(host, "0.0.0.0" | "::" | "*") {
            hostname()
        } else {
            host.to_owned()
        };
        let topology = Topology::new(config.replica_set.clone(), format!("{host}:{port}"));
        let users = Users::default();
        users.load(&store)?;
        Ok(Server {
            users,
            secret: random(32)?,
            parameters: Parameters::new(&config.parameters)?,
            metrics: Metrics::new(commands::names()),
            usages: Usages::default(),
            concerns: Concerns::load(&store)?,
            freeze: Freeze::default(),
            clock: Clock::new(),
            topology,
            failpoints: FailPoints::new(u64::from(std::process::id())),
            operations: Operations::default(),
            pool: Pool::default(),
            admission: Semaphore::new(WORKERS),
            reserved: Semaphore::new(RESERVED),
            connections: Arc::new(Connections::new(config.max_connections)),
            started: stdx::time::now(),
            started_at: clock::now(),
            profiler: Profiler::new(config.profile, config.slow_ms),
            stop: watch::Sender::new(false),
            log,
            store,
            config,
        })
    }

    /// To wait for the end.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Begin to end: connections without work close, greetings that wait answer.
    pub(crate) fn stop(&self) {
        // First the change: whoever is woken by the end tells of it.
        self.topology.changed();
        self.stop.send_replace(true);
    }
}

/// The name of this machine.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// Who is connected.
pub(crate) struct Connections {
    limit: usize,
    current: AtomicUsize,
    next: AtomicI64,
}

/// A place among the connections; dropping it frees the place.
pub(crate) struct Slot {
    connections: Arc<Connections>,
    id: i64,
}

impl Slot {
    /// The number of the connection.
    pub(crate) fn id(&self) -> i64 {
        self.id
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.current.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    fn new(limit: usize) -> Connections {
        Connections {
            limit,
            current: AtomicUsize::new(0),
            next: AtomicI64::new(1),
        }
    }

    /// A place, if there is one.
    pub(crate) fn open(self: &Arc<Connections>) -> Option<Slot> {
        let before = self.current.fetch_add(1, Ordering::Relaxed);
        let slot = Slot {
            connections: Arc::clone(self),
            id: self.next.fetch_add(1, Ordering::Relaxed),
        };
        // A slot over the limit is dropped here, and with it its count.
        (before < self.limit).then_some(slot)
    }

    /// How many there are.
    pub(crate) fn current(&self) -> i32 {
        i32::try_from(self.current.load(Ordering::Relaxed)).unwrap_or(i32::MAX)
    }

    /// How many more there may be.
    pub(crate) fn available(&self) -> i32 {
        let free = self
            .limit
            .saturating_sub(self.current.load(Ordering::Relaxed));
        i32::try_from(free).unwrap_or(i32::MAX)
    }

    /// How many there ever were.
    pub(crate) fn total(&self) -> i64 {
        self.next.load(Ordering::Relaxed) - 1
    }
}
