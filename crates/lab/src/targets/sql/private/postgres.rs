//! PostgreSQL's programs and settings.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Place;
use crate::programs::found;

/// Settings that the laboratory sets itself.
pub(super) const RESERVED: &[&str] = &[
    "engine",
    "data_directory",
    "config_file",
    "hba_file",
    "listen_addresses",
    "unix_socket_directories",
    "port",
    "external_pid_file",
    "ssl",
    "ssl_cert_file",
    "ssl_key_file",
];

/// Debian package of the server.
const PACKAGE: &str = "postgresql";

/// Directory below which Debian installs several releases.
const RELEASES: &str = "/usr/lib/postgresql";

/// Number of connections in addition to those of the load.
const MORE_CONNECTIONS: u32 = 20;

/// PostgreSQL's default size of the log between two checkpoints. A larger cache gets a log of four
/// times its size, so that pages are not written out much more often than their eviction requires.
const WAL: u64 = 1 << 30;

/// Maximum delay of the log writer, in milliseconds.
const DELAY_MAX_MS: u128 = 10_000;

/// The paths of the server and of the program that creates an empty database.
pub(super) fn programs() -> Result<(PathBuf, PathBuf), String> {
    let releases = fs::read_dir(RELEASES).into_iter().flatten().flatten();
    let newest = releases
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|release| directory(*release).join("postgres").is_file())
        .max();
    let server = match newest {
        Some(release) => Some(directory(release).join("postgres")),
        None => found("postgres", &[]).and_then(|link| link.canonicalize().ok()),
    };
    let maker = server
        .as_deref()
        .map(|server| server.with_file_name("initdb"));
    match (server, maker) {
        (Some(server), Some(maker)) if maker.is_file() => Ok((server, maker)),
        _ => Err(format!(
            "the server of PostgreSQL is missing: install the package {PACKAGE} of Debian"
        )),
    }
}

fn directory(release: u32) -> PathBuf {
    PathBuf::from(RELEASES)
        .join(release.to_string())
        .join("bin")
}

/// The command that creates an empty database.
pub(super) fn make(place: &Place<'_>) -> Result<Vec<OsString>, String> {
    let (_, maker) = programs()?;
    let mut all: Vec<OsString> = vec![maker.into(), "-D".into(), place.data().into()];
    // Any user who may enter the directory may connect (no other user sees the socket). Pages have
    // checksums, as in the other servers.
    for word in [
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--data-checksums",
        "--no-sync",
        "--no-instructions",
    ] {
        all.push(word.into());
    }
    Ok(all)
}

/// The command of the server.
pub(super) fn serve(place: &Place<'_>) -> Result<Vec<OsString>, String> {
    let (server, _) = programs()?;
    let mut all: Vec<OsString> = vec![server.into(), "-D".into(), place.data().into()];
    all.extend(settings(place));
    if apart().is_some() {
        all.extend(words([("dynamic_shared_memory_type", "sysv".into())]));
    }
    Ok(all)
}

/// Command prefix that gives a program a private System V shared memory namespace, which ends with
/// its last process. Without it, a killed server would leave its segments behind. `None` where that
/// is not permitted, as for most users except root.
pub(super) fn apart() -> Option<Vec<OsString>> {
    let unshare = found("unshare", &[])?;
    let mut trial = Command::new(&unshare);
    trial.args(["--ipc", "true"]).current_dir("/");
    let trial = trial.stdin(Stdio::null()).stderr(Stdio::null()).status();
    let allowed = trial.is_ok_and(|status| status.success());
    allowed.then(|| vec![unshare.into(), "--ipc".into(), "--".into()])
}

/// The settings of the server.
pub(super) fn settings(place: &Place<'_>) -> Vec<OsString> {
    let cache = place.options.cache.bytes();
    let memory = place.limits.memory.map_or(2 * cache, |m| m.bytes());
    let kib = |bytes: u64| format!("{}kB", bytes >> 10);
    let delay = place.options.interval.as_millis().clamp(1, DELAY_MAX_MS);
    let set = [
        ("listen_addresses", String::new()),
        ("unix_socket_directories", ".".to_owned()),
        ("port", "5432".to_owned()),
        (
            "max_connections",
            (place.clients + MORE_CONNECTIONS).to_string(),
        ),
        ("shared_buffers", kib(cache)),
        ("effective_cache_size", kib(memory)),
        (
            "maintenance_work_mem",
            kib((cache / 4).clamp(16 << 20, 1 << 30)),
        ),
        ("max_wal_size", kib((4 * cache).max(WAL))),
        ("wal_writer_delay", format!("{delay}ms")),
        ("huge_pages", "off".to_owned()),
        ("jit", "off".to_owned()),
        ("update_process_title", "off".to_owned()),
    ];
    words(set.map(|(name, value)| (name, value.into())))
}

/// Options for connections over TCP, encrypted if there is a certificate.
pub(super) fn over_tcp(port: u16, certificate: Option<&Path>) -> Vec<OsString> {
    let mut all = words([
        ("listen_addresses", "127.0.0.1".into()),
        ("port", port.to_string().into()),
    ]);
    if let Some(file) = certificate {
        all.extend(words([
            ("ssl", "on".into()),
            ("ssl_cert_file", file.into()),
            ("ssl_key_file", file.into()),
        ]));
    }
    all
}

fn words<const N: usize>(settings: [(&str, OsString); N]) -> Vec<OsString> {
    let word = |(name, value): (&str, OsString)| {
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        [OsString::from("-c"), word]
    };
    settings.into_iter().flat_map(word).collect()
}
