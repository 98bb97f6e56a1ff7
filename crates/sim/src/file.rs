//! An open file of the simulated disk.

use std::io;
use std::sync::Arc;

use stdx::sync::Mutex;
use vfs::{File, Site};

use crate::disk::{Disk, Step, failure, stopped};
use crate::fault::{FaultKind, Pages};
use crate::inode::FileOp;
use crate::trace::{Call, Event};

/// A descriptor; dropping it closes the file.
pub(crate) struct SimFile {
    disk: Arc<Mutex<Disk>>,
    handle: u64,
    /// Whether reads bypass the page cache.
    direct: bool,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.lock().close(self.handle);
    }
}

impl SimFile {
    pub(crate) fn new(disk: Arc<Mutex<Disk>>, handle: u64, direct: bool) -> SimFile {
        SimFile {
            disk,
            handle,
            direct,
        }
    }

    /// Numbers and records a call; returns what it must do, and the number of the file.
    fn step(
        &self,
        disk: &mut Disk,
        call: Call,
        site: Site,
        (offset, length): (u64, u64),
        bytes: &[u8],
    ) -> io::Result<(Step, u64)> {
        let inode = disk.file_of(self.handle);
        let step = disk.step(Event {
            call,
            site,
            subject: &inode.to_le_bytes(),
            offset,
            length,
            bytes,
        })?;
        Ok((step, inode))
    }
}

impl File for SimFile {
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let range = (offset, buffer.len() as u64);
        let (step, inode) = self.step(&mut disk, Call::Read, site, range, &[])?;
        let from = match step {
            Step::Go | Step::Fail(FaultKind::BitFlip) => offset,
            Step::Fail(FaultKind::MisdirectedRead) => disk.elsewhere(inode, range),
            Step::Stop => return Err(stopped()),
            Step::Fail(kind) => return Err(failure(kind)),
        };
        let inode = disk.inode(inode);
        // Inode, I1: as long as no sync failed, the page cache shows what the device has.
        let whole = if self.direct && 0 < inode.failures {
            inode.on_device().read(from, buffer)
        } else {
            inode.visible.read(from, buffer)
        };
        if !whole {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if step == Step::Fail(FaultKind::BitFlip) {
            let (at, bit) = (disk.rng.index(buffer.len()), disk.rng.below(8));
            if let Some(byte) = buffer.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        Ok(())
    }

    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let range = (offset, bytes.len() as u64);
        let (step, inode) = self.step(&mut disk, Call::Write, site, range, bytes)?;
        match step {
            Step::Go => disk.write(inode, offset, bytes),
            Step::Stop => disk.write(inode, offset, bytes).and(Err(stopped())),
            Step::Fail(FaultKind::MisdirectedWrite) => {
                let wrong = disk.elsewhere(inode, range);
                disk.grow_unwritten(inode, range);
                disk.write(inode, wrong, bytes)
            }
            Step::Fail(FaultKind::LostWrite) => {
                disk.grow_unwritten(inode, range);
                Ok(())
            }
            Step::Fail(kind @ (FaultKind::Eio | FaultKind::ShortWrite)) => {
                let done = disk.rng.index(bytes.len().max(1));
                let part = bytes.get(..done).unwrap_or_default();
                disk.write(inode, offset, part).and(Err(failure(kind)))
            }
            Step::Fail(kind) => Err(failure(kind)),
        }
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let (step, _) = self.step(&mut disk, Call::Sync, site, (0, 0), &[])?;
        match step {
            Step::Go => disk.sync(self.handle),
            Step::Stop => Err(stopped()),
            Step::Fail(kind) => {
                let pages = match kind {
                    FaultKind::SyncFails(pages) => pages,
                    _ => Pages::Keep,
                };
                disk.fail_sync(self.handle, pages);
                Err(failure(kind))
            }
        }
    }

    fn set_len(&self, site: Site, length: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let (step, inode) = self.step(&mut disk, Call::SetLen, site, (0, length), &[])?;
        if let Step::Fail(kind) = step {
            return Err(failure(kind));
        }
        disk.push(inode, FileOp::SetLen(length));
        disk.alive()
    }

    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let range = (offset, length);
        let (step, inode) = self.step(&mut disk, Call::Allocate, site, range, &[])?;
        if let Step::Fail(kind) = step {
            return Err(failure(kind));
        }
        disk.allocate(inode, offset, length)?;
        disk.alive()
    }

    fn len(&self) -> io::Result<u64> {
        let disk = self.disk.lock();
        disk.alive()?;
        Ok(disk.inode(disk.file_of(self.handle)).visible.len())
    }

    fn reads_device(&self) -> bool {
        self.direct
    }
}

impl Disk {
    /// A random position in the same file at which the range fits, in another block if there is
    /// one.
    fn elsewhere(&mut self, inode: u64, (offset, length): (u64, u64)) -> u64 {
        let room = self.inode(inode).visible.len().saturating_sub(length);
        let blocks = room / 4096 + 1;
        let mut block = self.rng.below(blocks);
        if block == offset / 4096 {
            block = (block + 1) % blocks;
        }
        block * 4096
    }

    /// Extend the file to the end of the range, as a write would, without writing its bytes.
    fn grow_unwritten(&mut self, inode: u64, (offset, length): (u64, u64)) {
        let end = offset.saturating_add(length);
        if self.inode(inode).visible.len() < end && 0 < length {
            self.push(inode, FileOp::Grow(end));
        }
    }
}
