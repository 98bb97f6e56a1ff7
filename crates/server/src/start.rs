//! The start of a server, in steps: the log, the data directory, the addresses, the storage
//! engine, the store. A step that fails leaves its reason in the log.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bson::{Document, doc};
use docdb::{Options, Store};
use kv::{Engine, EngineOptions, Factory};
use rustix::fs::{Access, access};
use tokio::runtime::{Builder, Runtime};

use crate::cluster::member::Member;
use crate::command::Commands;
use crate::commands;
use crate::config::Config;
use crate::failure::{ADDRESS, CONFIGURATION, DATA, Failure, OTHER};
use crate::limits::{RESERVED, WORKERS};
use crate::long::long;
use crate::net::{Listening, Sockets};
use crate::notify;
use crate::oplog;
use crate::server::{Parts, Server};
use crate::startup;
use crate::state::log::Log;
use crate::state::parameters::Parameters;
use crate::store_id;
use crate::watch::Gate;

/// The time between lines of the log about an engine that is being opened, and how much longer the
/// service manager waits after each.
const PROGRESS: Duration = Duration::from_secs(10);
/// See [`PROGRESS`].
const PATIENCE: Duration = Duration::from_secs(60);

/// What is wrong with a configuration beyond its single settings, each in a sentence: settings that
/// do not fit together, parameters, and files of TLS.
#[must_use]
pub fn problems(config: &Config) -> Vec<String> {
    let mut problems = Parameters::check(config);
    problems.extend(startup::tls(config).err());
    problems.extend(Gate::open(config).err());
    let mut refuse = |wrong: bool, message: &str| {
        if wrong {
            problems.push(message.to_owned());
        }
    };
    let no_log = config.log_path.is_none();
    refuse(
        config.fork && no_log,
        "processManagement.fork needs systemLog.path (--logpath), because standard output is \
         closed",
    );
    refuse(
        config.log_to_file && no_log,
        "systemLog.destination is file, which needs systemLog.path",
    );
    refuse(
        config.log_reopen && !config.log_append,
        "systemLog.logRotate: reopen needs systemLog.logAppend: true",
    );
    problems
}

/// Log a failure before the start, as for a configuration with errors: the only place where the
/// reason stays when the server runs in the background.
pub fn leave_in_log(config: &Config, failure: &Failure) {
    let kept = Config {
        log_append: true,
        ..config.clone()
    };
    if let (Some(_), Ok(log)) = (&config.log_path, Log::open(&kept)) {
        log.failed_start(failure.code, &failure.message);
    }
}

/// A server whose addresses listen, and do not accept connections yet.
pub(crate) struct Listens {
    pub(crate) server: Arc<Server>,
    pub(crate) runtime: Runtime,
    pub(crate) listening: Listening,
}

/// A server that starts: its log is open.
pub struct Start {
    config: Config,
    log: Arc<Log>,
    sockets: Option<Sockets>,
}

impl Start {
    /// Open the log, and write the lines that say what starts.
    ///
    /// # Errors
    /// A log file that cannot be opened.
    pub fn begin(config: Config) -> Result<Start, Failure> {
        let log = Log::open(&config).map_err(|error| {
            let path = config.log_path.clone().unwrap_or_default();
            let message = format!("cannot open the log {}: {error}", path.display());
            Failure::new(OTHER, message)
        })?;
        startup::describe(&config, &log);
        Ok(Start {
            config,
            log: Arc::new(log),
            sockets: None,
        })
    }

    /// Log the reason if a step of the start has failed.
    ///
    /// # Errors
    /// Those of the step.
    pub fn step<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(failure) = &result {
            self.log.failed_start(failure.code, &failure.message);
        }
        result
    }

    /// Check the data directory, and bind the addresses.
    ///
    /// # Errors
    /// A directory that is missing or cannot be written; an address in use.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        self.step(data_directory(&self.config))?;
        let bound = Sockets::bind(&self.config).map_err(|error| Failure::new(ADDRESS, error));
        self.sockets = Some(self.step(bound)?);
        Ok(())
    }

    /// Open the storage engine, and log how long it takes. The data may need recovery.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn open(
        &self,
        factory: &dyn Factory,
        options: &EngineOptions,
    ) -> Result<Arc<dyn Engine>, Failure> {
        let path = &self.config.db_path;
        let attributes = doc! {
            "engine": factory.name(),
            "engineVersion": factory.version().unwrap_or_default(),
            "path": path.display().to_string(),
            "cacheBytes": long(options.cache.bytes()),
        };
        self.note("STORAGE", 22_315, "Opening the storage engine", attributes);
        let watched = Watched::begin(Arc::clone(&self.log));
        let opened = factory.open(path, options);
        let progress = watched.end();
        let opened = opened.map_err(|error| {
            let message = format!("cannot open {}: {error}", path.display());
            Failure::new(DATA, message)
        });
        let engine = self.step(opened)?;
        self.note("STORAGE", 4_795_906, "Storage engine opened", progress);
        if let Some(found) = engine.encryption() {
            let attributes = doc! {
                "cipher": found.cipher,
                "masterKey": found.master_key,
                "dataKey": i64::from(found.data_key),
            };
            self.note("STORAGE", 9_000_007, "Data files are encrypted", attributes);
        }
        if !factory.capabilities().persistent {
            let message = "This storage engine keeps no data when the process ends";
            self.log
                .warn_of_start("STORAGE", 9_000_005, message, doc! {});
        }
        Ok(Arc::from(engine))
    }

    /// Open the store in an engine, and listen.
    ///
    /// # Errors
    /// An address that another process has taken meanwhile; a parameter or a file that is not
    /// right; those of the storage.
    pub(crate) fn listen(self, engine: Arc<dyn Engine>) -> Result<Listens, Failure> {
        let log = Arc::clone(&self.log);
        self.listening(engine)
            .inspect_err(|failure| log.failed_start(failure.code, &failure.message))
    }

    fn listening(self, engine: Arc<dyn Engine>) -> Result<Listens, Failure> {
        let Start {
            config,
            log,
            sockets,
        } = self;
        let runtime = runtime()?;
        let unbound = |error| Failure::new(ADDRESS, error);
        let sockets = match sockets {
            Some(sockets) => sockets,
            None => Sockets::bind(&config).map_err(unbound)?,
        };
        let port = sockets.port().unwrap_or(config.port);
        let persistent = engine.capabilities().persistent;
        let options = oplog::options(&config, persistent, store_options(&config));
        let data = |error: query::Error| Failure::new(DATA, error.message);
        clear_temporary(&options.temp_dir).map_err(|error| {
            let place = options.temp_dir.display();
            Failure::new(DATA, format!("cannot empty {place}: {error}"))
        })?;
        // S1.
        let mark = store_id::restored(&config.db_path).map_err(data)?;
        let options = Options {
            foreign_oplog: mark.is_some(),
            ..options
        };
        let wanted = Member::is_wanted(&config);
        let checked = Member::check(&config, persistent);
        checked.map_err(|error| Failure::new(CONFIGURATION, error))?;
        let store = Store::open(engine, options).map_err(data)?;
        store_id::settle(&store, mark.as_ref(), &config.db_path, &log).map_err(data)?;
        let tls = startup::tls(&config).map_err(|error| Failure::new(CONFIGURATION, error))?;
        let tls = tls.map(Arc::new);
        let member = wanted.then(|| Member::open(&config, &store, tls.as_ref()));
        let member = member.transpose().map_err(data)?;
        let commands = Commands::of(commands::rows().map(|row| &row.command));
        let parameters =
            Parameters::new(&config).map_err(|error| Failure::new(CONFIGURATION, error.message))?;
        let gate = Gate::open(&config).map_err(|error| Failure::new(CONFIGURATION, error))?;
        startup::warn(&config, &log);
        let parts = Parts {
            config,
            port,
            log,
            parameters,
            tls,
            gate,
            member,
        };
        let server = Server::new(parts, store, commands).map_err(data)?;
        let guard = runtime.enter();
        let listening = sockets.listen().map_err(unbound)?;
        drop(guard);
        Ok(Listens {
            server: Arc::new(server),
            runtime,
            listening,
        })
    }

    fn note(&self, component: &str, id: i32, message: &str, attributes: Document) {
        self.log
            .info(component, id, "initandlisten", message, attributes);
    }
}

/// An engine that is being opened: a thread logs every [`PROGRESS`] that it still is.
struct Watched {
    began: Instant,
    read: i64,
    end: Sender<()>,
}

impl Watched {
    fn begin(log: Arc<Log>) -> Watched {
        let (end, ended) = channel();
        let (began, read) = (stdx::time::now(), bytes_read());
        let body = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PROGRESS) {
                let message = "Still opening the storage engine; it recovers what its log holds";
                let attributes = since(began, read);
                log.info("STORAGE", 9_000_006, "initandlisten", message, attributes);
                notify::still_starting(PATIENCE);
            }
        };
        // Without the thread only the lines are missing.
        let _: io::Result<_> = stdx::sync::spawn("opening", body);
        Watched { began, read, end }
    }

    /// End the thread. Returns how long it took, and the bytes that were read.
    fn end(self) -> Document {
        drop(self.end);
        since(self.began, self.read)
    }
}

fn since(began: Instant, read: i64) -> Document {
    let millis = began.elapsed().as_millis();
    doc! {
        "durationMillis": long(millis),
        "bytesRead": bytes_read().saturating_sub(read),
    }
}

/// Bytes that this process has read, by the kernel's count; without those of memory maps.
fn bytes_read() -> i64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("rchar:"));
    let count = line.and_then(|count| count.trim().parse().ok());
    count.unwrap_or(0)
}

/// Check the data directory, or create it where the settings say so.
fn data_directory(config: &Config) -> Result<(), Failure> {
    let path = &config.db_path;
    let place = path.display();
    let refuse = |message: String| Err(Failure::new(DATA, message));
    if config.create_db_path
        && let Err(error) = fs::create_dir_all(path)
    {
        return refuse(format!("cannot create the data directory {place}: {error}"));
    }
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => refuse(format!("the data path {place} is no directory")),
        Ok(_) => match access(path, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(error) => refuse(format!(
                "the data directory {place} cannot be written: {error}; change its owner or run \
                 as its owner"
            )),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => refuse(format!(
            "the data directory {place} is missing; create it, name another by --dbpath \
             (storage.dbPath), or add --createDbPath"
        )),
        Err(error) => refuse(format!("the data directory {place}: {error}")),
    }
}

/// The threads of the sockets.
fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_multi_thread()
        .worker_threads(threads())
        .max_blocking_threads(WORKERS + RESERVED)
        .thread_name("net")
        .enable_all()
        .build();
    built.map_err(|error| Failure::new(OTHER, error.to_string()))
}

/// Number of threads for the sockets: they only parse and copy.
fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(2, usize::from)
        .clamp(2, 16)
}

/// Remove files that a process left in the folder of temporary files when it ended. Those have no
/// names where the file system supports that; this is for where it does not.
fn clear_temporary(directory: &Path) -> io::Result<()> {
    let is_folder = fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir());
    if !is_folder {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn store_options(config: &Config) -> Options {
    Options {
        temp_dir: config.db_path.join("_tmp"),
        replica_set: config.replica_set.clone(),
        rollback_dir: Some(config.db_path.join("rollback")),
        // A primary that was killed has lost its term: completing what the kill has interrupted
        // would write entries of that term.
        follower: Member::is_wanted(config),
        ..Options::default()
    }
}
