//! `local.startup_log`: a document for each start of a server that keeps an oplog, in MongoDB's
//! shape. It has no entries in the oplog, as all of `local`.

use bson::{Document, doc};
use docdb::{CollectionOptions, Op, Store};
use kv::Durability;
use query::{Namespace, Result};

use crate::config::Config;
use crate::own;
use crate::state::clock;
use crate::version;

/// Bytes of the capped collection: MongoDB's.
const BYTES: i32 = 10 << 20;

fn collection() -> Namespace {
    Namespace {
        db: "local".to_owned(),
        coll: "startup_log".to_owned(),
    }
}

/// Add this start, on a machine of the name `host`. Does nothing without an oplog.
///
/// # Errors
/// Those of storage.
pub(crate) fn note(store: &Store, config: &Config, host: &str) -> Result<()> {
    if store.oplog_limits().is_none() {
        return Ok(());
    }
    let op = Op::new(Durability::Interval);
    let ns = collection();
    if store.lookup(&ns).is_none() {
        let options = doc! { "capped": true, "size": BYTES };
        store.create(&op, &ns, CollectionOptions::parse(&options)?)?;
    }
    own::insert(store, &op, &ns, &started(config, host))
}

fn started(config: &Config, host: &str) -> Document {
    let now = clock::now();
    doc! {
        "_id": format!("{host}-{}", now.timestamp_millis()),
        "hostname": host,
        "startTime": now,
        "startTimeLocal": now.try_to_rfc3339_string().unwrap_or_default(),
        "cmdLine": config.parsed.clone(),
        "pid": i64::from(std::process::id()),
        "buildinfo": version::build_info(),
    }
}
