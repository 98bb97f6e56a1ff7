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

pub(crate) use conversation::{Conversation, Identity};
pub(crate) use restriction::Restrictions;
pub(crate) use users::{User, Users};
