//! The worker: a child process that holds one engine and the load generator.
//!
//! The lab starts it as `romanesco lab worker`, puts it into its envelope, and then sends requests
//! (see [`protocol`]). It ends when its standard input closes, so it never outlives the lab.

mod acknowledged;
mod audit;
mod build;
mod insert;
pub mod protocol;
mod query;
mod scan;
mod serve;
mod session;
mod step;
mod verify;

pub use serve::serve;
