//! A change stream that continues at any member after each error, and the documents that follow
//! from its events.

use std::collections::BTreeMap;

use bson::{Bson, Document, Timestamp, doc};
use stdx::Rng;
use stdx::time;

use super::loose::LOOSE;
use super::registers::REGISTERS;
use super::shared::{PATIENCE, Shared};
use crate::server::link::{Link, Lost, is_ok};
use crate::server::operation::{COUNTS, DATABASE};

/// The collections whose events are compared with their documents.
pub(super) const WATCHED: [&str; 5] = ["left", "right", COUNTS, LOOSE, REGISTERS];

/// The collection of the documents that end a comparison.
const MARKS: &str = "marks";

/// A document without its `_id`, by field.
pub(super) type Fields = BTreeMap<String, Bson>;

/// The documents of a collection, by `_id`.
pub(super) type Rows = BTreeMap<i64, Fields>;

/// The stream.
pub(super) struct Stream {
    token: Option<Document>,
    /// Where it begins.
    since: Timestamp,
    /// The time and the token of the last event.
    last: (Timestamp, String),
    replay: BTreeMap<String, Rows>,
    rng: Rng,
    pub(super) events: u64,
    pub(super) resumed: u64,
    /// The last mark that was seen.
    marked: Option<i64>,
    /// The last error, for the report.
    error: String,
}

impl Stream {
    pub(super) fn new(since: Timestamp, seed: u64) -> Stream {
        Stream {
            token: None,
            since,
            last: (since, String::new()),
            replay: BTreeMap::new(),
            rng: Rng::new(seed ^ 0x57_AE),
            events: 0,
            resumed: 0,
            marked: None,
            error: String::new(),
        }
    }

    /// Read events until stopped.
    pub(super) fn follow(&mut self, shared: &Shared) -> Result<(), String> {
        while !shared.stopped() {
            self.visit(shared, &|_| shared.stopped())?;
        }
        Ok(())
    }

    /// Read all events up to a document that was written after all others.
    pub(super) fn finish(
        &mut self,
        shared: &Shared,
        link: &mut Link,
        mark: i64,
    ) -> Result<(), String> {
        let command = doc! {
            "insert": MARKS, "documents": [{ "_id": mark }], "writeConcern": { "w": "majority" },
        };
        let reply = link
            .command(DATABASE, &command)
            .map_err(|e| e.to_string())?;
        if !is_ok(&reply) {
            return Err(format!("C7: {command} was answered {reply}"));
        }
        let end = time::now() + super::check::HEAL_MAX;
        while self.marked != Some(mark) {
            self.visit(shared, &|stream| stream.marked == Some(mark))?;
            if end <= time::now() {
                return Err(format!(
                    "C6: the change stream does not reach the newest write; last error: {}",
                    self.error
                ));
            }
        }
        Ok(())
    }

    /// Read at one member until an error, or until `done`.
    fn visit(&mut self, shared: &Shared, done: &dyn Fn(&Stream) -> bool) -> Result<(), String> {
        let Some((at, mut link)) = shared.any(&mut self.rng) else {
            return Ok(());
        };
        self.resumed += 1;
        let mut stage = doc! {};
        match &self.token {
            Some(token) => stage.insert("resumeAfter", token.clone()),
            None => stage.insert("startAtOperationTime", self.since),
        };
        let mut command = doc! {
            "aggregate": 1, "pipeline": [{ "$changeStream": stage }],
            "cursor": { "batchSize": 100 },
        };
        loop {
            let reply = match link.command(DATABASE, &command) {
                Ok(reply) => reply,
                Err(Lost::Gone) => return Ok(()),
                Err(Lost::Nonsense(what)) => return Err(format!("C6: {what}")),
            };
            if !is_ok(&reply) {
                self.error = format!("member {at}: {reply}");
                shared.journal.note("stream", format!("at {at}: {reply}"));
                // Other members may have what this one lacks.
                time::sleep(PATIENCE / 100);
                return Ok(());
            }
            let id = self.batch(shared, at, &reply)?;
            if done(self) || id == 0 || self.rng.chance(0.03) {
                return Ok(());
            }
            command = doc! {
                "getMore": id, "collection": "$cmd.aggregate", "batchSize": 500, "maxTimeMS": 200,
            };
        }
    }

    /// Returns the id of the cursor.
    fn batch(&mut self, shared: &Shared, at: usize, reply: &Document) -> Result<i64, String> {
        let wrong = || format!("C6: a change stream was answered {reply}");
        let cursor = reply.get_document("cursor").map_err(|_| wrong())?;
        let batch = cursor
            .get_array("firstBatch")
            .or(cursor.get_array("nextBatch"));
        for event in batch.map_err(|_| wrong())? {
            let event = event.as_document().ok_or_else(wrong)?;
            self.event(event)
                .map_err(|what| format!("C6: {what} at member {at}: {event}"))?;
            shared
                .journal
                .note("stream", format!("at {at}: {}", brief(event)));
        }
        if let Ok(token) = cursor.get_document("postBatchResumeToken") {
            self.token = Some(token.clone());
        }
        cursor.get_i64("id").map_err(|_| wrong())
    }

    fn event(&mut self, event: &Document) -> Result<(), String> {
        self.events += 1;
        let token = event.get_document("_id").map_err(|e| e.to_string())?;
        let data = token.get_str("_data").map_err(|e| e.to_string())?;
        let time = event
            .get_timestamp("clusterTime")
            .map_err(|e| e.to_string())?;
        if time < self.last.0 || data <= self.last.1.as_str() {
            let (last, _) = self.last;
            return Err(format!("an event comes after one of {last}"));
        }
        self.last = (time, data.to_owned());
        self.token = Some(token.clone());
        let of = event.get_document("ns").ok();
        let collection = of
            .and_then(|ns| ns.get_str("coll").ok())
            .unwrap_or_default();
        let kind = event.get_str("operationType").unwrap_or_default();
        if collection == MARKS && kind == "insert" {
            self.marked = Some(id_of(event)?);
        }
        if !WATCHED.contains(&collection) {
            return Ok(());
        }
        let rows = self.replay.entry(collection.to_owned()).or_default();
        change(rows, kind, event)
    }

    /// What contradicts the documents that are there.
    pub(super) fn differences(&self, collection: &str, found: &[Document]) -> Vec<String> {
        let empty = Rows::new();
        let rows = self.replay.get(collection).unwrap_or(&empty);
        let found = found
            .iter()
            .filter_map(|d| Some((d.get_i64("_id").ok()?, fields(d))));
        let found: Rows = found.collect();
        let ids = rows
            .keys()
            .chain(found.keys().filter(|id| !rows.contains_key(id)));
        let different = ids.filter(|id| rows.get(id) != found.get(id));
        let line = |id: &i64| {
            format!(
                "C6: by the change stream {collection} {id:04} is {:?}, and it is {:?}",
                rows.get(id),
                found.get(id)
            )
        };
        different.take(10).map(line).collect()
    }
}

/// Apply an event; it must follow from those before it, each exactly once.
fn change(rows: &mut Rows, kind: &str, event: &Document) -> Result<(), String> {
    let id = match kind {
        "insert" | "update" | "delete" | "replace" => id_of(event)?,
        _ => return Ok(()),
    };
    match kind {
        "insert" | "replace" => {
            let document = event
                .get_document("fullDocument")
                .map_err(|e| e.to_string())?;
            let before = rows.insert(id, fields(document));
            if before.is_some() == (kind == "insert") {
                return Err(format!("{kind} of {id}, which was {before:?}"));
            }
        }
        "update" => {
            let row = rows.get_mut(&id);
            let row = row.ok_or_else(|| format!("update of {id}, which does not exist"))?;
            let (old_n, old_v) = (number(row, "n"), number(row, "v"));
            let description = event.get_document("updateDescription");
            let set = description.and_then(|d| d.get_document("updatedFields"));
            let set = set.map_err(|e| e.to_string())?;
            row.extend(
                set.iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
            // Rows count their changes in `n`, registers in `v`.
            let next = match old_n {
                Some(n) => number(row, "n") == Some(n + 1),
                None => number(row, "v") == old_v.map(|v| v + 1),
            };
            if !next {
                return Err(format!("update of {id} from {old_n:?} {old_v:?}"));
            }
        }
        _ => {
            if rows.remove(&id).is_none() {
                return Err(format!("delete of {id}, which does not exist"));
            }
        }
    }
    Ok(())
}

fn number(row: &Fields, field: &str) -> Option<i64> {
    row.get(field).and_then(Bson::as_i64)
}

pub(super) fn fields(document: &Document) -> Fields {
    let fields = document.iter().filter(|(name, _)| *name != "_id");
    fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The `_id` of an event; that of the counters, which are names, is their first letter.
fn id_of(event: &Document) -> Result<i64, String> {
    let key = event
        .get_document("documentKey")
        .map_err(|e| e.to_string())?;
    match key.get("_id") {
        Some(Bson::Int64(id)) => Ok(*id),
        Some(Bson::String(name)) => Ok(name_id(name)),
        other => Err(format!("an event has the _id {other:?}")),
    }
}

fn name_id(name: &str) -> i64 {
    i64::from(name.bytes().next().unwrap_or(0))
}

/// The documents of the counters, with numbers as `_id`.
pub(super) fn numbered(found: Vec<Document>) -> Vec<Document> {
    let mut found = found;
    for document in &mut found {
        if let Ok(id) = document.get_str("_id").map(name_id) {
            document.insert("_id", id);
        }
    }
    found
}

fn brief(event: &Document) -> String {
    let kind = event.get_str("operationType").unwrap_or_default();
    let get = |name: &str| event.get(name).map_or(String::new(), ToString::to_string);
    let update = event.get_document("updateDescription");
    let fields = update.and_then(|u| u.get_document("updatedFields")).ok();
    let n = fields.and_then(|f| f.get("n").or(f.get("v")));
    let n = n.map_or(String::new(), |n| format!(" to {n}"));
    let (ns, key) = (get("ns"), get("documentKey"));
    format!("{kind} {ns} {key}{n} {}", get("clusterTime"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u32, kind: &str, collection: &str, more: Document) -> Document {
        let mut event = doc! {
            "_id": { "_data": format!("82{time:08X}") },
            "operationType": kind,
            "clusterTime": Timestamp { time, increment: 0 },
            "ns": { "db": DATABASE, "coll": collection },
            "documentKey": { "_id": 1_i64 },
        };
        event.extend(more);
        event
    }

    fn insert(time: u32) -> Document {
        let row = doc! { "_id": 1_i64, "n": 0_i64 };
        event(time, "insert", "left", doc! { "fullDocument": row })
    }

    fn update(time: u32, n: i64) -> Document {
        let set = doc! { "updatedFields": { "n": n } };
        event(time, "update", "left", doc! { "updateDescription": set })
    }

    fn run(events: &[Document]) -> Result<Stream, String> {
        let mut stream = Stream::new(
            Timestamp {
                time: 1,
                increment: 0,
            },
            1,
        );
        for event in events {
            stream.event(event)?;
        }
        Ok(stream)
    }

    #[test]
    fn a_whole_stream_gives_the_documents() {
        let delete = event(5, "delete", "left", doc! {});
        let stream = run(&[insert(2), update(3, 1), update(4, 2)]).unwrap();
        let found = [doc! { "_id": 1_i64, "n": 2_i64 }];
        assert_eq!(stream.differences("left", &found), Vec::<String>::new());
        assert_eq!(stream.differences("left", &[]).len(), 1);
        let stream = run(&[insert(2), update(3, 1), delete]).unwrap();
        assert_eq!(stream.differences("left", &[]), Vec::<String>::new());
    }

    #[test]
    fn events_twice_lost_or_out_of_order_are_noticed() {
        // Law C6.
        for events in [
            vec![insert(2), insert(3)],
            vec![insert(2), update(3, 1), update(4, 1)],
            vec![insert(2), update(3, 2)],
            vec![update(2, 1)],
            vec![insert(3), update(2, 1)],
            vec![insert(2), update(2, 1)],
            vec![event(2, "delete", "left", doc! {})],
        ] {
            assert!(run(&events).is_err(), "{events:?}");
        }
    }
}
