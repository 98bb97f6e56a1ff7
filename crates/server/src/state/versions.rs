//! `admin.system.version`: the versions that describe the stored data, where tools look for them.
//!
//! `mongodump --dumpDbUsersAndRoles` refuses a server without the document `authSchema`, and copies
//! the collection into the dump; `mongorestore` compares it with the parameter `authSchemaVersion`
//! before it restores users and roles.

use bson::{Document, doc};
use docdb::{Op, Store};
use kv::Durability;
use query::{Namespace, Result};

use crate::own;
use crate::version::{AUTH_SCHEMA, FEATURES};

fn collection() -> Namespace {
    Namespace {
        db: "admin".to_owned(),
        coll: "system.version".to_owned(),
    }
}

/// Write the versions of this server where they are missing or differ. A store that is up to date
/// is only read.
///
/// # Errors
/// Those of storage.
pub(crate) fn ensure(store: &Store) -> Result<()> {
    let op = Op::new(Durability::Interval);
    let stored = own::find(store, &op, &collection(), &Document::new())?;
    let mut wanted = vec![
        doc! {"_id": "featureCompatibilityVersion", "version": FEATURES},
        doc! {"_id": "authSchema", "currentVersion": AUTH_SCHEMA},
    ];
    wanted.retain(|document| !stored.contains(document));
    own::put(store, &op, &collection(), &wanted)
}
