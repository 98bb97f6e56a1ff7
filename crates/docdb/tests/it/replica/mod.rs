//! Stores as members of a replica set: appending, applying and taking back entries.

mod append;
mod apply;
mod copy;
mod history;
mod law;
mod pair;
mod replay;
mod rollback;
mod state;
