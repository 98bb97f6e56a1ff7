//! Frequent maintenance during the writes: checkpoints, syncs, settling, compaction, checks.

use std::time::Duration;

use kv::{Compaction, ErrorKind, Flow, KeyRange};
use stdx::rng::mix64;
use stdx::{Rng, time};

use super::Shared;
use super::store::text;
use crate::draw::pick;
use crate::key::TREES;
use crate::protocol::{Event, Lie};

/// Time limit of a settle; short, because settles are frequent.
const SETTLE: Duration = Duration::from_millis(5);

/// Execute maintenance calls until stopped.
pub(super) fn run(shared: &Shared<'_>) {
    let mut rng = Rng::new(mix64(shared.start.seed ^ 0x0C4B));
    let mean = pick(&mut rng, &[1.0, 5.0, 25.0]);
    while !shared.stopped() {
        let pause = rng.exponential(mean).min(100.0);
        time::sleep(Duration::from_secs_f64(pause / 1e3));
        if let Err(message) = step(shared, &mut rng) {
            return shared.wrong(format!("upkeep: {message}"));
        }
    }
}

fn step(shared: &Shared<'_>, rng: &mut Rng) -> Result<(), String> {
    let engine = &shared.store.engine;
    match rng.below(20) {
        0..=6 => synced(shared, || engine.checkpoint().map_err(text("checkpoint"))),
        7..=12 => synced(shared, || engine.sync_log().map_err(text("sync_log"))),
        13..=16 => engine.settle(SETTLE).map(|_| ()).map_err(text("settle")),
        17..=18 => compact(shared, rng),
        _ => match engine.verify() {
            Ok(()) => Ok(()),
            // The reader holds a snapshot, or the engine has no such check.
            Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Unsupported) => Ok(()),
            Err(e) => Err(text("verify")(e)),
        },
    }
}

/// Execute a call that makes all earlier commits durable, and announce it.
fn synced(shared: &Shared<'_>, call: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    // Not announced if commits are held back: the sync alone would reveal the cheat.
    let announced = shared.start.lie != Some(Lie::Hold);
    if announced {
        shared.voice.say(&Event::SyncBegun);
    }
    call()?;
    if announced {
        shared.voice.say(&Event::Synced);
    }
    Ok(())
}

fn compact(shared: &Shared<'_>, rng: &mut Rng) -> Result<(), String> {
    let engine = &shared.store.engine;
    if !engine.capabilities().compaction {
        return Ok(());
    }
    let number = u8::try_from(rng.index(TREES.len())).expect("there are few trees");
    let mut watch = |_| {
        if shared.stopped() {
            Flow::Cancel
        } else {
            Flow::Continue
        }
    };
    let tree = shared.store.tree(number);
    let done = engine.compact(tree, KeyRange::ALL, &mut watch);
    let _: Compaction = done.map_err(text("compact"))?;
    Ok(())
}
