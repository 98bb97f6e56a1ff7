//! An open directory, and a path to it that stays its path when its name is given to another one.
//!
//! A user who can write the parent of a backup can put a symbolic link where its directory was.
//! Paths below `/proc/self/fd/N` begin at the directory that was opened.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

pub(crate) struct Pinned {
    /// The path for calls; for messages, callers have the name.
    pub(crate) at: PathBuf,
    _open: OwnedFd,
}

impl Pinned {
    /// Open a directory; a symbolic link is an error.
    pub(crate) fn open(path: &Path) -> io::Result<Pinned> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = rustix::fs::open(path, flags, Mode::empty())?;
        let at = of(&open);
        // Without this file system nothing would be found below the path.
        fs::metadata(&at)
            .map_err(|e| io::Error::new(e.kind(), "/proc is not mounted: mount it"))?;
        Ok(Pinned { at, _open: open })
    }
}

/// The path of what is open.
pub(crate) fn of(open: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()))
}
