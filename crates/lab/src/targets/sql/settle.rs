//! Lets a server finish its pending work, in the way its manual describes.

use std::time::Duration;

use lab_report::error::Result;
use stdx::time;

use super::engine::Engine;
use super::stats;
use super::wire::{Failure, Wire};
use crate::targets::database::Settled;

/// Interval at which a settling server is polled.
const LOOK: Duration = Duration::from_millis(200);

/// Pending work that makes no progress for this time counts as complete, because the server does
/// not report running compactions.
const STILL: Duration = Duration::from_secs(1);

/// The buffer pool counts as clean if at most one part in this number is dirty.
const DIRTY_SHARE: u64 = 100;

/// Settle these tables. Server settings that were changed are restored at the end.
pub(super) fn settle(
    wire: &mut dyn Wire,
    engine: Engine,
    tables: &[String],
    limit: Duration,
) -> Result<Settled> {
    if tables.is_empty() {
        return Ok(Settled::Complete);
    }
    let tables = tables.join(", ");
    match engine {
        Engine::InnoDb => innodb(wire, limit),
        Engine::MyRocks => myrocks(wire, limit),
        Engine::MyIsam | Engine::Aria => {
            wire.run(&format!("FLUSH TABLES {tables}"))?;
            Ok(Settled::Complete)
        }
        Engine::Heap => postgres(wire, &tables, limit),
    }
}

/// Wait until the dirty pages are written out. If the laboratory may not change the server's
/// settings, they stay as they are, and it only waits.
fn innodb(wire: &mut dyn Wire, limit: Duration) -> Result<Settled> {
    let end = time::now() + limit;
    let was = wire.all("SELECT @@GLOBAL.innodb_max_dirty_pages_pct", Vec::new())?;
    let was = was
        .first()
        .and_then(|row| row.first())
        .map_or(f64::NAN, super::value::rank);
    let asked = wire
        .run("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        .is_ok();
    let mut last = (u64::MAX, time::now());
    let ended = loop {
        let stats = stats::ask(wire, Engine::InnoDb)?;
        let dirty = stats.debt_bytes.unwrap_or(0);
        let capacity = stats.cache.map_or(0, |cache| cache.capacity_bytes);
        let purged = stats
            .counters
            .get("history_list_length")
            .is_none_or(|n| *n == 0);
        if dirty != last.0 {
            last = (dirty, time::now());
        }
        // Do not wait longer for a purge that is blocked by another transaction, or for a server
        // whose settings could not be changed.
        let patience = if asked { STILL * 10 } else { STILL };
        let still = patience <= last.1.elapsed();
        if dirty <= capacity / DIRTY_SHARE && (purged || still) {
            break Settled::Complete;
        }
        if !asked && still {
            break Settled::Unknown;
        }
        if end <= time::now() {
            break Settled::Cut;
        }
        time::sleep(LOOK);
    };
    if asked && was.is_finite() {
        wire.run(&format!("SET GLOBAL innodb_max_dirty_pages_pct = {was}"))?;
    }
    Ok(ended)
}

/// Flush the memtables, then wait until no compaction is due and no bytes are written.
fn myrocks(wire: &mut dyn Wire, limit: Duration) -> Result<Settled> {
    let end = time::now() + limit;
    if wire
        .run("SET GLOBAL rocksdb_force_flush_memtable_now = 1")
        .is_err()
    {
        return Ok(Settled::Unknown);
    }
    let mut last = (u64::MAX, time::now());
    loop {
        let stats = stats::ask(wire, Engine::MyRocks)?;
        let moved = stats.written.iter().map(|count| count.bytes).sum();
        if moved != last.0 || !stats.activity.is_empty() {
            last = (moved, time::now());
        }
        if STILL <= last.1.elapsed() {
            return Ok(Settled::Complete);
        }
        if end <= time::now() {
            return Ok(Settled::Cut);
        }
        time::sleep(LOOK);
    }
}

/// Remove dead rows and set the visibility map, then write out all dirty pages.
fn postgres(wire: &mut dyn Wire, tables: &str, limit: Duration) -> Result<Settled> {
    let ms = limit.as_millis().clamp(1, 1 << 30);
    wire.run(&format!("SET statement_timeout = {ms}"))?;
    let cut = |error: &Failure| error.message.contains("57014");
    // Without the right to checkpoint, the tables are at least vacuumed.
    let vacuum = wire.run(&format!("VACUUM (ANALYZE) {tables}"));
    let checkpoint = wire.run("CHECKPOINT");
    wire.run("SET statement_timeout = 0")?;
    match (vacuum, checkpoint) {
        (Err(e), _) | (_, Err(e)) if cut(&e) => Ok(Settled::Cut),
        (Err(e), _) => Err(e.into()),
        (Ok(_), Err(_)) => Ok(Settled::Unknown),
        (Ok(_), Ok(_)) => Ok(Settled::Complete),
    }
}
