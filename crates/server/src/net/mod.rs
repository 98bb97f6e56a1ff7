//! Sockets: listening, and one task for each connection.

mod connection;
mod listener;
mod open;
mod socket;
mod tls;

pub(crate) use listener::{accept, listen};
pub(crate) use tls::Tls;
