//! The machine under the laboratory: what it is, what it does, and what it lets a run have.
//!
//! An *envelope* limits memory and I/O through control groups; a *sample* reads the counters of the
//! process, the groups and the device; *host* describes the machine; the *probe* measures the bare
//! device, and *calibrate* keeps what a machine was found to do; the *doctor* says what of it will
//! work. This is the only code of the laboratory that reads `/proc`, `/sys` and control groups.

pub mod calibrate;
pub mod doctor;
pub mod envelope;
pub mod host;
pub mod probe;
pub mod sample;
