//! Slow commands: logged as MongoDB logs them, and written to `system.profile` where the profiler
//! is on.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use docdb::{CollectionOptions, InsertOptions, Op};
use kv::Durability;
use query::{Error, Namespace, Result};
use tokio::sync::oneshot;
use wire::Builder;

use crate::arguments::{integer, switch};
use crate::command::{GREETS, Lane, Written};
use crate::limits::SHOWN_VALUE;
use crate::long::long;
use crate::request::{Request, namespace, shown};
use crate::state::brief::cut;
use crate::state::clock;
use crate::watch::Slow;

/// Size of a `system.profile` collection in bytes: MongoDB's value.
const PROFILE_BYTES: i32 = 1 << 20;

/// The reads of a command under MongoDB's names, if it executed a plan.
fn read(request: &Request) -> Option<(String, Document)> {
    let examined = &request.examined;
    let plan = examined.plans()?;
    let mut read = doc! {
        "keysExamined": long(examined.keys()),
        "docsExamined": long(examined.documents()),
    };
    for (name, is) in [
        ("hasSortStage", examined.sorted()),
        ("usedDisk", examined.used_disk()),
    ] {
        if is {
            read.insert(name, true);
        }
    }
    Some((plan, read))
}

/// The results of a command under MongoDB's names, from its reply.
fn counts(request: &Request, reply: &RawDocument) -> Document {
    let number = |name: &str| reply.get(name).ok().flatten().and_then(integer);
    let mut counts = Document::new();
    let mut add = |name: &str, n: Option<i64>| {
        if let Some(n) = n {
            counts.insert(name, n);
        }
    };
    match request.command.written {
        Written::None => {}
        Written::Inserted => add("ninserted", number("n")),
        Written::Deleted => add("ndeleted", number("n")),
        Written::Updated => {
            let upserted = reply.get_array("upserted").ok();
            let upserted = upserted.map_or(0, |list| list.into_iter().count());
            let upserted = long(upserted);
            add("nMatched", number("n").map(|n| n - upserted));
            add("nModified", number("nModified"));
            add("nUpserted", Some(upserted).filter(|n| 0 < *n));
        }
        Written::Bulk => {
            for (name, field) in [
                ("ninserted", "nInserted"),
                ("nMatched", "nMatched"),
                ("nModified", "nModified"),
                ("nUpserted", "nUpserted"),
                ("ndeleted", "nDeleted"),
            ] {
                add(name, number(field));
            }
        }
        Written::One => {
            let last = reply.get_document("lastErrorObject").ok();
            let n = last.and_then(|last| last.get("n").ok().flatten());
            let removes = request.arguments().get("remove").and_then(switch) == Some(true);
            let name = if removes { "ndeleted" } else { "nMatched" };
            add(name, n.and_then(integer));
            let value = reply.get("value").ok().flatten();
            let found = matches!(value, Some(RawBsonRef::Document(_)));
            add("nreturned", Some(i64::from(found)));
        }
    }
    if let Ok(cursor) = reply.get_document("cursor") {
        let batches = ["firstBatch", "nextBatch"];
        let batch = batches
            .into_iter()
            .find_map(|name| cursor.get_array(name).ok());
        let count = batch.map(|batch| batch.into_iter().count());
        let count = count.and_then(|count| i64::try_from(count).ok());
        let id = cursor.get_i64("id").ok().filter(|id| *id != 0);
        add("nreturned", count);
        add("cursorid", id);
        if id.is_none() {
            counts.insert("cursorExhausted", true);
        }
    }
    counts
}

/// Log a command if it was slow, and write a profile entry if its database is profiled. `taken` is
/// without waits for documents.
///
/// Returns a receiver that completes when the entry of the profile is written.
pub(crate) fn note(
    request: &Arc<Request>,
    taken: Duration,
    failed: Option<&Error>,
    reply: &mut Builder,
) -> Option<oneshot::Receiver<()>> {
    let profiler = &request.server.profiler;
    let size = reply.size();
    let mut seen = None;
    let mut look = || {
        let read = || reply.look(|reply| counts(request, reply));
        seen.get_or_insert_with(read).clone()
    };
    let mut made = None;
    let noted = profiler.note(request.database(), taken, || {
        let entry = entry(request, taken, failed, size, look());
        let raw = RawDocumentBuf::try_from(&entry).unwrap_or_default();
        made = Some(entry);
        raw
    });
    if !noted.logged && !noted.kept {
        return None;
    }
    let counts = look();
    // The duration of a greeting that waits says nothing about the server.
    if noted.logged && !request.command.has(GREETS) {
        log(request, taken, failed, size, counts.clone());
    }
    let held_up = request.server.freeze.count() > 0;
    if noted.kept && !held_up && request.command.lane == Lane::Storage {
        let entry = made.unwrap_or_else(|| entry(request, taken, failed, size, counts));
        return keep(request, entry);
    }
    None
}

fn log(request: &Request, taken: Duration, failed: Option<&Error>, size: usize, counts: Document) {
    let mut attributes = doc! {
        "type": "command",
        "ns": namespace(request),
        "appName": request.client.state.lock().application.clone(),
        "command": shown(request),
    };
    originating(&mut attributes, request);
    if let Some((plan, read)) = read(request) {
        attributes.insert("planSummary", plan);
        attributes.extend(read);
    }
    attributes.extend(counts);
    attributes.extend(doc! {
        "reslen": long(size),
        "remote": request.client.peer.to_string(),
        "protocol": "op_msg",
        "durationMillis": millis(taken),
    });
    if let Some(error) = failed {
        attributes.insert("ok", 0);
        add_error(&mut attributes, error);
    }
    if let Some(watch) = &request.server.watch {
        let slow = Slow::of(&attributes);
        watch.slow.lock().keep(slow);
    }
    let name = request.client.name();
    request
        .server
        .log
        .info("COMMAND", 51_803, &name, "Slow query", attributes);
}

/// Add the command that opened the cursor which this one continues.
fn originating(entry: &mut Document, request: &Request) {
    if let Some(origin) = request.origin.get() {
        entry.insert("originatingCommand", origin.command.clone());
    }
}

fn add_error(entry: &mut Document, error: &Error) {
    entry.insert("errMsg", cut(&error.message, SHOWN_VALUE));
    entry.insert("errName", error.code.name().into_owned());
    entry.insert("errCode", error.code.0);
}

fn millis(taken: Duration) -> i64 {
    long(taken.as_millis())
}

/// Build a profile entry.
fn entry(
    request: &Request,
    taken: Duration,
    failed: Option<&Error>,
    size: usize,
    counts: Document,
) -> Document {
    let mut entry = doc! {
        "op": request.command.kind.op(),
        "ns": namespace(request),
        "command": shown(request),
    };
    originating(&mut entry, request);
    let (plan, read) = read(request).unzip();
    entry.extend(read.unwrap_or_default());
    entry.extend(counts);
    entry.extend(doc! {
        "responseLength": i32::try_from(size).unwrap_or(i32::MAX),
        "protocol": "op_msg",
        "millis": i32::try_from(taken.as_millis()).unwrap_or(i32::MAX),
    });
    if let Some(plan) = plan {
        entry.insert("planSummary", plan);
    }
    entry.extend(doc! {
        "ts": clock::now(),
        "client": request.client.peer.ip().to_string(),
    });
    let state = request.client.state.lock();
    entry.insert("appName", state.application.clone());
    let mut all = Vec::new();
    if let Some(user) = &state.identity {
        let user = doc! {"user": user.name.clone(), "db": user.database.clone()};
        all.push(Bson::from(user));
    }
    drop(state);
    entry.insert("allUsers", all);
    let user = request.client.displayed_user();
    entry.insert("user", user.unwrap_or_default());
    if let Some(error) = failed {
        add_error(&mut entry, error);
    }
    entry
}

/// Write a profile entry on a thread that may block. A failure is not an error of the command.
fn keep(request: &Arc<Request>, entry: Document) -> Option<oneshot::Receiver<()>> {
    if namespace(request).ends_with(".system.profile") {
        return None;
    }
    let kept = Arc::clone(request);
    let (written, done) = oneshot::channel();
    request.server.pool.submit(move || {
        // A failure is not an error of the command.
        let _: Result<()> = write(&kept, &entry);
        let _: Result<(), _> = written.send(());
    });
    Some(done)
}

fn write(request: &Request, entry: &Document) -> Result<()> {
    let ns = Namespace::new(request.database(), "system.profile")?;
    let store = &request.server.store;
    let op = Op::new(Durability::Interval);
    if store.lookup(&ns).is_none() {
        let options = CollectionOptions::parse(&doc! {"capped": true, "size": PROFILE_BYTES})?;
        store.create(&op, &ns, options)?;
    }
    let raw = RawDocumentBuf::try_from(entry)?;
    store.insert(&op, &ns, &[&raw], InsertOptions::default())?;
    Ok(())
}
