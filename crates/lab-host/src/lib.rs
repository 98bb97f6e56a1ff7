//! The machine of the laboratory: its description, its speed, and the limits of a run.
//!
//! An *envelope* limits memory and I/O through control groups; a *sample* reads the counters of the
//! process, the groups and the device; *host* describes the machine; the *probe* measures the bare
//! device, and *calibrate* stores measurements of a machine; the *doctor* reports which
//! requirements of runs the machine meets. This is the only code of the laboratory that reads
//! `/proc`, `/sys` and control groups.

pub mod calibrate;
pub mod doctor;
pub mod envelope;
pub mod host;
pub mod probe;
pub mod sample;
