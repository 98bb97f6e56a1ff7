//! The simulated disk, inside the lock: files, names, faults, the clock, and the numbers of calls.
//!
//! - I1: every pending op has its own number, larger than those of all earlier ops.
//! - I2: after a stop, only the clock changes.

use std::collections::{BTreeMap, BTreeSet};
use std::error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stdx::Rng;
use vfs::Site;

use crate::crash::{Candidate, Crash, Fate};
use crate::fault::{FaultKind, Faults, Pages};
use crate::inode::{FileOp, Inode};
use crate::names::{NameOp, Names};
use crate::trace::{Call, Event, Trace};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The parameters of a simulated disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimOptions {
    /// The seed of faults and latencies.
    pub seed: u64,
    /// Capacity in bytes, allocated in blocks of 4 KiB; `None` for no limit.
    pub capacity: Option<u64>,
}

/// The machine has stopped at the requested call.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the simulated machine has stopped; take the disk by crash()")
    }
}

impl error::Error for Stopped {}

/// Whether the error means that the simulated machine has stopped.
#[must_use]
pub fn is_stopped(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

pub(crate) fn stopped() -> io::Error {
    io::Error::other(Stopped)
}

/// The error of an injected fault.
pub(crate) fn failure(kind: FaultKind) -> io::Error {
    match kind {
        FaultKind::Enospc | FaultKind::ShortWrite => io::Error::from_raw_os_error(ENOSPC),
        _ => io::Error::from_raw_os_error(EIO),
    }
}

/// An open descriptor.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) inode: u64,
    /// Number of the file's failures that this descriptor has reported or must not report.
    failures: u64,
}

/// What a numbered call must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Go,
    /// Execute the call, and return the error that the machine has stopped.
    Stop,
    Fail(FaultKind),
}

/// The whole state of the simulated disk.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) names: Names,
    pub(crate) inodes: BTreeMap<u64, Inode>,
    pub(crate) handles: BTreeMap<u64, Handle>,
    pub(crate) held: BTreeSet<PathBuf>,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    pub(crate) capacity: Option<u64>,
    pub(crate) now: Duration,
    pub(crate) rng: Rng,
    pub(crate) ios: u64,
    pub(crate) changes: u64,
    pub(crate) stop_at: Option<u64>,
    pub(crate) stop_at_change: Option<u64>,
    pub(crate) stopped: bool,
    next: u64,
}

impl Disk {
    pub(crate) fn new(options: SimOptions) -> Disk {
        Disk {
            names: Names::default(),
            inodes: BTreeMap::new(),
            handles: BTreeMap::new(),
            held: BTreeSet::new(),
            faults: Faults::default(),
            trace: Trace::default(),
            capacity: options.capacity,
            now: Duration::ZERO,
            rng: Rng::new(options.seed),
            ios: 0,
            changes: 0,
            stop_at: None,
            stop_at_change: None,
            stopped: false,
            next: 0,
        }
    }

    /// Number and record a call, and advance the clock; returns what the call must do.
    pub(crate) fn step(&mut self, event: Event<'_>) -> io::Result<Step> {
        self.alive()?;
        self.ios += 1;
        let slow = matches!(event.call, Call::Sync | Call::SyncDir);
        let micros = self.rng.below(if slow { 2000 } else { 100 });
        self.now += Duration::from_micros(1 + micros);
        let fault = self.faults.strike(event.site, event.call, &mut self.rng);
        self.trace.record(event, fault.map(FaultKind::name));
        let mut stop = self.stop_at == Some(self.ios);
        if event.call != Call::Read {
            self.changes += 1;
            stop |= self.stop_at_change == Some(self.changes);
        }
        self.stopped = stop;
        Ok(match fault {
            _ if stop => Step::Stop,
            Some(kind) => Step::Fail(kind),
            None => Step::Go,
        })
    }

    /// Returns an error if the machine has stopped.
    pub(crate) fn alive(&self) -> io::Result<()> {
        if self.stopped { Err(stopped()) } else { Ok(()) }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Bytes of the disk in use: by files that have a name or an open handle.
    pub(crate) fn used(&self) -> u64 {
        let named: BTreeSet<u64> = self.names.visible.values().copied().collect();
        let live = |(id, inode): &(&u64, &Inode)| named.contains(id) || 0 < inode.opens;
        let live = self.inodes.iter().filter(live);
        live.map(|(_, inode)| inode.owned.total()).sum()
    }

    fn reserve(&self, inode: u64, offset: u64, length: u64) -> io::Result<()> {
        let Some(capacity) = self.capacity else {
            return Ok(());
        };
        let cost = self.inode(inode).owned.cost(offset, length);
        if capacity < self.used() + cost && 0 < cost {
            return Err(failure(FaultKind::Enospc));
        }
        Ok(())
    }

    /// The file with the number `id`.
    pub(crate) fn inode(&self, id: u64) -> &Inode {
        self.inodes.get(&id).expect("an open or named file is kept")
    }

    pub(crate) fn inode_mut(&mut self, id: u64) -> &mut Inode {
        let inode = self.inodes.get_mut(&id);
        inode.expect("an open or named file is kept")
    }

    pub(crate) fn file_of(&self, handle: u64) -> u64 {
        let handle = self.handles.get(&handle);
        handle
            .expect("a handle lives as long as its file object")
            .inode
    }

    /// Opens the file at `path`; creates it if it does not exist and `create` is set. Returns the
    /// number of the handle.
    pub(crate) fn open(&mut self, path: &Path, create: bool) -> io::Result<u64> {
        let inode = match self.names.visible.get(path) {
            Some(&inode) => inode,
            None if create && self.parent_exists(path) => self.create(path),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let failures = self.inode(inode).failures;
        self.inode_mut(inode).opens += 1;
        let id = self.number();
        self.handles.insert(id, Handle { inode, failures });
        Ok(id)
    }

    fn parent_exists(&self, path: &Path) -> bool {
        path.parent().is_none_or(|parent| {
            parent.as_os_str().is_empty() || self.names.directories.contains(parent)
        })
    }

    pub(crate) fn create(&mut self, path: &Path) -> u64 {
        let inode = self.number();
        self.inodes.insert(inode, Inode::default());
        let path = path.to_owned();
        self.push_name(inode, NameOp::Link { path });
        inode
    }

    pub(crate) fn push_name(&mut self, inode: u64, op: NameOp) {
        let seq = self.number();
        self.names.push(seq, inode, op);
    }

    pub(crate) fn close(&mut self, handle: u64) {
        let Some(handle) = self.handles.remove(&handle) else {
            return;
        };
        self.inode_mut(handle.inode).opens -= 1;
        self.collect();
    }

    /// Remove files without a handle that also have no name, neither now nor after any crash.
    pub(crate) fn collect(&mut self) {
        let names = &self.names;
        let alive = |id: &u64, inode: &mut Inode| 0 < inode.opens || names.mentions(*id);
        self.inodes.retain(alive);
    }

    pub(crate) fn push(&mut self, inode: u64, op: FileOp) {
        let seq = self.number();
        self.inode_mut(inode).push(seq, op);
    }

    /// Write, or fail because the disk is full.
    pub(crate) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len() as u64;
        let end = offset.checked_add(length);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        self.reserve(inode, offset, length)?;
        let op = FileOp::Write {
            offset,
            bytes: Arc::from(bytes),
            extends: self.inode(inode).visible.len() < end,
        };
        self.push(inode, op);
        Ok(())
    }

    /// Reserve space, or fail because the disk is full.
    pub(crate) fn allocate(&mut self, inode: u64, offset: u64, length: u64) -> io::Result<()> {
        let end = offset.checked_add(length);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        self.reserve(inode, offset, length)?;
        self.inode_mut(inode).owned.add(offset, length);
        if self.inode(inode).visible.len() < end && 0 < length {
            self.push(inode, FileOp::Grow(end));
        }
        Ok(())
    }

    /// Make the file durable, or report a failure that this handle has not reported yet.
    pub(crate) fn sync(&mut self, handle: u64) -> io::Result<()> {
        let inode = self.file_of(handle);
        let failures = self.inode(inode).failures;
        let handle = self.handles.get_mut(&handle).expect("just looked up");
        if handle.failures < failures {
            handle.failures = failures;
            return Err(failure(FaultKind::Eio));
        }
        self.inode_mut(inode).sync();
        Ok(())
    }

    pub(crate) fn fail_sync(&mut self, handle: u64, pages: Pages) {
        let id = self.file_of(handle);
        let inode = self.inodes.get_mut(&id).expect("open files are kept");
        inode.fail_sync(pages, &mut self.rng);
        let failures = inode.failures;
        let handle = self.handles.get_mut(&handle).expect("just looked up");
        handle.failures = failures;
    }

    /// The disk after a crash.
    pub(crate) fn image(&self, crash: Crash) -> Disk {
        let mut candidates: Vec<Candidate> = Vec::new();
        for (&id, inode) in &self.inodes {
            candidates.extend(inode.pending.iter().map(|pending| Candidate {
                seq: pending.seq,
                inode: Some(id),
                extends: pending.op.extends(),
            }));
        }
        candidates.extend(self.names.pending.iter().map(|pending| Candidate {
            seq: pending.seq,
            inode: None,
            extends: false,
        }));
        candidates.sort_by_key(|candidate| candidate.seq);
        let ordered = candidates.is_sorted_by(|a, b| a.seq < b.seq);
        assert!(ordered, "I1: each op has its own number");
        let fates = crash.fates(&candidates);
        let fate = |seq: u64| *fates.get(&seq).expect("each op has a fate");
        let mut disk = Disk::new(SimOptions {
            seed: crash.seed,
            capacity: self.capacity,
        });
        let names = self.names.survivors(|seq| fate(seq).keeps_name());
        for id in names.values() {
            let inode = self.survivor(*id, &fate);
            disk.inodes.insert(*id, inode);
        }
        disk.names.directories = self.names.directories.clone();
        disk.names.visible = names.clone();
        disk.names.durable = names;
        disk.next = self.next;
        disk.now = self.now + Duration::from_secs(60);
        disk
    }

    fn survivor(&self, id: u64, fate: &impl Fn(u64) -> Fate) -> Inode {
        let inode = self.inode(id);
        let mut content = inode.durable.clone();
        for pending in &inode.pending {
            fate(pending.seq).apply(&pending.op, &mut content);
        }
        Inode::at_rest(content, inode.owned.clone())
    }

    pub(crate) fn event<'a>(call: Call, site: Site, subject: &'a [u8]) -> Event<'a> {
        Event {
            call,
            site,
            subject,
            offset: 0,
            length: 0,
            bytes: &[],
        }
    }
}
