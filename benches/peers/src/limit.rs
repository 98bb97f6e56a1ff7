//! A limit of memory for this process, its page cache included, by a control group (v1 or v2).

use std::fs;
use std::io;
use std::path::Path;

/// Put this process into a new control group of `bytes`. An error says what the kernel refused.
pub(crate) fn memory(bytes: u64) -> io::Result<()> {
    let name = format!("betree-peers-{}", std::process::id());
    let (root, file) = if Path::new("/sys/fs/cgroup/memory").exists() {
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        ("/sys/fs/cgroup", "memory.max")
    };
    let group = Path::new(root).join(name);
    fs::create_dir(&group)?;
    fs::write(group.join(file), bytes.to_string())?;
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Remove the group of a process that has ended.
pub(crate) fn forget(process: u32) {
    for root in ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"] {
        // It exists under one of them, or under none where groups are not to be had.
        let _ = fs::remove_dir(Path::new(root).join(format!("betree-peers-{process}")));
    }
}
