//! Taking a backup.

use kv::{Compaction, Engine, Error, Flow, Progress, Result};

use crate::codec::Codec;
use crate::manifest::{Manifest, OperationTime};
use crate::place::Place;
use crate::sink::Sink;
use crate::target::Target;
use crate::throttle::Throttle;

/// What the manifest states about the store, as the caller knows it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The version of the program.
    pub product: String,
    /// The identifier of the store.
    pub store: Option<String>,
    /// A time of the oplog up to which every write was committed before the call.
    pub operation_time: Option<OperationTime>,
}

/// Take a backup of an open store. `watch` is called at least once for every 1 MiB, and while the
/// throttle waits; if it returns `Cancel`, or after an error, what was written is removed. Returns
/// `None` if it was cancelled.
///
/// # Errors
/// `Unsupported` for an engine that has no backup; `Exists` for a place that is not empty; `Full`;
/// `Io`; those of the engine.
pub fn take(
    engine: &dyn Engine,
    place: &Place,
    codec: Codec,
    throttle: Option<Throttle>,
    facts: Facts,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Manifest>> {
    if !engine.capabilities().backup {
        return Err(Error::unsupported(engine.name(), "backup"));
    }
    let mut target = place.open()?;
    let taken = fill(engine, &mut *target, codec, throttle, facts, watch);
    if !matches!(taken, Ok(Some(_))) {
        target.discard();
    }
    taken
}

fn fill(
    engine: &dyn Engine,
    target: &mut dyn Target,
    codec: Codec,
    throttle: Option<Throttle>,
    facts: Facts,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Manifest>> {
    let started = stdx::time::wall().as_secs();
    let staging = target.staging();
    let mut sink = Sink::new(target, codec, throttle, watch);
    let ended = engine.backup_to(&staging, &mut sink);
    if let Some(error) = sink.failed {
        return Err(error);
    }
    if ended? == Compaction::Cancelled {
        return Ok(None);
    }
    let identity = sink.identity()?;
    let mut files = std::mem::take(&mut sink.files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let manifest = Manifest {
        product: facts.product,
        engine: engine.name().to_owned(),
        identity,
        store: facts.store,
        started,
        ended: stdx::time::wall().as_secs(),
        operation_time: facts.operation_time,
        codec,
        encryption: None,
        files,
    };
    let bytes = manifest.encode();
    // What could not be read back is not a backup.
    Manifest::decode(&bytes)?;
    target.seal(&bytes)?;
    Ok(Some(manifest))
}
