//! How a server is set up. Names and defaults are those of MongoDB's configuration file.

mod file;
mod settings;

use std::path::PathBuf;

use wire::Compressor;

use crate::limits;

/// What a server is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// `storage.dbPath`: where the data lies.
    pub db_path: PathBuf,
    /// `storage.engine`: the name of the storage engine (default `betree`).
    pub engine: String,
    /// `storage.cacheSizeGB`: memory of the engine in bytes, or the engine's own default.
    pub cache_bytes: Option<u64>,
    /// Options of the engine itself, by name.
    pub engine_options: Vec<(String, String)>,
    /// `storage.journal.commitIntervalMs` (default 100): the most a write without `j: true` may
    /// lose when the machine fails.
    pub commit_interval_ms: u64,
    /// `storage.syncPeriodSecs` (default 60): the time between checkpoints of the engine.
    pub checkpoint_seconds: u64,
    /// `net.port` (default 27017); 0 takes a free one.
    pub port: u16,
    /// `net.prometheus.port`: where figures are served to Prometheus; 0 for a free port (default:
    /// not at all).
    pub prometheus_port: Option<u16>,
    /// `net.prometheus.bindIp` (default 127.0.0.1).
    pub prometheus_ip: String,
    /// `net.bindIp` (default 127.0.0.1).
    pub bind_ip: Vec<String>,
    /// `net.maxIncomingConnections`.
    pub max_connections: usize,
    /// `net.compression.compressors` (default snappy, zstd, zlib).
    pub compressors: Vec<Compressor>,
    /// `replication.replSetName` (default `rs0`), or `None` for a standalone server, which has no
    /// transactions and no retryable writes.
    pub replica_set: Option<String>,
    /// `security.authorization` (default disabled): clients must be users and have their roles.
    pub authorization: bool,
    /// `operationProfiling.slowOpThresholdMs` (default 100): commands that take longer are logged.
    pub slow_ms: i32,
    /// `operationProfiling.mode`: 0 off, 1 slow commands, 2 all.
    pub profile: i32,
    /// `systemLog.path`, or `None` for standard output.
    pub log_path: Option<PathBuf>,
    /// `systemLog.logAppend` (default false).
    pub log_append: bool,
    /// Log to nowhere when there is no path. For tests.
    pub quiet: bool,
    /// `processManagement.pidFilePath`.
    pub pid_file: Option<PathBuf>,
    /// `setParameter`.
    pub parameters: Vec<(String, String)>,
    /// The arguments of the process, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// The configuration as a document, for `getCmdLineOpts`.
    pub parsed: bson::Document,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            db_path: PathBuf::from("/data/db"),
            engine: "betree".to_owned(),
            cache_bytes: None,
            engine_options: Vec::new(),
            commit_interval_ms: 100,
            checkpoint_seconds: 60,
            port: 27_017,
            prometheus_port: None,
            prometheus_ip: "127.0.0.1".to_owned(),
            bind_ip: vec!["127.0.0.1".to_owned()],
            max_connections: limits::CONNECTIONS,
            compressors: Compressor::ALL.to_vec(),
            replica_set: Some("rs0".to_owned()),
            authorization: false,
            slow_ms: 100,
            profile: 0,
            log_path: None,
            log_append: false,
            quiet: false,
            pid_file: None,
            parameters: Vec::new(),
            arguments: Vec::new(),
            parsed: bson::Document::new(),
        }
    }
}
