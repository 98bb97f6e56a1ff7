//! Which limits an envelope enforces, in a form that results store and reports print.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use lab_report::record::LimitKind;

/// The control groups that an envelope uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Version 1 hierarchies.
    V1,
    /// The unified hierarchy of version 2.
    V2,
    /// One controller in version 1, the other in version 2.
    Hybrid,
    /// No control groups: nothing is capped.
    None,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::V1 => "cgroup v1",
            Mode::V2 => "cgroup v2",
            Mode::Hybrid => "cgroup v1 and v2",
            Mode::None => "no cgroups",
        })
    }
}

/// State of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The limit was not requested.
    NotRequested,
    /// The limit is in force: written, and read back as `effective`.
    Verified {
        /// The value that the kernel returned.
        effective: u64,
    },
    /// The limit was requested and is not in force.
    NotCapped {
        /// The reason.
        reason: String,
    },
}

/// One limit: its requested value and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// The limited quantity.
    pub limit: LimitKind,
    /// The requested value, in bytes, bytes per second or operations per second.
    pub requested: Option<u64>,
    /// The state.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl LimitStatus {
    pub(crate) fn not_requested(limit: LimitKind) -> LimitStatus {
        LimitStatus {
            limit,
            requested: None,
            outcome: Outcome::NotRequested,
        }
    }

    pub(crate) fn verified(limit: LimitKind, requested: u64, effective: u64) -> LimitStatus {
        LimitStatus {
            limit,
            requested: Some(requested),
            outcome: Outcome::Verified { effective },
        }
    }

    /// The status of a limit that is not capped for `reason`, or not requested if `requested` is
    /// `None`.
    pub(crate) fn not_capped(
        limit: LimitKind,
        requested: Option<u64>,
        reason: &str,
    ) -> LimitStatus {
        if requested.is_none() {
            return LimitStatus::not_requested(limit);
        }
        LimitStatus {
            limit,
            requested,
            outcome: Outcome::NotCapped {
                reason: reason.to_owned(),
            },
        }
    }
}

/// All limits: those that an envelope enforces and those that it could not enforce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeStatus {
    /// The control groups in use.
    pub mode: Mode,
    /// Every limit, requested or not.
    pub limits: Vec<LimitStatus>,
    /// The whole disk that the I/O limits apply to, as `major:minor`.
    pub device: Option<String>,
    /// The directories of the groups.
    pub groups: Vec<PathBuf>,
    /// Notes for the reader of a result, such as that buffered writes are not capped.
    pub warnings: Vec<String>,
}

impl EnvelopeStatus {
    pub(crate) fn new(mode: Mode) -> EnvelopeStatus {
        EnvelopeStatus {
            mode,
            limits: Vec::new(),
            device: None,
            groups: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// True if every requested limit is in force and verified (also if none was requested).
    #[must_use]
    pub fn fully_enforced(&self) -> bool {
        !self
            .limits
            .iter()
            .any(|l| matches!(l.outcome, Outcome::NotCapped { .. }))
    }

    /// Whether operations per second are capped, for reads and for writes.
    #[must_use]
    pub fn caps_operations(&self) -> bool {
        [LimitKind::ReadIops, LimitKind::WriteIops]
            .into_iter()
            .filter_map(|kind| self.limit(kind))
            .filter(|limit| matches!(limit.outcome, Outcome::Verified { .. }))
            .count()
            == 2
    }

    /// The status of one limit.
    #[must_use]
    pub fn limit(&self, kind: LimitKind) -> Option<&LimitStatus> {
        self.limits.iter().find(|l| l.limit == kind)
    }
}

impl fmt::Display for EnvelopeStatus {
    /// One line per requested limit, then the warnings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mode)?;
        if let Some(device) = &self.device {
            write!(f, ", device {device}")?;
        }
        for limit in &self.limits {
            let kind = limit.limit;
            let requested = limit.requested.unwrap_or_default();
            match &limit.outcome {
                Outcome::NotRequested => {}
                Outcome::Verified { effective } => {
                    write!(f, "\n{kind}: {requested}, verified ({effective} in force)")?;
                }
                Outcome::NotCapped { reason } => {
                    write!(f, "\n{kind}: {requested} asked, NOT CAPPED: {reason}")?;
                }
            }
        }
        for warning in &self.warnings {
            write!(f, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}
