//! Users, their roles and their credentials. Module `access` decides what a request may do.
//!
//! - A1. A password is never stored, logged or compared: `scram` proves that both sides know it.

mod conversation;
pub(crate) mod custom;
pub(crate) mod privilege;
pub(crate) mod prover;
pub(crate) mod restriction;
pub(crate) mod roles;
pub(crate) mod scram;
pub(crate) mod users;

/// The mechanism by which a client with a certificate authenticates.
pub(crate) const X509: &str = "MONGODB-X509";

/// The database of the users of [`X509`].
pub(crate) const EXTERNAL: &str = "$external";

/// The user that members of a replica set are to each other.
pub(crate) const SYSTEM: &str = "__system";

/// Its database.
pub(crate) const SYSTEM_DATABASE: &str = "local";

pub(crate) use conversation::{Conversation, Identity};
pub(crate) use restriction::Restrictions;
pub(crate) use users::{User, Users};
