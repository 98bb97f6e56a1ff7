//! Sockets: listening, and one task for each connection.

mod bind;
mod connection;
mod listener;
mod open;
mod socket;

pub(crate) use bind::{Listening, SocketFile, Sockets};
pub(crate) use listener::accept;
