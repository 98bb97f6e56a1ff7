//! Finds the process that locks a file, in the kernel's list of locks. The search itself neither
//! locks nor creates anything.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that holds a lock on `path`; `None` if no process does or the kernel does not report
/// it.
pub(super) fn holder(path: &Path) -> Option<i32> {
    let data = fs::metadata(path).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (rustix::fs::major(data.dev()), rustix::fs::minor(data.dev()));
    find(&locks, &format!("{major:02x}:{minor:02x}:{}", data.ino()))
}

/// Lines have the form `1: FLOCK  ADVISORY  WRITE 708 00:13:12345 0 EOF`; a waiting lock has `->`
/// after the number.
fn find(locks: &str, file: &str) -> Option<i32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let waits = words.get(1) == Some(&"->");
        let at = words.iter().position(|word| *word == file)?;
        let process = words.get(at.checked_sub(1)?)?.parse().ok()?;
        (!waits).then_some(process)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_and_one_who_waits_is_not() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 fe:00:12345 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 709 fe:00:99 0 EOF\n\
                     2: POSIX  ADVISORY  READ 710 fe:00:77 128 128\n";
        assert_eq!(find(locks, "fe:00:12345"), Some(708));
        assert_eq!(find(locks, "fe:00:77"), Some(710));
        assert_eq!(find(locks, "fe:00:99"), None);
        assert_eq!(find("", "fe:00:1"), None);
    }
}
