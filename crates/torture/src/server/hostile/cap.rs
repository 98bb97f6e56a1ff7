//! The memory limit of a server: a control group if this machine supports them, and always a check
//! of its resident memory.

use std::fs;

use lab_host::envelope::{Cgroups, Controller, Envelope};
use lab_report::record::Limits;
use stdx::ByteSize;

/// The memory limit. Dropping it kills the process in the group.
pub(super) struct Cap {
    envelope: Option<Envelope>,
    refusal: Option<String>,
}

impl Cap {
    /// Makes a control group with the limit, or records why there is none.
    pub(super) fn new(memory: ByteSize) -> Cap {
        let cgroups = Cgroups::detect();
        let access = cgroups.access(Controller::Memory);
        if !access.is_usable() {
            return Cap {
                envelope: None,
                refusal: Some(access.reason().to_owned()),
            };
        }
        let limits = Limits {
            memory: Some(memory),
            ..Limits::default()
        };
        match Envelope::create(&cgroups, &limits, None) {
            Ok(envelope) => Cap {
                envelope: Some(envelope),
                refusal: None,
            },
            Err(error) => Cap {
                envelope: None,
                refusal: Some(error.to_string()),
            },
        }
    }

    /// Why the server is in no control group; `None` if it is in one.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Puts a process into the control group.
    pub(super) fn admit(&self, process: u32) -> Result<(), String> {
        let admitted = self.envelope.as_ref().map(|group| group.admit(process));
        admitted
            .unwrap_or(Ok(()))
            .map_err(|error| error.to_string())
    }

    /// Number of processes in the group that the kernel has killed for memory; `None` without a
    /// group.
    pub(super) fn kills(&self) -> Option<u64> {
        let events = self.envelope.as_ref()?.memory_events()?;
        events.oom_kills.filter(|kills| 0 < *kills)
    }
}

/// Anonymous memory of a process in bytes; 0 if it has ended. Pages of files, such as those of its
/// program, do not count, because the kernel can reclaim them.
pub(super) fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0)
        * 1_024
}
