//! Which page cache holds the data of a file: whether bytes that an earlier process wrote without a
//! sync can still be there.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The kernel's identifier of its own start.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Ask for the identifier of the mount that is never used again (`STATX_MNT_ID_UNIQUE`, since Linux
/// 6.8; older kernels ignore the bit).
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Identifies the page cache of a path: one start of the system and one mount of the file system.
///
/// As long as it stays the same, a process reads what earlier processes wrote to a file, synced or
/// not. If it differs, power may have been lost in between, and of the bytes that were not synced
/// any part may be missing. Kernels before 6.8 use the identifier of a mount again after it is
/// unmounted: there, a file system that lost its device and was mounted again is not noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheId {
    /// The start of the system, as the kernel's random number.
    pub boot: u128,
    /// The mount, as the kernel's number; 0 when the kernel does not report it.
    pub mount: u64,
}

impl PageCacheId {
    /// The page cache that holds `path` now.
    ///
    /// # Errors
    /// An error of the operating system; `Unsupported` where the kernel does not identify its
    /// start.
    pub fn of(path: &Path) -> io::Result<PageCacheId> {
        let text = fs::read_to_string(BOOT)?;
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        let boot = u128::from_str_radix(&digits, 16).map_err(|_| io::ErrorKind::Unsupported)?;
        let wanted = StatxFlags::MNT_ID | MNT_ID_UNIQUE;
        let found = statx(CWD, path, AtFlags::empty(), wanted)?;
        let has_mount = found.stx_mask & wanted.bits() != 0;
        Ok(PageCacheId {
            boot,
            mount: if has_mount { found.stx_mnt_id } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_its_directory_have_one_page_cache_and_another_mount_a_different_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, b"").unwrap();
        let id = PageCacheId::of(&file).unwrap();
        assert_eq!(id, PageCacheId::of(dir.path()).unwrap());
        let other = PageCacheId::of(Path::new("/proc")).unwrap();
        assert_eq!(id.boot, other.boot);
        assert_ne!(id.mount, other.mount);
        assert!(PageCacheId::of(&dir.path().join("missing")).is_err());
    }
}
