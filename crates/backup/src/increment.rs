//! What an increment can leave out: the pieces that its base has.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use kv::{Engine, Error, PieceId, Result};

use crate::chain::{MEMBERS_MAX, bases};
use crate::manifest::{Base, Manifest};
use crate::name;
use crate::place::Place;
use crate::source::Source;

/// What the next step is, where an increment cannot be taken.
const FULL: &str = "take a full backup";

/// The base of an increment that is being taken.
pub(crate) struct Known {
    pub(crate) base: Base,
    /// The pieces of each file with their lengths, its own and those that it leaves out.
    files: BTreeMap<String, BTreeMap<PieceId, u64>>,
}

impl Known {
    /// Check that an increment of a store on the backup at `path` can be taken and restored.
    ///
    /// # Errors
    /// `Unsupported` for an engine without increments; `Invalid` for a base that is of another
    /// store, or in another directory; those of a base that is incomplete.
    pub(crate) fn of(engine: &dyn Engine, place: &Place, path: &Path) -> Result<Known> {
        let refuse = |what: &str| {
            let message = format!("{what}; {FULL}");
            Err(Error::invalid(message).with_path(path))
        };
        let Some(lineage) = supported(engine)? else {
            return refuse("the engine does not identify its store");
        };
        let source = Source::open(path)?;
        let name = beside(place.path(), path)?;
        let (manifest, digest) = source.read_manifest()?;
        if manifest.engine != engine.name() {
            let of = &manifest.engine;
            return refuse(&format!(
                "the base is a backup of {of}, the store of another engine"
            ));
        }
        match &manifest.lineage {
            None => return refuse("the base does not list its pieces"),
            Some(other) if *other != text(&lineage) => {
                return refuse(
                    "the base is a backup of another store (a restored store is another one than \
                     that of its backup)",
                );
            }
            Some(_) => {}
        }
        if MEMBERS_MAX <= bases(&source, &manifest)?.len() + 1 {
            return refuse(&format!("the chain of the base has {MEMBERS_MAX} members"));
        }
        let base = Base { name, digest };
        let files = pieces(&manifest);
        Ok(Known { base, files })
    }

    /// Whether the base has this piece of a file.
    pub(crate) fn has(&self, path: &str, id: &PieceId, length: u64) -> bool {
        let pieces = self.files.get(path);
        pieces.and_then(|pieces| pieces.get(id)) == Some(&length)
    }
}

/// The lineage of an engine that has increments.
fn supported(engine: &dyn Engine) -> Result<Option<[u8; 16]>> {
    if engine.capabilities().increments {
        return Ok(engine.lineage());
    }
    let name = engine.name();
    let message = format!("the engine {name} has no incremental backups; {FULL}");
    Err(Error::new(kv::ErrorKind::Unsupported, message).with_engine(name))
}

/// A lineage as the manifest has it.
pub(crate) fn text(lineage: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*lineage))
}

/// The name of a base in the directory of the new backup.
fn beside(place: &Path, base: &Path) -> Result<String> {
    let real = |path: &Path| {
        let real = path.canonicalize();
        real.map_err(|e| Error::io("find the directory of the backups", path, e))
    };
    let parent = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let link = base
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    let whole = real(base)?;
    if link || whole.parent() != Some(&*real(parent)?) {
        let message = "an increment and its base must be in one directory, and the base no \
                       symbolic link, because a chain is restored from one directory";
        return Err(Error::invalid(message).with_path(base));
    }
    let name = whole.file_name().and_then(OsStr::to_str);
    match name.filter(|name| name::check(name).is_ok()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(Error::invalid("the name of the base is not supported").with_path(base)),
    }
}

fn pieces(manifest: &Manifest) -> BTreeMap<String, BTreeMap<PieceId, u64>> {
    let listed = manifest.files.iter().filter_map(|file| {
        let pieces = &file.pieces.as_ref()?.0;
        let lengths = pieces.iter().map(|piece| (piece.id, piece.length));
        Some((file.path.clone(), lengths.collect()))
    });
    listed.collect()
}
