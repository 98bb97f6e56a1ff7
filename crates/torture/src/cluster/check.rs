//! Compares the members with each other, and each with the expected documents.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Bson, Document, doc};
use stdx::time;

use super::loose::{LOOSE, Loose};
use super::registers::{REGISTERS, Registers};
use super::shared::{Shared, is_primary};
use super::stream::{Stream, WATCHED, numbered};
use crate::server::check::whole;
use crate::server::link::{Link, is_ok};
use crate::server::model::Model;
use crate::server::operation::{COUNTS, DATABASE};

/// How long a healed set may take until it works and its members are equal: a run that waits for
/// longer has found a set that hangs.
pub(super) const HEAL_MAX: Duration = Duration::from_secs(120);

/// Looks at the members until they are equal.
const ROUNDS_MAX: u32 = 2_400;

/// The pause between looks.
const LOOK: Duration = Duration::from_millis(50);

/// How long a member of a healed set may take for a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is expected.
pub(super) struct Expected<'a> {
    pub(super) model: &'a Model,
    pub(super) loose: &'a Loose,
    pub(super) registers: &'a Registers,
    pub(super) stream: &'a Stream,
}

/// Connections to all members.
pub(super) fn links(shared: &Shared) -> Result<Vec<Link>, String> {
    let members = 0..shared.members();
    let link = |member| shared.to(member, PATIENCE).map(Link::on_secondaries);
    let links = members.map(|member| link(member).ok_or(format!("C7: member {member} is gone")));
    links.collect()
}

/// Wait until all members are equal (C7).
pub(super) fn settle(shared: &Shared) -> Result<(), String> {
    let mut last = String::from("nothing");
    let end = time::now() + HEAL_MAX;
    for _ in 0..ROUNDS_MAX {
        match look(shared) {
            Ok(None) => return Ok(()),
            Ok(Some(different)) | Err(different) => last = different,
        }
        if end <= time::now() {
            break;
        }
        time::sleep(LOOK);
    }
    Err(format!("C7: the members do not become equal: {last}"))
}

/// How the members differ, if they do.
fn look(shared: &Shared) -> Result<Option<String>, String> {
    let mut links = links(shared)?;
    let mut primaries = 0;
    for (member, link) in links.iter_mut().enumerate() {
        let hello = shared.hello(member, link)?.ok_or("no hello")?;
        let secondary = hello.get_bool("secondary").unwrap_or(false);
        primaries += u32::from(is_primary(&hello));
        if !is_primary(&hello) && !secondary {
            return Ok(Some(format!("member {member} is neither: {hello}")));
        }
    }
    if primaries != 1 {
        return Ok(Some(format!("{primaries} primaries")));
    }
    let mut states = links.iter_mut().map(state);
    let first = states.next().ok_or("no member")??;
    for (state, member) in states.zip(1..) {
        let state = state?;
        if state != first {
            let different = first
                .iter()
                .filter(|(name, hash)| state.get(*name) != Some(hash));
            let names: Vec<&String> = different.map(|(name, _)| name).collect();
            let both = format!("members 0 and {member} differ in {names:?}");
            return Ok(Some(format!("{both}: {first:?} and {state:?}")));
        }
    }
    Ok(None)
}

/// The hash of each collection of each database but `local`.
fn state(link: &mut Link) -> Result<BTreeMap<String, String>, String> {
    let mut state = BTreeMap::new();
    let list = ask(
        link,
        "admin",
        &doc! { "listDatabases": 1, "nameOnly": true },
    )?;
    for database in list.get_array("databases").into_iter().flatten() {
        let name = database.as_document().and_then(|d| d.get_str("name").ok());
        let name = name.ok_or("a database has no name")?;
        if name == "local" {
            continue;
        }
        let hashes = ask(link, name, &doc! { "dbHash": 1 })?;
        for (collection, hash) in hashes.get_document("collections").into_iter().flatten() {
            let hash = hash.as_str().unwrap_or_default();
            state.insert(format!("{name}.{collection}"), hash.to_owned());
        }
        let md5 = hashes.get_str("md5").unwrap_or_default();
        state.insert(name.to_owned(), md5.to_owned());
    }
    Ok(state)
}

fn ask(link: &mut Link, database: &str, command: &Document) -> Result<Document, String> {
    let reply = link.command(database, command);
    let reply = reply.map_err(|lost| format!("{command}: {lost}"))?;
    match is_ok(&reply) {
        true => Ok(reply),
        false => Err(format!("{command} was answered {reply}")),
    }
}

/// Check all members of a set that has settled. Returns the number of documents.
pub(super) fn members(shared: &Shared, expected: &Expected<'_>) -> Result<u64, String> {
    let mut read = 0;
    let mut first = None;
    for (member, mut link) in links(shared)?.into_iter().enumerate() {
        let at = |what: String| format!("C7: member {member}: {what}");
        read += one(&mut link, expected).map_err(at)?;
        let indexes = contents(&mut link).map_err(at)?;
        let known = first.get_or_insert_with(|| indexes.clone());
        if *known != indexes {
            return Err(at(format!("has {indexes:?}, and member 0 {known:?}")));
        }
    }
    Ok(read)
}

fn one(link: &mut Link, expected: &Expected<'_>) -> Result<u64, String> {
    let mut read = whole(link, expected.model)?;
    for collection in WATCHED {
        let find = doc! { "find": collection, "filter": {}, "batchSize": 1_000 };
        let found = link.all(DATABASE, &find).map_err(|lost| lost.to_string())?;
        read += found.len() as u64;
        let mut lines = match collection {
            LOOSE => expected.loose.differences(&found),
            REGISTERS => expected.registers.differences(&found),
            _ => Vec::new(),
        };
        let found = match collection {
            COUNTS => numbered(found),
            _ => found,
        };
        lines.extend(expected.stream.differences(collection, &found));
        if !lines.is_empty() {
            return Err(lines.join("\n  "));
        }
    }
    Ok(read)
}

/// The indexes and the number of documents of each collection; each must be valid, and its number
/// of documents must be that of its statistics.
fn contents(link: &mut Link) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut contents = BTreeMap::new();
    let list = doc! { "listCollections": 1, "cursor": { "batchSize": 1_000 } };
    let reply = ask(link, DATABASE, &list)?;
    for collection in batch(&reply) {
        let name = collection.get_str("name").unwrap_or_default();
        let validate = ask(link, DATABASE, &doc! { "validate": name, "full": true })?;
        if validate.get("valid") != Some(&Bson::Boolean(true)) {
            return Err(format!("validate of {name}: {validate}"));
        }
        let counted = ask(link, DATABASE, &doc! { "count": name })?;
        let counted = integer(&counted, "n");
        if integer(&validate, "nrecords") != counted {
            return Err(format!("count of {name} is {counted:?}: {validate}"));
        }
        let reply = ask(link, DATABASE, &doc! { "listIndexes": name })?;
        let mut indexes: Vec<String> = batch(&reply).map(|index| index.to_string()).collect();
        indexes.sort_unstable();
        indexes.push(format!("{counted:?} documents"));
        contents.insert(name.to_owned(), indexes);
    }
    Ok(contents)
}

fn integer(reply: &Document, field: &str) -> Option<i64> {
    match reply.get(field)? {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        Bson::Double(n) => format!("{n:.0}").parse().ok(),
        _ => None,
    }
}

fn batch(reply: &Document) -> impl Iterator<Item = &Document> {
    let cursor = reply.get_document("cursor").ok();
    let batch = cursor.and_then(|cursor| cursor.get_array("firstBatch").ok());
    batch.into_iter().flatten().filter_map(Bson::as_document)
}
