//! Which MongoDB this server behaves like, and which Romanesco it is.

/// The version drivers and tools decide by.
pub const MONGODB: &str = "7.0.14";

/// The same in numbers.
pub(crate) const MONGODB_ARRAY: [i32; 4] = [7, 0, 14, 0];

/// `featureCompatibilityVersion`.
pub(crate) const FEATURES: &str = "7.0";

/// The highest version of the wire protocol spoken: that of MongoDB 7.0. Version 25 says that the
/// command `bulkWrite` is there.
pub(crate) const WIRE: i32 = 21;

/// Our own.
pub const ROMANESCO: &str = env!("CARGO_PKG_VERSION");
