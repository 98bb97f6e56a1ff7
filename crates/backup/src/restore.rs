//! Restoring a backup into a new directory.
//!
//! - R1. The backup is verified before anything is written, and again while it is copied.
//! - R2. The directory gets its name when it is complete and durable. A restore that ends early
//!   leaves a directory `NAME.restoring`, which no engine opens: the identity file of the store,
//!   without which engines refuse a directory, is written last.
//!
//! An empty directory of another user that root restores to belongs to that user afterwards, with
//! all that is in it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kv::identity::Identity;
use kv::{Error, ErrorKind, Flow, Progress, Result};
use vfs::DirLock;

use crate::copy;
use crate::directory::create_folder;
use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::source::Source;
use crate::verify;

/// The folder of the store in the directory of an unfinished restore.
const STORE: &str = "store";

/// Restore `source`, an increment with what its bases have, to the directory `target`, which is
/// missing or empty. `accept` refuses a store that cannot be opened. `watch` is called at least
/// once for every 1 MiB, first of the check, then of the copy. Returns `None` if it cancelled.
///
/// # Errors
/// `Corrupt`, naming the files, for a damaged backup; `Exists` for a target that is not empty;
/// those of `accept`; `Full`, `Io`.
pub fn restore(
    source: &Source,
    target: &Path,
    accept: &dyn Fn(&Identity) -> Result<()>,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Manifest>> {
    restore_and(source, target, accept, watch, &mut |_, _| {
        Ok(Flow::Continue)
    })
}

/// Restore like [`restore`], and let `change` open and change the restored store in the directory
/// that it gets before that gets its name: if `change` fails or cancels, nothing is left.
///
/// # Errors
/// Those of [`restore`] and of `change`.
pub fn restore_and(
    source: &Source,
    target: &Path,
    accept: &dyn Fn(&Identity) -> Result<()>,
    watch: &mut dyn FnMut(Progress) -> Flow,
    change: &mut dyn FnMut(&Path, &Manifest) -> Result<Flow>,
) -> Result<Option<Manifest>> {
    accept(&source.manifest()?.identity)?;
    let place = Unfinished::locate(target)?;
    let Some(report) = verify::verify(source, watch)? else {
        return Ok(None);
    };
    if !report.findings.is_empty() {
        let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        let message = format!("the backup is damaged: {}", found.join("; "));
        return Err(Error::corrupt(message).with_path(source.path()));
    }
    let lock = place.begin()?;
    let copied = copy::all(source, &report.manifest, &place.store(), watch);
    let done = copied.and_then(|complete| {
        let store = place.store();
        let complete = complete && change(&store, &report.manifest)? == Flow::Continue;
        if complete {
            // What was made in it since.
            vfs::sync_dir(&store).map_err(|e| Error::io("sync the restored store", &store, e))?;
            place.finish()?;
        }
        Ok(complete)
    });
    // R2. What is left has no identity file, or is in no place where a server looks.
    place.leave();
    drop(lock);
    done.map(|complete| complete.then_some(report.manifest))
}

/// The directory of a restore that is not finished.
struct Unfinished {
    target: PathBuf,
    /// Who gets the store, if it is not the user of this process.
    owner: Option<Owner>,
    work: PathBuf,
}

impl Unfinished {
    /// Check that `target` can be created.
    fn locate(target: &Path) -> Result<Unfinished> {
        let fail = |e| Error::io("restore", target, e);
        let exists = |message: &str| {
            let error = Error::new(ErrorKind::Exists, message);
            Err(error.with_path(target))
        };
        let mut owner = None;
        match target.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(fail(e)),
            Ok(found) if !found.is_dir() => {
                return exists("the target exists and is no directory; name a new one");
            }
            Ok(_) if !vfs::is_empty(target).map_err(fail)? => {
                return exists(
                    "the target is not empty; a restore overwrites nothing, name a new \
                     directory",
                );
            }
            Ok(found) => {
                let parent = fs::metadata(target.join("..")).map_err(fail)?;
                if found.dev() != parent.dev() {
                    let message = "the target is a mount point; name a new directory below it";
                    return Err(Error::invalid(message).with_path(target));
                }
                owner = Owner::of(target).map_err(fail)?;
            }
        }
        let Some(name) = target.file_name() else {
            return Err(Error::invalid("the target has no name").with_path(target));
        };
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = parent.canonicalize().map_err(fail)?;
        let mut work = name.to_owned();
        work.push(".restoring");
        Ok(Unfinished {
            target: parent.join(name),
            owner,
            work: parent.join(work),
        })
    }

    fn store(&self) -> PathBuf {
        self.work.join(STORE)
    }

    /// Create the working directory, and remove what a restore that was killed left in it.
    fn begin(&self) -> Result<DirLock> {
        let fail = |e| Error::io("restore", &self.work, e);
        match create_folder(&self.work) {
            // A symbolic link is none.
            Err(_)
                if self
                    .work
                    .symlink_metadata()
                    .is_ok_and(|found| found.is_dir()) =>
            {
                self.check_left()?;
            }
            created => created.map_err(fail)?,
        }
        let lock = DirLock::acquire(&self.work).map_err(|e| {
            let message = "another restore to this target is running";
            match e.kind() {
                io::ErrorKind::WouldBlock => {
                    Error::new(ErrorKind::Exists, message).with_path(&self.work)
                }
                _ => fail(e),
            }
        })?;
        match fs::remove_dir_all(self.store()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(fail)?,
        }
        create_folder(&self.store()).map_err(fail)?;
        Ok(lock)
    }

    /// Check that the working directory, which exists, has nothing but what a restore leaves.
    fn check_left(&self) -> Result<()> {
        let fail = |e| Error::io("restore", &self.work, e);
        if self.owner.is_some() && Owner::of(&self.work).map_err(fail)?.is_some() {
            let message = "the directory that a restore works in exists and belongs to another \
                           user; remove it, or name another target";
            return Err(Error::new(ErrorKind::Exists, message).with_path(&self.work));
        }
        for entry in fs::read_dir(&self.work).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            if name != STORE && name != DirLock::FILE {
                let message = format!(
                    "the directory that a restore works in exists and holds {}; move it away, or \
                     name another target",
                    name.display()
                );
                return Err(Error::new(ErrorKind::Exists, message).with_path(&self.work));
            }
        }
        Ok(())
    }

    /// Remove what this restore has made. What cannot be removed is named by the next one.
    fn leave(&self) {
        let _ = fs::remove_dir_all(self.store());
        let _ = fs::remove_file(self.work.join(DirLock::FILE));
        let _ = fs::remove_dir(&self.work);
    }

    /// Give the complete store its name.
    fn finish(&self) -> Result<()> {
        let fail = |e: io::Error| Error::io("name the restored store", &self.target, e);
        if let Some(owner) = self.owner {
            let give = |e| Error::io("give the restored store to its owner", &self.target, e);
            owner.give(&self.work, STORE).map_err(give)?;
        }
        // An empty directory of this name is replaced; one that was filled meanwhile is an error.
        fs::rename(self.store(), &self.target).map_err(fail)?;
        let parent = self.target.parent().unwrap_or(Path::new("/"));
        vfs::sync_dir(parent).map_err(fail)
    }
}
