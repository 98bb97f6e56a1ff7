//! The first lines of the log: what starts, with which settings and limits, and what to be warned
//! of. The identifiers are MongoDB's where it has the line.

use bson::{Document, doc};
use rustix::process::{Resource, getrlimit};

use crate::config::{Config, Memory, TlsMode};
use crate::kernel;
use crate::long::long;
use crate::server::hostname;
use crate::state::log::Log;
use crate::tls::Tls;
use crate::version::{MONGODB, ROMANESCO};

/// Open files below which a server with many connections and collections runs out of them:
/// MongoDB's recommendation.
const OPEN_FILES: u64 = 64_000;

/// Write the lines that say what starts.
pub(crate) fn describe(config: &Config, log: &Log) {
    let say = |component: &str, id: i32, message: &str, attributes: Document| {
        log.info(component, id, "initandlisten", message, attributes);
    };
    let attributes = doc! {
        "pid": i64::from(std::process::id()),
        "port": i32::from(config.port),
        "dbPath": config.db_path.display().to_string(),
        "engine": &config.engine,
        "version": ROMANESCO,
        "commit": config.commit,
        "host": hostname(),
    };
    say("CONTROL", 4_615_611, "Romanesco starting", attributes);
    let build = doc! {
        "romanescoVersion": ROMANESCO,
        "gitVersion": config.commit,
        "version": MONGODB,
        "targetArch": std::env::consts::ARCH,
    };
    say("CONTROL", 23_403, "Build Info", doc! {"buildInfo": build});
    let system = doc! {"name": std::env::consts::OS, "version": kernel::release()};
    say("CONTROL", 51_765, "Operating System", doc! {"os": system});
    let options = doc! {"options": config.parsed.clone()};
    let message = "Options set by command line and configuration file";
    say("CONTROL", 21_951, message, options);
    say("CONTROL", 9_000_004, "Limits", limits(config));
}

fn limits(config: &Config) -> Document {
    let memory = Memory::read();
    let cache = config.cache(&memory);
    let files = getrlimit(Resource::Nofile);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut limits = doc! {
        "memoryBytes": long(memory.limit),
        "memoryLimitSource": &memory.source,
        "cacheBytes": long(cache),
        "queryMemoryBytes": long(memory.queries(cache)),
        "processors": long(processors),
        "maxConnections": long(config.max_connections),
    };
    if let Some(soft) = files.current {
        limits.insert("openFiles", long(soft));
    }
    limits
}

/// The encryption of connections, unless it is off.
///
/// # Errors
/// Settings that do not fit together, or a file that cannot be used.
pub(crate) fn tls(config: &Config) -> Result<Option<Tls>, String> {
    config.tls.check()?;
    match config.tls.mode {
        TlsMode::Disabled => Ok(None),
        _ => Tls::open(&config.tls).map(Some),
    }
}

/// Log warnings about the settings, the machine and the data.
pub(crate) fn warn(config: &Config, log: &Log) {
    for warning in &config.warnings {
        let attributes = doc! {"setting": warning};
        let message = "A setting of the configuration does nothing";
        log.warn_of_start("CONTROL", 9_000_001, message, attributes);
    }
    if !config.authorization {
        let message = "Access control is not enabled for the database. Read and write access to \
             data and configuration is unrestricted";
        log.warn_of_start("ACCESS", 22_120, message, doc! {});
    }
    let others = vfs::permissions_of_others(&config.db_path);
    if let Ok(others @ 1..) = others {
        let attributes = doc! {
            "path": config.db_path.display().to_string(),
            "permissionsOfOthers": format!("{others:03o}"),
        };
        let message = "The data folder is open to other users of this machine; close it with \
             chmod 700";
        log.warn_of_start("STORAGE", 9_000_003, message, attributes);
    }
    if config.tls.mode != TlsMode::Disabled && config.tls.ca_file.is_none() {
        let message = "No client certificate validation can be performed since no CA file has \
             been provided. Please specify an sslCAFile parameter";
        log.warn_of_start("NETWORK", 9_000_002, message, doc! {});
    }
    if rustix::process::geteuid().is_root() {
        let message = "You are running this process as the root user, which is not recommended";
        log.warn_of_start("CONTROL", 22_138, message, doc! {});
    }
    if let Some(files) = getrlimit(Resource::Nofile).current
        && files < OPEN_FILES
    {
        let attributes = doc! {
            "currentValue": long(files),
            "recommendedMinimum": long(OPEN_FILES),
        };
        let message = "Soft rlimits for open file descriptors too low";
        log.warn_of_start("CONTROL", 22_184, message, attributes);
    }
    let bound = config.parsed.get_document("net").ok();
    let chosen =
        bound.is_some_and(|net| net.contains_key("bindIp") || net.contains_key("bindIpAll"));
    if !chosen {
        let message = "This server is bound to localhost. Remote systems will be unable to \
             connect to this server. Start the server with --bind_ip <address> to specify which \
             IP addresses it should serve responses from, or with --bind_ip_all to bind to all \
             interfaces. If this behavior is desired, start the server with --bind_ip 127.0.0.1 \
             to disable this warning";
        log.warn_of_start("CONTROL", 22_140, message, doc! {});
    }
}
