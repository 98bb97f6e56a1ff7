//! Metrics of the server for Prometheus: `GET /metrics`, in its text format 0.0.4.

mod collect;
mod serve;
mod text;

pub(crate) use serve::serve;
