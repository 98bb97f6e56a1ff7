//! `local.system.replset`: the configuration of the replica set, for clients that read it there.
//! The server itself does not: a member keeps its configuration in a file (`cluster::file`).

use bson::{Document, doc};
use docdb::{Op, Store};
use kv::Durability;
use query::{Namespace, Result};

use crate::own;

/// Replace the stored configuration.
///
/// # Errors
/// Those of storage.
pub(crate) fn put(store: &Store, config: &Document) -> Result<()> {
    let op = Op::new(Durability::Interval);
    let ns = Namespace {
        db: "local".to_owned(),
        coll: "system.replset".to_owned(),
    };
    // A store that was a member of a set of another name has its configuration.
    if let Some(name) = config.get("_id") {
        own::delete(store, &op, &ns, &doc! {"_id": {"$ne": name.clone()}})?;
    }
    own::put(store, &op, &ns, std::slice::from_ref(config))
}
