//! The gate to the data file, which is open as long as its store.
//!
//! A transaction may outlive the handle of its store, and close may come while it writes. Once
//! close has returned, the directory is free for the next handle, or another process, whose
//! allocator knows nothing of this one and gives out the same bytes. So every call that changes the
//! file passes this gate. [`Gate::close`] shuts it for good and waits for the calls under way.
//!
//! - I1: no call that changes the file begins once `close` was called, and none is under way when
//!   it has returned.
//!
//! A call that is refused gets `Closed`. Reads pass: open snapshots change nothing.
//! The mutex is a leaf, and is not held across the call that it lets in.

use std::io;
use std::sync::Arc;

use stdx::sync::{Condvar, Mutex};
use vfs::{File, Site};

use crate::error::{Error, ErrorKind};
use crate::plant::{Plant, planted};

/// A file, and whether it may be changed.
pub(crate) struct Gate {
    file: Box<dyn File>,
    state: Mutex<State>,
    /// Notified when the last call leaves.
    left: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Number of calls in progress.
    inside: usize,
}

/// A call that passed the gate; dropping this ends it.
struct Inside<'a>(&'a Gate);

impl Gate {
    /// An open gate for `file`.
    pub(crate) fn new(file: Box<dyn File>) -> Arc<Gate> {
        Arc::new(Gate {
            file,
            state: Mutex::default(),
            left: Condvar::new(),
        })
    }

    /// Refuse new calls, and wait until all calls in progress have returned (I1).
    pub(crate) fn close(&self) {
        if planted(Plant::CloseForgetsWriters) {
            return;
        }
        let mut state = self.state.lock();
        state.closed = true;
        while 0 < state.inside {
            self.left.wait(&mut state);
        }
        assert!(state.closed, "I1: a gate is never opened again");
        assert_eq!(state.inside, 0, "I1: no call is under way");
    }

    fn enter(&self) -> io::Result<Inside<'_>> {
        let mut state = self.state.lock();
        if state.closed {
            let message = "the store is closed; open it again";
            return Err(io::Error::other(Error::new(ErrorKind::Closed, message)));
        }
        state.inside += 1;
        Ok(Inside(self))
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        assert!(0 < state.inside, "who leaves came in");
        state.inside -= 1;
        if state.inside == 0 {
            self.0.left.notify_all();
        }
    }
}

impl File for Gate {
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(site, buffer, offset)
    }

    fn read_scattered_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_scattered_at(site, buffer, offset)
    }

    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _inside = self.enter()?;
        self.file.write_at(site, bytes, offset)
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        let _inside = self.enter()?;
        self.file.sync(site)
    }

    fn set_len(&self, site: Site, length: u64) -> io::Result<()> {
        let _inside = self.enter()?;
        self.file.set_len(site, length)
    }

    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()> {
        let _inside = self.enter()?;
        self.file.allocate(site, offset, length)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn is_empty(&self) -> io::Result<bool> {
        self.file.is_empty()
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.file.start_writeback(offset, length);
    }

    fn forget(&self, offset: u64, length: u64) {
        self.file.forget(offset, length);
    }
}
