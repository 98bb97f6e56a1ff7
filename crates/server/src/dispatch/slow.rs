//! Commands that took long are logged, as MongoDB logs them, and kept in `system.profile` where
//! the profiler is on.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use docdb::{CollectionOptions, InsertOptions, Op};
use kv::Durability;
use query::{Error, Namespace, Result};
use tokio::sync::oneshot;
use wire::Builder;

use super::arguments::{integer, switch};
use super::request::Request;
use super::row::Lane;
use crate::limits::{SHOWN, SHOWN_NAME, SHOWN_VALUE};
use crate::state::brief::{Brief, cut};
use crate::state::clock;

/// Bytes of the profile of a database: as MongoDB's.
const PROFILE_BYTES: i32 = 1 << 20;

/// Arguments whose values are never shown.
const SECRET: &[&str] = &[
    "pwd",
    "payload",
    "key",
    "digestPassword",
    "speculativeAuthenticate",
];

/// Commands of which nothing but the name is shown.
const SECRET_COMMANDS: &[&str] = &[
    "saslStart",
    "saslContinue",
    "createUser",
    "updateUser",
    "authenticate",
    "copydbsaslstart",
];

/// Whether a command holds a password or what proves one.
pub(crate) fn is_secret(body: &RawDocument) -> bool {
    let mut names = body.iter().map_while(Result::ok).map(|(name, _)| name);
    let first = names.next().is_some_and(|name| {
        let row = crate::commands::find(name.as_str());
        row.is_some_and(|row| SECRET_COMMANDS.contains(&row.name))
    });
    first || names.any(|name| SECRET.contains(&name.as_str()))
}

/// A command as it may be shown: without secrets, and every part of it cut to a limit; the name of
/// the command first, what drivers add to every command last.
pub(crate) fn shown(request: &Request) -> Document {
    let mut shown = masked(request);
    for name in ["$clusterTime", "$db"] {
        if let Some(value) = shown.remove(name) {
            shown.insert(name, value);
        }
    }
    shown
}

fn masked(request: &Request) -> Document {
    let name = request.row.name;
    if SECRET_COMMANDS.contains(&name) {
        return doc! {name: "###"};
    }
    let body = request.body();
    let mut brief = Brief::new(SHOWN);
    let mut shown = Document::new();
    // The decoder of messages has checked the elements.
    for (name, value) in body.iter().map_while(Result::ok) {
        if !brief.has_room() {
            break;
        }
        let secret = SECRET.contains(&name.as_str());
        let name = brief.name(name.as_str());
        let value = match secret {
            true => "###".into(),
            false => brief.value(value, 1),
        };
        shown.insert(name, value);
    }
    if brief.is_cut() {
        let bytes = body.as_bytes().len();
        shown.insert("$truncated", format!("{bytes} bytes"));
        shown.insert("$db", cut(request.database(), SHOWN_NAME));
    }
    shown
}

/// The collection or database a command works on, as text.
pub(crate) fn namespace(request: &Request) -> String {
    let collection = match request.row.name {
        "getMore" => request.body().get_str("collection").ok(),
        _ => request.target().ok().and_then(RawBsonRef::as_str),
    };
    match collection {
        Some(collection) => {
            let collection = cut(collection, SHOWN_NAME);
            format!("{}.{collection}", cut(request.database(), SHOWN_NAME))
        }
        None => format!("{}.$cmd", cut(request.database(), SHOWN_NAME)),
    }
}

/// What a command has read, by the names MongoDB has for it, if it was executed by a plan.
fn read(request: &Request) -> Option<(String, Document)> {
    let examined = &request.examined;
    let plan = examined.plans()?;
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let mut read = doc! {
        "keysExamined": count(examined.keys()),
        "docsExamined": count(examined.documents()),
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

/// How much a command did, by the names MongoDB has for it, as its reply tells.
fn figures(request: &Request, reply: &RawDocument) -> Document {
    let number = |name: &str| reply.get(name).ok().flatten().and_then(integer);
    let mut figures = Document::new();
    let mut add = |name: &str, n: Option<i64>| {
        if let Some(n) = n {
            figures.insert(name, n);
        }
    };
    match request.row.name {
        "insert" => add("ninserted", number("n")),
        "delete" => add("ndeleted", number("n")),
        "update" => {
            let upserted = reply.get_array("upserted").ok();
            let upserted = upserted.map_or(0, |list| list.into_iter().count());
            let upserted = i64::try_from(upserted).unwrap_or(i64::MAX);
            add("nMatched", number("n").map(|n| n - upserted));
            add("nModified", number("nModified"));
            add("nUpserted", Some(upserted).filter(|n| 0 < *n));
        }
        "bulkWrite" => {
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
        "findAndModify" => {
            let last = reply.get_document("lastErrorObject").ok();
            let n = last.and_then(|last| last.get("n").ok().flatten());
            let removes = request.body().get("remove").ok().flatten();
            let removes = removes.and_then(switch) == Some(true);
            let name = if removes { "ndeleted" } else { "nMatched" };
            add(name, n.and_then(integer));
            let value = reply.get("value").ok().flatten();
            let found = matches!(value, Some(RawBsonRef::Document(_)));
            add("nreturned", Some(i64::from(found)));
        }
        _ => {}
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
            figures.insert("cursorExhausted", true);
        }
    }
    figures
}

/// Whether it waits for what others do, so that how long it took says nothing.
fn waits(request: &Request, figures: &Document) -> bool {
    match request.row.name {
        "hello" | "isMaster" => true,
        // A cursor that goes on and has nothing to give waited for it.
        "getMore" => {
            figures.get_i64("nreturned").ok() == Some(0) && figures.contains_key("cursorid")
        }
        _ => false,
    }
}

/// Log a command if it took long, and keep it if its database is profiled.
///
/// Gives when the entry of the profile is written.
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
        let told = || reply.look(|reply| figures(request, reply));
        seen.get_or_insert_with(told).clone()
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
    let figures = look();
    if noted.logged && !waits(request, &figures) {
        log(request, taken, failed, size, figures.clone());
    }
    let held_up = request.server.freeze.count() > 0;
    if noted.kept && !held_up && request.row.lane == Lane::Storage {
        let entry = made.unwrap_or_else(|| entry(request, taken, failed, size, figures));
        return keep(request, entry);
    }
    None
}

fn log(request: &Request, taken: Duration, failed: Option<&Error>, size: usize, figures: Document) {
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
    attributes.extend(figures);
    attributes.extend(doc! {
        "reslen": i64::try_from(size).unwrap_or(i64::MAX),
        "remote": request.client.peer.to_string(),
        "protocol": "op_msg",
        "durationMillis": millis(taken),
    });
    if let Some(error) = failed {
        attributes.insert("ok", 0);
        tell(&mut attributes, error);
    }
    let name = request.client.name();
    request
        .server
        .log
        .info("COMMAND", 51_803, &name, "Slow query", attributes);
}

/// What opened the cursor that a command goes on with.
fn originating(entry: &mut Document, request: &Request) {
    if let Some(origin) = request.origin.get() {
        entry.insert("originatingCommand", origin.command.clone());
    }
}

fn tell(entry: &mut Document, error: &Error) {
    entry.insert("errMsg", cut(&error.message, SHOWN_VALUE));
    entry.insert("errName", error.code.name().into_owned());
    entry.insert("errCode", error.code.0);
}

fn millis(taken: Duration) -> i64 {
    i64::try_from(taken.as_millis()).unwrap_or(i64::MAX)
}

fn op(request: &Request) -> &'static str {
    match request.row.name {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        _ => "command",
    }
}

/// An entry of the profile.
fn entry(
    request: &Request,
    taken: Duration,
    failed: Option<&Error>,
    size: usize,
    figures: Document,
) -> Document {
    let mut entry = doc! {
        "op": op(request),
        "ns": namespace(request),
        "command": shown(request),
    };
    originating(&mut entry, request);
    let (plan, read) = read(request).unzip();
    entry.extend(read.unwrap_or_default());
    entry.extend(figures);
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
        tell(&mut entry, error);
    }
    entry
}

/// Write an entry of the profile, on a thread that may block. That it cannot be written is no
/// error of the command.
fn keep(request: &Arc<Request>, entry: Document) -> Option<oneshot::Receiver<()>> {
    if namespace(request).ends_with(".system.profile") {
        return None;
    }
    let kept = Arc::clone(request);
    let (written, done) = oneshot::channel();
    request.server.pool.submit(move || {
        // See above.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_passwords_or_proofs_are_secret() {
        let is_secret = |command: Document| is_secret(&RawDocumentBuf::try_from(&command).unwrap());
        for name in SECRET_COMMANDS {
            // Those that do not exist are refused, and hold what they hold.
            let exists = crate::commands::find(name).is_some();
            assert_eq!(is_secret(doc! {*name: "x", "a": 1}), exists, "{name}");
        }
        assert!(is_secret(doc! {"createUser": "x", "pwd": "secret"}));
        assert!(is_secret(doc! {"hello": 1, "speculativeAuthenticate": {}}));
        assert!(!is_secret(doc! {"hello": 1}));
        assert!(!is_secret(doc! {"insert": "pwd"}));
        assert!(!is_secret(doc! {}));
    }
}
