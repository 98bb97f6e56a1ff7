//! The storage map of a store from its files, without opening it: read-only and without locks.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use kv::{Error, ErrorKind, Result, StorageMap, TreeId};
use vfs::{File, Site};

use crate::engine::named;
use crate::engine::stats::{self, DATA};
use crate::settings::{self, NAME};

/// The most bytes read of a key file; a whole one is shorter.
const KEY_FILE_MAX: u64 = 1 << 20;

/// A store as of its newest checkpoint.
#[derive(Clone, Debug)]
pub struct AtRest {
    /// The regions of the data file.
    pub map: StorageMap,
    /// The trees by name.
    pub trees: Vec<(TreeId, String)>,
    /// The buckets, by tree and in key order.
    pub buckets: Vec<Bucket>,
}

/// A bucket: a range of keys with a base and the changes above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The tree that the bucket belongs to.
    pub tree: TreeId,
    /// Bytes of the base.
    pub base_bytes: u64,
    /// Bytes of the changes above the base.
    pub delta_bytes: u64,
}

/// Read the newest checkpoint of the store in `directory`, which another process may have open. If
/// that process takes new checkpoints faster than this function reads one, the read restarts, a few
/// times. An encrypted store needs the file of its master key.
///
/// # Errors
/// `Invalid` when the directory holds no store of this engine, or the master key is missing or
/// wrong; `Corrupt`; `Io`.
pub fn map_at_rest(directory: &Path, key_file: Option<&Path>) -> Result<AtRest> {
    let master = key_file.map(settings::read_master).transpose()?;
    let path = directory.join(DATA);
    let file = fs::File::open(&path).map_err(|e| Error::io("map", &path, e).with_engine(NAME))?;
    let file = ReadOnly(file);
    let mut tries = 5;
    let (found, trees) = loop {
        tries -= 1;
        let keys = match &master {
            Some(_) => read_keys(directory)?,
            None => Vec::new(),
        };
        let encryption = master.as_ref().map(|master| (master, &*keys));
        match betree::map_at_rest(&file, &path, encryption) {
            Err(e) if e.kind() == ErrorKind::Corrupt && 0 < tries => {}
            other => break other.map_err(named)?,
        }
    };
    Ok(AtRest {
        map: stats::map(&found),
        trees,
        buckets: found
            .buckets
            .iter()
            .map(|bucket| Bucket {
                tree: bucket.tree,
                base_bytes: bucket.base_bytes,
                delta_bytes: bucket.delta_bytes,
            })
            .collect(),
    })
}

/// The bytes of the key file of an encrypted store.
fn read_keys(directory: &Path) -> Result<Vec<u8>> {
    let path = directory.join(betree::KEY_FILE);
    let mut bytes = Vec::new();
    fs::File::open(&path)
        .and_then(|file| file.take(KEY_FILE_MAX).read_to_end(&mut bytes))
        .map_err(|e| Error::io("map", &path, e).with_engine(NAME))?;
    Ok(bytes)
}

/// A file for reading only: every write to it fails.
struct ReadOnly(fs::File);

impl ReadOnly {
    fn refuse<T>() -> io::Result<T> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}

impl File for ReadOnly {
    fn read_at(&self, _: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, _: Site, _: &[u8], _: u64) -> io::Result<()> {
        ReadOnly::refuse()
    }

    fn sync(&self, _: Site) -> io::Result<()> {
        ReadOnly::refuse()
    }

    fn set_len(&self, _: Site, _: u64) -> io::Result<()> {
        ReadOnly::refuse()
    }

    fn allocate(&self, _: Site, _: u64, _: u64) -> io::Result<()> {
        ReadOnly::refuse()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|data| data.len())
    }
}
