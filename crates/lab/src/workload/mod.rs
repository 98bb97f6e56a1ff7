//! Workloads: rows and operations as pure functions of a seed. A workload does not depend on the
//! target.

pub mod iibench;
pub mod linkbench;
pub mod many_tables;
pub mod oltp;
pub mod program;
mod scatter;
pub mod table;
pub mod tables;
pub mod tpcc;
pub mod ycsb;
pub mod zipf;
