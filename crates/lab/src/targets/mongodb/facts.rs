//! Facts a server reports about itself, and which of them can be trusted.
//!
//! The server's process is on this machine if `/proc` has a process with the reported id that
//! started at the time the server reports: the kernel reuses ids, and a container's ids mean
//! nothing here.

use std::fs;
use std::path::{Path, PathBuf};

use bson::{Bson, Document, doc};
use kv::EngineStats;
use mongodb::error::Result;
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::sync::Client;

use crate::protocol::ServerFacts;

/// Maximum difference between the age of the process and the uptime that the server reports, in
/// seconds: the server counts from some moment during its start, the kernel in hundredths of a
/// second.
const AGE_TOLERANCE: f64 = 5.0;

/// Pending bytes below which a server counts as quiet: its own metadata may always stay dirty.
pub(super) const QUIET_BYTES: u64 = 256 << 10;

/// Query the server for its facts.
pub(super) fn gather(client: &Client, uri: &str, concern: &WriteConcern) -> Result<ServerFacts> {
    let admin = client.database("admin");
    let build = admin.run_command(doc! { "buildInfo": 1 }).run()?;
    let mut facts = ServerFacts {
        version: version(&build),
        ..ServerFacts::default()
    };
    let status = admin.run_command(doc! { "serverStatus": 1 }).run();
    match &status {
        Ok(status) => of_status(&mut facts, uri, status),
        Err(_) => facts.notes.push(
            "serverStatus is not allowed to this user: neither its CPU nor its work is seen"
                .to_owned(),
        ),
    }
    let started = admin.run_command(doc! { "getCmdLineOpts": 1 }).run();
    if let Ok(started) = started
        && let Ok(parsed) = started.get_document("parsed")
    {
        flatten("", parsed, &mut facts.options);
    }
    let place = facts
        .options
        .iter()
        .find(|(name, _)| name == "storage.dbPath");
    facts.data_dir = place
        .map(|(_, path)| PathBuf::from(path))
        .filter(|path| facts.pid.is_some() && path.is_dir());
    let w = match &concern.w {
        Some(Acknowledgment::Nodes(count)) => count.to_string(),
        Some(Acknowledgment::Majority) => "majority".to_owned(),
        Some(Acknowledgment::Custom(mode)) => mode.clone(),
        _ => "of the server".to_owned(),
    };
    let journal = concern.journal.unwrap_or(false);
    facts
        .options
        .push(("writeConcern".to_owned(), format!("w: {w}, j: {journal}")));
    Ok(facts)
}

/// The server's version, such as `8.0.1`, with the product's name if the server reports one.
fn version(build: &Document) -> String {
    let of = |name: &str| build.get_str(name).unwrap_or("unknown").to_owned();
    match build.get_str("romanescoVersion") {
        Ok(own) => format!("Romanesco {own} (as MongoDB {})", of("version")),
        Err(_) => of("version"),
    }
}

fn of_status(facts: &mut ServerFacts, uri: &str, status: &Document) {
    if let Ok(engine) = status.get_document("storageEngine")
        && let Ok(name) = engine.get_str("name")
    {
        facts.options.push(("engine".to_owned(), name.to_owned()));
    }
    let pid = status.get("pid").and_then(number).and_then(whole);
    let millis = status.get("uptimeMillis").and_then(number);
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    facts.pid = pid
        .zip(millis)
        .filter(|_| local(uri))
        .filter(|(pid, millis)| started_as_reported(Path::new("/proc"), *pid, millis / 1e3))
        .map(|(pid, _)| pid);
    if facts.pid.is_none() {
        facts.notes.push(
            "its process was not found on this machine: its CPU, its I/O and its memory are not \
             measured"
                .to_owned(),
        );
    }
    if engine_stats(status).and_then(|s| s.debt_bytes).is_none() {
        facts
            .notes
            .push("it does not say what work it owes: it is not settled".to_owned());
    }
}

/// Whether the address can refer to this machine.
pub(in crate::targets) fn local(uri: &str) -> bool {
    let hosts = uri.split("://").nth(1).unwrap_or_default();
    let hosts = hosts.split(['/', '?']).next().unwrap_or_default();
    let hosts = hosts.rsplit('@').next().unwrap_or_default();
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    hosts.split(',').all(|host| {
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        host == name.trim() || ["localhost", "[::1]"].contains(&host) || host.starts_with("127.")
    })
}

/// Whether process `pid` is `seconds` old.
pub(in crate::targets) fn started_as_reported(proc_root: &Path, pid: u32, seconds: f64) -> bool {
    let up = fs::read_to_string(proc_root.join("uptime")).unwrap_or_default();
    let stat = fs::read_to_string(proc_root.join(format!("{pid}/stat"))).unwrap_or_default();
    let up: Option<f64> = up.split(' ').next().and_then(|n| n.parse().ok());
    // Field 22 of proc(5). Fields are counted from the end of the name in parentheses, which may
    // contain any character.
    let began = stat.rsplit_once(')').and_then(|(_, rest)| {
        let ticks: f64 = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
        Some(ticks / rustix::param::clock_ticks_per_second() as f64)
    });
    let age = up.zip(began).map(|(up, began)| up - began);
    age.is_some_and(|age| (age - seconds).abs() <= AGE_TOLERANCE)
}

/// The engine's statistics in `serverStatus`: for Romanesco, from the section with the engine's
/// name; for WiredTiger, the dirty bytes of its cache, which checkpoints write out.
pub(super) fn engine_stats(status: &Document) -> Option<EngineStats> {
    let mut stats = EngineStats::default();
    let engine = status.get_document("storageEngine");
    let name = engine.ok().and_then(|e| e.get_str("name").ok());
    if let Some(engine) = name.and_then(|name| status.get_document(name).ok())
        && engine.contains_key("activity")
    {
        stats.debt_bytes = engine.get("debtBytes").and_then(number).and_then(whole);
        let activity = engine.get_array("activity").into_iter().flatten();
        stats.activity = activity
            .filter_map(Bson::as_str)
            .map(str::to_owned)
            .collect();
        return Some(stats);
    }
    let cache = status
        .get_document("wiredTiger")
        .ok()?
        .get_document("cache")
        .ok()?;
    let dirty = cache.get("tracked dirty bytes in the cache")?;
    stats.debt_bytes = number(dirty).and_then(whole);
    // The server does not report its activity, but these bytes must still be written.
    if stats.debt_bytes.is_some_and(|dirty| QUIET_BYTES < dirty) {
        stats.activity.push("dirty cache".to_owned());
    }
    Some(stats)
}

fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(n) => Some(f64::from(*n)),
        Bson::Int64(n) => Some(*n as f64),
        Bson::Double(n) => Some(*n),
        _ => None,
    }
}

fn whole(n: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be positive; saturates"
    )]
    (0.0 <= n).then_some(n as u64)
}

/// Flatten nested settings to names like `storage.dbPath`. Settings that may contain secrets are
/// omitted.
fn flatten(prefix: &str, document: &Document, into: &mut Vec<(String, String)>) {
    for (name, value) in document {
        let name = format!("{prefix}{name}");
        let secret = ["password", "keyFile", "Secret"];
        if secret.iter().any(|word| name.contains(word)) {
            continue;
        }
        match value {
            Bson::Document(below) => flatten(&format!("{name}."), below, into),
            Bson::String(text) => into.push((name, text.clone())),
            other => into.push((name, other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_the_right_age_is_the_servers() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("7")).unwrap();
        fs::write(dir.path().join("uptime"), "1000.00 9.9\n").unwrap();
        let ticks = 900 * rustix::param::clock_ticks_per_second();
        let stat = format!("7 (a) b) S 1 2 3 0 -1 4 95 0 7 0 250 50 0 0 20 0 31 0 {ticks} 3 4");
        fs::write(dir.path().join("7/stat"), stat).unwrap();
        assert!(started_as_reported(dir.path(), 7, 99.0));
        let other = started_as_reported(dir.path(), 7, 50.0);
        assert!(!other, "M3: a process of another age");
        assert!(!started_as_reported(dir.path(), 8, 99.0));
    }

    #[test]
    fn addresses_elsewhere_are_not_local() {
        assert!(local("mongodb://127.0.0.1:27017/db"));
        assert!(local("mongodb://ann@localhost"));
        assert!(!local("mongodb://example.org:27017"));
        assert!(!local("mongodb://localhost,example.org"));
    }

    #[test]
    fn the_debt_of_an_engine_is_found_where_it_is_reported() {
        let own = doc! {
            "storageEngine": { "name": "betree" },
            "betree": { "debtBytes": 5_i64, "activity": ["merge"] },
        };
        let stats = engine_stats(&own).unwrap();
        assert_eq!((stats.debt_bytes, stats.activity.len()), (Some(5), 1));
        let dirty = doc! { "wiredTiger": { "cache": { "tracked dirty bytes in the cache": 9 } } };
        assert_eq!(engine_stats(&dirty).unwrap().debt_bytes, Some(9));
        assert_eq!(engine_stats(&doc! { "ok": 1 }), None);
    }

    #[test]
    fn settings_are_flat_and_hold_no_secrets() {
        let mut found = Vec::new();
        let parsed = doc! { "storage": { "dbPath": "/x" }, "net": { "port": 1, "password": "p" } };
        flatten("", &parsed, &mut found);
        let want = [("storage.dbPath", "/x"), ("net.port", "1")];
        assert_eq!(found, want.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
