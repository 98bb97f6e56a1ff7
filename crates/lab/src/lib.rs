//! The laboratory. It answers which storage engine suits a workload on given hardware, and what
//! that costs.
//!
//! An *experiment* is a plan of steps; a *workload* generates rows and operations from a seed; a
//! *load* runs the operations, closed or open loop, against a *target* in a separate worker
//! process, inside an envelope of enforced limits (`lab-host`). `lab-report` stores, compares and
//! shows the measurements. A workload does not depend on the target; a target does not depend on
//! the experiment.

pub mod display;
pub mod experiment;
pub mod load;
mod programs;
pub mod protocol;
pub mod run;
pub mod targets;
pub mod worker;
pub mod workload;
