//! Events at a memory limit.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cgroups::Version;

/// Counts since the creation of the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEvents {
    /// Number of allocations that reached the limit and forced the kernel to reclaim memory. High
    /// counts are normal for a worker whose data is larger than its memory.
    pub limit_hits: Option<u64>,
    /// Processes killed by the out-of-memory killer. Any value but 0 invalidates a run.
    pub oom_kills: Option<u64>,
    /// Peak usage, in bytes.
    pub peak_bytes: Option<u64>,
}

/// Read the events of a group; `None` if the kernel shows none of them.
pub(super) fn read(version: Version, group: &Path) -> Option<MemoryEvents> {
    let events = version.interface().memory_events(group);
    (events != MemoryEvents::EMPTY).then_some(events)
}

impl MemoryEvents {
    const EMPTY: MemoryEvents = MemoryEvents {
        limit_hits: None,
        oom_kills: None,
        peak_bytes: None,
    };
}

/// The number in a file of a group.
pub(super) fn number(group: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(group.join(file)).ok()?;
    text.trim().parse().ok()
}

/// The number after `name` in a text of `name number` lines.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, number) = line.split_once(' ')?;
        (found == name).then(|| number.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read_and_absent_files_are_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(Version::V1, dir.path()), None);
        let put = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
        put(
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        );
        put("memory.failcnt", "17\n");
        let v1 = read(Version::V1, dir.path()).unwrap();
        assert_eq!((v1.limit_hits, v1.oom_kills), (Some(17), Some(3)));
        assert_eq!(v1.peak_bytes, None);
        put("memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n");
        put("memory.peak", "4096\n");
        let v2 = read(Version::V2, dir.path()).unwrap();
        assert_eq!((v2.limit_hits, v2.oom_kills), (Some(5), Some(1)));
        assert_eq!(v2.peak_bytes, Some(4096));
    }
}
