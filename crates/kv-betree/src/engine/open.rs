//! Opening a store: its identity, then the store itself, which locks the directory.

use std::path::Path;
use std::sync::Arc;

use betree::{Db, Options};
use kv::{Engine, Result};
use vfs::Vfs;

use super::{Betree, named};
use crate::factory::capabilities;
use crate::settings::NAME;

/// The version of the adapter's files in the directory: only the identity file.
const FORMAT: u32 = 1;

pub(crate) fn open(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: Options,
) -> Result<Box<dyn Engine>> {
    // No option is fixed for the life of a store: every sorted run records its own format.
    kv::identity::claim(directory, NAME, FORMAT, "")?;
    let log = options.log();
    let db = Db::open_with(vfs, directory, options).map_err(named)?;
    Ok(Box::new(Betree {
        db,
        directory: directory.to_owned(),
        capabilities: capabilities(log),
    }))
}
