//! A simulated disk with the machine's clock, whose calls can be observed and blocked.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim::SimVfs;
use stdx::sync::{Condvar, Mutex};
use vfs::{File, Held, Open, RealVfs, Site, Vfs};

#[derive(Default)]
struct State {
    /// The site whose next calls are blocked.
    site: Option<&'static str>,
    /// Number of calls at this site that pass before one is blocked.
    skip: usize,
    /// Number of blocked calls.
    held: usize,
    /// Number of modifying calls in progress.
    changing: usize,
    /// Whether no modification is allowed any more.
    sealed: bool,
    /// The sites of modifications that happened nevertheless.
    wrong: Vec<&'static str>,
}

/// Observes the modifying calls.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    moved: Condvar,
}

impl Watch {
    /// Run the modifying `call` as soon as it is not blocked.
    fn pass<T>(&self, site: Site, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock();
        if state.sealed {
            state.wrong.push(site.0);
        }
        state.changing += 1;
        let here = state.site == Some(site.0);
        if here && 0 < state.skip {
            state.skip -= 1;
        } else if here {
            state.held += 1;
            self.moved.notify_all();
            while state.site == Some(site.0) {
                self.moved.wait(&mut state);
            }
            state.held -= 1;
        }
        drop(state);
        let done = call();
        let mut state = self.state.lock();
        state.changing -= 1;
        done
    }

    /// Block the calls at `site`, after `skip` more.
    pub(crate) fn hold(&self, site: &'static str, skip: usize) {
        let mut state = self.state.lock();
        (state.site, state.skip) = (Some(site), skip);
    }

    pub(crate) fn wait_until_held(&self) {
        let mut state = self.state.lock();
        while state.held == 0 {
            let waited = self.moved.wait_for(&mut state, Duration::from_secs(60));
            assert!(!waited.timed_out(), "{:?} is never called", state.site);
        }
    }

    pub(crate) fn let_go(&self) {
        self.state.lock().site = None;
        self.moved.notify_all();
    }

    /// The sites of modifications after [`Watch::seal`].
    pub(crate) fn wrong(&self) -> Vec<&'static str> {
        self.state.lock().wrong.clone()
    }

    /// Allow no further modifications.
    pub(crate) fn seal(&self) {
        let mut state = self.state.lock();
        state.sealed = true;
        if 0 < state.changing {
            state.wrong.push("a call under way");
        }
    }
}

/// A simulated disk whose calls can be blocked, with the machine's clock.
pub(crate) struct Slow {
    disk: SimVfs,
    clock: RealVfs,
    watch: Arc<Watch>,
}

struct SlowFile {
    file: Box<dyn File>,
    watch: Arc<Watch>,
}

impl File for SlowFile {
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(site, buffer, offset)
    }

    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.watch
            .pass(site, || self.file.write_at(site, bytes, offset))
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        self.watch.pass(site, || self.file.sync(site))
    }

    fn set_len(&self, site: Site, length: u64) -> io::Result<()> {
        self.watch.pass(site, || self.file.set_len(site, length))
    }

    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()> {
        self.watch
            .pass(site, || self.file.allocate(site, offset, length))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

impl Slow {
    /// `disk`, observed by `watch`.
    pub(crate) fn new(disk: &SimVfs, watch: &Arc<Watch>) -> Slow {
        Slow {
            disk: disk.clone(),
            clock: RealVfs::new(),
            watch: Arc::clone(watch),
        }
    }
}

impl Vfs for Slow {
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let file = self.disk.open(site, path, how)?;
        let watch = Arc::clone(&self.watch);
        Ok(Box::new(SlowFile { file, watch }))
    }

    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()> {
        self.watch.pass(site, || self.disk.rename(site, from, to))
    }

    fn remove(&self, site: Site, path: &Path) -> io::Result<()> {
        self.watch.pass(site, || self.disk.remove(site, path))
    }

    fn create_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        self.disk.create_dir(site, directory)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.disk.list(directory)
    }

    fn sync_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        self.watch
            .pass(site, || self.disk.sync_dir(site, directory))
    }

    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>> {
        self.disk.hold(directory)
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}
