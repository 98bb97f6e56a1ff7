//! How the engine is opened.

use std::io;
use std::path::Path;

use kv_types::{Error, Limits, Result};
use stdx::ByteSize;
use vfs::DirLock;

use super::engine::MemoryEngine;
use super::store::Store;
use super::{KEY_MAX, NAME, VALUE_MAX};
use crate::capabilities::Capabilities;
use crate::engine::Engine;
use crate::factory::Factory;
use crate::identity;
use crate::options::{EngineOptions, OptionDoc};

/// Version of the directory's layout: it holds only the identity file and the lock file.
const FORMAT: u32 = 1;

const OPTIONS: &[OptionDoc] = &[OptionDoc {
    name: "limit",
    values: "size|none",
    default: "none",
    about: "approximate memory limit for keys and values: puts beyond it fail with Full, while \
            reads and deletes continue; none removes the limit",
}];

#[derive(Debug)]
struct MemoryFactory;

/// The factory of the in-memory engine.
///
/// ```
/// use kv::{Durability, EngineOptions, TreeOptions};
///
/// # fn main() -> kv::Result<()> {
/// # let directory = tempfile::tempdir().expect("a temporary directory");
/// let engine = kv::memory::factory().open(directory.path(), &EngineOptions::default())?;
/// let tree = engine.create_tree("fruit", &TreeOptions::default())?;
/// let mut txn = engine.begin_write()?;
/// txn.insert(tree, b"apple", b"red")?;
/// txn.commit(Durability::None)?;
/// assert_eq!(engine.begin_read()?.get(tree, b"apple")?, Some(b"red".to_vec()));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn factory() -> &'static dyn Factory {
    &MemoryFactory
}

impl Factory for MemoryFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "multi-version B-trees in memory, by this project; nothing survives the process"
    }

    fn license(&self) -> &'static str {
        "MIT OR Apache-2.0"
    }

    fn feature(&self) -> Option<&'static str> {
        None
    }

    fn available(&self) -> bool {
        true
    }

    fn version(&self) -> Option<String> {
        Some(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            limits: Limits {
                key_max: KEY_MAX,
                value_max: VALUE_MAX,
            },
            empty_keys: true,
            persistent: false,
            interval: false,
            group_commit: false,
            none_is_consistent: true,
            concurrent_writers: true,
            blind_writes: true,
            cheap_range_delete: false,
            drop_with_readers: true,
            compaction: true,
            backup: false,
            increments: false,
            storage_map: false,
            io_by_reason: false,
            direct_io: false,
            compression: false,
        }
    }

    fn options(&self) -> &'static [OptionDoc] {
        OPTIONS
    }

    fn check(&self, options: &EngineOptions) -> Result<()> {
        self.check_own(options)?;
        limit(options).map(|_| ())
    }

    /// `cache`, `codec`, `threads`, `direct_io`, `interval`, `checkpoint` and `size_max` have no
    /// effect on this engine; its own option `limit` bounds its memory.
    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        self.check(options)?;
        let limit = limit(options)?;
        identity::claim(directory, NAME, FORMAT, "")?;
        let lock = DirLock::acquire(directory).map_err(|e| refused(directory, e))?;
        let store = Store::new(limit, options.log);
        Ok(Box::new(MemoryEngine::new(
            store,
            self.capabilities(),
            lock,
        )))
    }
}

fn limit(options: &EngineOptions) -> Result<Option<u64>> {
    match options.own.get("limit").map(String::as_str) {
        None | Some("none") => Ok(None),
        Some(text) => match text.parse::<ByteSize>() {
            Ok(size) => Ok(Some(size.bytes())),
            Err(e) => Err(Error::invalid(format!("option limit: {e}; or none")).with_engine(NAME)),
        },
    }
}

fn refused(directory: &Path, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::WouldBlock {
        return Error::io("open", directory, error).with_engine(NAME);
    }
    let message = format!(
        "the directory {} is open in another process or by another handle of this one; close it \
         there or name another directory",
        directory.display()
    );
    Error::invalid(message)
        .with_engine(NAME)
        .with_path(directory)
        .with_source(error)
}
