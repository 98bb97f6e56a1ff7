//! The MongoDB version that this server emulates, and its own version.

/// The MongoDB version that drivers and tools see.
pub const MONGODB: &str = "8.0.4";

/// The same as an array of numbers.
pub(crate) const MONGODB_ARRAY: [i32; 4] = [8, 0, 4, 0];

/// `featureCompatibilityVersion`.
pub(crate) const FEATURES: &str = "8.0";

/// `authSchemaVersion`: the form in which users and roles are stored; 5 is that of SCRAM.
pub(crate) const AUTH_SCHEMA: i32 = 5;

/// The highest version of the wire protocol spoken: that of MongoDB 8.0, which has the command
/// `bulkWrite`.
pub(crate) const WIRE: i32 = 25;

/// The version of Romanesco.
pub const ROMANESCO: &str = env!("CARGO_PKG_VERSION");
