//! Tests of settings and files.

use std::path::Path;

use wire::Compressor;

use super::setting::{Effect, Form};
use super::*;

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
    assert_eq!(config.bind_ip, ["localhost", "10.0.0.1"]);
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
    let refused = |text: &str| {
        parse(text)
            .unwrap()
            .engine_setup(factory)
            .unwrap_err()
            .join("; ")
    };
    let unknown = refused("storage: {betree: {speed: 9}}");
    assert!(
        unknown.contains("storage.betree.speed") && unknown.contains("rho"),
        "{unknown}"
    );
    let memory = parse("").unwrap().engine_setup(factory).unwrap();
    assert_eq!(memory.options.cache.bytes(), Memory::read().cache());
}

#[test]
fn encryption_at_rest_names_a_key_file_and_an_engine_that_can() {
    let setup = |text: &str, factory| {
        parse(text).and_then(|config| config.engine_setup(factory).map_err(|all| all.join("; ")))
    };
    let both = "security: {enableEncryption: true, encryptionKeyFile: /etc/romanesco.key}";
    let found = setup(both, kv_betree::factory()).unwrap();
    assert_eq!(
        found.options.own.get("key_file").unwrap(),
        "/etc/romanesco.key"
    );
    let gcm = "security: {enableEncryption: true, encryptionKeyFile: k, \
               encryptionCipherMode: AES256-GCM}";
    let found = setup(gcm, kv_betree::factory()).unwrap();
    let path = std::path::Path::new(found.options.own.get("key_file").unwrap());
    assert!(path.is_absolute() && path.ends_with("k"), "{path:?}");
    let off = "security: {enableEncryption: false}";
    let found = setup(off, kv_lmdb::factory()).unwrap();
    assert!(!found.options.own.contains_key("key_file"));
    for factory in [
        kv_lmdb::factory(),
        kv_rocksdb::factory(),
        kv_wiredtiger::factory(),
    ] {
        let error = setup(both, factory).unwrap_err();
        assert!(
            error.contains(factory.name()) && error.contains("storage.engine betree"),
            "{error}"
        );
    }
    for (text, word) in [
        (
            "security: {enableEncryption: true}",
            "security.encryptionKeyFile",
        ),
        (
            "security: {encryptionKeyFile: k}",
            "security.enableEncryption",
        ),
        ("security: {encryptionCipherMode: AES256-CBC}", "AES256-GCM"),
        ("security: {encryptionCipherMode: ROT13}", "AES256-GCM"),
        ("security: {kmip: {serverName: h}}", "encryptionKeyFile"),
        ("security: {vault: {serverName: h}}", "encryptionKeyFile"),
    ] {
        let error = setup(text, kv_betree::factory()).unwrap_err();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn lmdb_syncs_in_the_background_unless_another_mode_is_set() {
    let mode = |text: &str| {
        let setup = parse(text).unwrap().engine_setup(kv_lmdb::factory());
        setup.unwrap().options.own.remove("interval").unwrap()
    };
    assert_eq!(mode(""), "background");
    assert_eq!(mode("storage: {lmdb: {interval: nosync}}"), "nosync");
    let option = "storage: {engineOptions: {interval: metasync}}";
    assert_eq!(mode(option), "metasync");
}

#[test]
fn every_engine_that_compresses_takes_each_codec_of_mongodb() {
    const CODECS: [&str; 5] = ["none", "snappy", "lz4", "zlib", "zstd"];
    let setup = |section: &str, codec: &str, factory| {
        let text =
            format!("storage: {{{section}: {{collectionConfig: {{blockCompressor: {codec}}}}}}}");
        parse(&text).and_then(|config| config.engine_setup(factory).map_err(|all| all.join("; ")))
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
    assert_eq!(config.components.get("command"), Some(&1));
    assert_eq!(config.verbosity, 0);
    assert_eq!(config.oplog_age.as_secs(), 5_400);
    let named = [
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
    assert_eq!(config.warnings.len(), 3, "{:?}", config.warnings);
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
        let text = format!("storage: {{betree: {{engineConfig: {{directoryForIndexes: {on}}}}}}}");
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

/// A value that asks for something, of the form that the setting has.
fn some_value(row: &Setting) -> &'static str {
    match row.effect {
        Effect::Idle(Form::On, _) | Effect::Refused(Form::On, _) => "false",
        Effect::Idle(Form::Number, _) | Effect::Refused(Form::Number, _) => "1",
        _ => "true",
    }
}

#[test]
fn settings_without_meaning_are_accepted_with_a_warning_or_refused_with_a_reason() {
    let rows = foreign::SETTINGS.iter().map(|row| ("", row));
    let parameters = foreign::PARAMETERS.iter();
    let mut seen = (0, 0);
    for (prefix, row) in rows.chain(parameters.map(|row| ("setParameter.", row))) {
        let mut config = Config::default();
        let name = format!("{prefix}{}", row.name);
        let set = config.set(&name, some_value(row));
        match row.standing() {
            Standing::Ignored(why) => {
                set.unwrap();
                let expected = format!("{} does nothing: {why}", row.name);
                assert_eq!(config.warnings, [expected]);
                assert!(config.parameters.is_empty(), "{name}");
                seen.0 += 1;
            }
            Standing::Refused(why) => {
                let error = set.unwrap_err();
                assert!(error.starts_with(&name) && error.ends_with(why), "{error}");
                seen.1 += 1;
            }
            Standing::Used => panic!("{name} is used"),
        }
    }
    assert!(seen.0 > 70 && seen.1 > 20, "{seen:?}");
}

#[test]
fn names_of_settings_and_flags_are_unique() {
    let mut names: Vec<&str> = all().map(|row| row.name).collect();
    let mut flags: Vec<&str> = all()
        .flat_map(|row| row.flags)
        .flat_map(|flag| [Some(flag.long), flag.alias])
        .flatten()
        .collect();
    for list in [&mut names, &mut flags] {
        let count = list.len();
        list.sort_unstable();
        list.dedup();
        assert_eq!(list.len(), count);
    }
}

/// The file that the package of MongoDB 8 installs, one of Percona Server, and one of a cluster's
/// member with most of what guides recommend.
const FILES: [&str; 3] = [
    "\
storage:
  dbPath: /var/lib/mongodb
systemLog:
  destination: file
  logAppend: true
  path: /var/log/mongodb/mongod.log
net:
  port: 27017
  bindIp: 127.0.0.1
processManagement:
  timeZoneInfo: /usr/share/zoneinfo
#security:
#replication:
",
    "\
storage:
  dbPath: /var/lib/mongodb
  wiredTiger:
    engineConfig: {cacheSizeGB: 1, journalCompressor: snappy, directoryForIndexes: false,
      statisticsLogDelaySecs: 0}
    collectionConfig: {blockCompressor: snappy}
    indexConfig: {prefixCompression: true}
  inMemory: {engineConfig: {inMemorySizeGB: 1}}
systemLog:
  destination: file
  logAppend: true
  logRotate: reopen
  path: /var/log/mongo/mongod.log
processManagement:
  fork: true
  pidFilePath: /var/run/mongod.pid
net: {port: 27017, bindIp: 'localhost,127.0.0.1', unixDomainSocket: {enabled: true}}
operationProfiling: {slowOpThresholdMs: 200, rateLimit: 100, mode: slowOp}
security: {enableEncryption: false, redactClientLogData: false}
",
    "\
systemLog:
  destination: file
  path: /var/log/mongodb/mongod.log
  logAppend: true
  verbosity: 0
  traceAllExceptions: false
  component:
    replication: {verbosity: 1, heartbeats: {verbosity: 0}}
    storage: {wt: {verbosity: 0}}
storage:
  dbPath: /data
  directoryPerDB: true
  engine: inMemory
  oplogMinRetentionHours: 24
  journal: {commitIntervalMs: 100}
  wiredTiger: {engineConfig: {cacheSizeGB: 4, maxCacheOverflowFileSizeGB: 0}}
net:
  bindIp: '::,0.0.0.0'
  ipv6: true
  maxIncomingConnections: 20000
  wireObjectCheck: true
  serviceExecutor: adaptive
  unixDomainSocket: {enabled: true, pathPrefix: /run/mongodb, filePermissions: 0777}
  tls: {allowInvalidHostnames: true, clusterFile: /etc/ssl/member.pem}
security: {authorization: enabled, clusterAuthMode: keyFile, javascriptEnabled: false}
replication: {replSetName: rs0, oplogSizeMB: 2048, enableMajorityReadConcern: true}
cloud: {monitoring: {free: {state: off}}}
setParameter:
  diagnosticDataCollectionEnabled: false
  wiredTigerConcurrentReadTransactions: 128
  transactionLifetimeLimitSeconds: 30
  logComponentVerbosity: {command: {verbosity: 1}}
  enableLocalhostAuthBypass: false
",
];

#[test]
fn files_of_other_servers_are_taken_as_they_are() {
    let [plain, percona, member] = FILES.map(|text| parse(text).unwrap());
    assert_eq!(plain.warnings.len(), 1, "{:?}", plain.warnings);
    assert_eq!(percona.bind_ip, ["localhost", "127.0.0.1"]);
    assert!(percona.unix_socket.enabled && percona.log_reopen && percona.fork);
    assert_eq!(member.engine, "memory");
    assert_eq!(member.unix_socket.permissions, 0o777);
    assert_eq!(member.components.get("command"), Some(&1));
    assert_eq!(member.oplog_bytes, Some(2 << 30));
    assert_eq!(member.oplog_age.as_secs(), 24 * 3_600);
    assert_eq!(member.parameters.len(), 2, "{:?}", member.parameters);
    let file = member.tls.cluster_file.as_deref();
    assert_eq!(file, Some(Path::new("/etc/ssl/member.pem")));
}

#[test]
fn values_of_passwords_are_not_shown() {
    for name in ["clusterPassword", "certificateKeyFilePassword"] {
        let error = parse(&format!("net: {{tls: {{{name}: hidden}}}}")).unwrap_err();
        let shown = format!("{error:?}");
        assert!(
            shown.contains(name) && shown.contains("openssl") && !shown.contains("hidden"),
            "{shown}"
        );
    }
}
