//! The last synced state of the store, kept so that commits need not sync (`interval=background`).
//!
//! With `MDB_NOSYNC` a commit writes its pages and then one of the two meta pages, and syncs
//! nothing. A power loss may then leave a meta page that points to pages that were never written,
//! in both places; and pages of the last synced state may have been reused. This module removes
//! both dangers. A *round*
//!
//! 1. begins a read transaction, the *pin*, at the newest state, and copies its meta page;
//! 2. syncs `data.mdb`, so that the pages of this state are durable;
//! 3. writes the copy to the file `SYNCED`, and syncs that;
//! 4. ends the pin of the round before.
//!
//! When a store is opened after a power loss, the copy replaces both meta pages, and the store is
//! at the state of the last round. When only the process ended, the page cache still holds every
//! commit, and LMDB's own meta page is right. [`PageCacheId`] distinguishes the two.
//!
//! `SYNCED` has two records of [`RECORD`] bytes, 4096 bytes apart, in different sectors. Records
//! with even numbers are in the first place, so a torn write leaves the record before it. All
//! numbers are little-endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 8 | [`MAGIC`] |
//! | 8 | number of the record |
//! | 16 + 8 | [`PageCacheId`]: start of the system, mount |
//! | 4 | page size of the store |
//! | 152 | the first bytes of the meta page: header of the page, `MDB_meta` |
//! | 4 | CRC-32C of the bytes before |
//!
//! - I1. From the time a state is recorded until the next is, its pages are not reused: its pin
//!   lives. A round that fails keeps the pin of the recorded state.
//! - I2. A state is recorded after its pages are synced.
//! - I3. `SYNCED` exists while a commit may be unsynced: it is made before the first write of the
//!   process, and removed after the last sync at close.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use heed::{Env, RoTxn, WithoutTls};
use kv::{Error, ErrorKind, Result};
use vfs::PageCacheId;

use super::backup::DATA;
use crate::support::NAME;

/// The name of the file.
const FILE: &str = "SYNCED";

/// First bytes of a record.
const MAGIC: [u8; 8] = *b"RMNLMDB1";

/// Distance of the two records, in bytes: no device tears a write into the next block of this size.
const APART: u64 = 4096;

/// Length of a record, in bytes.
const RECORD: usize = 8 + 8 + 16 + 8 + 4 + META + 4;

/// Length of the header of a page and of LMDB's `MDB_meta` on a machine of 64 bits, in bytes.
const META: usize = 16 + 136;

/// The layout of a meta page: offsets of its fields, and the values that identify it.
mod meta {
    pub(super) const PAGE_NUMBER: usize = 0;
    pub(super) const FLAGS: usize = 10;
    pub(super) const MAGIC: usize = 16;
    pub(super) const VERSION: usize = 20;
    pub(super) const PAGE_SIZE: usize = 40;
    pub(super) const TRANSACTION: usize = 144;

    pub(super) const IS_META: u16 = 0x08;
    pub(super) const LMDB: u32 = 0xBEEF_C0DE;
    pub(super) const DATA_VERSION: u32 = 1;
}

/// The meta page of a state, less the unused rest of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meta([u8; META]);

impl Meta {
    /// Accept `bytes` if they are a meta page of the one layout that is known here.
    fn check(bytes: [u8; META]) -> Option<Meta> {
        let it = Meta(bytes);
        let size = it.page_size();
        let known = u16::from_le_bytes(it.at(meta::FLAGS)) & meta::IS_META != 0
            && u32::from_le_bytes(it.at(meta::MAGIC)) == meta::LMDB
            && u32::from_le_bytes(it.at(meta::VERSION)) == meta::DATA_VERSION
            && size.is_power_of_two()
            && (256..=65536).contains(&size);
        known.then_some(it)
    }

    fn at<const N: usize>(&self, offset: usize) -> [u8; N] {
        let bytes = self.0.get(offset..offset + N);
        let bytes = bytes.expect("offsets of fields are constants within the page");
        bytes.try_into().expect("a slice of N bytes")
    }

    fn set(&mut self, offset: usize, value: u64) {
        let place = self.0.get_mut(offset..offset + 8);
        let place = place.expect("offsets of fields are constants within the page");
        place.copy_from_slice(&value.to_le_bytes());
    }

    fn page_size(&self) -> u32 {
        u32::from_le_bytes(self.at(meta::PAGE_SIZE))
    }

    fn transaction(&self) -> u64 {
        u64::from_le_bytes(self.at(meta::TRANSACTION))
    }

    /// The place of the page in LMDB's file, 0 or 1: transactions alternate.
    fn place(&self) -> u64 {
        self.transaction() & 1
    }

    /// The same state for the other place, older than this one, so that LMDB prefers this one. (If
    /// both have number 0, as in a new store, LMDB takes the first place, which is then this one.)
    fn other(mut self) -> Meta {
        let place = 1 - self.place();
        self.set(meta::TRANSACTION, self.transaction().saturating_sub(1));
        self.set(meta::PAGE_NUMBER, place);
        self
    }
}

/// A record of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    number: u64,
    cache: PageCacheId,
    meta: Meta,
}

impl Record {
    fn encode(&self) -> [u8; RECORD] {
        let mut bytes = Vec::with_capacity(RECORD);
        bytes.extend(MAGIC);
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.cache.boot.to_le_bytes());
        bytes.extend(self.cache.mount.to_le_bytes());
        bytes.extend(self.meta.page_size().to_le_bytes());
        bytes.extend(self.meta.0);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes.try_into().expect("the fields have RECORD bytes")
    }

    /// The record in `bytes`, or `None` if it was never written whole.
    fn decode(bytes: &[u8]) -> Option<Record> {
        let (body, sum) = bytes.get(..RECORD)?.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (magic, body) = body.split_first_chunk::<8>()?;
        let (number, body) = body.split_first_chunk()?;
        let (boot, body) = body.split_first_chunk()?;
        let (mount, body) = body.split_first_chunk()?;
        let (page_size, body) = body.split_first_chunk()?;
        let meta = Meta::check(body.try_into().ok()?)?;
        let cache = PageCacheId {
            boot: u128::from_le_bytes(*boot),
            mount: u64::from_le_bytes(*mount),
        };
        let number = u64::from_le_bytes(*number);
        let whole = *magic == MAGIC && u32::from_le_bytes(*page_size) == meta.page_size();
        whole.then_some(Record {
            number,
            cache,
            meta,
        })
    }

    fn offset(&self) -> u64 {
        (self.number & 1) * APART
    }
}

/// The last state that was recorded, pinned (I1).
pub(super) struct Synced {
    record: Record,
    pin: RoTxn<'static, WithoutTls>,
    file: File,
    data: File,
}

/// A state that is not recorded yet.
pub(super) struct Newer {
    meta: Meta,
    pin: RoTxn<'static, WithoutTls>,
}

impl Synced {
    /// Sync the store and record its state. Must run before anything is written.
    pub(super) fn begin(env: &Env<WithoutTls>, directory: &Path) -> Result<Synced> {
        let fail = |e| Error::io("open", directory, e).with_engine(NAME);
        let cache = PageCacheId::of(directory).map_err(|e| {
            let message = "interval=background needs a system that identifies its page cache \
                           (Linux with /proc); use interval=metasync";
            let error = Error::new(ErrorKind::Unsupported, message);
            error.with_engine(NAME).with_source(e)
        })?;
        let data = File::open(directory.join(DATA)).map_err(fail)?;
        let Newer { meta, pin } = capture(env, &data, directory)?;
        data.sync_all().map_err(fail)?;
        let record = Record {
            number: 0,
            cache,
            meta,
        };
        let path = directory.join(FILE);
        vfs::write_atomic(&path, &record.encode()).map_err(fail)?;
        let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        Ok(Synced {
            record,
            pin,
            file,
            data,
        })
    }

    /// The transaction that made the recorded state.
    pub(super) fn transaction(&self) -> usize {
        self.pin.id()
    }

    /// Pin the newest state. No commit may run meanwhile.
    pub(super) fn capture(&self, env: &Env<WithoutTls>, directory: &Path) -> Result<Newer> {
        capture(env, &self.data, directory)
    }

    /// Record `newer`, whose pages are synced (I2), and end the pin of the state before.
    pub(super) fn record(&mut self, newer: Newer) -> io::Result<()> {
        let record = Record {
            number: self.record.number + 1,
            meta: newer.meta,
            ..self.record
        };
        self.file.write_all_at(&record.encode(), record.offset())?;
        self.file.sync_data()?;
        self.record = record;
        self.pin = newer.pin;
        Ok(())
    }
}

fn capture(env: &Env<WithoutTls>, data: &File, directory: &Path) -> Result<Newer> {
    let pin = env.clone().static_read_txn().map_err(|e| {
        let message = "cannot begin the read transaction that keeps the synced state";
        let error = Error::new(ErrorKind::Full, message).with_engine(NAME);
        error.with_operation("sync").with_source(e)
    })?;
    let number = pin.id() as u64;
    let page_size = u64::from(env.stat().page_size);
    let meta = read_meta(data, (number & 1) * page_size);
    let meta = meta.map_err(|e| Error::io("sync", directory, e).with_engine(NAME))?;
    match meta {
        Some(meta) if meta.transaction() == number && u64::from(meta.page_size()) == page_size => {
            Ok(Newer { meta, pin })
        }
        _ => {
            let message = "the meta page is not laid out as interval=background expects; use \
                           interval=metasync";
            let error = Error::new(ErrorKind::Unsupported, message);
            Err(error.with_engine(NAME).with_path(directory))
        }
    }
}

fn read_meta(data: &File, offset: u64) -> io::Result<Option<Meta>> {
    let mut bytes = [0; META];
    data.read_exact_at(&mut bytes, offset)?;
    Ok(Meta::check(bytes))
}

/// Before the store in `directory` is opened: if power may have been lost since it was last written
/// without a sync, return it to the recorded state. `cache` is its page cache now; `None` counts as
/// another one.
pub(super) fn recover(directory: &Path, cache: Option<PageCacheId>) -> Result<()> {
    let fail = |e| Error::io("open", directory, e).with_engine(NAME);
    let bytes = match fs::read(directory.join(FILE)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => bytes.map_err(fail)?,
    };
    let second = usize::try_from(APART).expect("a small constant");
    let places = [Some(&bytes[..]), bytes.get(second..)];
    let records = places.into_iter().flatten().filter_map(Record::decode);
    let Some(record) = records.max_by_key(|record| record.number) else {
        let message = format!(
            "{FILE} is damaged, so the last synced state is unknown; restore a backup, or remove \
             the file if power was not lost since the store was open"
        );
        let error = Error::new(ErrorKind::Corrupt, message);
        return Err(error.with_engine(NAME).with_path(directory));
    };
    if Some(record.cache) == cache {
        return Ok(());
    }
    let data = OpenOptions::new().write(true).open(directory.join(DATA));
    let data = data.map_err(fail)?;
    let (meta, page_size) = (record.meta, u64::from(record.meta.page_size()));
    for (place, meta) in [(1 - meta.place(), meta.other()), (meta.place(), meta)] {
        // If power is lost in between, all this is done again.
        data.write_all_at(&meta.0, place * page_size)
            .map_err(fail)?;
    }
    data.sync_all().map_err(fail)
}

/// Whether a record exists.
pub(super) fn exists(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

/// Remove the record, after everything was synced and when nothing will be written (I3).
pub(super) fn remove(directory: &Path) -> Result<()> {
    let removed = match fs::remove_file(directory.join(FILE)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        removed => removed,
    };
    removed
        .and_then(|()| vfs::sync_dir(directory))
        .map_err(|e| Error::io("close", directory, e).with_engine(NAME))
}

#[cfg(test)]
mod tests;
