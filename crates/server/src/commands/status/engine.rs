//! The storage engine in `serverStatus`: the section that MongoDB has for every engine, and a
//! section under the engine's name with its statistics.

use bson::{Bson, Document, doc};
use kv::{EngineStats, IoCount};
use query::{Code, Error, Result};
use wire::Builder;

use crate::long::long;
use crate::server::Server;

/// The name of an I/O reason in metrics.
pub(crate) fn reason(count: &IoCount) -> String {
    match serde_json::to_value(count.reason) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "other".to_owned(),
    }
}

fn traffic(counts: &[IoCount]) -> Document {
    let mut shown = Document::new();
    for count in counts {
        let mut one = doc! {"bytes": long(count.bytes)};
        if let Some(operations) = count.operations {
            one.insert("operations", long(operations));
        }
        shown.insert(reason(count), one);
    }
    shown
}

/// The statistics of an engine as a document.
fn describe(stats: &EngineStats) -> Document {
    let mut shown = doc! {"written": traffic(&stats.written), "read": traffic(&stats.read)};
    if let Some(cache) = &stats.cache {
        shown.insert(
            "cache",
            doc! {
                "capacityBytes": long(cache.capacity_bytes),
                "usedBytes": long(cache.used_bytes),
                "dirtyBytes": long(cache.dirty_bytes),
                "hits": long(cache.hits),
                "misses": long(cache.misses),
            },
        );
    }
    let mut stalls = Document::new();
    for stall in &stats.stalls {
        let mut one = doc! {"count": long(stall.count)};
        if let Some(micros) = stall.micros {
            one.insert("micros", long(micros));
        }
        stalls.insert(stall.reason.as_str(), one);
    }
    shown.insert("stalls", stalls);
    if let Some(debt) = stats.debt_bytes {
        shown.insert("debtBytes", long(debt));
    }
    let activity: Vec<Bson> = stats.activity.iter().map(|a| a.as_str().into()).collect();
    shown.insert("activity", activity);
    let counters = stats.counters.iter();
    let counters: Document = counters
        .map(|(name, n)| (name.clone(), Bson::Int64(long(*n))))
        .collect();
    shown.insert("counters", counters);
    shown
}

/// The statistics of the engine.
///
/// # Errors
/// Those of the engine.
pub(super) fn stats(server: &Server) -> Result<EngineStats> {
    let stats = server.store.engine().stats();
    stats.map_err(|error| Error::new(Code::OPERATION_FAILED, error.to_string()))
}

/// Append the sections; that under the engine's name only with its statistics.
pub(super) fn storage(server: &Server, reply: &mut Builder, stats: Option<&EngineStats>) {
    let engine = server.store.engine();
    reply.value(
        "storageEngine",
        &Bson::Document(doc! {
            "name": engine.name(),
            "supportsCommittedReads": true,
            "oldestRequiredTimestampForCrashRecovery": bson::Timestamp { time: 0, increment: 0 },
            "supportsPendingDrops": true,
            "supportsSnapshotReadConcern": true,
            "readOnly": false,
            "persistent": engine.capabilities().persistent,
            "backupCursorOpen": false,
        }),
    );
    if let Some(found) = engine.encryption() {
        // As in Percona Server; the fields after the cipher are ours.
        let mut shown = doc! {
            "encryptionEnabled": true,
            "encryptionKeyId": found.master_key,
            "encryptionCipherMode": found.cipher,
            "dataKey": i64::from(found.data_key),
        };
        if let Some(rotated) = *server.keys_rotated.lock() {
            shown.insert("lastRotation", rotated);
        }
        reply.value("encryptionAtRest", &Bson::Document(shown));
    }
    if let Some(stats) = stats {
        reply.value(engine.name(), &Bson::Document(describe(stats)));
    }
}
