//! The memory of the machine and its limits, and how much of it the engine gets by default.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kernel::kibibytes;

const MIB: u64 = 1 << 20;

/// The minimum cache size, and the memory reserved for everything else before the rest is halved:
/// MongoDB's rule.
const LEAST: u64 = 256 * MIB;
const OTHERS: u64 = 1_024 * MIB;

/// The minimum memory for queries: a sort of a few documents must work on any machine.
const LEAST_QUERIES: u64 = 32 * MIB;

/// The memory of the machine, and the part that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of the machine.
    pub total: u64,
    /// Bytes this process may use.
    pub limit: u64,
    /// The source of the limit: a file of a control group, or `MemTotal` of the machine.
    pub source: String,
}

impl Memory {
    /// Read the limits of the system. Control groups of both versions and their ancestors are read;
    /// the smallest limit holds.
    #[must_use]
    pub fn read() -> Memory {
        read(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
    }

    /// The cache of the engine in bytes: half of what is over 1 GiB, at least 256 MiB.
    #[must_use]
    pub fn cache(&self) -> u64 {
        (self.limit.saturating_sub(OTHERS) / 2).max(LEAST)
    }

    /// The memory in bytes that all queries may use together beside an engine with a cache of
    /// `cache` bytes: half of the memory that the cache leaves, at least 32 MiB. The other half is
    /// for memory that is not counted: connections, messages, the engine's own work, and free
    /// memory that the allocator keeps.
    #[must_use]
    pub fn queries(&self, cache: u64) -> u64 {
        (self.limit.saturating_sub(cache) / 2).max(LEAST_QUERIES)
    }
}

fn read(proc: &Path, groups: &Path) -> Memory {
    let text = fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    let total = kibibytes(&text, "MemTotal")
        .unwrap_or(0)
        .saturating_mul(1_024);
    let mut memory = Memory {
        total,
        limit: total,
        source: "MemTotal".to_owned(),
    };
    let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (groups.to_owned(), "memory.max"),
            named if named.split(',').any(|name| name == "memory") => {
                (groups.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        lower(&mut memory, &root, path, file);
    }
    memory
}

/// Apply the smallest limit of a group and its ancestors.
fn lower(memory: &mut Memory, root: &Path, path: &str, file: &str) {
    let mut group = PathBuf::from(path.trim_start_matches('/'));
    loop {
        let place = root.join(&group).join(file);
        let limit = fs::read_to_string(&place).unwrap_or_default();
        // No limit is written as `max` or as a number larger than any memory.
        if let Ok(limit) = limit.trim().parse::<u64>()
            && (limit < memory.limit || memory.limit == 0)
        {
            memory.limit = limit;
            memory.source = place.display().to_string();
        }
        if !group.pop() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(kibibytes: u64, own: &str) -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            machine.put("proc/meminfo", &format!("MemTotal:  {kibibytes} kB\n"));
            machine.put("proc/self/cgroup", own);
            machine
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn memory(&self) -> Memory {
            read(&self.0.path().join("proc"), &self.0.path().join("groups"))
        }
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_least_limit_of_both_versions_holds() {
        let machine = Machine::new(8 << 20, "5:cpu,memory:/a/b\n0::/x/y\n");
        let memory = machine.memory();
        assert_eq!((memory.total, memory.limit), (8 * GIB, 8 * GIB));
        assert_eq!(memory.source, "MemTotal");
        assert_eq!(memory.cache(), 7 * GIB / 2);
        let none = u64::from(u32::MAX) << 31;
        machine.put("groups/memory/memory.limit_in_bytes", &none.to_string());
        machine.put("groups/memory/a/memory.limit_in_bytes", "4294967296\n");
        machine.put("groups/memory/a/b/memory.limit_in_bytes", "5368709120\n");
        assert_eq!(machine.memory().limit, 4 * GIB);
        assert!(machine.memory().source.ends_with("a/memory.limit_in_bytes"));
        machine.put("groups/x/y/memory.max", "max\n");
        machine.put("groups/x/memory.max", "2147483648\n");
        let memory = machine.memory();
        assert_eq!(memory.limit, 2 * GIB);
        assert!(memory.source.ends_with("groups/x/memory.max"));
        assert_eq!(memory.cache(), GIB / 2);
    }

    #[test]
    fn little_memory_still_gives_a_cache() {
        let machine = Machine::new(512 << 10, "0::/\n");
        assert_eq!(machine.memory().cache(), 256 * MIB);
        machine.put("groups/memory.max", "1000000\n");
        assert_eq!(machine.memory().cache(), 256 * MIB);
    }

    #[test]
    fn queries_get_half_of_what_the_cache_leaves() {
        let machine = Machine::new(512 << 10, "0::/\n");
        assert_eq!(machine.memory().queries(256 * MIB), 128 * MIB);
        assert_eq!(machine.memory().queries(2 * GIB), 32 * MIB);
    }
}
