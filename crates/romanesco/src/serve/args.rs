//! The command line of `romanesco serve`: options with the names `mongod` gives them, each a
//! setting of the configuration file.

use std::path::PathBuf;

use clap::ArgAction;
use server::Config;

/// Every option is a setting of the file; what is given here wins.
#[derive(clap::Args)]
#[command(
    rename_all = "verbatim",
    after_help = "Exit code: 0 after an orderly end, 2 wrong use, 48 when the server cannot \
start.\n\nExample: romanesco serve --dbpath /var/lib/romanesco --storageEngine betree --port 27017"
)]
pub(crate) struct Args {
    /// Read settings from a YAML file, as mongod's
    #[arg(short = 'f', long)]
    config: Option<PathBuf>,
    /// Keep the data in this folder (default /data/db)
    #[arg(long)]
    dbpath: Option<String>,
    /// Store with this engine: betree, lmdb, rocksdb, wiredtiger, or memory, which keeps nothing
    /// (default betree)
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
    #[command(flatten)]
    tls: TlsArgs,
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
    /// At a rotation rename the log or reopen it: rename (default) or reopen
    #[arg(long = "logRotate")]
    log_rotate: Option<String>,
    /// Write a checkpoint of the engine at least so often, in seconds (default 60)
    #[arg(long)]
    syncdelay: Option<String>,
    /// Taken as mongod takes it; an engine keeps all its data in one folder
    #[arg(long, action = ArgAction::SetTrue)]
    directoryperdb: bool,
    /// Go on in the background; needs --logpath
    #[arg(long, action = ArgAction::SetTrue)]
    fork: bool,
    /// Write no log to standard output
    #[arg(long, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Write the number of the process into this file
    #[arg(long)]
    pidfilepath: Option<String>,
    /// Set a parameter
    #[arg(long = "setParameter", value_name = "NAME=VALUE")]
    set_parameter: Vec<String>,
    /// Begin when a line comes on standard input, and end with the process that started this one
    #[arg(long, hide = true, action = ArgAction::SetTrue)]
    pub(super) supervised: bool,
}

/// Encrypted connections.
#[derive(clap::Args)]
#[command(rename_all = "verbatim")]
struct TlsArgs {
    /// Encrypt connections: disabled, allowTLS, preferTLS, requireTLS (default disabled)
    #[arg(long = "tlsMode")]
    mode: Option<String>,
    /// The server's certificate and key, in one PEM file
    #[arg(long = "tlsCertificateKeyFile", value_name = "FILE")]
    certificate_key_file: Option<String>,
    /// The password of the key; not supported, keys must have none
    #[arg(
        long = "tlsCertificateKeyFilePassword",
        value_name = "PASSWORD",
        hide = true
    )]
    certificate_key_file_password: Option<String>,
    /// The roots that certificates of clients come from, in a PEM file
    #[arg(long = "tlsCAFile", value_name = "FILE")]
    ca_file: Option<String>,
    /// Certificates of clients that are revoked, in a PEM file
    #[arg(long = "tlsCRLFile", value_name = "FILE")]
    crl_file: Option<String>,
    /// Do not speak these protocols, with commas between: TLS1_2 or TLS1_3
    #[arg(long = "tlsDisabledProtocols", value_name = "NAMES")]
    disabled_protocols: Option<String>,
    /// With roots, take clients that show no certificate as well
    #[arg(long = "tlsAllowConnectionsWithoutCertificates", action = ArgAction::SetTrue)]
    allow_without_certificates: bool,
    /// Take clients whose certificate is not good; it does not authenticate them
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
    /// The setting that is not right.
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
                    .ok_or_else(|| format!("{pair:?} is no NAME=VALUE"))?;
                config.set(&format!("{prefix}.{name}"), value)?;
            }
        }
        Ok(())
    }
}
