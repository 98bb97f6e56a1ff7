//! [`SimVfs`]: the storage traits on the simulated disk, and the interface for tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stdx::hash::hash64_seeded;
use stdx::sync::{Mutex, MutexGuard};
use vfs::{File, Held, Open, Site, Vfs};

use crate::crash::Crash;
use crate::disk::{Disk, SimOptions, Step, failure, stopped};
use crate::fault::Fault;
use crate::file::SimFile;
use crate::names::NameOp;
use crate::trace::{Call, Table};

/// A simulated disk and clock. Clones share the disk.
#[derive(Clone)]
pub struct SimVfs(Arc<Mutex<Disk>>);

struct SimHeld {
    disk: Arc<Mutex<Disk>>,
    directory: PathBuf,
}

impl SimVfs {
    /// An empty disk.
    #[must_use]
    pub fn new(options: SimOptions) -> SimVfs {
        SimVfs(Arc::new(Mutex::new(Disk::new(options))))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock()
    }

    /// Stop the machine at the call with this number (see [`SimVfs::ios`]). This call may have
    /// taken effect; it and all later calls fail with an error that [`crate::is_stopped`]
    /// recognises.
    pub fn stop_at(&self, io: u64) {
        self.disk().stop_at = Some(io);
    }

    /// As [`SimVfs::stop_at`], but only calls that may change the disk are counted: all except
    /// reads.
    pub fn stop_at_change(&self, change: u64) {
        self.disk().stop_at_change = Some(change);
    }

    /// Stop the machine now.
    pub fn stop(&self) {
        self.disk().stopped = true;
    }

    /// Whether the machine has stopped.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.disk().stopped
    }

    /// Stop the machine now, and return the disk after a crash: without handles, locks and faults.
    /// A test may call this several times, for different outcomes of the crash.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> SimVfs {
        self.stop();
        self.image(crash)
    }

    /// The disk after a crash, as [`SimVfs::crash`], but this machine continues.
    #[must_use]
    pub fn image(&self, crash: Crash) -> SimVfs {
        let image = self.disk().image(crash);
        SimVfs(Arc::new(Mutex::new(image)))
    }

    /// A copy of the current disk with durable and pending content, without handles, locks and
    /// faults.
    #[must_use]
    pub fn fork(&self) -> SimVfs {
        let mut copy = self.disk().clone();
        copy.handles.clear();
        copy.held.clear();
        copy.faults.clear();
        for inode in copy.inodes.values_mut() {
            inode.opens = 0;
        }
        copy.collect();
        copy.stopped = false;
        (copy.stop_at, copy.stop_at_change) = (None, None);
        SimVfs(Arc::new(Mutex::new(copy)))
    }

    /// Add a fault.
    pub fn inject(&self, fault: Fault) {
        self.disk().faults.add(fault);
    }

    /// Remove all faults.
    pub fn clear_faults(&self) {
        self.disk().faults.clear();
    }

    /// Number of calls with a [`Site`] so far, which is the number of the last one.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.disk().ios
    }

    /// Number of calls so far that may change the disk.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.disk().changes
    }

    /// A hash of all calls so far: sites, arguments, bytes, faults.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.disk().trace.hash
    }

    /// The sites seen so far.
    #[must_use]
    pub fn table(&self) -> Table {
        self.disk().trace.table.clone()
    }

    /// Change the capacity of the disk in bytes; `None` for no limit.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.disk().capacity = capacity;
    }

    /// Bytes in use, in blocks of 4 KiB.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.disk().used()
    }

    /// Drop the page cache: reads then return what a failed sync has left on disk.
    pub fn evict(&self) {
        let mut disk = self.disk();
        disk.inodes.values_mut().for_each(|inode| inode.evict());
    }

    /// The paths and lengths of all files, in order of the paths.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let disk = self.disk();
        let files = disk.names.visible.iter();
        files
            .map(|(path, &inode)| (path.clone(), disk.inode(inode).visible.len()))
            .collect()
    }

    /// The visible bytes of a file.
    #[must_use]
    pub fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let disk = self.disk();
        let inode = disk.inode(*disk.names.visible.get(path)?);
        let length = usize::try_from(inode.visible.len()).expect("a file that fits in memory");
        let mut bytes = vec![0; length];
        assert!(inode.visible.read(0, &mut bytes), "all of a file is there");
        Some(bytes)
    }

    /// Damage a file: write `bytes` at `offset` to its durable and visible content. Does not count
    /// as a call.
    ///
    /// # Panics
    /// If the file does not exist.
    pub fn poke(&self, path: &Path, offset: u64, bytes: &[u8]) {
        self.behind(path, |content| content.write(offset, bytes));
    }

    /// Truncate or extend a file. Does not count as a call.
    ///
    /// # Panics
    /// If the file does not exist.
    pub fn truncate(&self, path: &Path, length: u64) {
        self.behind(path, |content| content.set_len(length));
    }

    fn behind(&self, path: &Path, change: impl Fn(&mut crate::content::Content)) {
        let mut disk = self.disk();
        let inode = disk.names.visible.get(path).copied();
        let inode = inode.unwrap_or_else(|| panic!("no file {}", path.display()));
        let inode = disk.inode_mut(inode);
        change(&mut inode.durable);
        change(&mut inode.visible);
    }

    /// A hash of the visible names and bytes: two recoveries of the same image should give the same
    /// hash.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let disk = self.disk();
        disk.names.visible.iter().fold(0, |hash, (path, &inode)| {
            let hash = hash64_seeded(path.as_os_str().as_encoded_bytes(), hash);
            disk.inode(inode).visible.hash(hash)
        })
    }
}

impl Disk {
    /// Makes a call that changes names. `change` is executed unless a fault is injected; if the
    /// machine stops at this call, it is executed, too.
    fn change_names(
        &mut self,
        call: Call,
        site: Site,
        path: &Path,
        change: impl FnOnce(&mut Disk) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.step(Disk::event(call, site, path.as_os_str().as_encoded_bytes()))? {
            Step::Go => change(self),
            Step::Stop => change(self).and(Err(stopped())),
            Step::Fail(kind) => Err(failure(kind)),
        }
    }

    fn named(&self, path: &Path) -> io::Result<u64> {
        let inode = self.names.visible.get(path).copied();
        inode.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Vfs for SimVfs {
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let mut disk = self.disk();
        let subject = path.as_os_str().as_encoded_bytes();
        let handle = match disk.step(Disk::event(Call::Open, site, subject))? {
            Step::Go => disk.open(path, how.create)?,
            Step::Stop => {
                if how.create && disk.named(path).is_err() {
                    disk.create(path);
                }
                return Err(stopped());
            }
            Step::Fail(kind) => return Err(failure(kind)),
        };
        let disk = Arc::clone(&self.0);
        Ok(Box::new(SimFile::new(disk, handle, how.direct)))
    }

    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()> {
        self.disk().change_names(Call::Rename, site, from, |disk| {
            let inode = disk.named(from)?;
            let (from, to) = (from.to_owned(), to.to_owned());
            disk.push_name(inode, NameOp::Rename { from, to });
            Ok(())
        })
    }

    fn remove(&self, site: Site, path: &Path) -> io::Result<()> {
        self.disk().change_names(Call::Remove, site, path, |disk| {
            let inode = disk.named(path)?;
            let path = path.to_owned();
            disk.push_name(inode, NameOp::Remove { path });
            Ok(())
        })
    }

    fn create_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.change_names(Call::CreateDir, site, directory, |disk| {
            let all = directory.ancestors().map(Path::to_owned);
            disk.names.directories.extend(all);
            Ok(())
        })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let disk = self.disk();
        disk.alive()?;
        let inside = |path: &&PathBuf| path.parent() == Some(directory);
        let paths = disk.names.visible.keys().filter(inside);
        let names = paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        Ok(names.collect())
    }

    fn sync_dir(&self, site: Site, directory: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let subject = directory.as_os_str().as_encoded_bytes();
        match disk.step(Disk::event(Call::SyncDir, site, subject))? {
            Step::Go if !disk.names.directories.contains(directory) => {
                Err(io::ErrorKind::NotFound.into())
            }
            Step::Go => {
                disk.names.sync(directory);
                disk.collect();
                Ok(())
            }
            Step::Stop => Err(stopped()),
            Step::Fail(kind) => Err(failure(kind)),
        }
    }

    /// Creates a file `LOCK`, as the real file system does.
    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>> {
        let mut disk = self.disk();
        disk.alive()?;
        if !disk.names.directories.contains(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !disk.held.insert(directory.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let path = directory.join("LOCK");
        if disk.named(&path).is_err() {
            disk.create(&path);
        }
        Ok(Box::new(SimHeld {
            disk: Arc::clone(&self.0),
            directory: directory.to_owned(),
        }))
    }

    fn now(&self) -> Duration {
        let mut disk = self.disk();
        disk.now += Duration::from_micros(1);
        disk.now
    }

    fn sleep(&self, duration: Duration) {
        self.disk().now += duration;
    }

    fn unique(&self) -> u128 {
        let mut disk = self.disk();
        let (high, low) = (disk.rng.next_u64(), disk.rng.next_u64());
        u128::from(high) << 64 | u128::from(low)
    }
}

impl Held for SimHeld {}

impl Drop for SimHeld {
    fn drop(&mut self) {
        self.disk.lock().held.remove(&self.directory);
    }
}
