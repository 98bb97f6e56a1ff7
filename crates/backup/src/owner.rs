//! The owner of the files that root makes for the server of another user.
//!
//! An engine that opens a store creates files: its lock, segments of its log. If root opens the
//! store of a server that runs as another user, that server could not open them. So they are given
//! to the owner of the directory.
//!
//! Only what root has made meanwhile is given away: no file that was there before, none that
//! has a second name. A user who can write the directory may have put links to files of root into
//! it.
//!
//! No path is followed twice: files are opened by their names in a directory that is open, not
//! through symbolic links, and given away as what is open.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::fs::{CWD, chownat, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Depth of the directories of a store at most; engines use two.
const DEPTH_MAX: usize = 8;

/// A file, by device and inode.
type Id = (u64, u64);

/// A user, and its group.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    user: Uid,
    group: Gid,
}

impl Owner {
    /// The owner of a directory; `None` if this user is not root, or owns it.
    ///
    /// # Errors
    /// Those of the system; a symbolic link.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Owner>> {
        Owner::of_open(&open_directory(CWD, path, OFlags::NOFOLLOW)?)
    }

    fn of_open(directory: &OwnedFd) -> io::Result<Option<Owner>> {
        let found = fstat(directory)?;
        let other = geteuid().is_root() && !is_ours(&found);
        Ok(other.then(|| Owner {
            user: Uid::from_raw(found.st_uid),
            group: Gid::from_raw(found.st_gid),
        }))
    }

    /// Give the directory `name` in `parent`, and what is in it, away. Both belong to root, so
    /// no other user can put anything into them.
    ///
    /// # Errors
    /// Those of the system; a directory that was replaced.
    pub(crate) fn give(self, parent: &Path, name: &str) -> io::Result<()> {
        let parent = open_directory(CWD, parent, OFlags::NOFOLLOW)?;
        let directory = open_directory(&parent, Path::new(name), OFlags::NOFOLLOW)?;
        for held in [&parent, &directory] {
            if !is_ours(&fstat(held)?) {
                let message = "the directory it was restored in was replaced by another user";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
        }
        self.give_since(&directory, &BTreeSet::new())?;
        self.give_one(&directory)
    }

    fn give_since(self, directory: &OwnedFd, before: &BTreeSet<Id>) -> io::Result<()> {
        each(directory, 0, &mut |held, found| {
            let file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            // The second name of a directory is its own.
            if before.contains(&id(found)) || file && found.st_nlink != 1 {
                return Ok(false);
            }
            self.give_one(held).map(|()| true)
        })
    }

    fn give_one(self, held: &OwnedFd) -> io::Result<()> {
        let flags = AtFlags::EMPTY_PATH;
        Ok(chownat(held, "", Some(self.user), Some(self.group), flags)?)
    }
}

/// A directory of another user, while root works in it.
pub struct Visit(Option<Opened>);

struct Opened {
    directory: OwnedFd,
    owner: Owner,
    /// What root has in it from before.
    before: BTreeSet<Id>,
}

impl Visit {
    /// Begin, before the store in the directory is opened.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin(path: &Path) -> io::Result<Visit> {
        let directory = open_directory(CWD, path, OFlags::empty())?;
        let Some(owner) = Owner::of_open(&directory)? else {
            return Ok(Visit(None));
        };
        let mut before = BTreeSet::new();
        each(&directory, 0, &mut |_, found| {
            before.insert(id(found));
            Ok(false)
        })?;
        Ok(Visit(Some(Opened {
            directory,
            owner,
            before,
        })))
    }

    /// Give what root has made since to the owner of the directory. The store is closed.
    ///
    /// # Errors
    /// Those of the system: root has files in the directory that are not given away.
    pub fn end(self) -> io::Result<()> {
        let Some(opened) = self.0 else {
            return Ok(());
        };
        opened.owner.give_since(&opened.directory, &opened.before)
    }
}

fn open_directory(parent: impl AsFd, path: &Path, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    Ok(openat(parent, path, flags, Mode::empty())?)
}

fn id(found: &Stat) -> Id {
    (found.st_dev, found.st_ino)
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == geteuid().as_raw()
}

/// Visit the files and directories of root below a directory. What is in a directory of root is
/// visited if `visit` returns true for the directory itself.
fn each(
    directory: &OwnedFd,
    depth: usize,
    visit: &mut dyn FnMut(&OwnedFd, &Stat) -> io::Result<bool>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(directory, ".", flags, Mode::empty())?)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = match openat(directory, name, flags, Mode::empty()) {
            // It was removed meanwhile.
            Err(Errno::NOENT) => continue,
            held => held?,
        };
        let found = fstat(&held)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            continue;
        }
        let enter = !is_ours(&found) || visit(&held, &found)?;
        if enter && kind == FileType::Directory {
            if depth == DEPTH_MAX {
                let name = OsStr::from_bytes(name.to_bytes()).display();
                let message = format!("{name}: directories nest deeper than {DEPTH_MAX}");
                return Err(io::Error::other(message));
            }
            each(&held, depth + 1, visit)?;
        }
    }
    Ok(())
}
