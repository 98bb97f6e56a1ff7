//! Sockets: listening, and one task for each connection.

mod connection;
mod listener;
mod open;
mod socket;

pub(crate) use listener::{accept, listen};
