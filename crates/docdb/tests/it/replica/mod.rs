//! Stores as members of a replica set: appending, applying and taking back entries.

mod append;
mod pair;
