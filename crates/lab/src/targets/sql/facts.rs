//! Facts a server reports about itself: its version, its process, and every setting with its
//! default.

use std::fs;
use std::path::{Path, PathBuf};

use lab_report::error::{Error, Result};

use super::address::{Address, Protocol, Way};
use super::engine::Engine;
use super::stats;
use super::value::Value;
use super::wire::Wire;
use crate::protocol::{Configured, ServerFacts};
use crate::targets::mongodb::{local, started_as_reported};

/// Query the server for its facts.
pub(super) fn gather(wire: &mut dyn Wire, address: &Address) -> Result<ServerFacts> {
    let mut facts = ServerFacts {
        version: version(wire, address)?,
        settings: settings(wire, address.protocol),
        ..ServerFacts::default()
    };
    let engine = address.engine;
    let settings = &facts.settings;
    facts.torn_pages = Some(engine.torn_pages(|name| {
        let found = settings.iter().find(|setting| setting.name == name)?;
        Some(found.value.clone())
    }));
    facts.notes.extend(stats::unreported(wire, engine));
    if engine == Engine::MyRocks {
        let asked = wire.all("SHOW GLOBAL VARIABLES LIKE 'rocksdb_git_hash'", Vec::new());
        if let Some([_, Value::Text(hash)]) = asked
            .ok()
            .as_ref()
            .and_then(|r| r.first())
            .map(Vec::as_slice)
        {
            facts
                .options
                .push(("rocksdb_git_hash".to_owned(), hash.clone()));
        }
    }
    if address.way != Way::Usual {
        let version = encryption(wire, address.protocol);
        if version.is_none() && address.way != Way::Tcp {
            return Err(Error::target(format!(
                "{}: connections are not encrypted",
                address.text
            )));
        }
        let version = version.unwrap_or("none".to_owned());
        facts.options.push(("tls_version".to_owned(), version));
    }
    if !address.managed() {
        process(wire, address, &mut facts);
    }
    if facts.settings.is_empty() {
        facts
            .notes
            .push("it does not tell its settings to this user".to_owned());
    }
    Ok(facts)
}

/// Run a query whose result is a single text.
fn text(wire: &mut dyn Wire, question: &str) -> Option<String> {
    let all = wire.all(question, Vec::new()).ok()?;
    match all.first()?.first()? {
        Value::Text(text) => Some(text.clone()),
        Value::Int(n) => Some(n.to_string()),
        Value::Float(n) => Some(n.to_string()),
        Value::Null | Value::Bytes(_) => None,
    }
}

/// The protocol that encrypts the connection; `None` if it is not encrypted.
fn encryption(wire: &mut dyn Wire, protocol: Protocol) -> Option<String> {
    let (asked, column) = match protocol {
        Protocol::MySql => ("SHOW SESSION STATUS LIKE 'Ssl_version'", 1),
        Protocol::Postgres => (
            "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
            0,
        ),
    };
    let all = wire.all(asked, Vec::new()).ok()?;
    match all.first()?.get(column)? {
        Value::Text(version) if !version.is_empty() => Some(version.clone()),
        _ => None,
    }
}

/// The server's version, such as `MariaDB 10.11.19-MariaDB-0+deb12u1`.
fn version(wire: &mut dyn Wire, address: &Address) -> Result<String> {
    let unknown = || Error::target(format!("{} does not report its version", address.text));
    Ok(match address.protocol {
        Protocol::MySql => {
            let version = text(wire, "SELECT VERSION()").ok_or_else(unknown)?;
            let product = if version.contains("MariaDB") {
                "MariaDB"
            } else {
                "MySQL"
            };
            format!("{product} {version}")
        }
        Protocol::Postgres => {
            let version = text(wire, "SHOW server_version").ok_or_else(unknown)?;
            format!("PostgreSQL {version}")
        }
    })
}

/// All settings, by name. Empty if the server does not report them.
fn settings(wire: &mut dyn Wire, protocol: Protocol) -> Vec<Configured> {
    let questions: &[&str] = match protocol {
        Protocol::MySql => &[
            // For a setting that was neither set nor detected, the current value is the default of
            // this build.
            "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, IF(GLOBAL_VALUE_ORIGIN = 'COMPILE-TIME', \
             GLOBAL_VALUE, DEFAULT_VALUE) FROM information_schema.SYSTEM_VARIABLES WHERE \
             GLOBAL_VALUE IS NOT NULL ORDER BY 1",
            // MySQL has no table of default values.
            "SHOW GLOBAL VARIABLES",
        ],
        Protocol::Postgres => &[
            // Settings of this connection are not settings of the server.
            "SELECT name, setting || COALESCE(' x ' || unit, ''), CASE WHEN source IN ('client', \
             'session') THEN setting ELSE boot_val END || COALESCE(' x ' || unit, '') FROM \
             pg_settings ORDER BY 1",
        ],
    };
    let answers = questions.iter().find_map(|q| wire.all(q, Vec::new()).ok());
    let mut all = Vec::new();
    for row in answers.unwrap_or_default() {
        let mut texts = row.into_iter().map(|value| match value {
            Value::Text(text) => Some(text),
            _ => None,
        });
        let (Some(Some(name)), Some(Some(value))) = (texts.next(), texts.next()) else {
            continue;
        };
        if name.contains("password") {
            continue;
        }
        let default = texts.next().flatten();
        all.push(Configured {
            name,
            value,
            default,
        });
    }
    all
}

/// Find the process and the directory of a server that the laboratory did not start, if they are on
/// this machine.
fn process(wire: &mut dyn Wire, address: &Address, facts: &mut ServerFacts) {
    let (pid, age, directory) = match address.protocol {
        Protocol::MySql => {
            let directory = text(wire, "SELECT @@datadir").map(PathBuf::from);
            let file = text(wire, "SELECT @@pid_file").map(PathBuf::from);
            let file = directory.as_deref().zip(file).map(|(d, file)| d.join(file));
            let pid = file.and_then(|file| fs::read_to_string(file).ok());
            let up = wire.all("SHOW GLOBAL STATUS LIKE 'Uptime'", Vec::new());
            let up = up.ok().and_then(|all| match all.first()?.get(1)? {
                Value::Text(text) => text.parse::<f64>().ok(),
                _ => None,
            });
            (pid.and_then(|p| p.trim().parse().ok()), up, directory)
        }
        Protocol::Postgres => {
            let directory = text(wire, "SHOW data_directory").map(PathBuf::from);
            let own = text(wire, "SELECT pg_backend_pid()");
            let age = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8";
            let age = text(wire, age).and_then(|t| t.parse().ok());
            (own.and_then(|pid| parent(&pid)), age, directory)
        }
    };
    let proc_root = Path::new("/proc");
    facts.pid = pid
        .zip(age)
        .filter(|_| local(&address.text))
        .filter(|(pid, age)| started_as_reported(proc_root, *pid, *age))
        .map(|(pid, _)| pid);
    facts.data_dir = directory.filter(|path| facts.pid.is_some() && path.is_dir());
    if facts.pid.is_none() {
        let note = "its process was not found on this machine: its CPU, its I/O and its memory are \
                    not measured";
        facts.notes.push(note.to_owned());
    }
}

/// The parent process of a process.
fn parent(pid: &str) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
