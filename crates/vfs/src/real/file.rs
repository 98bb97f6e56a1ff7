//! An open file of the operating system, with direct input and output where it is supported.
//!
//! A file opened direct has two descriptors. Requests of whole aligned blocks use the first one and
//! bypass the page cache, through a bounce buffer unless the caller's memory is aligned. Other
//! reads are widened to whole blocks; other writes use the second, buffered descriptor. The kernel
//! keeps the two descriptors coherent as long as they do not write at the same moment, so:
//!
//! - I1: a buffered write to a file opened direct excludes every direct write (`turns`, held across
//!   the write; aligned writers share it and do not wait for each other).
//! - I2: after a file system refused a direct request (`EINVAL`), this file makes no more of them;
//!   the request is repeated buffered, so callers never see the refusal.
//! - I3: reads that must wait for a device, syncs and reservations are announced
//!   (`stdx::blocking`). A read of cached pages is not, nor a write, mostly a copy into memory.
//!
//! Scattered reads of a file that is not direct use a separate descriptor without read-ahead. On
//! the common descriptor, the kernel treats a read as part of a sequential scan if the preceding
//! pages happen to be cached. Then it reads up to the whole read-ahead of the device (usually 128
//! KiB, sometimes megabytes) for one page. This input is useless, and evicts useful pages from a
//! small page cache.

use std::fs;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fdatasync};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwrite, retry_on_intr};
use stdx::blocking;
use stdx::sync::{OnceLock, RwLock};

use super::bounce::{BLOCK, LARGE, Pool, is_aligned};
use crate::storage::{File, Site};

const BLOCK_BYTES: u64 = BLOCK as u64;

/// An open file.
pub(super) struct RealFile {
    buffered: fs::File,
    direct: Option<Direct>,
    /// The path at which the file was opened; it may have been renamed since.
    path: PathBuf,
    /// The descriptor for scattered reads, opened at the first one; `None` inside if that failed.
    scattered: OnceLock<Option<fs::File>>,
    turns: RwLock<()>,
}

/// The descriptor that bypasses the page cache, and its bounce buffers.
struct Direct {
    file: fs::File,
    pool: Arc<Pool>,
    refused: AtomicBool,
}

impl RealFile {
    /// Makes a file; `direct` is a second descriptor of the same file, opened with `O_DIRECT`.
    pub(super) fn new(
        path: PathBuf,
        buffered: fs::File,
        direct: Option<(fs::File, Arc<Pool>)>,
    ) -> RealFile {
        let direct = direct.map(|(file, pool)| Direct {
            file,
            pool,
            refused: AtomicBool::new(false),
        });
        RealFile {
            buffered,
            direct,
            path,
            scattered: OnceLock::new(),
            turns: RwLock::new(()),
        }
    }

    fn direct(&self) -> Option<&Direct> {
        let direct = self.direct.as_ref()?;
        (!direct.refused.load(Ordering::Relaxed)).then_some(direct)
    }

    /// The descriptor for scattered reads; the buffered one if there is none.
    fn scattered(&self) -> &fs::File {
        let open = || {
            let file = fs::File::open(&self.path).ok()?;
            let (ours, found) = (self.buffered.metadata().ok()?, file.metadata().ok()?);
            // The path may belong to another file now.
            let same = (ours.dev(), ours.ino()) == (found.dev(), found.ino());
            let advised = same && fadvise(&file, 0, None, Advice::Random).is_ok();
            advised.then_some(file)
        };
        self.scattered
            .get_or_init(open)
            .as_ref()
            .unwrap_or(&self.buffered)
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = vec![0; LARGE];
        let mut at = from;
        while at < to {
            let room = usize::try_from(to - at).unwrap_or(usize::MAX);
            let piece = zeros.get(..room.min(LARGE)).expect("cut to its length");
            self.buffered.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn advise(&self, offset: u64, length: u64) {
        // This is only a hint: a failure affects only speed.
        if let Some(length) = NonZeroU64::new(length) {
            let _ = fadvise(&self.buffered, offset, Some(length), Advice::DontNeed);
        }
    }
}

impl File for RealFile {
    fn read_at(&self, _site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if let Some(direct) = self.direct() {
            match blocking::call(|| direct.read(&mut *buffer, offset)) {
                Err(e) if refuses(&e) => direct.refused.store(true, Ordering::Relaxed),
                done => return done,
            }
        }
        read(&self.buffered, buffer, offset)
    }

    fn read_scattered_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.direct().is_some() {
            return self.read_at(site, buffer, offset);
        }
        read(self.scattered(), buffer, offset)
    }

    fn write_at(&self, _site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let whole = offset.is_multiple_of(BLOCK_BYTES) && bytes.len().is_multiple_of(BLOCK);
        if let Some(direct) = self.direct().filter(|_| whole) {
            // I1: held during the write; direct writes share it.
            let _turn = self.turns.read();
            match direct.write(bytes, offset) {
                Err(e) if refuses(&e) => direct.refused.store(true, Ordering::Relaxed),
                done => return done,
            }
        }
        let _turn = self.direct.as_ref().map(|_| self.turns.write());
        self.buffered.write_all_at(bytes, offset)
    }

    fn sync(&self, _site: Site) -> io::Result<()> {
        // Both descriptors have one inode: this sync covers the writes of the other.
        let sync = || retry_on_intr(|| fdatasync(&self.buffered));
        Ok(blocking::call(sync)?)
    }

    fn set_len(&self, _site: Site, length: u64) -> io::Result<()> {
        let _turn = self.turns.write();
        self.buffered.set_len(length)
    }

    /// If the file system does not support reservation, only bytes after the end are reserved, by
    /// writing zeros; holes within the file stay holes.
    fn allocate(&self, _site: Site, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let end = offset.checked_add(length);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        let _turn = self.turns.write();
        let mode = FallocateFlags::empty();
        let reserve = || retry_on_intr(|| fallocate(&self.buffered, mode, offset, length));
        match blocking::call(reserve) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let from = self.len()?;
                blocking::call(|| self.write_zeros(from, end))
            }
            done => Ok(done?),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.buffered.metadata()?.len())
    }

    fn reads_device(&self) -> bool {
        self.direct().is_some()
    }

    /// With the advice `DontNeed`, Linux starts to write dirty pages back, and keeps them cached.
    /// Direct writes leave no dirty pages.
    fn start_writeback(&self, offset: u64, length: u64) {
        if self.direct().is_none() {
            self.advise(offset, length);
        }
    }

    fn forget(&self, offset: u64, length: u64) {
        self.advise(offset, length);
    }
}

impl Direct {
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if is_aligned(buffer) && offset.is_multiple_of(BLOCK_BYTES) {
            return exact(self.fill(buffer, offset)?, buffer.len());
        }
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let skip = usize::try_from(at % BLOCK_BYTES).expect("below a block");
            let take = rest.len().min(LARGE - skip);
            let (piece, tail) = rest.split_at_mut(take);
            let mut bounce = self.pool.take(skip + take);
            let bytes = bounce.bytes(skip + take);
            let got = self.fill(bytes, at - skip as u64)?;
            exact(got, skip + take)?;
            let found = bytes.get(skip..skip + take).expect("the length asked for");
            piece.copy_from_slice(found);
            at += take as u64;
            rest = tail;
        }
        Ok(())
    }

    /// Read until `bytes` is full or the file ends; returns the number of bytes read. Offset,
    /// length and address must be aligned.
    fn fill(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            // A short read may end inside a block: continue at the start of this block.
            let from = filled - filled % BLOCK;
            let rest = bytes.get_mut(from..).expect("filled is below the length");
            let n = retry_on_intr(|| pread(&self.file, &mut *rest, offset + from as u64))?;
            if from + n <= filled {
                break;
            }
            filled = from + n;
        }
        Ok(filled)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if is_aligned(bytes) {
            return self.write_aligned(bytes, offset);
        }
        let mut at = offset;
        for piece in bytes.chunks(LARGE) {
            let mut bounce = self.pool.take(piece.len());
            let copy = bounce.bytes(piece.len());
            copy.copy_from_slice(piece);
            self.write_aligned(copy, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn write_aligned(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        debug_assert!(is_aligned(bytes), "direct writes are of whole blocks");
        let mut done = 0;
        while done < bytes.len() {
            let rest = bytes.get(done..).expect("done is below the length");
            let n = retry_on_intr(|| pwrite(&self.file, rest, offset + done as u64))?;
            // A short write may end inside a block: write this block again.
            let whole = n - n % BLOCK;
            if whole == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            done += whole;
        }
        Ok(())
    }
}

/// Read through the page cache; announced unless all of it is there (I3).
fn read(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    if blocking::is_handled() {
        let length = buffer.len();
        let cached = preadv2(
            file,
            &mut [IoSliceMut::new(buffer)],
            offset,
            ReadWriteFlags::NOWAIT,
        );
        // Where the file system cannot tell, or reads a part only, the read is repeated.
        if cached.is_ok_and(|read| read == length) {
            return Ok(());
        }
    }
    blocking::call(|| file.read_exact_at(buffer, offset))
}

fn exact(got: usize, wanted: usize) -> io::Result<()> {
    if got < wanted {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!(
                "the file ends {} bytes before the end of a read",
                wanted - got
            ),
        ));
    }
    Ok(())
}

fn refuses(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INVAL.raw_os_error())
}
