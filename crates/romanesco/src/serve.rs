//! `romanesco serve`: options with the names `mongod` gives them, over the settings of a file.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgAction;
use kv::{Engine, EngineOptions};
use server::{Config, Running};
use stdx::ByteSize;

/// The exit code when the server cannot start, as that of `mongod`.
pub(crate) const FAILED: u8 = 48;

/// Every option is a setting of the file; what is given here wins.
#[derive(clap::Args)]
#[command(
    rename_all = "verbatim",
    after_help = "Exit code: 0 after an orderly end, 48 when the server cannot start.\n\nExample: \
romanesco serve --dbpath /var/lib/romanesco --storageEngine betree --port 27017"
)]
pub(crate) struct Args {
    /// Read settings from a YAML file, as mongod's
    #[arg(short = 'f', long)]
    config: Option<PathBuf>,
    /// Keep the data in this folder (default /data/db)
    #[arg(long)]
    dbpath: Option<String>,
    /// Store with this engine: betree, lmdb, rocksdb, wiredtiger (default betree)
    #[arg(long = "storageEngine")]
    storage_engine: Option<String>,
    /// Give the engine so much memory, in GB (default: the engine's)
    #[arg(long = "cacheSizeGB", alias = "wiredTigerCacheSizeGB")]
    cache_size_gb: Option<String>,
    /// Set an option of the engine
    #[arg(long = "engineOption", value_name = "NAME=VALUE")]
    engine_option: Vec<String>,
    /// Listen on this port (default 27017)
    #[arg(long)]
    port: Option<String>,
    /// Listen on these addresses, with commas between (default 127.0.0.1)
    #[arg(long)]
    bind_ip: Option<String>,
    /// Tell figures to Prometheus on this port of 127.0.0.1, at /metrics (default: not at all)
    #[arg(long = "prometheusPort")]
    prometheus_port: Option<String>,
    /// Listen on all addresses
    #[arg(long, action = ArgAction::SetTrue)]
    bind_ip_all: bool,
    /// Take at most so many connections
    #[arg(long = "maxConns")]
    max_conns: Option<String>,
    /// Compress with these, with commas between (default snappy,zstd,zlib)
    #[arg(long = "networkMessageCompressors")]
    compressors: Option<String>,
    /// Be the one member of a replica set of this name (default rs0)
    #[arg(long = "replSet", conflicts_with = "standalone")]
    repl_set: Option<String>,
    /// Be no member of a replica set: no transactions, no retryable writes
    #[arg(long, action = ArgAction::SetTrue)]
    standalone: bool,
    /// Let in only users, and let them do only what their roles allow
    #[arg(long, action = ArgAction::SetTrue)]
    auth: bool,
    /// Lose at most so many milliseconds of writes without j:true when the machine fails
    #[arg(long = "journalCommitInterval")]
    journal_commit_interval: Option<String>,
    /// Log commands that take longer, in milliseconds
    #[arg(long)]
    slowms: Option<String>,
    /// Log into this file (default: standard output)
    #[arg(long)]
    logpath: Option<String>,
    /// Append to the log
    #[arg(long, action = ArgAction::SetTrue)]
    logappend: bool,
    /// Write no log to standard output
    #[arg(long, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Write the number of the process into this file
    #[arg(long)]
    pidfilepath: Option<String>,
    /// Set a parameter
    #[arg(long = "setParameter", value_name = "NAME=VALUE")]
    set_parameter: Vec<String>,
}

impl Args {
    fn config(&self) -> Result<Config, String> {
        let mut config = Config {
            arguments: std::env::args().collect(),
            ..Config::default()
        };
        if let Some(path) = &self.config {
            config.read(path)?;
        }
        let given = [
            ("storage.dbPath", &self.dbpath),
            ("storage.engine", &self.storage_engine),
            ("storage.cacheSizeGB", &self.cache_size_gb),
            (
                "storage.journal.commitIntervalMs",
                &self.journal_commit_interval,
            ),
            ("net.port", &self.port),
            ("net.prometheus.port", &self.prometheus_port),
            ("net.bindIp", &self.bind_ip),
            ("net.maxIncomingConnections", &self.max_conns),
            ("net.compression.compressors", &self.compressors),
            ("replication.replSetName", &self.repl_set),
            ("operationProfiling.slowOpThresholdMs", &self.slowms),
            ("systemLog.path", &self.logpath),
            ("processManagement.pidFilePath", &self.pidfilepath),
        ];
        for (name, value) in given {
            if let Some(value) = value {
                config.set(name, value)?;
            }
        }
        let switches = [
            ("net.bindIpAll", self.bind_ip_all),
            ("replication.standalone", self.standalone),
            ("systemLog.logAppend", self.logappend),
            ("systemLog.quiet", self.quiet),
        ];
        for (name, on) in switches {
            if on {
                config.set(name, "true")?;
            }
        }
        if self.auth {
            config.set("security.authorization", "enabled")?;
        }
        for (prefix, pairs) in [
            ("setParameter", &self.set_parameter),
            ("storage.engineOptions", &self.engine_option),
        ] {
            for pair in pairs {
                let (name, value) = pair
                    .split_once('=')
                    .ok_or_else(|| format!("{pair:?} is no NAME=VALUE"))?;
                config.set(&format!("{prefix}.{name}"), value)?;
            }
        }
        Ok(config)
    }
}

fn open(config: &Config) -> Result<Arc<dyn Engine>, String> {
    let factory = lab::target::factory(&config.engine)?;
    let mut options = EngineOptions {
        interval: Duration::from_millis(config.commit_interval_ms),
        checkpoint: Duration::from_secs(config.checkpoint_seconds),
        own: config.engine_options.iter().cloned().collect(),
        ..EngineOptions::default()
    };
    if let Some(bytes) = config.cache_bytes {
        options.cache = ByteSize(bytes);
    }
    factory.check(&options).map_err(|error| error.to_string())?;
    let path = &config.db_path;
    let opened = factory.open(path, &options);
    let engine = opened.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    Ok(Arc::from(engine))
}

/// Serve until told to end.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let config = args.config()?;
    let engine = open(&config)?;
    let pid_file = config.pid_file.clone();
    if let Some(path) = &pid_file {
        fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let running = Running::start(config, engine).map_err(|error| error.message)?;
    running.wait();
    running.stop();
    if let Some(path) = &pid_file {
        // The process ends; a file that is gone already is as it should be.
        let _: std::io::Result<()> = fs::remove_file(path);
    }
    Ok(())
}
