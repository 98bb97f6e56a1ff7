//! The settings of a server as values, with their defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use wire::Compressor;

use super::endpoint::EndpointConfig;
use super::tls::TlsConfig;
use crate::limits;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// `storage.dbPath`: where the data lies.
    pub db_path: PathBuf,
    /// `storage.createDbPath` (default false): create `db_path` if it is missing.
    pub create_db_path: bool,
    /// `storage.engine`: the name of the storage engine (default `betree`).
    pub engine: String,
    /// `storage.cacheSizeGB`: memory of the engine in bytes, or the default of
    /// [`Memory`](super::Memory).
    pub cache_bytes: Option<u64>,
    /// `storage.betree.*` and similar: settings of engines, in order.
    pub engine_settings: Vec<EngineSetting>,
    /// `storage.engineOptions`: options of the engine in use, by name. They win over the section
    /// of the engine.
    pub engine_options: Vec<(String, String)>,
    /// `storage.journal.commitIntervalMs` (default 100): the maximum time span of writes without
    /// `j: true` that a machine failure can lose.
    pub commit_interval_ms: u64,
    /// `storage.syncPeriodSecs` (default 60): the time between checkpoints of the engine.
    pub checkpoint_seconds: u64,
    /// `backup.rootDir`: directory below which clients may have backups written (default: anywhere
    /// outside of `db_path`).
    pub backup_root: Option<PathBuf>,
    /// `net.port` (default 27017); 0 takes a free one.
    pub port: u16,
    /// `net.prometheus.port`: port of the Prometheus endpoint; 0 takes a free one (default: no
    /// endpoint).
    pub prometheus_port: Option<u16>,
    /// `net.prometheus.bindIp` (default 127.0.0.1): addresses and host names, separated by commas.
    pub prometheus_ip: String,
    /// The rest of `net.prometheus`.
    pub endpoint: EndpointConfig,
    /// `net.bindIp` (default localhost): addresses, host names, `*` for all addresses, and paths
    /// of Unix sockets.
    pub bind_ip: Vec<String>,
    /// `net.ipv6` (default false): `localhost` and `*` include the addresses of IPv6.
    pub ipv6: bool,
    /// `net.unixDomainSocket`.
    pub unix_socket: UnixSocket,
    /// `net.maxIncomingConnections`.
    pub max_connections: usize,
    /// Maximum time that a client may pause within a message (default [`limits::STALL`]). Not a
    /// setting of the file; tests use shorter limits.
    pub stall: Duration,
    /// `net.compression.compressors` (default snappy, zstd, zlib).
    pub compressors: Vec<Compressor>,
    /// `net.tls`: encrypted connections.
    pub tls: TlsConfig,
    /// `replication.replSetName` (default `rs0`), or `None` for a standalone server, which has no
    /// transactions and no retryable writes.
    pub replica_set: Option<String>,
    /// `replication.initiate` (default `self`): who begins the replica set.
    pub initiate: Initiate,
    /// `security.keyFile`: the key by which the members of a replica set recognize each other.
    pub key_file: Option<PathBuf>,
    /// `security.clusterAuthMode` (default `keyFile`): how members authenticate to each other.
    pub cluster_auth: ClusterAuth,
    /// `replication.oplogSizeMB` in bytes: how much of the oplog is kept from the first start on.
    /// Default: a share of the space that is free then. There is no oplog if it is 0, nor on a
    /// standalone server.
    pub oplog_bytes: Option<u64>,
    /// `storage.oplogMinRetentionHours` (default 0): younger entries are kept beyond that size.
    pub oplog_age: Duration,
    /// `security.authorization` (default disabled): clients must be users and have their roles.
    pub authorization: bool,
    /// Encryption at rest.
    pub encryption: AtRest,
    /// `operationProfiling.slowOpThresholdMs` (default 100): commands that take longer are logged.
    pub slow_ms: i32,
    /// `operationProfiling.slowOpSampleRate` (default 1): the share of slow commands that is
    /// logged.
    pub sample_rate: f64,
    /// `operationProfiling.mode`: 0 off, 1 slow commands, 2 all.
    pub profile: i32,
    /// `systemLog.destination` is `file`.
    pub log_to_file: bool,
    /// `systemLog.path`, or `None` for standard output.
    pub log_path: Option<PathBuf>,
    /// `systemLog.logAppend` (default false): append to an old log instead of renaming it.
    pub log_append: bool,
    /// `systemLog.logRotate`: reopen the log at a rotation, for tools that have renamed it
    /// (default: rename it and begin another).
    pub log_reopen: bool,
    /// `systemLog.verbosity` (default 0): from 1 on every command is logged.
    pub verbosity: i32,
    /// `systemLog.component`: the verbosity of components that have their own.
    pub components: BTreeMap<&'static str, i32>,
    /// `systemLog.quiet`: log to nowhere when there is no path.
    pub quiet: bool,
    /// `processManagement.fork`: continue in the background once it listens.
    pub fork: bool,
    /// Settings without effect, each described in a sentence, which the log lists at the start.
    pub warnings: Vec<String>,
    /// `processManagement.pidFilePath`.
    pub pid_file: Option<PathBuf>,
    /// `setParameter`.
    pub parameters: Vec<(String, String)>,
    /// The arguments of the process, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// The configuration as a document, for `getCmdLineOpts`.
    pub parsed: bson::Document,
    /// The commit that the program was built from, for the log.
    pub commit: &'static str,
}

/// `replication.initiate`: who begins the replica set of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Initiate {
    /// The server itself: it is the only member.
    #[default]
    Itself,
    /// The command `replSetInitiate`, here or at another member, with several members.
    Command,
}

/// `security.clusterAuthMode`: how members authenticate to each other. The two in the middle are
/// for the change from one to the other, a member at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClusterAuth {
    /// By the key in `security.keyFile`.
    #[default]
    KeyFile,
    /// By the key; certificates are accepted as well.
    SendKeyFile,
    /// By the certificate; the key is accepted as well.
    SendX509,
    /// By the certificate of TLS.
    X509,
}

impl ClusterAuth {
    pub(super) fn of(name: &str) -> Option<ClusterAuth> {
        match name {
            "keyFile" => Some(ClusterAuth::KeyFile),
            "sendKeyFile" => Some(ClusterAuth::SendKeyFile),
            "sendX509" => Some(ClusterAuth::SendX509),
            "x509" => Some(ClusterAuth::X509),
            _ => None,
        }
    }

    /// Whether this server shows its certificate instead of the key.
    #[must_use]
    pub fn shows_certificate(self) -> bool {
        matches!(self, ClusterAuth::SendX509 | ClusterAuth::X509)
    }

    /// Whether other members may authenticate by a certificate.
    #[must_use]
    pub fn takes_certificates(self) -> bool {
        self != ClusterAuth::KeyFile
    }

    /// Whether other members may authenticate by the key.
    #[must_use]
    pub fn takes_keys(self) -> bool {
        self != ClusterAuth::X509
    }
}

/// `security.enableEncryption` and `security.encryptionKeyFile`: encryption of the data files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AtRest {
    /// `enableEncryption` (default false).
    pub enabled: bool,
    /// `encryptionKeyFile`: the file of the master key.
    pub key_file: Option<PathBuf>,
}

/// `net.unixDomainSocket`: a socket for clients on this machine, named after the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// `enabled` (default false).
    pub enabled: bool,
    /// `pathPrefix` (default `/tmp`): the directory of the socket.
    pub prefix: PathBuf,
    /// `filePermissions` (default 0700).
    pub permissions: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            db_path: PathBuf::from("/data/db"),
            create_db_path: false,
            engine: "betree".to_owned(),
            cache_bytes: None,
            engine_settings: Vec::new(),
            engine_options: Vec::new(),
            commit_interval_ms: 100,
            checkpoint_seconds: 60,
            backup_root: None,
            port: 27_017,
            prometheus_port: None,
            prometheus_ip: "127.0.0.1".to_owned(),
            endpoint: EndpointConfig::default(),
            bind_ip: vec!["localhost".to_owned()],
            ipv6: false,
            unix_socket: UnixSocket {
                enabled: false,
                prefix: PathBuf::from("/tmp"),
                permissions: 0o700,
            },
            max_connections: limits::CONNECTIONS,
            stall: limits::STALL,
            compressors: Compressor::ALL.to_vec(),
            tls: TlsConfig::default(),
            replica_set: Some("rs0".to_owned()),
            initiate: Initiate::Itself,
            key_file: None,
            cluster_auth: ClusterAuth::KeyFile,
            oplog_bytes: None,
            oplog_age: Duration::ZERO,
            authorization: false,
            encryption: AtRest::default(),
            slow_ms: 100,
            sample_rate: 1.0,
            profile: 0,
            log_to_file: false,
            log_path: None,
            log_append: false,
            log_reopen: false,
            verbosity: 0,
            components: BTreeMap::new(),
            quiet: false,
            fork: false,
            warnings: Vec::new(),
            pid_file: None,
            parameters: Vec::new(),
            arguments: Vec::new(),
            parsed: bson::Document::new(),
            commit: "unknown",
        }
    }
}

/// A setting of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSetting {
    /// Its whole name in the file.
    pub setting: String,
    /// The engine that the setting belongs to.
    pub engine: &'static str,
    /// The name of the option.
    pub name: String,
    /// The value.
    pub value: String,
}
