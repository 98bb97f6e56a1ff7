//! The laboratory: which storage engine suits this workload on this hardware, and what does it
//! cost?
//!
//! An *experiment* is a plan of steps; a *workload* makes rows and operations from a seed; a *load*
//! drives them, closed or open loop, against a *target* in a worker process of its own, inside an
//! *envelope* of enforced limits; *samples* are taken once a second; the *store* keeps what was
//! measured; a *report* shows it. The workload never knows the target; the target never knows the
//! experiment.

pub mod analysis;
pub mod calibrate;
pub mod codec;
pub mod cost;
pub mod display;
pub mod doctor;
pub mod envelope;
pub mod error;
pub mod experiment;
pub mod export;
#[cfg(test)]
mod fixture;
mod format;
pub mod host;
pub mod load;
pub mod map;
pub mod probe;
mod programs;
pub mod protocol;
pub mod published;
pub mod record;
pub mod report;
pub mod run;
pub mod sample;
pub mod store;
pub mod targets;
pub mod worker;
pub mod workload;

pub use error::{Error, Failure, Result, USAGE};
