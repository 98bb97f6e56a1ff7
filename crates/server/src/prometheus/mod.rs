//! Metrics of the server for Prometheus: `GET /metrics`, in its text format 0.0.4; and, if the
//! settings say so, a page about the server at `/`.

mod collect;
mod engine;
mod exporter;
mod float;
mod machine;
mod map;
mod page;
mod replication;
mod sample;
mod serve;
mod text;

pub(crate) use sample::keep_history;
pub(crate) use serve::{places, serve};
