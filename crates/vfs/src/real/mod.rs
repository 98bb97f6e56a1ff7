//! The file system and the clock of the operating system.

mod bounce;
mod file;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use self::bounce::Pool;
use self::file::RealFile;
use crate::atomic::sync_dir;
use crate::directory::{PRIVATE_FILE, ensure_private_dir};
use crate::lock::DirLock;
use crate::storage::{File, Held, Open, Site, Vfs};

/// The file system of the operating system. A value is cheap, so every store may have its own.
/// Files and directories are created for their owner only (0600, 0700); existing ones keep their
/// permissions.
pub struct RealVfs {
    pool: Arc<Pool>,
    origin: Instant,
}

impl RealVfs {
    /// The file system, with a clock that starts now.
    #[must_use]
    pub fn new() -> RealVfs {
        RealVfs {
            pool: Arc::default(),
            origin: stdx::time::now(),
        }
    }
}

impl Default for RealVfs {
    fn default() -> RealVfs {
        RealVfs::new()
    }
}

impl Held for DirLock {}

impl Vfs for RealVfs {
    fn open(&self, _site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .truncate(false)
            .mode(PRIVATE_FILE);
        let buffered = options.clone().create(how.create).open(path)?;
        let direct = if how.direct {
            open_direct(&mut options, path)?
        } else {
            None
        };
        let direct = direct.map(|file| (file, Arc::clone(&self.pool)));
        Ok(Box::new(RealFile::new(path.to_owned(), buffered, direct)))
    }

    fn rename(&self, _site: Site, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, _site: Site, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Also makes the created directories durable, without [`Vfs::sync_dir`].
    fn create_dir(&self, _site: Site, directory: &Path) -> io::Result<()> {
        let mut missing: Vec<PathBuf> = Vec::new();
        let mut at = directory;
        while !at.as_os_str().is_empty() && !at.is_dir() {
            missing.push(at.to_owned());
            let Some(parent) = at.parent() else { break };
            at = parent;
        }
        ensure_private_dir(directory)?;
        for created in missing.iter().rev() {
            created.parent().map_or(Ok(()), sync_dir)?;
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // The engine uses only UTF-8 names; other names are skipped.
            if let (true, Ok(name)) = (
                entry.file_type()?.is_file(),
                entry.file_name().into_string(),
            ) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, _site: Site, directory: &Path) -> io::Result<()> {
        sync_dir(directory)
    }

    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>> {
        Ok(Box::new(DirLock::acquire(directory)?))
    }

    fn now(&self) -> Duration {
        stdx::time::now().saturating_duration_since(self.origin)
    }

    fn sleep(&self, duration: Duration) {
        stdx::time::sleep(duration);
    }
}

/// Opens a file with `O_DIRECT`; `None` if the file system does not support it.
fn open_direct(options: &mut OpenOptions, path: &Path) -> io::Result<Option<fs::File>> {
    let flag = i32::try_from(OFlags::DIRECT.bits()).expect("a flag of open(2) is an int");
    match options.custom_flags(flag).open(path) {
        Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(None),
        file => file.map(Some),
    }
}
