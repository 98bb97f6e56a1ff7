//! Sockets: listening, and one task for each connection.

mod connection;
mod listener;

pub(crate) use listener::{accept, listen};
