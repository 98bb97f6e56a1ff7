//! Targets: the measured systems. A target does not depend on the experiment.
//!
//! An embedded engine is a target through its `kv` factory; `null` measures the generator alone; a
//! server is a target through its driver, and either runs already or is started for the run. The
//! supported servers are this program's own, those that speak MongoDB's protocol, and SQL servers.
//! To the load, each target is a [`Database`]. To add a kind of server, add a module with its
//! address, a `Database` and a [`Connection`], and a line in [`open`] and [`answers`].

mod check;
mod database;
mod embedded;
mod managed;
mod mongodb;
mod null;
mod poll;
mod secret;
mod spec;
mod sql;

pub use check::{audit, verify};
pub use database::{Connection, Database, Live, Meter, Part, Settled, State};
pub use managed::Managed;
pub(crate) use spec::number_equals;
pub use spec::parse_targets;
pub(crate) use sql::{CODEC, FILL, TABLE_BYTES};
pub use sql::{Line, Place, Private};

use std::path::PathBuf;

use kv::Factory;
use lab_report::error::{Error, Result, unknown};
use lab_report::record::{Plan, Runs, TargetFacts, TargetSpec};

use crate::protocol::Open;

/// The engine name of a [`TargetSpec`] that is the address of a server with MongoDB's protocol.
pub const MONGODB: &str = "mongodb";

/// The option that holds the address.
pub(crate) const URI: &str = "uri";

/// How the lab runs a target.
pub enum Kind {
    /// An engine within the worker.
    Embedded(&'static dyn Factory),
    /// A server that the lab starts and stops, within the limits.
    Managed(Managed),
    /// A server of another program that the lab starts and stops, within the limits.
    Private(Private),
    /// A server that already runs, at this address; the lab does not limit it.
    Foreign(String),
}

/// The kind of a target.
///
/// # Errors
/// A message for the user: the engine is unknown.
pub fn kind(spec: &TargetSpec) -> Result<Kind> {
    if let Some(private) = Private::of(spec) {
        return private.map(Kind::Private).map_err(Error::usage);
    }
    Ok(match (spec.engine.as_str(), spec.options.get(URI)) {
        (managed::NAME, _) => Kind::Managed(Managed::of(spec)?),
        (MONGODB | sql::MYSQL | sql::POSTGRES, Some(uri)) => Kind::Foreign(uri.clone()),
        (engine, _) => Kind::Embedded(factory(engine)?),
    })
}

/// Facts about a target for reports; `None` if its specification is invalid.
#[must_use]
pub fn facts(spec: &TargetSpec) -> Option<TargetFacts> {
    let kind = kind(spec).ok()?;
    let (runs, persistent) = match &kind {
        Kind::Embedded(factory) => (Runs::InWorker, factory.capabilities().persistent),
        Kind::Managed(managed) => (Runs::Started, managed.factory.capabilities().persistent),
        Kind::Private(_) => (Runs::Started, true),
        Kind::Foreign(_) => (Runs::Foreign, true),
    };
    let writes = match &kind {
        Kind::Embedded(factory) => factory.writes(),
        Kind::Managed(managed) => managed.factory.writes(),
        Kind::Private(_) | Kind::Foreign(_) => sql::storage(spec).and_then(sql::Engine::writes),
    };
    Some(TargetFacts {
        runs,
        persistent,
        writes,
    })
}

/// Add the facts about targets to a plan written by a version that did not record them.
pub fn complete(plan: &mut Plan) {
    for spec in &mut plan.targets {
        if spec.facts.is_none() {
            spec.facts = facts(spec);
        }
    }
}

/// Option that encrypts connections, for servers that the lab starts.
const TLS: &str = "tls";

/// Why a target that stores nothing does not support tables.
const NO_TABLES: &str = "it keeps nothing, and transactions read what others wrote";

/// Why a storage engine does not support a workload of transactions.
const NO_TRANSACTIONS: &str = "its storage engine has no transactions, and the workload needs them";

/// Why a target does not support the tables that a workload declares, and transactions if it needs
/// them; `None` if it does, as far as this is known before the target is opened.
#[must_use]
pub fn tables_unsupported(spec: &TargetSpec, transactions: bool) -> Option<&'static str> {
    if spec.engine == "null" {
        return Some(NO_TABLES);
    }
    let lacks = |engine: sql::Engine| transactions && !engine.transactions();
    sql::storage(spec)
        .is_some_and(lacks)
        .then_some(NO_TRANSACTIONS)
}

/// Whether the server at an address answers.
///
/// # Errors
/// A message that states what to do next.
pub fn answers(uri: &str) -> Result<()> {
    match sql::address::is_sql(uri) {
        true => sql::answers(uri),
        false => mongodb::answers(uri),
    }
}

/// The codecs that a server supports; only MyRocks reports them.
///
/// # Errors
/// The unexpected reply or the error.
pub(crate) fn codecs(uri: &str) -> Result<Vec<String>> {
    sql::codecs(uri)
}

/// The data directory of a server, which must run on this machine.
///
/// # Errors
/// A message that states what to do next.
pub fn directory(uri: &str) -> Result<PathBuf> {
    let found = match sql::address::is_sql(uri) {
        true => sql::directory(uri),
        false => mongodb::directory(uri),
    };
    found?.ok_or_else(|| {
        Error::environment(format!(
            "{uri}: its files were not found on this machine, or not by this user; name their \
             directory where they are"
        ))
    })
}

/// Open a target.
///
/// # Errors
/// A message that states what to do next.
pub fn open(request: &Open) -> Result<Box<dyn Database>> {
    match &request.uri {
        Some(uri) if sql::address::is_sql(uri) => sql::open(uri, request),
        Some(uri) => mongodb::open(uri, request),
        None => embedded::open(request).map(|engine| Box::new(engine) as Box<dyn Database>),
    }
}

/// The project's own engine, used where one engine suffices for a measurement.
fn own_engine() -> &'static dyn Factory {
    kv_betree::factory()
}

/// Every embedded engine's factory, compiled in or not, in the order of `lab list`: the project's
/// own engine first.
#[must_use]
pub fn factories() -> Vec<&'static dyn Factory> {
    vec![
        own_engine(),
        kv_lmdb::factory(),
        kv_rocksdb::factory(),
        kv_wiredtiger::factory(),
        kv::memory::factory(),
        null::factory(),
    ]
}

/// A kind of server, for `lab list`.
pub struct ServerKind {
    /// The form of the target's name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// The reason why it cannot be started here; `None` if it can be, or if it runs already.
    pub missing: Option<String>,
}

/// All kinds of servers.
#[must_use]
pub fn servers() -> Vec<ServerKind> {
    let of = |name: &'static str, about: &'static str| ServerKind {
        name,
        about,
        missing: None,
    };
    let started = |name: &'static str, about: &'static str| {
        let asked = spec::parse_targets(name).and_then(|specs| match specs.first() {
            Some(first) => kind(first),
            None => Err(Error::usage("no target")),
        });
        let missing = asked.and_then(|kind| match kind {
            Kind::Private(private) => private.installed().map_err(Error::environment),
            _ => Ok(()),
        });
        ServerKind {
            missing: missing.err().map(|e| e.message),
            ..of(name, about)
        }
    };
    vec![
        of(
            "serve",
            "this program's document server, started for the run; serve:engine=lmdb",
        ),
        started("mariadb", "MariaDB with InnoDB, started for the run"),
        started(
            "mariadb:engine=myrocks",
            "with MyRocks; there are myisam and aria, too",
        ),
        started("postgres", "PostgreSQL, started for the run"),
        of(
            "mongodb://HOST:PORT",
            "a server that runs already and speaks MongoDB's protocol",
        ),
        of(
            "mysql://USER@HOST/DB?engine=innodb",
            "MariaDB or MySQL that runs already",
        ),
        of("postgres://USER@HOST/DB", "PostgreSQL that runs already"),
    ]
}

/// The factory with that name.
///
/// # Errors
/// A message that suggests the nearest name and lists all names.
pub fn factory(name: &str) -> Result<&'static dyn Factory> {
    let all = factories();
    if let Some(found) = all.iter().find(|f| f.name() == name) {
        return Ok(*found);
    }
    let names: Vec<&str> = all.iter().map(|f| f.name()).collect();
    Err(Error::usage(unknown("engine", name, &names)))
}

/// The engines that `lab run` measures if no target is given: all that are persistent and compiled
/// in.
#[must_use]
pub fn defaults() -> Vec<&'static str> {
    let chosen = factories()
        .into_iter()
        .filter(|f| f.available() && f.capabilities().persistent);
    chosen.map(Factory::name).collect()
}

#[cfg(test)]
mod tests {
    use kv::Writes;

    use super::*;

    #[test]
    fn targets_write_as_their_storage_engines_do() {
        let of = |text: &str| parse_targets(text).unwrap()[0].writes();
        for pages in ["mariadb", "postgres", "mysql://h/x", "postgres://h", "lmdb"] {
            assert_eq!(of(pages), Some(Writes::Pages), "{pages}");
        }
        for changes in [
            "mariadb:engine=myrocks",
            "serve",
            "betree",
            "mysql://h/x?engine=rocksdb",
        ] {
            assert_eq!(of(changes), Some(Writes::Changes), "{changes}");
        }
        for unknown in ["mariadb:engine=myisam", "memory", "null", "mongodb://h"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_plan_without_facts_is_completed_from_the_words_of_its_targets() {
        let targets = parse_targets("memory,serve,mongodb://h").unwrap();
        let runs: Vec<Runs> = targets.iter().map(|t| t.facts.unwrap().runs).collect();
        assert_eq!(runs, [Runs::InWorker, Runs::Started, Runs::Foreign]);
        for spec in &targets {
            let text = serde_json::to_string(&TargetSpec {
                facts: None,
                ..spec.clone()
            });
            let old: TargetSpec = serde_json::from_str(&text.unwrap()).unwrap();
            assert_eq!((old.facts, facts(&old)), (None, spec.facts));
        }
    }
}
