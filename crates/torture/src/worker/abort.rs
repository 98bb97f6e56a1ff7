//! A file system that kills the process in a chosen call. Earlier calls have taken effect; later
//! calls are not made, and all other threads stop wherever they are.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use vfs::{File, Held, Open, RealVfs, Site, Vfs};

use crate::protocol::{Abort, Part};

/// Counts the calls at the chosen site, to find the chosen call.
struct Fuse {
    abort: Abort,
    calls: AtomicU64,
}

impl Fuse {
    /// Whether this call at `site` is the chosen one.
    fn burns(&self, site: Site) -> bool {
        site.0.starts_with(self.abort.site.as_str())
            && self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.abort.nth
    }

    /// Execute `call`. If it is the chosen call, execute all of it, only `half`, or nothing, and
    /// kill the process.
    fn run<T>(
        &self,
        site: Site,
        call: impl FnOnce() -> io::Result<T>,
        half: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<T> {
        if !self.burns(site) {
            return call();
        }
        // The process ends, so the results of the calls are ignored.
        match self.abort.part {
            Part::Before => {}
            Part::Half => drop(half()),
            Part::After => drop(call()),
        }
        end()
    }
}

/// Kill this process, like a kill from outside.
fn end() -> ! {
    loop {
        // SIGKILL cannot be refused; this thread waits until the signal arrives.
        let _ = kill_process(getpid(), Signal::KILL);
        std::thread::park();
    }
}

/// The file system of the operating system, up to the chosen call.
pub(super) struct AbortVfs {
    inner: RealVfs,
    fuse: Arc<Fuse>,
}

impl AbortVfs {
    /// A file system that kills the process in the call `abort`.
    pub(super) fn new(abort: Abort) -> AbortVfs {
        AbortVfs {
            inner: RealVfs::new(),
            fuse: Arc::new(Fuse {
                abort,
                calls: AtomicU64::new(0),
            }),
        }
    }

    fn run<T>(&self, site: Site, call: impl Fn(&RealVfs) -> io::Result<T>) -> io::Result<T> {
        let half = || call(&self.inner).map(drop);
        self.fuse.run(site, || call(&self.inner), half)
    }
}

impl Vfs for AbortVfs {
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let file = self.run(site, |inner| inner.open(site, path, how))?;
        let fuse = Arc::clone(&self.fuse);
        Ok(Box::new(AbortFile { file, fuse }))
    }

    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()> {
        self.run(site, |inner| inner.rename(site, from, to))
    }

    fn remove(&self, site: Site, path: &Path) -> io::Result<()> {
        self.run(site, |inner| inner.remove(site, path))
    }

    fn create_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        self.run(site, |inner| inner.create_dir(site, directory))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.inner.list(directory)
    }

    fn sync_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        self.run(site, |inner| inner.sync_dir(site, directory))
    }

    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>> {
        self.inner.hold(directory)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn sleep(&self, duration: Duration) {
        self.inner.sleep(duration);
    }

    fn unique(&self) -> u128 {
        self.inner.unique()
    }
}

struct AbortFile {
    file: Box<dyn File>,
    fuse: Arc<Fuse>,
}

impl AbortFile {
    fn run(&self, site: Site, call: impl Fn(&dyn File) -> io::Result<()>) -> io::Result<()> {
        let call = || call(&*self.file);
        self.fuse.run(site, call, call)
    }
}

impl File for AbortFile {
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(site, buffer, offset)
    }

    fn read_scattered_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_scattered_at(site, buffer, offset)
    }

    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        self.fuse.run(
            site,
            || self.file.write_at(site, bytes, offset),
            || self.file.write_at(site, half, offset),
        )
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        self.run(site, |file| file.sync(site))
    }

    fn set_len(&self, site: Site, length: u64) -> io::Result<()> {
        self.run(site, |file| file.set_len(site, length))
    }

    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()> {
        self.run(site, |file| file.allocate(site, offset, length))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn reads_device(&self) -> bool {
        self.file.reads_device()
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.file.start_writeback(offset, length);
    }

    fn forget(&self, offset: u64, length: u64) {
        self.file.forget(offset, length);
    }
}
