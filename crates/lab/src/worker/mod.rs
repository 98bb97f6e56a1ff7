//! The worker: a child process that holds the load generator and one target, which is an engine or
//! a connection to a server.
//!
//! The lab starts it as `romanesco lab worker`, puts it into its envelope, and then sends requests
//! (see [`crate::protocol`]). It ends when its standard input closes, so it never outlives the lab.

mod acknowledged;
mod build;
mod counting;
mod insert;
mod meter;
mod program;
mod query;
mod scan;
mod serve;
mod session;
mod step;
#[cfg(test)]
mod tests;

pub use serve::serve;
