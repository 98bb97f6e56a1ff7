//! Metrics of the server for Prometheus: `GET /metrics`, in its text format 0.0.4.

mod collect;
mod engine;
mod exporter;
mod float;
mod machine;
mod serve;
mod text;

pub(crate) use serve::serve;
