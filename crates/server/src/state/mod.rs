//! What lives as long as the server: counters, clocks, who is connected, what is running.

pub(crate) mod brief;
pub(crate) mod client;
pub(crate) mod clients;
pub(crate) mod clock;
pub(crate) mod concerns;
pub(crate) mod failpoint;
pub(crate) mod freeze;
pub(crate) mod guests;
pub(crate) mod log;
pub(crate) mod logins;
pub(crate) mod metrics;
pub(crate) mod operations;
pub(crate) mod own;
pub(crate) mod parameters;
pub(crate) mod pool;
pub(crate) mod profiler;
pub(crate) mod topology;
pub(crate) mod usage;
pub(crate) mod versions;

pub(crate) use client::Client;
