//! A reader that runs concurrently with the writers: one snapshot must be consistent.
//!
//! The ledger is read first, so a value whose author's counter is above it was committed in part,
//! or after the snapshot. Ledger counters never decrease from one snapshot to the next.

use kv::{Direction, KeyRange};
use stdx::rng::mix64;
use stdx::{Rng, time};

use super::Shared;
use super::store::text;
use crate::key::{HOT_KEYS, Key, TREES, WRITERS_MAX};
use crate::value::decode;

/// The mean pause between two checks, in milliseconds.
const PAUSE_MS: f64 = 2.0;

/// Maximum number of entries read per check of a tree.
const ENTRIES_MAX: usize = 100;

/// Read until stopped.
pub(super) fn run(shared: &Shared<'_>) {
    let mut rng = Rng::new(mix64(shared.start.seed ^ 0x4EAD));
    let mut before = Vec::new();
    while !shared.stopped() {
        match look(shared, &mut rng) {
            Ok(ledger) => {
                let back = before.iter().zip(&ledger).position(|(old, new)| new < old);
                if let Some(writer) = back {
                    let message = format!("a later snapshot sees less of writer {writer}");
                    return shared.wrong(message);
                }
                before = ledger;
            }
            Err(message) => return shared.wrong(format!("reader: {message}")),
        }
        let pause = rng.exponential(PAUSE_MS).min(20.0);
        time::sleep(std::time::Duration::from_secs_f64(pause / 1e3));
    }
}

/// Check one snapshot; returns the counters of its ledger.
fn look(shared: &Shared<'_>, rng: &mut Rng) -> Result<Vec<u64>, String> {
    let store = shared.store;
    let snapshot = store.engine.begin_read().map_err(text("begin_read"))?;
    let mut ledger = Vec::new();
    for writer in 0..WRITERS_MAX {
        let key = Key::ledger(writer);
        let value = snapshot.get(store.tree(key.tree), &key.bytes());
        ledger.push(match value.map_err(text("get"))? {
            None => 0,
            Some(value) => decode(key, &value)?.counter,
        });
    }
    let number = 1 + u8::try_from(rng.index(TREES.len() - 1)).expect("there are few trees");
    let start = if rng.chance(0.5) {
        Key::hot(number, 0)
    } else {
        Key::random(number, rng.below(HOT_KEYS * 200))
    };
    let bytes = start.bytes();
    let mut cursor = snapshot
        .cursor(store.tree(number), KeyRange::ALL, Direction::Forward)
        .map_err(text("cursor"))?;
    let mut there = cursor.seek(&bytes).map_err(text("seek"))?;
    let mut count = 0;
    while there && count < ENTRIES_MAX {
        let key = Key::read(number, cursor.key());
        let key = key.ok_or_else(|| format!("a key that no writer wrote: {:?}", cursor.key()))?;
        let stamp = decode(key, cursor.value()).map_err(|e| format!("{key}: {e}"))?;
        let last = ledger.get(stamp.writer as usize).copied().unwrap_or(0);
        if last < stamp.counter {
            return Err(format!(
                "{key} shows {stamp} in a snapshot that ends with {}:{last}",
                stamp.writer
            ));
        }
        count += 1;
        there = cursor.advance().map_err(text("advance"))?;
    }
    Ok(ledger)
}
