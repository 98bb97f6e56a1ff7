//! Fragmentation maps: the fill of a store's pages, the free space between them, and the location
//! of its files on the device.
//!
//! All access is read-only: no file is opened through its engine, locked or written. Data that a
//! running store has only in memory is therefore not drawn, and the map names the process that has
//! the store open.
//!
//! Bytes of files are untrusted: lengths are checked before memory is allocated, walks cannot loop,
//! and invalid data is drawn as unknown.

mod betree;
mod bytes;
mod detect;
mod extents;
mod held;
mod html;
mod innodb;
mod lmdb;
mod rocksdb;
mod terminal;
#[cfg(test)]
mod tests;
mod wiredtiger;
mod wiredtiger_catalog;

use std::path::{Path, PathBuf};

pub use html::page;
pub use terminal::{Ink, text};

use detect::{Found, TABLES_MAX, detect};
use lab_report::error::Result;
use lab_report::record::map::Map;

/// Draw the store at `path`: its directory, or one of its files. `key_file` is the file of the
/// master key of an encrypted store.
///
/// # Errors
/// If `path` is not a store of a known engine, or cannot be read; the message states which.
pub fn read(path: &Path, key_file: Option<&Path>) -> Result<Map> {
    let found = detect(path)?;
    let mut map = Map::new(found.name(), path);
    if let Some(process) = found.locks().iter().find_map(|lock| held::holder(lock)) {
        map.notes.push(format!(
            "in use by process {process}: what it holds in memory is not in the files yet, and \
             what it writes meanwhile may be drawn half"
        ));
    }
    match &found {
        Found::Betree(directory) => betree::draw(&mut map, directory, key_file)?,
        Found::Lmdb(file) => lmdb::draw(&mut map, file)?,
        Found::RocksDb(directory) => rocksdb::draw(&mut map, directory)?,
        Found::WiredTiger(directory, files) => wired(&mut map, directory, files)?,
        Found::InnoDb(files) => tablespaces(&mut map, files)?,
    }
    map.sum_trees();
    for file in found.files() {
        if let Some(extents) = extents::of(&file) {
            *map.sums.extents.get_or_insert(0) += extents.count;
            map.extents.push(extents);
        }
    }
    Ok(map)
}

fn wired(map: &mut Map, directory: &Path, files: &[PathBuf]) -> Result<()> {
    let catalog = wiredtiger::catalog(directory).unwrap_or_default();
    for file in files {
        let title = name(file);
        wiredtiger::draw(map, file, &title, catalog.get(&title))?;
    }
    Ok(())
}

fn tablespaces(map: &mut Map, files: &[PathBuf]) -> Result<()> {
    for file in files.iter().take(TABLES_MAX) {
        innodb::draw(map, file, &name(file))?;
    }
    if TABLES_MAX < files.len() {
        map.notes.push(format!(
            "the {TABLES_MAX} largest of {} tablespaces are drawn; name one to draw it",
            files.len()
        ));
    }
    Ok(())
}

fn name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

impl Found {
    fn name(&self) -> &'static str {
        match self {
            Found::Betree(_) => "betree",
            Found::Lmdb(_) => "lmdb",
            Found::WiredTiger(..) => "wiredtiger",
            Found::RocksDb(_) => "rocksdb",
            Found::InnoDb(_) => "innodb",
        }
    }

    /// The files that a process locks while it has the store open.
    fn locks(&self) -> Vec<PathBuf> {
        let beside = |directory: &Path| vec![directory.join("LOCK")];
        match self {
            Found::Betree(directory) => beside(directory),
            Found::Lmdb(file) => {
                let directory = file.parent().unwrap_or(Path::new("."));
                vec![directory.join("LOCK"), directory.join("lock.mdb")]
            }
            Found::RocksDb(directory) => beside(directory),
            Found::WiredTiger(directory, _) => vec![directory.join("WiredTiger.lock")],
            Found::InnoDb(files) => files.clone(),
        }
    }

    /// The files whose extents are drawn.
    fn files(&self) -> Vec<PathBuf> {
        match self {
            Found::Betree(directory) => vec![directory.join("data.betree")],
            Found::Lmdb(file) => vec![file.clone()],
            Found::RocksDb(directory) => extents::tables(directory),
            Found::WiredTiger(_, files) => files.clone(),
            Found::InnoDb(files) => files.iter().take(TABLES_MAX).cloned().collect(),
        }
    }
}
