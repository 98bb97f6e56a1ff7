//! Checks whether the I/O caps hold: a worker inside an envelope measures the rate under each cap.

use std::path::Path;

use lab_host::envelope::{Cgroups, Envelope, data_device};
use lab_host::probe::CapCheck;
use lab_report::error::{Error, Result};
use lab_report::record::Limits;

use super::child::Worker;
use super::exchange::unexpected;
use super::interrupt::Interrupt;
use crate::protocol::{Event, Request};

/// Measure every cap of `limits` for `seconds` each, with a file in `directory`.
///
/// # Errors
/// The reason why the caps cannot be put in force or the device cannot be measured.
pub fn check(
    program: &Path,
    directory: &Path,
    limits: &Limits,
    seconds: f64,
    interrupt: &Interrupt,
) -> Result<Vec<CapCheck>> {
    let device = data_device(directory).ok();
    let envelope = Envelope::create(&Cgroups::detect(), limits, device)?;
    if !envelope.status().fully_enforced() {
        return Err(Error::environment(envelope.status().to_string()));
    }
    let log = directory.join("worker.log");
    let mut worker = Worker::start(program, &[], &log, Some(&envelope))?;
    let request = Request::Caps {
        directory: directory.to_owned(),
        limits: *limits,
        seconds,
    };
    worker.ask(&request, &envelope)?;
    let checks = match worker.event(interrupt, &envelope)? {
        Event::Caps { checks } => checks,
        other => {
            return Err(unexpected(&other));
        }
    };
    worker.close(interrupt, &envelope)?;
    Ok(checks)
}
