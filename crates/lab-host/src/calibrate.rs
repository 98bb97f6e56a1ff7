//! Calibration: the speed of this machine's storage device, and the difference between repeated
//! measurements of the same target (the A/A noise floor). Stored per host; every later run takes a
//! copy.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use lab_report::error::{Error, Result};
use lab_report::record::SCHEMA;
use lab_report::store;
use serde::{Deserialize, Serialize};

use crate::probe::{CapCheck, ProbeResult};

/// Calibration of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Version of the record: [`SCHEMA`].
    pub schema: u32,
    /// Time of the calibration, RFC 3339 in UTC.
    pub at: String,
    /// The machine's fingerprint; a calibration of another machine is not used.
    pub host: String,
    /// The target of the A/A runs.
    pub target: String,
    /// Number of repeats.
    pub repeats: u32,
    /// Noise floor by metric, as a relative difference (0.03 = 3 %).
    pub noise: BTreeMap<String, f64>,
    /// Measured speed of the device.
    pub device: Option<ProbeResult>,
    /// Whether the I/O caps hold on this machine; empty if they cannot be applied.
    pub caps: Vec<CapCheck>,
}

impl Calibration {
    /// Create a calibration with the current time.
    #[must_use]
    pub fn new(
        target: &str,
        repeats: u32,
        noise: BTreeMap<String, f64>,
        device: Option<ProbeResult>,
        caps: Vec<CapCheck>,
    ) -> Calibration {
        Calibration {
            schema: SCHEMA,
            at: store::now_text(),
            host: fingerprint(),
            target: target.to_owned(),
            repeats,
            noise,
            device,
            caps,
        }
    }

    /// Store the calibration for later runs on this host. Returns the path.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn keep(&self) -> Result<PathBuf> {
        let path = path().ok_or_else(|| {
            Error::environment("no place to keep the calibration: set HOME or XDG_STATE_HOME")
        })?;
        if let Some(dir) = path.parent() {
            vfs::ensure_dir(dir).map_err(|e| Error::io("create", dir, &e))?;
        }
        store::write_json(&path, self)?;
        Ok(path)
    }
}

/// The calibration of this host, if one is stored and readable.
#[must_use]
pub fn stored() -> Option<Calibration> {
    let bytes = fs::read(path()?).ok()?;
    let calibration: Calibration = serde_json::from_slice(&bytes).ok()?;
    (calibration.schema == SCHEMA && calibration.host == fingerprint()).then_some(calibration)
}

fn fingerprint() -> String {
    crate::host::fingerprint()
}

/// The path of the calibration: `$XDG_STATE_HOME/romanesco/calibration.json`, or below
/// `~/.local/state`.
fn path() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(
        state
            .or_else(home)?
            .join("romanesco")
            .join("calibration.json"),
    )
}
