//! What each setting means: a table of names and functions. The command line and the file go
//! through it both; later settings win.

use std::fs;
use std::path::{Path, PathBuf};

use bson::{Bson, Document};
use wire::Compressor;

use super::engine::ONE_FOLDER;
use super::file;
use super::server::Config;
use super::value::{boolean, gigabytes, within};

type Set = fn(&mut Config, &str) -> Result<(), String>;

/// The settings. Those that change nothing here are accepted because files that work with MongoDB
/// should work: each is about something this server always or never does.
const SETTINGS: &[(&str, Set)] = &[
    ("storage.dbPath", |config, value| {
        config.db_path = PathBuf::from(value);
        Ok(())
    }),
    ("storage.engine", |config, value| {
        config.engine = value.to_ascii_lowercase();
        Ok(())
    }),
    ("storage.cacheSizeGB", |config, value| {
        config.cache_bytes = Some(gigabytes(value)?);
        Ok(())
    }),
    ("storage.directoryPerDB", |config, value| {
        config.folders("storage.directoryPerDB", value)
    }),
    ("storage.directoryForIndexes", |config, value| {
        config.folders("storage.directoryForIndexes", value)
    }),
    ("storage.journal.commitIntervalMs", |config, value| {
        config.commit_interval_ms = within(value, 1, 500)?;
        Ok(())
    }),
    ("storage.journal.enabled", always_on),
    ("storage.syncPeriodSecs", |config, value| {
        config.checkpoint_seconds = within(value, 1, 3_600)?;
        Ok(())
    }),
    ("net.port", |config, value| {
        config.port = within(value, 0, 65_535)?;
        Ok(())
    }),
    ("net.bindIp", |config, value| {
        config.bind_ip = value.split(',').map(|part| address(part.trim())).collect();
        Ok(())
    }),
    ("net.prometheus.port", |config, value| {
        config.prometheus_port = Some(within(value, 0, 65_535)?);
        Ok(())
    }),
    ("net.prometheus.bindIp", |config, value| {
        config.prometheus_ip = address(value.trim());
        Ok(())
    }),
    ("net.bindIpAll", |config, value| {
        if boolean(value)? {
            config.bind_ip = vec!["0.0.0.0".to_owned()];
        }
        Ok(())
    }),
    ("net.ipv6", |_, value| boolean(value).map(|_| ())),
    ("net.maxIncomingConnections", |config, value| {
        config.max_connections = within(value, 5, 1_000_000)?;
        Ok(())
    }),
    ("net.compression.compressors", compressors),
    ("net.unixDomainSocket.enabled", never_on),
    ("net.tls.mode", |config, value| config.tls.set_mode(value)),
    ("net.tls.certificateKeyFile", |config, value| {
        config.tls.certificate_key_file = Some(PathBuf::from(value));
        Ok(())
    }),
    ("net.tls.certificateKeyFilePassword", |_, _| {
        let message = "keys with a password are not supported; take it off with `openssl pkey`";
        Err(message.to_owned())
    }),
    ("net.tls.CAFile", |config, value| {
        config.tls.ca_file = Some(PathBuf::from(value));
        Ok(())
    }),
    ("net.tls.CRLFile", |config, value| {
        config.tls.crl_file = Some(PathBuf::from(value));
        Ok(())
    }),
    (
        "net.tls.allowConnectionsWithoutCertificates",
        |config, value| {
            config.tls.allow_without_certificates = boolean(value)?;
            Ok(())
        },
    ),
    ("net.tls.allowInvalidCertificates", |config, value| {
        config.tls.allow_invalid_certificates = boolean(value)?;
        Ok(())
    }),
    // About connections to other servers, of which there are none.
    ("net.tls.allowInvalidHostnames", |_, value| {
        boolean(value).map(|_| ())
    }),
    ("net.tls.disabledProtocols", |config, value| {
        config.tls.set_disabled(value)
    }),
    ("net.tls.FIPSMode", never_on),
    ("security.authorization", |config, value| match value {
        "disabled" | "enabled" => {
            config.authorization = value == "enabled";
            Ok(())
        }
        _ => Err("it is enabled or disabled".to_owned()),
    }),
    // MongoDB's default, so files have it.
    (
        "security.javascriptEnabled",
        |config, value| match boolean(value)? {
            false => Ok(()),
            true => config.idle(
                "security.javascriptEnabled",
                "there is no server-side JavaScript",
            ),
        },
    ),
    // It authenticates members of a set to each other, and turns authorization on for clients.
    ("security.keyFile", |config, value| {
        fs::metadata(value).map_err(|error| error.to_string())?;
        config.authorization = true;
        Ok(())
    }),
    ("security.clusterAuthMode", |_, value| match value {
        "keyFile" => Ok(()),
        _ => Err("only keyFile is supported".to_owned()),
    }),
    ("replication.replSetName", |config, value| {
        config.replica_set = Some(value.to_owned()).filter(|name| !name.is_empty());
        Ok(())
    }),
    ("replication.standalone", |config, value| {
        if boolean(value)? {
            config.replica_set = None;
        }
        Ok(())
    }),
    ("replication.oplogSizeMB", |config, value| {
        within::<u64>(value, 1, u64::MAX)?;
        config.idle("replication.oplogSizeMB", "there is no oplog")
    }),
    ("storage.oplogMinRetentionHours", |config, value| {
        within(value, 0.0, 1e9)?;
        config.idle("storage.oplogMinRetentionHours", "there is no oplog")
    }),
    ("replication.enableMajorityReadConcern", always_on),
    ("operationProfiling.slowOpSampleRate", |config, value| {
        config.sample_rate = within(value, 0.0, 1.0)?;
        Ok(())
    }),
    ("operationProfiling.slowOpThresholdMs", |config, value| {
        config.slow_ms = within(value, 0, i32::MAX)?;
        Ok(())
    }),
    ("operationProfiling.mode", |config, value| {
        config.profile = match value {
            "off" => 0,
            "slowOp" => 1,
            "all" => 2,
            other => within(other, 0, 2)?,
        };
        Ok(())
    }),
    ("systemLog.destination", |_, value| match value {
        "file" => Ok(()),
        _ => Err("only file is supported; leave it out for standard output".to_owned()),
    }),
    ("systemLog.path", |config, value| {
        config.log_path = Some(PathBuf::from(value));
        Ok(())
    }),
    ("systemLog.logAppend", |config, value| {
        config.log_append = boolean(value)?;
        Ok(())
    }),
    ("systemLog.quiet", |config, value| {
        config.quiet = boolean(value)?;
        Ok(())
    }),
    ("systemLog.verbosity", verbosity),
    ("systemLog.logRotate", |config, value| {
        config.log_reopen = match value {
            "rename" => false,
            "reopen" => true,
            _ => return Err("must be rename or reopen".to_owned()),
        };
        Ok(())
    }),
    ("systemLog.timeStampFormat", |config, value| match value {
        "iso8601-utc" => Ok(()),
        "iso8601-local" => config.idle("systemLog.timeStampFormat", "the log's times are UTC"),
        _ => Err("must be iso8601-utc or iso8601-local".to_owned()),
    }),
    ("processManagement.pidFilePath", |config, value| {
        config.pid_file = Some(PathBuf::from(value));
        Ok(())
    }),
    ("processManagement.fork", |config, value| {
        config.fork = boolean(value)?;
        Ok(())
    }),
    ("processManagement.timeZoneInfo", |config, _| {
        config.idle("processManagement.timeZoneInfo", "time zones are built in")
    }),
];

fn verbosity(config: &mut Config, value: &str) -> Result<(), String> {
    config.verbosity = within(value, 0, 5)?;
    Ok(())
}

/// Components of MongoDB's log, without their `.verbosity`.
const COMPONENTS: &[&str] = &[
    "accessControl",
    "command",
    "control",
    "ftdc",
    "geo",
    "index",
    "network",
    "query",
    "query.optimizer",
    "query.rejected",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.migration",
    "storage",
    "storage.journal",
    "storage.recovery",
    "transaction",
    "write",
];

/// Apply the verbosity of a component of the log. Returns whether it is one.
fn component(config: &mut Config, setting: &str, value: &str) -> Result<bool, String> {
    let name = setting.strip_prefix("systemLog.component.");
    let name = name.and_then(|name| name.strip_suffix(".verbosity"));
    let Some(name) = name.filter(|name| COMPONENTS.contains(name)) else {
        return Ok(false);
    };
    match (within(value, -1, 5)?, name) {
        // That of the whole log.
        (-1, _) => {}
        (level, "command") => config.verbosity = level,
        _ => config.idle(setting, "only commands are logged more or less")?,
    }
    Ok(true)
}

fn always_on(_: &mut Config, value: &str) -> Result<(), String> {
    match boolean(value)? {
        true => Ok(()),
        false => Err("cannot be turned off".to_owned()),
    }
}

fn never_on(_: &mut Config, value: &str) -> Result<(), String> {
    match boolean(value)? {
        false => Ok(()),
        true => Err("is not supported".to_owned()),
    }
}

fn address(name: &str) -> String {
    match name {
        "localhost" => "127.0.0.1".to_owned(),
        "*" => "0.0.0.0".to_owned(),
        other => other.to_owned(),
    }
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

impl Config {
    /// Apply one setting by its name in MongoDB's configuration file.
    ///
    /// # Errors
    /// An unknown name, or a value it cannot have, in a sentence that names it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(parameter) = name.strip_prefix("setParameter.") {
            self.parameters
                .push((parameter.to_owned(), value.to_owned()));
        } else if let Some(option) = name.strip_prefix("storage.engineOptions.") {
            self.engine_options
                .push((option.to_owned(), value.to_owned()));
        } else if !self
            .set_engine(name, value)
            .and_then(|taken| Ok(taken || component(self, name, value)?))
            .map_err(|error| format!("{name}: {value:?}: {error}"))?
        {
            let Some((_, set)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
                return Err(format!("unrecognized setting {name}"));
            };
            set(self, value).map_err(|error| format!("{name}: {value:?}: {error}"))?;
        }
        note(&mut self.parsed, name, value);
        Ok(())
    }

    /// A setting that does nothing, and why.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the outcome of a setting's function"
    )]
    fn idle(&mut self, name: &str, why: &str) -> Result<(), String> {
        self.warnings.push(format!("{name} does nothing: {why}"));
        Ok(())
    }

    /// Folders for databases or indexes.
    fn folders(&mut self, name: &str, value: &str) -> Result<(), String> {
        match boolean(value)? {
            false => Ok(()),
            true => self.idle(name, ONE_FOLDER),
        }
    }

    /// Apply the settings of a file.
    ///
    /// # Errors
    /// A file that cannot be read, and as [`Config::set`], naming the file.
    pub fn read(&mut self, path: &Path) -> Result<(), String> {
        let place = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
        for (name, value) in file::read(&text).map_err(|error| format!("{place}: {error}"))? {
            self.set(&name, &value)
                .map_err(|error| format!("{place}: {error}"))?;
        }
        Ok(())
    }
}

/// Keep a setting for `getCmdLineOpts`, nested as in the file, numbers and switches as such.
fn note(parsed: &mut Document, name: &str, value: &str) {
    let value = match (value, value.parse::<i32>()) {
        ("true", _) => Bson::Boolean(true),
        ("false", _) => Bson::Boolean(false),
        (_, Ok(number)) => Bson::Int32(number),
        _ => Bson::from(value),
    };
    let mut place = parsed;
    let mut parts = name.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            place.insert(part, value);
            return;
        }
        let below = place
            .entry(part.to_owned())
            .or_insert_with(|| Document::new().into());
        let Bson::Document(below) = below else {
            return;
        };
        place = below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Memory;

    fn parse(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        for (name, value) in file::read(text)? {
            config.set(&name, &value)?;
        }
        Ok(config)
    }

    #[test]
    fn a_file_as_mongodb_has_it_is_read() {
        let text = "\
storage:
  dbPath: /var/lib/romanesco
  engine: lmdb
  wiredTiger: {engineConfig: {cacheSizeGB: 0.5}}
net:
  port: 27018
  bindIp: localhost,10.0.0.1
  compression: {compressors: 'zstd,snappy'}
replication:
  replSetName: main
operationProfiling: {mode: slowOp, slowOpThresholdMs: 20}
setParameter:
  enableTestCommands: true
systemLog:
";
        let config = parse(text).unwrap();
        assert_eq!(config.db_path, Path::new("/var/lib/romanesco"));
        assert_eq!((config.engine.as_str(), config.port), ("lmdb", 27_018));
        assert_eq!(config.cache_bytes, Some(1 << 29));
        assert_eq!(config.bind_ip, ["127.0.0.1", "10.0.0.1"]);
        assert_eq!(config.compressors, [Compressor::Zstd, Compressor::Snappy]);
        assert_eq!(config.replica_set.as_deref(), Some("main"));
        assert_eq!((config.profile, config.slow_ms), (1, 20));
        let parameter = ("enableTestCommands".to_owned(), "true".to_owned());
        assert_eq!(config.parameters, [parameter]);
        let net = config.parsed.get_document("net").unwrap();
        assert_eq!(net.get_i32("port").unwrap(), 27_018);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("net: {prot: 1}"), "unrecognized setting net.prot");
        let port = error("net:\n  port: 70000");
        assert!(
            port.contains("net.port") && port.contains("65535"),
            "{port}"
        );
        assert!(error("net: [").contains("line"), "{}", error("net: ["));
        assert!(error("security: {authorization: on_top}").contains("security.authorization"));
        assert!(error("just text").contains("no setting"));
        assert!(parse("").is_ok());
        let folder = error("storage: {directoryPerDB: 3}");
        assert!(folder.contains("storage.directoryPerDB"), "{folder}");
        let codec = error("storage: {betree: {collectionConfig: {blockCompressor: lzma}}}");
        assert!(
            codec.contains("blockCompressor") && codec.contains("zstd"),
            "{codec}"
        );
        let group = error("storage: {wiredTiger: {engineConfig: {fast: yes}}}");
        assert!(
            group.contains("storage.wiredTiger.engineConfig.fast"),
            "{group}"
        );
        let engine = error("storage: {floppy: {rho: 1}}");
        assert_eq!(engine, "unrecognized setting storage.floppy.rho");
        let protocols = error("net: {tls: {disabledProtocols: 'TLS1_2,TLS1_3'}}");
        assert!(protocols.contains("leaves no protocol"), "{protocols}");
    }

    #[test]
    fn sections_of_engines_become_options_of_the_one_in_use() {
        let text = "\
storage:
  betree: {rho: 4, engineConfig: {cacheSizeGB: 1}, collectionConfig: {blockCompressor: zstd}}
  rocksdb: {bloom: 12}
processManagement: {timeZoneInfo: /usr/share/zoneinfo}
";
        let factory = kv_betree::factory();
        let setup = parse(text).unwrap().engine_setup(factory).unwrap();
        assert_eq!(setup.options.cache.bytes(), 1 << 30);
        assert_eq!(setup.options.own.get("rho").unwrap(), "4");
        assert_eq!(setup.options.own.get("codec").unwrap(), "zstd:3");
        let warnings = setup.warnings.join("\n");
        assert!(
            warnings.contains("storage.rocksdb.bloom does nothing"),
            "{warnings}"
        );
        assert!(warnings.contains("timeZoneInfo does nothing"), "{warnings}");
        let refused = |text: &str| parse(text).unwrap().engine_setup(factory).unwrap_err();
        let unknown = refused("storage: {betree: {speed: 9}}");
        assert!(
            unknown.contains("storage.betree.speed") && unknown.contains("rho"),
            "{unknown}"
        );
        let memory = parse("").unwrap().engine_setup(factory).unwrap();
        assert_eq!(memory.options.cache.bytes(), Memory::read().cache());
    }

    #[test]
    fn every_engine_that_compresses_takes_each_codec_of_mongodb() {
        const CODECS: [&str; 5] = ["none", "snappy", "lz4", "zlib", "zstd"];
        let setup = |section: &str, codec: &str, factory| {
            let text = format!(
                "storage: {{{section}: {{collectionConfig: {{blockCompressor: {codec}}}}}}}"
            );
            parse(&text).and_then(|config| config.engine_setup(factory))
        };
        for (section, factory) in [
            ("betree", kv_betree::factory()),
            ("lmdb", kv_lmdb::factory()),
            ("rocksdb", kv_rocksdb::factory()),
            ("wiredTiger", kv_wiredtiger::factory()),
        ] {
            let unknown = setup(section, "lzma", factory).unwrap_err();
            let key = format!("storage.{section}.collectionConfig.blockCompressor");
            assert!(
                unknown.contains(&key) && unknown.contains(&CODECS.join(", ")),
                "{unknown}"
            );
            let codecs: Vec<&str> = factory.codecs().iter().map(|codec| codec.name).collect();
            if codecs.len() == 1 {
                let refused = setup(section, "snappy", factory).unwrap_err();
                assert!(
                    refused.contains(&key) && refused.contains("it has: none"),
                    "{refused}"
                );
                continue;
            }
            assert_eq!(codecs, CODECS, "{section}");
            for codec in CODECS {
                let options = setup(section, codec, factory).unwrap().options;
                assert_eq!(options.codec == kv::Codec::None, codec == "none");
            }
        }
    }

    #[test]
    fn what_files_of_mongodb_commonly_have_is_taken() {
        let text = "\
storage:
  oplogMinRetentionHours: 1.5
  directoryPerDB: true
  wiredTiger: {engineConfig: {zstdCompressionLevel: 6, configString: 'cache_size=1G'}}
operationProfiling: {slowOpSampleRate: 0.25}
security: {javascriptEnabled: true}
systemLog:
  component:
    command: {verbosity: 1}
    storage: {journal: {verbosity: 2}}
    network: {verbosity: -1}
";
        let config = parse(text).unwrap();
        assert!((config.sample_rate - 0.25).abs() < 1e-9);
        assert_eq!(config.verbosity, 1);
        let named = [
            "storage.oplogMinRetentionHours",
            "storage.directoryPerDB",
            "security.javascriptEnabled",
            "systemLog.component.storage.journal.verbosity",
        ];
        for (name, warning) in named.iter().zip(&config.warnings) {
            assert!(
                warning.starts_with(&format!("{name} does nothing: ")),
                "{warning}"
            );
        }
        assert_eq!(config.warnings.len(), 4, "{:?}", config.warnings);
        let setup = config.engine_setup(kv_betree::factory()).unwrap();
        let warnings = setup.warnings.join("\n");
        for name in ["zstdCompressionLevel", "configString"] {
            let whole = format!("storage.wiredTiger.engineConfig.{name} does nothing");
            assert!(warnings.contains(&whole), "{warnings}");
        }
        let error = |text: &str| parse(text).unwrap_err();
        for wrong in [
            "operationProfiling: {slowOpSampleRate: 2}",
            "systemLog: {component: {coffee: {verbosity: 1}}}",
            "systemLog: {component: {network: {verbosity: 9}}}",
            "storage: {oplogMinRetentionHours: -1}",
            "storage: {wiredTiger: {engineConfig: {zstdCompressionLevel: 40}}}",
        ] {
            let name = wrong.split([':', ' ', '{']).next().unwrap();
            assert!(error(wrong).contains(name), "{wrong}");
        }
        assert!(
            parse("security: {javascriptEnabled: false}")
                .unwrap()
                .warnings
                .is_empty()
        );
    }

    #[test]
    fn folders_for_databases_and_indexes_do_nothing_and_the_log_says_why() {
        let warnings = |text: &str| {
            let setup = parse(text).unwrap().engine_setup(kv_betree::factory());
            setup.unwrap().warnings
        };
        for name in ["directoryPerDB", "directoryForIndexes"] {
            let found = warnings(&format!("storage: {{{name}: true}}"));
            let expected =
                format!("storage.{name} does nothing: an engine keeps all its data in one folder");
            assert_eq!(found, [expected]);
            assert!(warnings(&format!("storage: {{{name}: false}}")).is_empty());
        }
        let of_engine = |on| {
            let text =
                format!("storage: {{betree: {{engineConfig: {{directoryForIndexes: {on}}}}}}}");
            warnings(&text)
        };
        assert!(of_engine(true).concat().contains("in one folder"));
        assert!(of_engine(false).is_empty());
    }

    #[test]
    fn the_section_of_mongodb_is_heeded_as_far_as_it_fits() {
        let text = "\
storage:
  wiredTiger:
    engineConfig: {cacheSizeGB: 0.5, journalCompressor: snappy, directoryForIndexes: false}
    collectionConfig: {blockCompressor: snappy}
    indexConfig: {prefixCompression: true}
";
        let setup = parse(text)
            .unwrap()
            .engine_setup(kv_betree::factory())
            .unwrap();
        assert_eq!(setup.options.cache.bytes(), 1 << 29);
        assert_eq!(setup.options.codec, kv::Codec::Fast);
        assert_eq!(setup.warnings.len(), 4, "{:?}", setup.warnings);
    }
}
