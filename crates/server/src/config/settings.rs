//! The settings that change this server, each with its flags, its default and its function.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use wire::Compressor;

use super::engine::ONE_FOLDER;
use super::server::{ClusterAuth, Config, Initiate};
use super::setting::{Flag, Setting};
use super::value::{boolean, gigabytes, within};

/// The settings, in the order of `--help`. Those of the file are applied in its order, then those
/// of the command line in this one.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::used("storage.dbPath", "Data directory", |config, value| {
        config.db_path = PathBuf::from(value);
        Ok(())
    })
    .default("/data/db")
    .flags(&[Flag::value("dbpath", "DIR")]),
    Setting::used(
        "storage.createDbPath",
        "Create the data directory if it is missing",
        |config, value| switch(&mut config.create_db_path, value),
    )
    .default("false")
    .flags(&[Flag::switch("createDbPath", "true")]),
    Setting::used(
        "storage.engine",
        "Storage engine: betree, lmdb, rocksdb, wiredTiger, or inMemory (not persistent)",
        |config, value| {
            config.engine = match value.to_ascii_lowercase() {
                name if name == "inmemory" => "memory".to_owned(),
                name => name,
            };
            Ok(())
        },
    )
    .default("betree")
    .flags(&[Flag::value("storageEngine", "NAME")]),
    Setting::used(
        "storage.cacheSizeGB",
        "Memory for the storage engine's cache and buffers, in GB",
        |config, value| {
            config.cache_bytes = Some(gigabytes(value)?);
            Ok(())
        },
    )
    .default("half of the memory above 1 GB, at least 0.25")
    .flags(&[Flag::value("cacheSizeGB", "GB").alias("wiredTigerCacheSizeGB")]),
    Setting::used(
        "storage.journal.commitIntervalMs",
        "Milliseconds between syncs of the log; a machine failure loses at most this much of the \
         writes made without j:true",
        |config, value| {
            config.commit_interval_ms = within(value, 1, 500)?;
            Ok(())
        },
    )
    .default("100")
    .flags(&[Flag::value("journalCommitInterval", "MS")]),
    Setting::used(
        "storage.journal.enabled",
        "Write the log; it cannot be turned off",
        always_on,
    )
    .default("true"),
    Setting::used(
        "storage.syncPeriodSecs",
        "Seconds between checkpoints of the storage engine",
        |config, value| {
            config.checkpoint_seconds = within(value, 1, 3_600)?;
            Ok(())
        },
    )
    .default("60")
    .flags(&[Flag::value("syncdelay", "SECONDS")]),
    Setting::used(
        "storage.directoryPerDB",
        "Accepted for compatibility with mongod; does nothing",
        |config, value| folders(config, "storage.directoryPerDB", value),
    )
    .flags(&[Flag::switch("directoryperdb", "true")]),
    Setting::used(
        "storage.directoryForIndexes",
        "Accepted for compatibility; does nothing",
        |config, value| folders(config, "storage.directoryForIndexes", value),
    ),
    Setting::used(
        "backup.rootDir",
        "Directory below which createBackup may write; it must exist",
        |config, value| {
            let root = PathBuf::from(value);
            if !root.is_absolute() {
                return Err("must be an absolute path".to_owned());
            }
            config.backup_root = Some(root);
            Ok(())
        },
    )
    .default("anywhere outside of the data directory")
    .flags(&[Flag::value("backupRootDir", "DIR")]),
    Setting::used("net.port", "TCP port to listen on", |config, value| {
        config.port = within(value, 0, 65_535)?;
        Ok(())
    })
    .default("27017")
    .flags(&[Flag::value("port", "PORT")]),
    Setting::used(
        "net.bindIp",
        "Addresses, host names and paths of Unix sockets to listen on, separated by commas",
        |config, value| {
            config.bind_ip.clear();
            for part in value.split(',').map(str::trim) {
                if !config.bind_ip.iter().any(|known| known == part) {
                    config.bind_ip.push(part.to_owned());
                }
            }
            Ok(())
        },
    )
    .default("localhost")
    .flags(&[Flag::value("bind_ip", "ADDRESSES")]),
    Setting::used(
        "net.bindIpAll",
        "Listen on all addresses",
        |config, value| {
            if boolean(value)? {
                config.bind_ip = vec!["*".to_owned()];
            }
            Ok(())
        },
    )
    .default("false")
    .flags(&[Flag::switch("bind_ip_all", "true")]),
    Setting::used(
        "net.ipv6",
        "Listen on IPv6 too: localhost includes ::1, all addresses include ::",
        |config, value| switch(&mut config.ipv6, value),
    )
    .default("false")
    .flags(&[Flag::switch("ipv6", "true")]),
    Setting::used(
        "net.unixDomainSocket.enabled",
        "Listen on a Unix socket too: mongodb-PORT.sock",
        |config, value| switch(&mut config.unix_socket.enabled, value),
    )
    .default("false")
    .flags(&[
        Flag::switch("unixsocket", "true"),
        Flag::switch("nounixsocket", "false").about("Do not listen on a Unix socket"),
    ]),
    Setting::used(
        "net.unixDomainSocket.pathPrefix",
        "Directory of the Unix socket",
        |config, value| {
            config.unix_socket.prefix = PathBuf::from(value);
            Ok(())
        },
    )
    .default("/tmp")
    .flags(&[Flag::value("unixSocketPrefix", "DIR")]),
    Setting::used(
        "net.unixDomainSocket.filePermissions",
        "Permissions of the Unix socket, in octal",
        |config, value| {
            let mode = u32::from_str_radix(value, 8).ok();
            let mode = mode.filter(|mode| *mode <= 0o777);
            config.unix_socket.permissions = mode.ok_or("must be octal, such as 0700")?;
            Ok(())
        },
    )
    .default("0700")
    .flags(&[Flag::value("filePermissions", "OCTAL")]),
    Setting::used(
        "net.prometheus.port",
        "Serve Prometheus metrics at http://127.0.0.1:PORT/metrics",
        |config, value| {
            config.prometheus_port = Some(within(value, 0, 65_535)?);
            Ok(())
        },
    )
    .default("off")
    .flags(&[Flag::value("prometheusPort", "PORT")]),
    Setting::used(
        "net.prometheus.bindIp",
        "Addresses and host names of the Prometheus metrics, separated by commas",
        |config, value| {
            value.trim().clone_into(&mut config.prometheus_ip);
            Ok(())
        },
    )
    .default("127.0.0.1")
    .flags(&[Flag::value("prometheusBindIp", "ADDRESSES")]),
    Setting::used(
        "net.prometheus.tokenFile",
        "File with the token that requests for metrics must present: as a bearer token, or as the \
         password of basic authentication",
        |config, value| {
            config.endpoint.token_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("prometheusTokenFile", "FILE")]),
    Setting::used(
        "net.prometheus.tls.certificateKeyFile",
        "PEM file with certificate and private key: serve the metrics by HTTPS",
        |config, value| {
            config.endpoint.certificate_key_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("prometheusTlsCertificateKeyFile", "FILE")]),
    Setting::used(
        "net.prometheus.tls.CAFile",
        "PEM file with the certificate authorities of which a client must present a certificate",
        |config, value| {
            config.endpoint.ca_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("prometheusTlsCAFile", "FILE")]),
    Setting::used(
        "net.prometheus.statusPage",
        "Serve a page about the server at http://127.0.0.1:PORT/ of the metrics",
        |config, value| switch(&mut config.endpoint.status_page, value),
    )
    .default("false")
    .flags(&[Flag::switch("statusPage", "true")]),
    Setting::used(
        "net.maxIncomingConnections",
        "Maximum number of client connections; further ones are closed immediately",
        |config, value| {
            config.max_connections = within(value, 5, 1_000_000)?;
            Ok(())
        },
    )
    .default("65536")
    .flags(&[Flag::value("maxConns", "N")]),
    Setting::used(
        "net.compression.compressors",
        "Network compressors, in order of preference, separated by commas",
        compressors,
    )
    .default("snappy,zstd,zlib")
    .flags(&[Flag::value("networkMessageCompressors", "NAMES")]),
    Setting::used(
        "replication.replSetName",
        "Name of the replica set; this server is its only member unless replication.initiate is \
         command",
        |config, value| {
            config.replica_set = Some(value.to_owned()).filter(|name| !name.is_empty());
            Ok(())
        },
    )
    .default("rs0")
    .flags(&[Flag::value("replSet", "NAME")]),
    Setting::used(
        "replication.initiate",
        "Who begins the replica set: self, with this server as its only member, or command: \
         replSetInitiate, for several members",
        |config, value| {
            config.initiate = match value {
                "self" => Initiate::Itself,
                "command" => Initiate::Command,
                _ => return Err("must be self or command".to_owned()),
            };
            Ok(())
        },
    )
    .default("self")
    .flags(&[Flag::value("initiate", "WHO")]),
    Setting::used(
        "replication.standalone",
        "Run without a replica set: no transactions and no retryable writes",
        |config, value| {
            if boolean(value)? {
                config.replica_set = None;
            }
            Ok(())
        },
    )
    .default("false")
    .flags(&[Flag::switch("standalone", "true")]),
    Setting::used(
        "replication.oplogSizeMB",
        "Size of the oplog in megabytes at the first start, later changed by \
         replSetResizeOplog; 0: no oplog, and no change streams",
        |config, value| {
            let megabytes: u64 = within(value, 0, 1 << 30)?;
            config.oplog_bytes = Some(megabytes << 20);
            Ok(())
        },
    )
    .default("5 % of the free disk space, 990 to 50000, at most a quarter")
    .flags(&[Flag::value("oplogSize", "MB")]),
    Setting::used(
        "storage.oplogMinRetentionHours",
        "Hours for which entries of the oplog are kept, also beyond its size",
        |config, value| {
            let hours: f64 = within(value, 0.0, 1e6)?;
            config.oplog_age = Duration::from_secs_f64(hours * 3_600.0);
            Ok(())
        },
    )
    .default("0")
    .flags(&[Flag::value("oplogMinRetentionHours", "HOURS")]),
    Setting::used(
        "replication.enableMajorityReadConcern",
        "Support the read concern majority; it cannot be turned off",
        always_on,
    )
    .default("true"),
    Setting::used(
        "net.tls.mode",
        "TLS mode: disabled, allowTLS, preferTLS or requireTLS",
        |config, value| config.tls.set_mode(value),
    )
    .default("disabled")
    .flags(&[Flag::value("tlsMode", "MODE")]),
    Setting::used(
        "net.tls.certificateKeyFile",
        "PEM file with the server's certificate and private key",
        |config, value| {
            config.tls.certificate_key_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("tlsCertificateKeyFile", "FILE")]),
    Setting::used(
        "net.tls.clusterFile",
        "PEM file with the certificate and key shown to other members of the replica set",
        |config, value| {
            config.tls.cluster_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("tlsClusterFile", "FILE")]),
    Setting::refused(
        "net.tls.clusterPassword",
        super::setting::Form::Text,
        "keys with a password are not supported; take it off with `openssl pkey`",
    )
    .flags(&[Flag::value("tlsClusterPassword", "PASSWORD")]),
    Setting::refused(
        "net.tls.certificateKeyFilePassword",
        super::setting::Form::Text,
        "keys with a password are not supported; take it off with `openssl pkey`",
    )
    .flags(&[Flag::value("tlsCertificateKeyFilePassword", "PASSWORD")]),
    Setting::used(
        "net.tls.CAFile",
        "PEM file with the authorities of the certificates of clients and other members",
        |config, value| {
            config.tls.ca_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("tlsCAFile", "FILE")]),
    Setting::used(
        "net.tls.CRLFile",
        "PEM file with the revocation list for client certificates",
        |config, value| {
            config.tls.crl_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("tlsCRLFile", "FILE")]),
    Setting::used(
        "net.tls.disabledProtocols",
        "TLS versions to disable, separated by commas: TLS1_2, TLS1_3",
        |config, value| config.tls.set_disabled(value),
    )
    .flags(&[Flag::value("tlsDisabledProtocols", "NAMES")]),
    Setting::used(
        "net.tls.allowConnectionsWithoutCertificates",
        "Accept clients without a certificate although there is a file of authorities",
        |config, value| switch(&mut config.tls.allow_without_certificates, value),
    )
    .default("false")
    .flags(&[Flag::switch(
        "tlsAllowConnectionsWithoutCertificates",
        "true",
    )]),
    Setting::used(
        "net.tls.allowInvalidCertificates",
        "Accept clients with an invalid certificate, which then does not authenticate them",
        |config, value| switch(&mut config.tls.allow_invalid_certificates, value),
    )
    .default("false")
    .flags(&[Flag::switch("tlsAllowInvalidCertificates", "true")]),
    Setting::used(
        "net.tls.allowInvalidHostnames",
        "Accept certificates of other members that are for another host",
        |config, value| switch(&mut config.tls.allow_invalid_hostnames, value),
    )
    .default("false")
    .flags(&[Flag::switch("tlsAllowInvalidHostnames", "true")]),
    Setting::used(
        "security.authorization",
        "Require authentication and enforce the roles of users: enabled or disabled",
        |config, value| match value {
            "disabled" | "enabled" => {
                config.authorization = value == "enabled";
                Ok(())
            }
            _ => Err("it is enabled or disabled".to_owned()),
        },
    )
    .default("disabled")
    .flags(&[
        Flag::switch("auth", "enabled")
            .about("Require authentication and enforce the roles of users"),
        Flag::switch("noauth", "disabled").about("Do not require authentication"),
    ]),
    Setting::used(
        "security.keyFile",
        "Require authentication, as --auth; by the key in the file the members of a replica set \
         recognize each other",
        |config, value| {
            fs::metadata(value).map_err(|error| error.to_string())?;
            config.authorization = true;
            config.key_file = Some(value.into());
            Ok(())
        },
    )
    .flags(&[Flag::value("keyFile", "FILE")]),
    Setting::used(
        "security.clusterAuthMode",
        "How members of a replica set authenticate: keyFile, sendKeyFile, sendX509 or x509",
        |config, value| {
            let mode = ClusterAuth::of(value);
            config.cluster_auth =
                mode.ok_or_else(|| "it is keyFile, sendKeyFile, sendX509 or x509".to_owned())?;
            if config.cluster_auth == ClusterAuth::X509 {
                config.authorization = true;
            }
            Ok(())
        },
    )
    .default("keyFile")
    .flags(&[Flag::value("clusterAuthMode", "MODE")]),
    Setting::used(
        "security.enableEncryption",
        "Encrypt the data files; with a storage engine that can (betree), from their creation on",
        |config, value| switch(&mut config.encryption.enabled, value),
    )
    .default("false")
    .flags(&[Flag::switch("enableEncryption", "true")]),
    Setting::used(
        "security.encryptionKeyFile",
        "File of the master key: 32 bytes in base64, mode 600 (openssl rand -base64 32)",
        |config, value| {
            config.encryption.key_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("encryptionKeyFile", "FILE")]),
    Setting::used(
        "security.encryptionCipherMode",
        "Cipher of encrypted data files; only AES256-GCM is supported",
        |_, value| match value {
            "AES256-GCM" => Ok(()),
            "AES256-CBC" => Err(
                "AES256-CBC does not detect changed files; use AES256-GCM, or \
                                 remove the setting"
                    .to_owned(),
            ),
            _ => Err("it is AES256-GCM".to_owned()),
        },
    )
    .default("AES256-GCM")
    .flags(&[Flag::value("encryptionCipherMode", "MODE")]),
    // MongoDB's default is true, so files have it.
    Setting::used(
        "security.javascriptEnabled",
        "Run JavaScript; accepted, but there is no server-side JavaScript",
        |config, value| {
            if boolean(value)? {
                let why = "there is no server-side JavaScript";
                config.does_nothing("security.javascriptEnabled", why);
            }
            Ok(())
        },
    )
    .flags(&[Flag::switch("noscripting", "false")
        .about("Accepted for compatibility: there is no server-side JavaScript")]),
    Setting::used(
        "operationProfiling.mode",
        "Profile commands: off, slowOp or all (0, 1 or 2)",
        |config, value| {
            config.profile = match value {
                "off" => 0,
                "slowOp" => 1,
                "all" => 2,
                other => within(other, 0, 2)?,
            };
            Ok(())
        },
    )
    .default("off")
    .flags(&[Flag::value("profile", "LEVEL")]),
    Setting::used(
        "operationProfiling.slowOpThresholdMs",
        "Log commands slower than this, in milliseconds",
        |config, value| {
            config.slow_ms = within(value, 0, i32::MAX)?;
            Ok(())
        },
    )
    .default("100")
    .flags(&[Flag::value("slowms", "MS")]),
    Setting::used(
        "operationProfiling.slowOpSampleRate",
        "The share of slow commands that is logged, from 0 to 1",
        |config, value| {
            config.sample_rate = within(value, 0.0, 1.0)?;
            Ok(())
        },
    )
    .default("1")
    .flags(&[Flag::value("slowOpSampleRate", "SHARE")]),
    Setting::used(
        "systemLog.destination",
        "Where the log goes: only file is supported; leave it out for standard output",
        |config, value| match value {
            "file" => {
                config.log_to_file = true;
                Ok(())
            }
            _ => Err("only file is supported; leave it out for standard output".to_owned()),
        },
    ),
    Setting::used("systemLog.path", "Log file", |config, value| {
        config.log_path = Some(PathBuf::from(value));
        Ok(())
    })
    .default("standard output")
    .flags(&[Flag::value("logpath", "FILE")]),
    Setting::used(
        "systemLog.logAppend",
        "Append to an existing log file instead of renaming it",
        |config, value| switch(&mut config.log_append, value),
    )
    .default("false")
    .flags(&[Flag::switch("logappend", "true")]),
    Setting::used(
        "systemLog.logRotate",
        "How to rotate the log: rename, or reopen for tools that rename it themselves",
        |config, value| {
            config.log_reopen = match value {
                "rename" => false,
                "reopen" => true,
                _ => return Err("must be rename or reopen".to_owned()),
            };
            Ok(())
        },
    )
    .default("rename")
    .flags(&[Flag::value("logRotate", "HOW")]),
    Setting::used(
        "systemLog.quiet",
        "Do not log to standard output",
        |config, value| switch(&mut config.quiet, value),
    )
    .default("false")
    .flags(&[Flag::switch("quiet", "true")]),
    Setting::used(
        "systemLog.verbosity",
        "How much is logged, from 0 to 5; from 1 on, every command",
        |config, value| {
            config.verbosity = within(value, 0, 5)?;
            Ok(())
        },
    )
    .default("0"),
    Setting::used(
        "systemLog.timeStampFormat",
        "Format of the log's times; they are always UTC (iso8601-utc)",
        |config, value| match value {
            "iso8601-utc" => Ok(()),
            "iso8601-local" => {
                let why = "the log's times are UTC";
                config.does_nothing("systemLog.timeStampFormat", why);
                Ok(())
            }
            _ => Err("must be iso8601-utc or iso8601-local".to_owned()),
        },
    )
    .default("iso8601-utc")
    .flags(&[Flag::value("timeStampFormat", "FORMAT")]),
    Setting::used(
        "processManagement.fork",
        "Run in the background; requires a log file",
        |config, value| switch(&mut config.fork, value),
    )
    .default("false")
    .flags(&[Flag::switch("fork", "true")]),
    Setting::used(
        "processManagement.pidFilePath",
        "Write the process ID to this file",
        |config, value| {
            config.pid_file = Some(PathBuf::from(value));
            Ok(())
        },
    )
    .flags(&[Flag::value("pidfilepath", "FILE")]),
    Setting::used(
        "processManagement.timeZoneInfo",
        "Directory of time zones; accepted, but time zones are built in",
        |config, _| {
            let why = "time zones are built in";
            config.does_nothing("processManagement.timeZoneInfo", why);
            Ok(())
        },
    )
    .flags(&[Flag::value("timeZoneInfo", "DIR")]),
];

fn switch(place: &mut bool, value: &str) -> Result<(), String> {
    *place = boolean(value)?;
    Ok(())
}

fn always_on(_: &mut Config, value: &str) -> Result<(), String> {
    match boolean(value)? {
        true => Ok(()),
        false => Err("cannot be turned off".to_owned()),
    }
}

/// Check a setting for separate directories of databases or indexes.
fn folders(config: &mut Config, name: &str, value: &str) -> Result<(), String> {
    if boolean(value)? {
        config.does_nothing(name, ONE_FOLDER);
    }
    Ok(())
}

fn compressors(config: &mut Config, value: &str) -> Result<(), String> {
    config.compressors.clear();
    for name in value.split(',').map(str::trim) {
        if name == "disabled" {
            continue;
        }
        let named = Compressor::of_name(name);
        let named =
            named.ok_or_else(|| format!("unknown compressor {name}; use snappy, zstd, zlib"))?;
        config.compressors.push(named);
    }
    Ok(())
}
