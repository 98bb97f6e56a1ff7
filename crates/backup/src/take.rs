//! Taking a backup.

use std::path::Path;

use kv::{Compaction, Engine, Error, Flow, Progress, Result};

use crate::codec::Codec;
use crate::increment::{self, Known};
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
/// With a `base`, a backup of the same store in the same directory, what that has is left out.
///
/// # Errors
/// `Unsupported` for an engine that has no backup, or with a base no increments; `Invalid` for a
/// base that does not fit; `Exists` for a place that is not empty; `Full`; `Io`; those of the
/// engine.
pub fn take(
    engine: &dyn Engine,
    place: &Place,
    codec: Codec,
    throttle: Option<Throttle>,
    facts: Facts,
    base: Option<&Path>,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Manifest>> {
    if !engine.capabilities().backup {
        return Err(Error::unsupported(engine.name(), "backup"));
    }
    let known = base
        .map(|base| Known::of(engine, place, base))
        .transpose()?;
    let mut target = place.open()?;
    into(engine, &mut *target, (codec, throttle, known), facts, watch)
}

/// Take a backup into a target.
pub(crate) fn into(
    engine: &dyn Engine,
    target: &mut dyn Target,
    (codec, throttle, known): (Codec, Option<Throttle>, Option<Known>),
    facts: Facts,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Manifest>> {
    let mut sink = Sink::new(target, codec, throttle, known, watch);
    let taken = fill(engine, &mut sink, facts);
    if !matches!(taken, Ok(Some(_))) {
        target.discard();
    }
    taken
}

fn fill(engine: &dyn Engine, sink: &mut Sink<'_>, facts: Facts) -> Result<Option<Manifest>> {
    let started = stdx::time::wall().as_secs();
    let staging = sink.target.staging();
    let ended = engine.backup_to(&staging, sink);
    if let Some(error) = sink.failed.take() {
        return Err(error);
    }
    if ended? == Compaction::Cancelled {
        return Ok(None);
    }
    let identity = sink.identity()?;
    let mut files = std::mem::take(&mut sink.files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let listed = engine.capabilities().increments && !sink.unlisted;
    let lineage = engine.lineage().filter(|_| listed);
    let manifest = Manifest {
        product: facts.product,
        engine: engine.name().to_owned(),
        identity,
        store: facts.store,
        started,
        ended: stdx::time::wall().as_secs(),
        operation_time: facts.operation_time,
        codec: sink.codec,
        encryption: None,
        lineage: lineage.as_ref().map(increment::text),
        base: sink.known.take().map(|known| known.base),
        files,
    };
    let bytes = manifest.encode();
    // What could not be read back is not a backup.
    Manifest::decode(&bytes)?;
    sink.target.seal(&bytes)?;
    Ok(Some(manifest))
}
