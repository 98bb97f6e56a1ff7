//! The progress of an initial sync, as `replSetGetStatus` shows it with MongoDB's names
//! (`initialSyncStatus`).

use std::collections::BTreeMap;
use std::time::Instant;

use bson::{Bson, DateTime, Document, Timestamp, Uuid, doc};
use docdb::replica::copy::{Part, Portion};
use stdx::sync::Mutex;

use crate::long::long;

/// How often an initial sync restarts before the member gives up, as in MongoDB.
pub(crate) const ATTEMPTS_MAX: u32 = 10;

/// Collections that are listed.
const LISTED_MAX: usize = 1_000;

/// The progress, written by the task of the copy and read by commands.
#[derive(Debug, Default)]
pub(crate) struct Status(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When the member began to need an initial sync.
    begun: Option<(Instant, DateTime)>,
    /// The attempts that have failed.
    failed: Vec<Document>,
    /// The attempt under way: its source, and when it began.
    attempt: Option<(String, Instant)>,
    oplog: Option<Timestamp>,
    entries: u64,
    collections: BTreeMap<Uuid, Collection>,
}

/// A collection that is copied.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) ns: String,
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
    pub(crate) indexes: usize,
    pub(crate) progress: Progress,
}

/// What of a collection was copied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    documents: i64,
    bytes: i64,
    batches: i64,
    begun: Option<DateTime>,
    ended: Option<DateTime>,
}

impl Status {
    /// The member needs an initial sync.
    pub(crate) fn begin(&self) {
        let mut state = self.0.lock();
        *state = State {
            begun: Some((stdx::time::now(), DateTime::now())),
            ..State::default()
        };
    }

    /// The member has its data.
    pub(crate) fn end(&self) {
        *self.0.lock() = State::default();
    }

    /// An attempt begins, or continues one of before a restart.
    pub(crate) fn attempt(&self, source: &str) {
        self.0.lock().attempt = Some((source.to_owned(), stdx::time::now()));
    }

    /// The attempt copies these collections, from this position on.
    pub(crate) fn copies(&self, oplog: Timestamp, collections: BTreeMap<Uuid, Collection>) {
        let mut state = self.0.lock();
        state.oplog = Some(oplog);
        state.collections = collections;
    }

    /// The attempt has failed.
    pub(crate) fn failed(&self, why: &str) {
        let mut state = self.0.lock();
        let (source, since) = match state.attempt.take() {
            Some((source, since)) => (source, since.elapsed()),
            None => (String::new(), std::time::Duration::ZERO),
        };
        if state.failed.len() < ATTEMPTS_MAX as usize {
            state.failed.push(doc! {
                "durationMillis": long(since.as_millis()), "status": why, "syncSource": source,
            });
        }
        state.collections.clear();
        state.oplog = None;
        state.entries = 0;
    }

    /// A portion was taken.
    pub(crate) fn took(&self, portion: &Portion) {
        let mut state = self.0.lock();
        state.entries += portion.entries.len() as u64;
        let Some(records) = &portion.records else {
            return;
        };
        let Part::Collection(uuid) = records.part else {
            return;
        };
        let Some(collection) = state.collections.get_mut(&uuid) else {
            return;
        };
        let sizes = records.pairs.iter().map(|(_, value)| value.len());
        let progress = &mut collection.progress;
        progress.documents += i64::try_from(records.pairs.len()).unwrap_or(0);
        progress.bytes += i64::try_from(sizes.sum::<usize>()).unwrap_or(0);
        progress.batches += 1;
        progress.begun.get_or_insert_with(DateTime::now);
        if records.end {
            progress.ended = Some(DateTime::now());
        }
    }

    /// What is shown; `None` without an initial sync.
    pub(crate) fn to_document(&self) -> Option<Document> {
        let state = self.0.lock();
        let (begun, date) = state.begun?;
        let failed = i32::try_from(state.failed.len()).unwrap_or(i32::MAX);
        let all = state.collections.values();
        let total: i64 = all.clone().map(|c| c.bytes.max(c.progress.bytes)).sum();
        let copied: i64 = all.map(|c| c.progress.bytes).sum();
        let mut shown = doc! {
            "method": "logical",
            "failedInitialSyncAttempts": failed,
            "maxFailedInitialSyncAttempts": i32::try_from(ATTEMPTS_MAX).unwrap_or(i32::MAX),
            "initialSyncStart": date,
            "totalInitialSyncElapsedMillis": long(begun.elapsed().as_millis()),
            "initialSyncAttempts": state.failed.iter().cloned().map(Bson::Document)
                .collect::<Vec<_>>(),
            "appliedOps": long(state.entries),
        };
        if let Some((source, since)) = &state.attempt {
            shown.insert("syncSource", source);
            if let Some(rest) = remaining(total, copied, since.elapsed()) {
                shown.insert("remainingInitialSyncEstimatedMillis", rest);
            }
        }
        if let Some(oplog) = state.oplog {
            shown.insert("initialSyncOplogStart", oplog);
        }
        shown.insert("approxTotalDataSize", total);
        shown.insert("approxTotalBytesCopied", copied);
        shown.insert("databases", databases(&state.collections));
        Some(shown)
    }
}

/// The milliseconds that the rest takes at the rate of now.
fn remaining(total: i64, copied: i64, since: std::time::Duration) -> Option<i64> {
    let rest = u128::try_from(total.checked_sub(copied)?).ok()?;
    let copied = u128::try_from(copied).ok().filter(|copied| 0 < *copied)?;
    i64::try_from(since.as_millis().checked_mul(rest)? / copied).ok()
}

fn databases(collections: &BTreeMap<Uuid, Collection>) -> Document {
    let mut by_name: BTreeMap<&str, Vec<&Collection>> = BTreeMap::new();
    for collection in collections.values() {
        let database = collection.ns.split('.').next().unwrap_or_default();
        by_name.entry(database).or_default().push(collection);
    }
    let is_done = |c: &&&Collection| c.progress.ended.is_some();
    let done = |all: &&Vec<&Collection>| all.iter().all(|c| c.progress.ended.is_some());
    let cloned = by_name.values().filter(done).count();
    let mut shown = doc! {
        "databasesToClone": long(by_name.len() - cloned), "databasesCloned": long(cloned),
    };
    let mut listed = 0;
    for (name, mut all) in by_name {
        all.sort_by_key(|collection| &collection.ns);
        let mut database = doc! {
            "collections": long(all.len()),
            "clonedCollections": long(all.iter().filter(is_done).count()),
        };
        for collection in all {
            if listed < LISTED_MAX {
                database.insert(collection.ns.clone(), shown_collection(collection));
            }
            listed += 1;
        }
        shown.insert(name, database);
    }
    shown
}

fn shown_collection(collection: &Collection) -> Document {
    let progress = &collection.progress;
    let mut shown = doc! {
        "documentsToCopy": collection.documents, "documentsCopied": progress.documents,
        "indexes": long(collection.indexes), "fetchedBatches": progress.batches,
        "bytesToCopy": collection.bytes, "approxBytesCopied": progress.bytes,
        "receivedBatches": progress.batches,
    };
    if let Some(begun) = progress.begun {
        shown.insert("start", begun);
    }
    if let Some(ended) = progress.ended {
        shown.insert("end", ended);
    }
    shown
}

#[cfg(test)]
mod tests {
    use docdb::oplog::entry::OpTime;
    use docdb::replica::copy::Records;

    use super::*;

    #[test]
    fn the_progress_has_the_names_of_mongodb() {
        let status = Status::default();
        assert_eq!(status.to_document(), None);
        status.begin();
        status.attempt("a:1");
        status.failed("no source");
        status.attempt("b:1");
        let uuid = Uuid::from_bytes([1; 16]);
        let collection = Collection {
            ns: "test.c.d".to_owned(),
            documents: 3,
            bytes: 30,
            indexes: 1,
            progress: Progress::default(),
        };
        let since = Timestamp {
            time: 5,
            increment: 1,
        };
        status.copies(since, BTreeMap::from([(uuid, collection)]));
        let mut portion = Portion {
            entries: vec![vec![1]],
            at: OpTime { ts: since, term: 1 },
            whole: true,
            records: Some(Records {
                part: Part::Collection(uuid),
                pairs: vec![(vec![1], vec![0; 10])],
                next: vec![1],
                end: false,
            }),
        };
        status.took(&portion);
        let shown = status.to_document().unwrap();
        assert_eq!(shown.get_i32("failedInitialSyncAttempts").unwrap(), 1);
        assert_eq!(shown.get_i64("approxTotalDataSize").unwrap(), 30);
        assert_eq!(shown.get_i64("approxTotalBytesCopied").unwrap(), 10);
        assert_eq!(shown.get_timestamp("initialSyncOplogStart").unwrap(), since);
        assert_eq!(shown.get_i64("appliedOps").unwrap(), 1);
        assert!(shown.get_i64("remainingInitialSyncEstimatedMillis").is_ok());
        let databases = shown.get_document("databases").unwrap();
        assert_eq!(databases.get_i64("databasesToClone").unwrap(), 1);
        let test = databases.get_document("test").unwrap();
        assert_eq!(test.get_i64("clonedCollections").unwrap(), 0);
        let shown = test.get_document("test.c.d").unwrap();
        assert_eq!(shown.get_i64("documentsCopied").unwrap(), 1);
        portion.records.as_mut().unwrap().end = true;
        status.took(&portion);
        let shown = status.to_document().unwrap();
        let databases = shown.get_document("databases").unwrap();
        assert_eq!(databases.get_i64("databasesCloned").unwrap(), 1);
        status.end();
        assert_eq!(status.to_document(), None);
    }
}
