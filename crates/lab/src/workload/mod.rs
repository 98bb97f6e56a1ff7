//! Workloads: rows and operations as pure functions of a seed. A workload never knows the target.

pub mod iibench;
