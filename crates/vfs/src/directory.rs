//! Directories: their files, permissions, and the free space of their file system.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Number and size of the files below a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of regular files.
    pub files: u64,
    /// Sum of the lengths of the files, in bytes.
    pub length_bytes: u64,
    /// Sum of the space that the files occupy on disk, in bytes (without the holes of sparse
    /// files).
    pub allocated_bytes: u64,
}

/// Permissions of data directories: access for their owner only.
const PRIVATE_DIR: u32 = 0o700;

/// Permissions of data files: readable and writable by their owner only.
pub const PRIVATE_FILE: u32 = 0o600;

/// Create `directory` and its parents if missing, with the permissions of the umask.
///
/// # Errors
/// An error of the operating system, also if the name belongs to something other than a directory.
pub fn ensure_dir(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

/// Create `directory`, for its owner only (0700), and its parents, with the permissions of the
/// umask, if missing. A directory that exists keeps its permissions.
///
/// # Errors
/// An error of the operating system, also if the name belongs to something other than a directory.
pub fn ensure_private_dir(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(PRIVATE_DIR).create(directory) {
        // An empty path is the current directory.
        Err(_) if directory.as_os_str().is_empty() || directory.is_dir() => Ok(()),
        created => created,
    }
}

/// The permission bits of `path` for users other than its owner; 0 if these have no access.
///
/// # Errors
/// An error of the operating system.
pub fn permissions_of_others(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.mode() & 0o077)
}

/// Add up the sizes of all files below `directory`. Files that are removed meanwhile are skipped.
///
/// # Errors
/// An error of the operating system if `directory` itself cannot be read.
pub fn usage(directory: &Path) -> io::Result<Usage> {
    let mut sum = Usage::default();
    let mut open = vec![fs::read_dir(directory)?];
    while let Some(entries) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let Ok(entry) = entry else { continue };
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            if let Ok(inner) = fs::read_dir(entry.path()) {
                open.push(inner);
            }
        } else if metadata.is_file() {
            sum.files += 1;
            sum.length_bytes += metadata.len();
            sum.allocated_bytes += metadata.blocks() * 512;
        }
    }
    Ok(sum)
}

/// Whether `directory` is empty or does not exist.
///
/// # Errors
/// An error of the operating system, except that the directory does not exist.
pub fn is_empty(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
    }
}

/// Number of bytes that an unprivileged process can still write to the file system of `path`.
///
/// # Errors
/// An error of the operating system.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The size of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// The capacity of the file system.
    pub total_bytes: u64,
    /// The space that an unprivileged process cannot use, because it is used or reserved.
    pub used_bytes: u64,
}

/// The size of the file system of `path`.
///
/// # Errors
/// An error of the operating system.
pub fn file_system(path: &Path) -> io::Result<FileSystem> {
    let stat = rustix::fs::statvfs(path)?;
    let total_bytes = stat.f_blocks.saturating_mul(stat.f_frsize);
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    Ok(FileSystem {
        total_bytes,
        used_bytes: total_bytes.saturating_sub(free),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn usage_counts_nested_files_and_not_holes() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("a"), vec![1; 5000]).unwrap();
        let sparse = fs::File::create(dir.path().join("sub/b")).unwrap();
        sparse.set_len(1 << 30).unwrap();
        let usage = usage(dir.path()).unwrap();
        assert_eq!((usage.files, usage.length_bytes), (2, 5000 + (1 << 30)));
        assert!(usage.allocated_bytes < 1 << 20, "{usage:?}");
        assert!(free_bytes(dir.path()).unwrap() > 0);
        let whole = file_system(dir.path()).unwrap();
        assert!(whole.used_bytes < whole.total_bytes, "{whole:?}");
    }

    #[test]
    fn directories_of_data_are_their_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        ensure_private_dir(&inner).unwrap();
        assert_eq!(fs::metadata(&inner).unwrap().mode() & 0o777, 0o700);
        assert_eq!(permissions_of_others(&inner).unwrap(), 0);
        let loose = fs::Permissions::from_mode(0o750);
        fs::set_permissions(&inner, loose).unwrap();
        ensure_private_dir(&inner).unwrap();
        assert_eq!(permissions_of_others(&inner).unwrap(), 0o050);
        fs::write(dir.path().join("file"), b"").unwrap();
        let error = ensure_private_dir(&dir.path().join("file")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn emptiness() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_empty(dir.path()).unwrap());
        assert!(is_empty(&dir.path().join("missing")).unwrap());
        fs::write(dir.path().join("a"), b"").unwrap();
        assert!(!is_empty(dir.path()).unwrap());
    }
}
