//! MariaDB's programs and settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kv::{Codec, Durability};
use rustix::process::geteuid;

use super::super::engine::Engine;
use super::{CODEC, FILL, Place};
use crate::programs::found;

/// Name of the socket in the data directory.
pub(super) const SOCKET: &str = "mysql.sock";

/// Settings that the laboratory sets itself.
pub(super) const RESERVED: &[&str] = &[
    "datadir",
    "socket",
    "port",
    "bind_address",
    "skip_networking",
    "user",
    "pid_file",
    "tmpdir",
    "defaults_file",
    "no_defaults",
    "log_error",
    "basedir",
    "ssl_cert",
    "ssl_key",
];

/// Debian package of the server.
const PACKAGE: &str = "mariadb-server";

/// Debian package of MyRocks.
const ROCKSDB_PACKAGE: &str = "mariadb-plugin-rocksdb";

/// Size in bytes of the caches of engines that are not measured: the smallest that works.
const LEAST: u64 = 8 << 20;

/// MariaDB's default size of the redo log; a larger cache gets an equally large log, so that dirty
/// pages may stay in the cache.
const REDO: u64 = 96 << 20;

/// Page writes per second in the background if the device is not capped. MariaDB's default, 200,
/// suits rotating disks.
const CAPACITY: u64 = 2000;

/// Number of connections in addition to those of the load.
const MORE_CONNECTIONS: u32 = 20;

/// Directories of system programs that are not on a user's path.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/libexec"];

fn program(name: &str) -> Result<PathBuf, String> {
    found(name, &SYSTEM)
        .ok_or_else(|| format!("{name} is missing: install the package {PACKAGE} of Debian"))
}

/// Check that the server and the storage engine are installed.
pub(super) fn installed(engine: Engine, own: &BTreeMap<String, String>) -> Result<(), String> {
    program("mariadbd")?;
    program("mariadb-install-db")?;
    if engine == Engine::MyRocks {
        let set = own.get("plugin_dir").map(PathBuf::from);
        let usual = ["/usr/lib/mysql/plugin", "/usr/lib64/mysql/plugin"].map(PathBuf::from);
        let mut all = set.into_iter().chain(usual);
        if !all.any(|directory| directory.join("ha_rocksdb.so").is_file()) {
            return Err(format!(
                "MyRocks is missing: install the package {ROCKSDB_PACKAGE} of Debian (or name the \
                 directory of ha_rocksdb.so: mariadb:engine=myrocks,plugin_dir=PATH)"
            ));
        }
    }
    Ok(())
}

fn set(name: &str, value: impl ToString) -> OsString {
    format!("--{name}={}", value.to_string()).into()
}

fn path(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

/// Options shared by the program that creates the database and the server.
fn common(place: &Place<'_>) -> Vec<OsString> {
    let mut all = vec![
        OsString::from("--no-defaults"),
        path("datadir", &place.data()),
        path("tmpdir", &place.temporary()),
        set("innodb_log_file_size", redo(place)),
    ];
    if geteuid().is_root() {
        // The server must not change to another user: the directory is private, and no other user
        // could enter it.
        all.push(set("user", "root"));
    }
    all
}

fn redo(place: &Place<'_>) -> u64 {
    place.options.cache.bytes().clamp(REDO, 64 << 30)
}

/// The command that creates an empty database.
pub(super) fn make(place: &Place<'_>) -> Result<Vec<OsString>, String> {
    let mut all = vec![program("mariadb-install-db")?.into()];
    all.extend(common(place));
    all.push("--auth-root-authentication-method=normal".into());
    all.push("--skip-test-db".into());
    all.push(set("innodb_buffer_pool_size", LEAST * 2));
    all.push(set("innodb_fast_shutdown", 1));
    Ok(all)
}

/// The command of the server.
pub(super) fn serve(place: &Place<'_>, engine: Engine) -> Result<Vec<OsString>, String> {
    let mut all = vec![program("mariadbd")?.into()];
    all.extend(common(place));
    all.extend(settings(place, engine));
    Ok(all)
}

/// The settings of the server.
pub(super) fn settings(place: &Place<'_>, engine: Engine) -> Vec<OsString> {
    let cache = place.options.cache.bytes();
    let of = |measured: Engine| if measured == engine { cache } else { LEAST };
    let mut all = vec![
        "--skip-networking".into(),
        set("socket", SOCKET),
        set("pid_file", "mariadbd.pid"),
        "--skip-name-resolve".into(),
        "--skip-log-bin".into(),
        set("performance_schema", "OFF"),
        set("default_storage_engine", engine.sql()),
        set("max_connections", place.clients + MORE_CONNECTIONS),
        set("max_prepared_stmt_count", 1 << 20),
        set("innodb_buffer_pool_size", of(Engine::InnoDb)),
        set("key_buffer_size", of(Engine::MyIsam)),
        set("aria_pagecache_buffer_size", of(Engine::Aria)),
        // Do not load the cache contents of another run.
        set("innodb_buffer_pool_dump_at_shutdown", "OFF"),
        set("innodb_buffer_pool_load_at_startup", "OFF"),
    ];
    match engine {
        Engine::InnoDb => all.extend(innodb(place)),
        Engine::MyRocks => all.extend(myrocks(place)),
        Engine::Aria => all.extend(aria(place)),
        Engine::MyIsam => all.push(set("myisam_sort_buffer_size", sorting(place))),
        Engine::Heap => {}
    }
    all
}

/// Options for the data encryption key in this file. New tables are encrypted when they are
/// created, so no threads are needed for old ones.
pub(super) fn encryption(key: &Path, engine: Engine) -> Vec<OsString> {
    let mut all = vec![
        set("plugin_load_add", "file_key_management"),
        path("file_key_management_filename", key),
        set("encrypt_tmp_files", "ON"),
    ];
    if engine == Engine::Aria {
        all.push(set("aria_encrypt_tables", "ON"));
    } else {
        all.push(set("innodb_encrypt_tables", "FORCE"));
        all.push(set("innodb_encrypt_log", "ON"));
    }
    all
}

/// Options for connections over TCP, encrypted if there is a certificate.
pub(super) fn over_tcp(port: u16, certificate: Option<&Path>) -> Vec<OsString> {
    let mut all = vec![
        set("skip_networking", 0),
        set("bind_address", "127.0.0.1"),
        set("port", port),
    ];
    if let Some(file) = certificate {
        all.extend([path("ssl_cert", file), path("ssl_key", file)]);
    }
    all
}

/// Value 1: the log is synced in every commit; 2: it is written in every commit and synced once a
/// second.
fn log_at_commit(level: Durability) -> u8 {
    match level {
        Durability::Sync | Durability::Group => 1,
        _ => 2,
    }
}

fn innodb(place: &Place<'_>) -> Vec<OsString> {
    let cache = place.options.cache.bytes();
    let method = if place.direct() { "O_DIRECT" } else { "fsync" };
    let cap = place.limits.write_iops.unwrap_or(CAPACITY);
    let capacity = cap.clamp(100, CAPACITY);
    let mut all = vec![
        set("innodb_flush_method", method),
        set(
            "innodb_flush_log_at_trx_commit",
            log_at_commit(place.durability),
        ),
        // By default 16 MiB, allocated twice, independent of the cache size.
        set(
            "innodb_log_buffer_size",
            (cache / 16).clamp(2 << 20, 16 << 20),
        ),
        set("innodb_io_capacity", capacity),
        set("innodb_io_capacity_max", 2 * capacity),
        set("innodb_monitor_enable", "module_index"),
    ];
    if let Some(fill) = place.options.own.get(FILL) {
        all.push(set("innodb_fill_factor", fill));
    }
    all
}

/// RocksDB's name of a codec; zlib and zstd use their default levels, 6 and 3.
pub(super) fn codec(name: &str) -> Option<&'static str> {
    match name {
        "none" => Some("kNoCompression"),
        "snappy" => Some("kSnappyCompression"),
        "lz4" => Some("kLZ4Compression"),
        "zlib" => Some("kZlibCompression"),
        "zstd" => Some("kZSTD"),
        _ => None,
    }
}

/// The settings of MyRocks, as for the embedded RocksDB: a quarter of the cache for all memtables,
/// an eighth for one.
fn myrocks(place: &Place<'_>) -> Vec<OsString> {
    let cache = place.options.cache.bytes();
    let direct = u8::from(place.direct());
    let named = place.options.own.get(CODEC).and_then(|name| codec(name));
    let codec = named.unwrap_or(match place.options.codec {
        Codec::Fast => "kLZ4Compression",
        Codec::None => "kNoCompression",
    });
    let family = [
        format!("write_buffer_size={}", cache / 8),
        format!("target_file_size_base={}", (cache / 4).max(8 << 20)),
        format!("max_bytes_for_level_base={}", (cache / 2).max(32 << 20)),
        "level_compaction_dynamic_level_bytes=true".to_owned(),
        format!("compression={codec}"),
        format!("bottommost_compression={codec}"),
        "block_based_table_factory={block_size=16384;filter_policy=bloomfilter:10:false;\
         cache_index_and_filter_blocks=1}"
            .to_owned(),
    ];
    let mut all = vec![
        set("plugin_load_add", "ha_rocksdb"),
        set("rocksdb_block_cache_size", cache - cache / 4),
        set("rocksdb_db_write_buffer_size", cache / 4),
        set("rocksdb_default_cf_options", family.join(";")),
        // Buffers of index builds; the defaults are 64 MiB and 1 GiB.
        set(
            "rocksdb_merge_buf_size",
            (cache / 8).clamp(1 << 20, 64 << 20),
        ),
        set(
            "rocksdb_merge_combine_read_size",
            (cache / 4).clamp(4 << 20, 1 << 30),
        ),
        // As in InnoDB: without detection, a deadlock lasts until a lock timeout.
        set("rocksdb_deadlock_detect", "ON"),
        set("rocksdb_max_background_jobs", place.options.threads.max(2)),
        set("rocksdb_use_direct_reads", direct),
        set("rocksdb_use_direct_io_for_flush_and_compaction", direct),
        set(
            "rocksdb_flush_log_at_trx_commit",
            log_at_commit(place.durability),
        ),
    ];
    if place.durability == Durability::None {
        all.push(set("rocksdb_write_disable_wal", "ON"));
    }
    all
}

fn aria(place: &Place<'_>) -> Vec<OsString> {
    let micros = place.options.interval.as_micros();
    let mut all = vec![set("aria_sort_buffer_size", sorting(place))];
    match place.durability {
        Durability::Interval => {
            all.push(set("aria_group_commit", "soft"));
            all.push(set("aria_group_commit_interval", micros));
        }
        _ => all.push(set("aria_group_commit", "none")),
    }
    all
}

/// Memory for index builds, in bytes, of engines that sort outside their caches.
fn sorting(place: &Place<'_>) -> u64 {
    (place.options.cache.bytes() / 4).clamp(1 << 20, 1 << 30)
}
