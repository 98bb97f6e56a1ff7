//! The laboratory: which storage engine suits this workload on this hardware, and what does it
//! cost?
//!
//! An *experiment* is a plan of steps; a *workload* generates rows and operations from a seed; a
//! *load* runs them, closed or open loop, against a *target* in a separate worker process, inside
//! an envelope of enforced limits (`lab-host`). `lab-report` stores, compares and shows the
//! measurements. The workload never knows the target; the target never knows the experiment.

pub mod display;
pub mod experiment;
pub mod load;
mod programs;
pub mod protocol;
pub mod run;
pub mod targets;
pub mod worker;
pub mod workload;
