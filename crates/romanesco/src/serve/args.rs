//! The command line of `romanesco serve`: options with the names `mongod` gives them, each a
//! setting of the configuration file.

use std::path::PathBuf;

use clap::ArgAction;
use server::Config;

/// Each option sets a setting of the configuration file and overrides it.
#[derive(clap::Args)]
#[command(
    rename_all = "verbatim",
    after_help = "Exit codes: 0 clean shutdown, 2 invalid options, 48 the server cannot \
start.\n\nExample: romanesco serve --dbpath /var/lib/romanesco --storageEngine betree --port 27017"
)]
pub(crate) struct Args {
    /// Read settings from this YAML file (mongod's format)
    #[arg(short = 'f', long)]
    config: Option<PathBuf>,
    /// Data directory [default: /data/db]
    #[arg(long)]
    dbpath: Option<String>,
    /// Storage engine: betree, lmdb, rocksdb, wiredtiger, or memory (not persistent)
    /// [default: betree]
    #[arg(long = "storageEngine")]
    storage_engine: Option<String>,
    /// Memory for the storage engine's cache and buffers, in GB [default: chosen by the engine]
    #[arg(long = "cacheSizeGB", alias = "wiredTigerCacheSizeGB")]
    cache_size_gb: Option<String>,
    /// Set a storage engine option; can be repeated
    #[arg(long = "engineOption", value_name = "NAME=VALUE")]
    engine_option: Vec<String>,
    /// TCP port to listen on [default: 27017]
    #[arg(long)]
    port: Option<String>,
    /// Addresses to listen on, separated by commas [default: 127.0.0.1]
    #[arg(long)]
    bind_ip: Option<String>,
    /// Serve Prometheus metrics at http://127.0.0.1:PORT/metrics [default: off]
    #[arg(long = "prometheusPort")]
    prometheus_port: Option<String>,
    /// Listen on all addresses
    #[arg(long, action = ArgAction::SetTrue)]
    bind_ip_all: bool,
    /// Maximum number of client connections [default: 65536]
    #[arg(long = "maxConns")]
    max_conns: Option<String>,
    /// Network compressors, in order of preference, separated by commas
    /// [default: snappy,zstd,zlib]
    #[arg(long = "networkMessageCompressors")]
    compressors: Option<String>,
    /// Name of the replica set, whose only member this server is [default: rs0]
    #[arg(long = "replSet", conflicts_with = "standalone")]
    repl_set: Option<String>,
    /// Run without a replica set: no transactions and no retryable writes
    #[arg(long, action = ArgAction::SetTrue)]
    standalone: bool,
    #[command(flatten)]
    tls: TlsArgs,
    /// Require authentication and enforce the roles of users
    #[arg(long, action = ArgAction::SetTrue)]
    auth: bool,
    /// Milliseconds between syncs of the log; a machine failure loses at most this much of the
    /// writes made without j:true [default: 100]
    #[arg(long = "journalCommitInterval")]
    journal_commit_interval: Option<String>,
    /// Log commands slower than this, in milliseconds [default: 100]
    #[arg(long)]
    slowms: Option<String>,
    /// Log file [default: standard output]
    #[arg(long)]
    logpath: Option<String>,
    /// Append to an existing log file instead of replacing it
    #[arg(long, action = ArgAction::SetTrue)]
    logappend: bool,
    /// How to rotate the log: rename or reopen [default: rename]
    #[arg(long = "logRotate")]
    log_rotate: Option<String>,
    /// Seconds between checkpoints of the storage engine [default: 60]
    #[arg(long)]
    syncdelay: Option<String>,
    /// Accepted for compatibility with mongod and ignored
    #[arg(long, action = ArgAction::SetTrue)]
    directoryperdb: bool,
    /// Run in the background; requires --logpath
    #[arg(long, action = ArgAction::SetTrue)]
    fork: bool,
    /// Do not log to standard output
    #[arg(long, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Write the process ID to this file
    #[arg(long)]
    pidfilepath: Option<String>,
    /// Set a server parameter; can be repeated
    #[arg(long = "setParameter", value_name = "NAME=VALUE")]
    set_parameter: Vec<String>,
    /// Start after a line on standard input, and end when the parent process ends
    #[arg(long, hide = true, action = ArgAction::SetTrue)]
    pub(super) supervised: bool,
}

/// Encrypted connections.
#[derive(clap::Args)]
#[command(rename_all = "verbatim")]
struct TlsArgs {
    /// TLS mode: disabled, allowTLS, preferTLS or requireTLS [default: disabled]
    #[arg(long = "tlsMode")]
    mode: Option<String>,
    /// PEM file with the server's certificate and private key
    #[arg(long = "tlsCertificateKeyFile", value_name = "FILE")]
    certificate_key_file: Option<String>,
    /// The password of the key; not supported, keys must have none
    #[arg(
        long = "tlsCertificateKeyFilePassword",
        value_name = "PASSWORD",
        hide = true
    )]
    certificate_key_file_password: Option<String>,
    /// PEM file with the certificate authorities that client certificates are checked against
    #[arg(long = "tlsCAFile", value_name = "FILE")]
    ca_file: Option<String>,
    /// PEM file with the revocation list for client certificates
    #[arg(long = "tlsCRLFile", value_name = "FILE")]
    crl_file: Option<String>,
    /// TLS versions to disable, separated by commas: TLS1_2, TLS1_3
    #[arg(long = "tlsDisabledProtocols", value_name = "NAMES")]
    disabled_protocols: Option<String>,
    /// Accept clients without a certificate although --tlsCAFile is given
    #[arg(long = "tlsAllowConnectionsWithoutCertificates", action = ArgAction::SetTrue)]
    allow_without_certificates: bool,
    /// Accept clients with an invalid certificate, which then does not authenticate them
    #[arg(long = "tlsAllowInvalidCertificates", action = ArgAction::SetTrue)]
    allow_invalid_certificates: bool,
}

impl TlsArgs {
    fn values(&self) -> [(&'static str, &Option<String>); 6] {
        [
            ("net.tls.mode", &self.mode),
            ("net.tls.certificateKeyFile", &self.certificate_key_file),
            (
                "net.tls.certificateKeyFilePassword",
                &self.certificate_key_file_password,
            ),
            ("net.tls.CAFile", &self.ca_file),
            ("net.tls.CRLFile", &self.crl_file),
            ("net.tls.disabledProtocols", &self.disabled_protocols),
        ]
    }

    fn switches(&self) -> [(&'static str, bool); 2] {
        [
            (
                "net.tls.allowConnectionsWithoutCertificates",
                self.allow_without_certificates,
            ),
            (
                "net.tls.allowInvalidCertificates",
                self.allow_invalid_certificates,
            ),
        ]
    }
}

impl Args {
    /// The settings of the file and of the command line.
    ///
    /// # Errors
    /// The invalid setting.
    pub(super) fn config(&self) -> Result<Config, String> {
        let mut config = Config {
            arguments: std::env::args().collect(),
            ..Config::default()
        };
        if let Some(path) = &self.config {
            config.read(path)?;
        }
        let authorization = self.auth.then(|| "enabled".to_owned());
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
            ("security.authorization", &authorization),
            ("systemLog.path", &self.logpath),
            ("systemLog.logRotate", &self.log_rotate),
            ("storage.syncPeriodSecs", &self.syncdelay),
            ("processManagement.pidFilePath", &self.pidfilepath),
        ];
        for (name, value) in given.into_iter().chain(self.tls.values()) {
            if let Some(value) = value {
                config.set(name, value)?;
            }
        }
        let switches = [
            ("net.bindIpAll", self.bind_ip_all),
            ("replication.standalone", self.standalone),
            ("systemLog.logAppend", self.logappend),
            ("systemLog.quiet", self.quiet),
            ("storage.directoryPerDB", self.directoryperdb),
            ("processManagement.fork", self.fork),
        ];
        for (name, on) in switches.into_iter().chain(self.tls.switches()) {
            if on {
                config.set(name, "true")?;
            }
        }
        self.set_pairs(&mut config)?;
        Ok(config)
    }

    fn set_pairs(&self, config: &mut Config) -> Result<(), String> {
        for (prefix, pairs) in [
            ("setParameter", &self.set_parameter),
            ("storage.engineOptions", &self.engine_option),
        ] {
            for pair in pairs {
                let (name, value) = pair
                    .split_once('=')
                    .ok_or_else(|| format!("{pair:?} is not of the form NAME=VALUE"))?;
                config.set(&format!("{prefix}.{name}"), value)?;
            }
        }
        Ok(())
    }
}
