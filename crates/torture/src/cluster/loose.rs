//! Documents that are written without numbers in a session, with `w: 1` or `majority`, at any
//! member that claims to be primary; and readers with `majority`, which must never show what is
//! taken back.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Document, doc};
use stdx::Rng;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicI64, Ordering};

use super::answer;
use super::shared::Shared;
use crate::server::link::{Link, Lost, is_ok};
use crate::server::operation::DATABASE;

pub(super) const LOOSE: &str = "loose";

/// The collections of [`Loose::shake`].
const SHAKEN: [&str; 2] = ["shaken", "stirred"];

/// Documents that a read with `majority` returns at most.
const NEWEST: i32 = 40;

/// What is known of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It may be there.
    Unknown,
    /// It must not be there.
    Refused,
    /// It must be there.
    Majority,
}

/// The documents of all clients.
#[derive(Default)]
pub(super) struct Loose {
    next: AtomicI64,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
struct Ledger {
    fates: BTreeMap<i64, Fate>,
    /// What a read with `majority` has shown.
    seen: BTreeSet<i64>,
    reads: u64,
    acked: u64,
}

impl Loose {
    /// Insert until stopped.
    pub(super) fn insert(&self, shared: &Shared, rng: &mut Rng) -> Result<(), String> {
        while !shared.stopped() {
            let Some((at, mut link)) = somewhere(shared, rng)? else {
                continue;
            };
            while !shared.stopped() && self.insert_one(shared, rng, (at, &mut link))? {}
        }
        Ok(())
    }

    /// Insert one document; returns whether the member accepted it.
    fn insert_one(
        &self,
        shared: &Shared,
        rng: &mut Rng,
        (at, link): (usize, &mut Link),
    ) -> Result<bool, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.ledger.lock().fates.insert(id, Fate::Unknown);
        let majority = rng.chance(0.3);
        let concern = match majority {
            true => doc! { "w": "majority", "wtimeout": 2_000 },
            false => doc! { "w": 1 },
        };
        let command = doc! {
            "insert": LOOSE, "documents": [{ "_id": id, "at": i64::try_from(at).unwrap_or(0) }],
            "writeConcern": concern,
        };
        let (fate, text) = match link.command(DATABASE, &command) {
            Ok(reply) if is_ok(&reply) && majority => (Fate::Majority, "majority".to_owned()),
            Ok(reply) if is_ok(&reply) => (Fate::Unknown, "w:1".to_owned()),
            Ok(reply) if answer::is_refused(&reply) => (Fate::Refused, format!("{reply}")),
            Ok(reply) if answer::is_passing(&reply) => (Fate::Unknown, format!("{reply}")),
            Ok(reply) => return Err(format!("C2: {command} was answered {reply}")),
            Err(Lost::Gone) => (Fate::Unknown, "no answer".to_owned()),
            Err(Lost::Nonsense(what)) => return Err(format!("{command}: {what}")),
        };
        let accepted = fate == Fate::Majority || text == "w:1";
        shared
            .journal
            .note(LOOSE, format!("to {at}: loose {id:04}: {text}"));
        let mut ledger = self.ledger.lock();
        ledger.acked += u64::from(accepted);
        ledger.fates.insert(id, fate);
        Ok(accepted)
    }

    /// Read with `majority` at any member until stopped.
    pub(super) fn read(&self, shared: &Shared, rng: &mut Rng) -> Result<(), String> {
        let find = doc! {
            "find": LOOSE, "sort": { "_id": -1 }, "limit": NEWEST, "singleBatch": true,
            "readConcern": { "level": "majority" }, "maxTimeMS": 1_000,
        };
        while !shared.stopped() {
            let Some((at, mut link)) = shared.any(rng) else {
                continue;
            };
            for _ in 0..10 {
                let Ok(reply) = link.command(DATABASE, &find) else {
                    break;
                };
                if !is_ok(&reply) {
                    break;
                }
                self.seen(shared, at, &reply);
            }
        }
        Ok(())
    }

    fn seen(&self, shared: &Shared, at: usize, reply: &Document) {
        let batch = reply
            .get_document("cursor")
            .and_then(|c| c.get_array("firstBatch"));
        let batch = batch.into_iter().flatten();
        let ids = batch.filter_map(|d| d.as_document()?.get_i64("_id").ok());
        let mut ledger = self.ledger.lock();
        ledger.reads += 1;
        for id in ids {
            if ledger.seen.insert(id) {
                shared
                    .journal
                    .note("reader", format!("at {at}: saw loose {id:04}"));
            }
        }
    }

    /// Writes of all kinds with `w: 1`, also of indexes and collections, until stopped: what a
    /// former primary must take back.
    pub(super) fn shake(shared: &Shared, rng: &mut Rng) -> Result<(), String> {
        while !shared.stopped() {
            let Some((at, mut link)) = somewhere(shared, rng)? else {
                continue;
            };
            while !shared.stopped() {
                let (database, command) = shaking(rng);
                let reply = match link.command(database, &command) {
                    Ok(reply) => reply,
                    Err(Lost::Gone) => break,
                    Err(Lost::Nonsense(what)) => return Err(format!("{command}: {what}")),
                };
                let name = command.keys().next().cloned().unwrap_or_default();
                if name != "update" || !is_ok(&reply) {
                    let shown = answer::code(&reply);
                    let text = format!("to {at}: {command}: code {shown}");
                    shared.journal.note("shaker", text);
                }
                if answer::is_passing(&reply) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// What contradicts the documents that are there (C2, C3).
    pub(super) fn differences(&self, found: &[Document]) -> Vec<String> {
        let ids = found.iter().filter_map(|d| d.get_i64("_id").ok());
        let there: BTreeSet<i64> = ids.collect();
        let ledger = self.ledger.lock();
        let mut lines = Vec::new();
        for (id, fate) in &ledger.fates {
            match fate {
                Fate::Majority if !there.contains(id) => lines.push(format!(
                    "C1: loose {id:04} was acknowledged by a majority, and is lost"
                )),
                Fate::Refused if there.contains(id) => {
                    lines.push(format!("C2: loose {id:04} was refused, and is there"));
                }
                _ => {}
            }
        }
        for id in ledger.seen.difference(&there) {
            let text = "was shown to a read with majority, and is taken back";
            lines.push(format!("C3: loose {id:04} {text}"));
        }
        for id in there.iter().filter(|id| !ledger.fates.contains_key(id)) {
            lines.push(format!("C2: no client wrote loose {id:04}"));
        }
        lines.truncate(10);
        lines
    }

    /// Reads with `majority`, and acknowledged inserts.
    pub(super) fn counts(&self) -> (u64, u64) {
        let ledger = self.ledger.lock();
        (ledger.reads, ledger.acked)
    }
}

/// Mostly a primary, sometimes any member.
fn somewhere(shared: &Shared, rng: &mut Rng) -> Result<Option<(usize, Link)>, String> {
    if rng.chance(0.1) {
        let member = rng.index(shared.members());
        let link = shared.to(member, super::shared::PATIENCE);
        return Ok(link.map(|link| (member, link)));
    }
    shared.primary(rng)
}

fn shaking(rng: &mut Rng) -> (&'static str, Document) {
    let [shaken, stirred] = SHAKEN;
    let collection = if rng.chance(0.5) { shaken } else { stirred };
    let id = i64::try_from(rng.below(40)).unwrap_or(0);
    let concern = doc! { "w": 1 };
    let query = doc! { "_id": id };
    let update = match rng.below(4) {
        0 => doc! { "$inc": { "n": 1 }, "$push": { "l": id } },
        1 => doc! { "$set": { "a": { "b": id * 7 }, "text": "x".repeat(50) } },
        2 => doc! { "$unset": { "a": 1 }, "$set": { "l": [] } },
        _ => doc! { "n": id, "l": [id, id + 1] },
    };
    let mut command = match rng.below(200) {
        0..3 => doc! { "drop": collection },
        3..8 => {
            let key = match rng.below(3) {
                0 => doc! { "n": 1 },
                1 => doc! { "l": 1 },
                _ => doc! { "a.b": -1, "n": 1 },
            };
            let name = format!("i{}", rng.below(3));
            doc! { "createIndexes": collection, "indexes": [{ "key": key, "name": name }] }
        }
        8..12 => doc! { "dropIndexes": collection, "index": format!("i{}", rng.below(3)) },
        12..14 => {
            let name = |c: &str| format!("{DATABASE}.{c}");
            let (from, to) = (name(shaken), name(stirred));
            let command = doc! { "renameCollection": from, "to": to, "dropTarget": true };
            return ("admin", command);
        }
        14..50 => {
            let deletes = vec![doc! { "q": query, "limit": 1 }];
            doc! { "delete": collection, "deletes": deletes }
        }
        _ => {
            let updates = vec![doc! { "q": query, "u": update, "upsert": true }];
            doc! { "update": collection, "updates": updates }
        }
    };
    command.insert("writeConcern", concern);
    (DATABASE, command)
}
