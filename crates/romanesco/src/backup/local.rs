//! A backup of a store that no other process has open.

use std::io;
use std::path::{Path, PathBuf};

use backup::{Facts, Monotonic, Place, Throttle, Visit};
use kv::{Encryption, Engine, EngineOptions, Factory, identity};
use lab::run::Interrupt;
use vfs::DirLock;

use super::progress::Progress;
use super::{Args, flow, summary};

/// The file that an encrypted store has, and no other.
pub(super) const KEYS: &str = "keys.betree";

/// The factory of the engine with this name, which must be compiled in.
///
/// # Errors
/// An engine that this program does not have.
pub(super) fn engine(name: &str) -> Result<&'static dyn Factory, String> {
    let factory = lab::targets::factory(name).map_err(|error| error.to_string())?;
    match factory.available() {
        true => Ok(factory),
        false => Err(factory.missing().to_string()),
    }
}

/// Refuse a place inside of the data directory, or around it. Returns the path of the place with
/// the symbolic links of its parent resolved.
fn outside(place: &Path, dbpath: &Path) -> Result<PathBuf, String> {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(format!("{}: name a file or directory", place.display()));
    };
    let real = |path: &Path| {
        let real = path.canonicalize();
        real.map_err(|error| format!("{}: {error}", path.display()))
    };
    let (at, data) = (real(parent)?.join(name), real(dbpath)?);
    if at.starts_with(&data) || data.starts_with(&at) {
        return Err(format!(
            "{}: a backup must be outside of the data directory {}; name another place",
            place.display(),
            dbpath.display()
        ));
    }
    Ok(at)
}

pub(super) fn open(
    factory: &dyn Factory,
    dbpath: &Path,
    key_file: Option<&Path>,
) -> Result<Box<dyn Engine>, String> {
    let mut options = EngineOptions::default();
    if let Some(file) = key_file {
        let wrong = |what: &str| format!("--encryptionKeyFile {}: {what}", file.display());
        let path = std::path::absolute(file).map_err(|error| wrong(&error.to_string()))?;
        let path = path.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
        let own = &mut options.own;
        own.insert(Encryption::OPTION.to_owned(), path.to_owned());
    }
    factory.open(dbpath, &options).map_err(|error| {
        let lock = DirLock::acquire(dbpath);
        let held = lock.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock);
        if held {
            format!("{error}; if a server has the store open, name the server by --uri")
        } else if key_file.is_none() && dbpath.join(KEYS).exists() {
            format!("{error}; name the file of the master key by --encryptionKeyFile")
        } else {
            error.to_string()
        }
    })
}

pub(super) fn take(
    args: &Args,
    dbpath: &Path,
    place: &Place,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let failed = |error: kv::Error| error.to_string();
    let Some(identity) = identity::read(dbpath).map_err(failed)? else {
        return Err(format!(
            "{} holds no store; name the data directory of a server",
            dbpath.display()
        ));
    };
    let real = outside(place.path(), dbpath)?;
    let place = &match place {
        Place::Archive(_) => Place::Archive(real),
        Place::Directory(_) => Place::Directory(real),
    };
    let factory = engine(&identity.engine)?;
    let failed = |error: io::Error| format!("{}: {error}", dbpath.display());
    let visit = Visit::begin(dbpath).map_err(failed)?;
    let taken = copy(args, factory, dbpath, place, interrupt);
    if let Err(error) = visit.end() {
        note!(
            "romanesco backup: {}: root owns files in it now ({error}); give them to the user of \
             the server with chown",
            dbpath.display()
        );
    }
    taken
}

fn copy(
    args: &Args,
    factory: &dyn Factory,
    dbpath: &Path,
    place: &Place,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let failed = |error: kv::Error| error.to_string();
    let engine = open(factory, dbpath, args.key_file.as_deref())?;
    let throttle = args
        .throttle
        .map(|rate| Throttle::new(rate.bytes(), Box::new(Monotonic::default())));
    let facts = Facts {
        product: env!("CARGO_PKG_VERSION").to_owned(),
        ..Facts::default()
    };
    let mut progress = Progress::new("copying");
    let mut watch = |now: kv::Progress| {
        progress.show(now.done_bytes, now.total_bytes);
        flow(interrupt)
    };
    let codec = args.compression;
    let base = args.incremental.as_deref();
    let taken = backup::take(&*engine, place, codec, throttle, facts, base, &mut watch);
    let manifest = taken.map_err(failed)?;
    drop(progress);
    let Some(manifest) = manifest else {
        engine.close().map_err(failed)?;
        return Err(format!(
            "ended by a signal; what was written of {} is removed",
            place.path().display()
        ));
    };
    engine.close().map_err(failed)?;
    let sum = |size: fn(&backup::FileEntry) -> u64| manifest.files.iter().map(size).sum::<u64>();
    let files = manifest.files.len() as u64;
    summary(place, files, sum(|f| f.size), sum(|f| f.stored_size));
    Ok(())
}
