//! `serverStatus` and related commands. The types of the fields are part of the interface: drivers'
//! test suites and exporters fail on an int where MongoDB has a long.

mod command;
mod engine;
mod replication;
mod sections;
mod system;
mod work;

pub(super) use command::ROWS;
pub(crate) use command::{status_document, system_document};
pub(crate) use engine::reason;
