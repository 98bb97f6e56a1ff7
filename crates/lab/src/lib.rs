//! The laboratory: which storage engine suits this workload on this hardware, and what does it
//! cost?
//!
//! An *experiment* is a plan of steps; a *workload* makes rows and operations from a seed; a *load*
//! drives them, closed or open loop, against a *target* in a worker process of its own, inside an
//! *envelope* of enforced limits; *samples* are taken once a second; the *store* keeps what was
//! measured; a *report* shows it. The workload never knows the target; the target never knows the
//! experiment.

pub mod calibrate;
pub mod codec;
pub mod display;
pub mod doctor;
pub mod envelope;
pub mod experiment;
pub mod host;
pub mod load;
pub mod map;
pub mod probe;
mod programs;
pub mod protocol;
pub mod run;
pub mod sample;
pub mod targets;
pub mod worker;
pub mod workload;
