//! The parts of the server that commands share: clients, clocks, log, operations, limits.

pub(crate) mod brief;
pub(crate) mod client;
pub(crate) mod clients;
pub(crate) mod clock;
pub(crate) mod cluster_parameters;
mod components;
pub(crate) mod concerns;
pub(crate) mod failpoint;
pub(crate) mod flow;
pub(crate) mod freeze;
pub(crate) mod guests;
pub(crate) mod log;
pub(crate) mod logins;
mod operation;
pub(crate) mod operations;
pub(crate) mod parameters;
pub(crate) mod peer;
pub(crate) mod pool;
pub(crate) mod profiler;
pub(crate) mod shares;
pub(crate) mod stream;
pub(crate) mod syncs;
pub(crate) mod topology;
pub(crate) mod trust;
pub(crate) mod usage;
pub(crate) mod versions;

pub(crate) use client::Client;
pub(crate) use operation::{NO_USER, Operation, digest};
