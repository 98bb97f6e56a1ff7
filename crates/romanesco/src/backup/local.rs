//! A backup of a store that no other process has open.

use std::path::Path;

use backup::{Facts, Monotonic, Place, Throttle};
use kv::{EngineOptions, Factory, Flow, identity};

use super::progress::Progress;
use super::{Args, summary};

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

pub(super) fn take(args: &Args, dbpath: &Path, place: &Place) -> Result<(), String> {
    let failed = |error: kv::Error| error.to_string();
    let Some(identity) = identity::read(dbpath).map_err(failed)? else {
        return Err(format!(
            "{} holds no store; name the data directory of a server",
            dbpath.display()
        ));
    };
    let factory = engine(&identity.engine)?;
    let opened = factory.open(dbpath, &EngineOptions::default());
    let engine = opened.map_err(|error| {
        format!("{error}; if a server has the store open, name the server by --uri")
    })?;
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
        Flow::Continue
    };
    let codec = args.compression;
    let taken = backup::take(&*engine, place, codec, throttle, facts, &mut watch);
    let manifest = taken.map_err(failed)?;
    let manifest = manifest.ok_or("the backup was cancelled")?;
    drop(progress);
    engine.close().map_err(failed)?;
    let sum = |size: fn(&backup::FileEntry) -> u64| manifest.files.iter().map(size).sum::<u64>();
    let files = manifest.files.len() as u64;
    summary(place, files, sum(|f| f.size), sum(|f| f.stored_size));
    Ok(())
}
