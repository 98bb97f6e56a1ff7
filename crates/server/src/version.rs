//! The MongoDB version that this server emulates, and its own version.

use bson::{Document, doc};
use wire::limits;

/// The MongoDB version that drivers and tools see.
pub const MONGODB: &str = "8.0.4";

/// The same as an array of numbers.
const MONGODB_ARRAY: [i32; 4] = [8, 0, 4, 0];

/// `featureCompatibilityVersion`.
pub(crate) const FEATURES: &str = "8.0";

/// `authSchemaVersion`: the form in which users and roles are stored; 5 is that of SCRAM.
pub(crate) const AUTH_SCHEMA: i32 = 5;

/// The highest version of the wire protocol spoken: that of MongoDB 8.0, which has the command
/// `bulkWrite`.
pub(crate) const WIRE: i32 = 25;

/// The version of Romanesco.
pub const ROMANESCO: &str = env!("CARGO_PKG_VERSION");

/// What `buildInfo` returns.
pub(crate) fn build_info() -> Document {
    doc! {
        "version": MONGODB,
        "romanescoVersion": ROMANESCO,
        "gitVersion": concat!("romanesco-", env!("CARGO_PKG_VERSION")),
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "sysInfo": "deprecated",
        "versionArray": MONGODB_ARRAY.to_vec(),
        "openssl": { "running": "none", "compiled": "none" },
        "buildEnvironment": {
            "distarch": std::env::consts::ARCH,
            "target_arch": std::env::consts::ARCH,
            "target_os": std::env::consts::OS,
        },
        "bits": i32::try_from(usize::BITS).unwrap_or(64),
        "debug": cfg!(debug_assertions),
        "maxBsonObjectSize": i32::try_from(limits::MAX_DOCUMENT).unwrap_or(i32::MAX),
        "storageEngines": ["betree", "lmdb", "rocksdb", "wiredTiger"],
    }
}
