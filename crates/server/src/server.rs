//! The server: the state that all commands share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bson::{DateTime, Document, Timestamp, doc};
use docdb::Store;
use query::meter::{Budget, Processors};
use query::{Code, Error, Result};
use stdx::sync::Mutex;
use tokio::sync::{Semaphore, watch};
use zeroize::Zeroizing;

use crate::auth::scram::Mechanism;
use crate::auth::users::random;
use crate::auth::{User, Users};
use crate::cluster::member::Member;
use crate::command::Commands;
use crate::config::{Config, Memory};
use crate::limits::{COMPUTING, RESERVED, WORKERS, WRITERS};
use crate::metrics::Metrics;
use crate::oplog;
use crate::startup_log;
use crate::state::Client;
use crate::state::clients::Clients;
use crate::state::clock::{self, Clock};
use crate::state::cluster_parameters::ClusterParameters;
use crate::state::concerns::Concerns;
use crate::state::failpoint::FailPoints;
use crate::state::flow::Flow;
use crate::state::freeze::Freeze;
use crate::state::guests::Guests;
use crate::state::log::{Event, Log, Severity};
use crate::state::logins::Logins;
use crate::state::operations::Operations;
use crate::state::parameters::Parameters;
use crate::state::pool::Pool;
use crate::state::profiler::Profiler;
use crate::state::shares::Shares;
use crate::state::stream::Stream;
use crate::state::syncs::Syncs;
use crate::state::topology::Topology;
use crate::state::trust::Trust;
use crate::state::usage::Usages;
use crate::state::versions;
use crate::stored_config;
use crate::tls::Tls;
use crate::watch::{Gate, Watch};

/// The name of the store's property that holds [`Server::secret`].
const SECRET: &str = "scram-decoy-secret";

/// What a server is made of, beside its store and its commands.
pub(crate) struct Parts {
    pub(crate) config: Config,
    /// The port that it will listen on.
    pub(crate) port: u16,
    pub(crate) log: Arc<Log>,
    pub(crate) parameters: Parameters,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) gate: Gate,
    /// Its membership in a replica set of several members.
    pub(crate) member: Option<Member>,
}

/// The state that all commands share.
pub(crate) struct Server {
    /// Its settings.
    pub(crate) config: Config,
    /// The documents.
    pub(crate) store: Arc<Store>,
    /// The commands it knows.
    pub(crate) commands: Commands,
    pub(crate) users: Users,
    /// Makes salts for users that do not exist. Kept in the store, so that their salts stay the
    /// same over restarts as those of users do.
    pub(crate) secret: Zeroizing<Vec<u8>>,
    pub(crate) log: Arc<Log>,
    pub(crate) parameters: Parameters,
    /// The memory of all queries together.
    pub(crate) memory: Arc<Budget>,
    /// The time slices that long operations take turns at.
    pub(crate) processors: Arc<Processors>,
    /// Statistics.
    pub(crate) metrics: Metrics,
    /// How collections are used.
    pub(crate) usages: Usages,
    /// Default read and write concerns.
    pub(crate) concerns: Concerns,
    /// The parameters of the replica set.
    pub(crate) cluster_parameters: ClusterParameters,
    /// Blocks writes while `fsync` holds a lock.
    pub(crate) freeze: Freeze,
    /// Held while a backup is taken: there is one at a time.
    pub(crate) backing_up: Mutex<()>,
    /// The backup that a client receives.
    pub(crate) backup_stream: Mutex<Option<Arc<Stream>>>,
    /// When keys of the data files were rotated last, since the start.
    pub(crate) keys_rotated: Mutex<Option<DateTime>>,
    /// Logical time.
    pub(crate) clock: Arc<Clock>,
    /// The deployment.
    pub(crate) topology: Topology,
    /// The membership in a replica set of several members, if it is not the only one of its set.
    pub(crate) member: Option<Member>,
    /// Delays of writes that wait for a majority.
    pub(crate) flow: Flow,
    /// Failpoints, which tests set.
    pub(crate) failpoints: FailPoints,
    /// Decides which commands are logged and profiled as slow.
    pub(crate) profiler: Profiler,
    /// Running commands.
    pub(crate) operations: Operations,
    /// Threads for commands that may block.
    pub(crate) pool: Pool,
    /// Whether brief commands may run on the threads of connections.
    pub(crate) trust: Trust,
    /// Syncs of the log for writes that ran there.
    pub(crate) syncs: Syncs,
    /// Whether these syncs are short.
    pub(crate) short_syncs: Trust,
    /// Permits for commands in these threads.
    pub(crate) admission: Semaphore,
    /// Permits of each user, taken before the one in `admission`.
    pub(crate) shares: Shares,
    /// Permits for writes, taken before those.
    pub(crate) writers: Semaphore,
    /// Permits for commands without admission.
    pub(crate) reserved: Semaphore,
    /// Permits for computing constants before admission.
    pub(crate) computing: Semaphore,
    /// The encryption of connections, unless it is off.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Who may read the metrics.
    pub(crate) gate: Gate,
    /// What the page about the server shows, if there is one.
    pub(crate) watch: Option<Watch>,
    /// The number of connections, and its limit.
    pub(crate) connections: Arc<Connections>,
    /// The connected clients.
    pub(crate) clients: Clients,
    /// Failed logins per address.
    pub(crate) logins: Logins,
    /// Clients that have not authenticated, where authentication is required: at most
    /// half of the connections.
    pub(crate) guests: Arc<Guests>,
    /// When it started, for measuring.
    pub(crate) started: Instant,
    /// When it started, for showing.
    pub(crate) started_at: DateTime,
    stop: watch::Sender<bool>,
}

/// Time slices that long operations take turns at: two for each processor.
fn slices() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

impl Server {
    /// A server that does not listen yet.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn new(parts: Parts, store: Arc<Store>, commands: Commands) -> Result<Server> {
        let Parts {
            config,
            port,
            log,
            parameters,
            tls,
            gate,
            member,
        } = parts;
        let users = Users::default();
        users.load(&store)?;
        let server = Server {
            users,
            secret: secret(&store)?,
            parameters,
            memory: Budget::new(0),
            processors: Processors::new(slices()),
            metrics: Metrics::new(commands.iter()),
            commands,
            usages: Usages::default(),
            concerns: Concerns::load(&store)?,
            cluster_parameters: ClusterParameters::load(&store)?,
            freeze: Freeze::default(),
            backing_up: Mutex::default(),
            backup_stream: Mutex::default(),
            keys_rotated: Mutex::default(),
            clock: Clock::of(&store)?,
            topology: Topology::new(config.replica_set.clone(), address(&config, port)),
            member,
            flow: Flow::default(),
            tls,
            gate,
            watch: config.endpoint.status_page.then(Watch::default),
            failpoints: FailPoints::new(u64::from(std::process::id())),
            operations: Operations::default(),
            pool: Pool::default(),
            trust: Trust::default(),
            syncs: Syncs::default(),
            short_syncs: Trust::default(),
            admission: Semaphore::new(WORKERS),
            shares: Shares::default(),
            writers: Semaphore::new(WRITERS),
            reserved: Semaphore::new(RESERVED),
            computing: Semaphore::new(COMPUTING),
            clients: Clients::default(),
            logins: Logins::default(),
            guests: Arc::new(Guests::new((config.max_connections / 2).max(1))),
            connections: Arc::new(Connections::new(config.max_connections)),
            started: stdx::time::now(),
            started_at: clock::now(),
            profiler: Profiler::new(config.profile, config.slow_ms, config.sample_rate),
            stop: watch::Sender::new(false),
            log,
            store,
            config,
        };
        server.write_start();
        Ok(server)
    }

    /// Write what each start writes. A member of a set of several members writes it as primary.
    fn write_start(&self) {
        self.tune();
        let primary = self.member.is_none();
        oplog::begin(&self.store, primary);
        self.note_start();
        let config = match &self.member {
            None => self.topology.configuration(),
            // Its driver stores it.
            Some(_) => None,
        };
        if let Some(config) = config {
            self.store_config(&config);
        }
        if primary {
            self.describe_store();
        }
    }

    /// The client's user; `None` if it has not authenticated, or its user was dropped since.
    pub(crate) fn user_of(&self, client: &Client) -> Option<Arc<User>> {
        let identity = client.state.lock().identity.clone()?;
        let user = self.users.get(&identity.database, &identity.name)?;
        (user.id == identity.id).then_some(user)
    }

    /// Advance the clock after a write. With an oplog the entry of the write has advanced it.
    pub(crate) fn tick(self: &Arc<Server>) {
        if self.store.oplog_last().is_none() {
            self.clock.tick();
        }
        self.reserve_time();
    }

    /// The time of the last write that is committed with all before it.
    pub(crate) fn written(&self) -> Timestamp {
        let visible = self.store.oplog_visible();
        visible.unwrap_or_else(|| self.clock.times().1)
    }

    /// Advance the clock to a later time that a client knows.
    pub(crate) fn advance(self: &Arc<Server>, to: Timestamp) {
        self.clock.advance(to);
        self.reserve_time();
    }

    /// Reserve time for the clock if little is left, in a thread that may block. After a failure
    /// the next write tries again.
    fn reserve_time(self: &Arc<Server>) {
        let Some(until) = self.clock.to_reserve() else {
            return;
        };
        let server = Arc::clone(self);
        let taken = self.pool.submit(move || {
            let frozen = 0 < server.freeze.count();
            let done = !frozen && server.store.reserve_time(until).is_ok();
            server.clock.reserved(until, done);
        });
        if !taken {
            self.clock.reserved(until, false);
        }
    }

    /// Write `admin.system.version`. A failure is logged only: a full disk must not keep the server
    /// from starting, for deleting data needs it.
    fn describe_store(&self) {
        if let Err(error) = versions::ensure(&self.store) {
            let attributes = doc! {"error": error.message};
            let message = "Failed to write admin.system.version; mongodump and mongorestore refuse \
                 users and roles until a restart succeeds in it";
            self.log
                .warn_of_start("STORAGE", 9_000_003, message, attributes);
        }
    }

    /// Write `local.system.replset`, which nothing of the server depends on.
    pub(crate) fn store_config(&self, config: &Document) {
        if let Err(error) = stored_config::put(&self.store, config) {
            let attributes = doc! {"error": error.message};
            let message = "Failed to write local.system.replset";
            self.log
                .info("REPL", 9_100_062, "replica-set", message, attributes);
        }
    }

    /// Add this start to the log of starts. A failure must not keep the server from starting.
    fn note_start(&self) {
        if let Err(error) = startup_log::note(&self.store, &self.config, &hostname()) {
            let attributes = doc! {"error": error.message};
            let message = "Failed to write local.startup_log";
            self.log
                .warn_of_start("STORAGE", 9_000_012, message, attributes);
        }
    }

    /// Log each failure to delete documents that have expired.
    pub(crate) fn log_expiry_failures(self: &Arc<Server>) {
        let server = Arc::downgrade(self);
        self.store.on_expiry_failure(Box::new(move |failure| {
            let Some(server) = server.upgrade() else {
                return;
            };
            server.log.write(Event {
                severity: Severity::Warning,
                component: "INDEX",
                id: 5_400_703,
                context: "TTLMonitor",
                message: "Error running TTL job on collection",
                attributes: doc! {
                    "namespace": failure.ns.to_string(),
                    "index": failure.index,
                    "error": failure.error.to_string(),
                },
            });
        }));
    }

    /// Apply parameters to the store, the memory budget and the profiler.
    pub(crate) fn tune(&self) {
        let number = |name| u64::try_from(self.parameters.number(name)).unwrap_or(0);
        let tuning = self.store.tuning();
        tuning.set_cursor_limit(Duration::from_millis(number("cursorTimeoutMillis")));
        let lifetime = number("transactionLifetimeLimitSeconds");
        tuning.set_transaction_lifetime(Duration::from_secs(lifetime));
        tuning.set_ttl_period(Duration::from_secs(number("ttlMonitorSleepSecs")));
        let megabytes = usize::try_from(number("maxIndexBuildMemoryUsageMegabytes"));
        tuning.set_index_memory(megabytes.unwrap_or(0) << 20);
        let bytes = match number("queryMemoryLimitMegabytes") {
            0 => {
                let memory = Memory::read();
                memory.queries(self.config.cache(&memory))
            }
            megabytes => megabytes.saturating_mul(1 << 20),
        };
        self.memory
            .set_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
        let idle = Duration::from_secs(number("periodicNoopIntervalSecs"));
        // Only a primary writes entries.
        let writable = self.is_writable();
        let notes = self.parameters.is_on("writePeriodicNoops") && writable;
        tuning.set_oplog_idle(notes.then_some(idle));
        tuning.set_ttl_on(self.parameters.is_on("ttlMonitorEnabled") && writable);
        tuning.set_no_table_scan(self.parameters.is_on("notablescan"));
        self.profiler.set_verbose(self.parameters.logs_commands());
    }

    /// Reload users and roles if they may have changed. A failure is logged, and the next call
    /// tries again.
    pub(crate) fn refresh_users(&self) {
        if let Err(error) = self.users.refresh(&self.store) {
            self.log.write(Event {
                severity: Severity::Warning,
                component: "ACCESS",
                id: 9_000_003,
                context: "users",
                message: "Users and roles could not be read; those read before stay in use until \
                    the next attempt",
                attributes: doc! {"error": error.message},
            });
        }
    }

    /// Iterations of the digest of a new password.
    pub(crate) fn scram_rounds(&self, mechanism: Mechanism) -> u32 {
        let rounds = self.parameters.number(mechanism.rounds_parameter());
        u32::try_from(rounds).unwrap_or_else(|_| mechanism.iterations())
    }

    /// Reload the TLS files, and log the outcome. Those of clients and those of the metrics are
    /// replaced together.
    ///
    /// # Errors
    /// `InvalidSSLConfiguration`, naming the file; then all certificates before stay in use.
    pub(crate) fn rotate_certificates(&self) -> Result<()> {
        let own = self.tls.as_deref().into_iter();
        let all: Vec<&Tls> = own.chain(self.gate.tls.as_ref()).collect();
        if all.is_empty() {
            let message = "there are no certificates to rotate: net.tls.mode is disabled";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        let (mut read, mut failed) = (Vec::new(), Vec::new());
        for tls in all {
            match tls.read() {
                Ok(fresh) => read.push((tls, fresh)),
                Err(error) => failed.push(error),
            }
        }
        if failed.is_empty() {
            for (tls, fresh) in read {
                tls.replace(fresh);
                let attributes = doc! {
                    "subject": tls.own_subject(),
                    "notAfter": tls.expires(),
                };
                let message = "Successfully rotated X509 certificates";
                self.log
                    .info("NETWORK", 4_913_400, "rotate", message, attributes);
            }
            return Ok(());
        }
        let error = failed.join("; ");
        let message = "Failed to rotate certificates; those before stay in use";
        self.log.write(Event {
            severity: Severity::Warning,
            component: "NETWORK",
            id: 4_913_401,
            context: "rotate",
            message,
            attributes: doc! {"error": error.clone()},
        });
        Err(unusable(format!(
            "{error}; the certificates before stay in use"
        )))
    }

    /// Whether clients may write: no secondary of a replica set lets them.
    pub(crate) fn is_writable(&self) -> bool {
        self.member.as_ref().is_none_or(Member::is_writable)
    }

    /// Read the defaults of concerns again that another member may have changed. A failure is
    /// logged, and the next call tries again.
    pub(crate) fn reload_settings(&self) {
        if let Err(error) = self.concerns.refresh(&self.store) {
            let attributes = doc! {"error": error.message};
            let message = "The default read and write concerns could not be read";
            self.log
                .info("REPL", 9_100_061, "replica-set", message, attributes);
        }
        if let Err(error) = self.cluster_parameters.refresh(&self.store) {
            let attributes = doc! {"error": error.message};
            let message = "The cluster parameters could not be read";
            self.log
                .info("REPL", 9_100_063, "replica-set", message, attributes);
        }
    }

    /// Receives `true` when the server stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Start to stop: idle connections close, waiting greetings are answered.
    pub(crate) fn stop(&self) {
        // Change the topology first: waiting greetings that wake up report it.
        self.topology.changed();
        self.stop.send_replace(true);
    }
}

/// The secret of a store, made when the store is opened for the first time.
fn secret(store: &Store) -> Result<Zeroizing<Vec<u8>>> {
    if let Some(secret) = store.property(SECRET)? {
        return Ok(Zeroizing::new(secret));
    }
    let secret = Zeroizing::new(random(32)?);
    store.set_property(SECRET, &secret)?;
    Ok(secret)
}

fn unusable(message: String) -> Error {
    Error::new(Code::INVALID_SSL_CONFIGURATION, message)
}

/// The address that replies name to clients. A name that only this machine resolves is useless.
fn address(config: &Config, port: u16) -> String {
    let mut names = config.bind_ip.iter().map(String::as_str);
    let host = names.find(|name| !name.starts_with('/'));
    let host = host.unwrap_or("localhost");
    match host {
        "0.0.0.0" | "::" | "*" => format!("{}:{port}", hostname()),
        "localhost" => format!("127.0.0.1:{port}"),
        host => format!("{host}:{port}"),
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

/// The number of connections, and its limit.
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

    /// A place, unless the limit is reached.
    pub(crate) fn open(self: &Arc<Connections>) -> Option<Slot> {
        let before = self.current.fetch_add(1, Ordering::Relaxed);
        let slot = Slot {
            connections: Arc::clone(self),
            id: self.next.fetch_add(1, Ordering::Relaxed),
        };
        // A slot over the limit is dropped here, and with it its count.
        (before < self.limit).then_some(slot)
    }

    /// The number of open connections.
    pub(crate) fn current(&self) -> i32 {
        i32::try_from(self.current.load(Ordering::Relaxed)).unwrap_or(i32::MAX)
    }

    /// The number of connections that may still be opened.
    pub(crate) fn available(&self) -> i32 {
        let free = self
            .limit
            .saturating_sub(self.current.load(Ordering::Relaxed));
        i32::try_from(free).unwrap_or(i32::MAX)
    }

    /// The number of connections accepted since the start.
    pub(crate) fn total(&self) -> i64 {
        self.next.load(Ordering::Relaxed) - 1
    }
}
