//! Detects the store at a path: from the engine's name in the identity file if it exists, else from
//! the files.

use std::fs;
use std::path::{Path, PathBuf};

use lab_report::error::{Error, Result};

use super::bytes::Source;
use super::{innodb, lmdb, wiredtiger};

/// Maximum number of tablespaces of a directory that are drawn, the largest first.
pub(super) const TABLES_MAX: usize = 16;

/// A store that can be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The directory of a store of betree.
    Betree(PathBuf),
    /// A file of LMDB.
    Lmdb(PathBuf),
    /// The directory of a store of WiredTiger, and its files.
    WiredTiger(PathBuf, Vec<PathBuf>),
    /// The directory of a store of RocksDB.
    RocksDb(PathBuf),
    /// InnoDB tablespaces.
    InnoDb(Vec<PathBuf>),
}

/// Detect the store at `path`.
pub(super) fn detect(path: &Path) -> Result<Found> {
    let data = fs::metadata(path).map_err(|e| Error::io("read", path, &e))?;
    if data.is_dir() {
        return directory(path);
    }
    file(path)
}

fn refuse<T>(path: &Path, why: &str) -> Result<T> {
    Err(Error::environment(format!(
        "{}: {why}; name the directory of a store (betree, LMDB, WiredTiger, RocksDB), its data \
         file, or a tablespace of InnoDB (.ibd)",
        path.display()
    )))
}

fn file(path: &Path) -> Result<Found> {
    let source = Source::open(path)?;
    let mut head = vec![0; 4096];
    let there = source.read(&mut head, 0)?;
    let parent = || path.parent().unwrap_or(Path::new(".")).to_owned();
    if head.starts_with(b"\x89BETREE\n") {
        return Ok(Found::Betree(parent()));
    }
    if lmdb::begins(&head) {
        return Ok(Found::Lmdb(path.to_owned()));
    }
    if wiredtiger::begins(&head) {
        return Ok(Found::WiredTiger(parent(), vec![path.to_owned()]));
    }
    if innodb::begins(&head) {
        return Ok(Found::InnoDb(vec![path.to_owned()]));
    }
    let extension = path.extension().and_then(|e| e.to_str());
    match extension {
        Some("sst") => refuse(path, "one file of RocksDB has no map: draw its directory"),
        Some("ibd") => refuse(
            path,
            "not a tablespace that can be read (encrypted, or damaged)",
        ),
        _ if there == 0 => refuse(path, "the file is empty"),
        _ => refuse(path, "not a file of an engine known here"),
    }
}

fn directory(path: &Path) -> Result<Found> {
    let identity = kv::identity::read(path).map_err(|e| Error::environment(e.to_string()))?;
    if let Some(identity) = identity {
        return match identity.engine.as_str() {
            "betree" => Ok(Found::Betree(path.to_owned())),
            "lmdb" => Ok(Found::Lmdb(path.join("data.mdb"))),
            "wiredtiger" => wired(&path.join("db")),
            "rocksdb" => Ok(Found::RocksDb(path.join("db"))),
            other => refuse(path, &format!("a store of {other} has no map")),
        };
    }
    let has = |name: &str| path.join(name).exists();
    if has("data.betree") {
        return Ok(Found::Betree(path.to_owned()));
    }
    if has("data.mdb") {
        return Ok(Found::Lmdb(path.join("data.mdb")));
    }
    if has("WiredTiger.wt") {
        return wired(path);
    }
    if has("CURRENT") {
        return Ok(Found::RocksDb(path.to_owned()));
    }
    let tables = tablespaces(path)?;
    if !tables.is_empty() {
        return Ok(Found::InnoDb(tables));
    }
    // MyRocks creates its directory when it is loaded, even if it stores no tables.
    if has("#rocksdb/CURRENT") {
        return Ok(Found::RocksDb(path.join("#rocksdb")));
    }
    if has("manifest.json") && has("steps") {
        return refuse(
            path,
            "the results of a run, not a store: draw a directory below data/, which --keep-data \
             keeps",
        );
    }
    // A server that the laboratory started has its data in this subdirectory.
    let data = path.join("data");
    if data.join("ibdata1").is_file() {
        return directory(&data);
    }
    refuse(path, "no store is in this directory")
}

/// The trees of a WiredTiger store. WiredTiger's internal files are not drawn.
fn wired(directory: &Path) -> Result<Found> {
    let tree = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let ours = path.extension().is_some_and(|e| e == "wt" || e == "lsm");
        ours && !name.starts_with("WiredTiger") && !name.starts_with('_') && name != "sizeStorer.wt"
    };
    let mut files = list(directory)?;
    files.retain(tree);
    Ok(Found::WiredTiger(directory.to_owned(), files))
}

/// The tablespaces of a database, or of all databases of a server.
fn tablespaces(path: &Path) -> Result<Vec<PathBuf>> {
    let ibd = |path: &PathBuf| path.extension().is_some_and(|e| e == "ibd");
    let mut found: Vec<PathBuf> = list(path)?.into_iter().filter(ibd).collect();
    if path.join("ibdata1").is_file() {
        for below in list(path)?.iter().filter(|p| p.is_dir()) {
            // Skip the server's own databases, which are small and of no interest. They are drawn
            // if `path` names one of them.
            let own = ["mysql", "sys", "performance_schema"];
            if !own.iter().any(|name| below.ends_with(name)) {
                found.extend(list(below)?.into_iter().filter(ibd));
            }
        }
    }
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
    found.sort_by_key(|path| (std::cmp::Reverse(size(path)), path.clone()));
    Ok(found)
}

/// The entries of a directory, sorted by name.
fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let fail = |e: &std::io::Error| Error::io("read", directory, e);
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).map_err(|e| fail(&e))? {
        all.push(entry.map_err(|e| fail(&e))?.path());
    }
    all.sort();
    Ok(all)
}
