//! Laws over random histories: the events lead to the documents of the store; a stream resumes
//! after each of its tokens with exactly the rest; rejected entries have no events.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf, doc};
use docdb::change::event::{Change, Event};
use docdb::change::scope::{Scope, Watched};
use docdb::oplog::entry::{Command, Entry, Operation};
use docdb::{IndexNames, InsertOptions, Namespace, Store};
use stdx::Rng;

use super::{Beside, Log, all_brief, behind, drain, events, everything, kinds, on, open};
use crate::lab::{Lab, ns, on_each, op, raw};
use crate::session::session;
use crate::write::{del, set};

/// Documents by collection and `_id`.
type Model = BTreeMap<(String, i32), Document>;

const COLLECTIONS: [&str; 3] = ["c", "d", "e"];

fn id(rng: &mut Rng) -> i32 {
    i32::try_from(rng.below(7)).unwrap()
}

fn number(rng: &mut Rng) -> i32 {
    i32::try_from(rng.below(100)).unwrap()
}

fn change(rng: &mut Rng) -> Document {
    let n = number(rng);
    match rng.below(8) {
        0 => doc! { "$set": { "a": n } },
        1 => doc! { "$set": { "b.x": n, "b.y": { "z": n } } },
        2 => doc! { "$unset": { "a": 1, "b.x": 1 } },
        3 => doc! { "$push": { "l": n } },
        4 => doc! { "$push": { "l": { "$each": [n], "$slice": 2 } } },
        5 => doc! { "$set": { "l.0": n } },
        6 => doc! { "$inc": { "m.k.j": n } },
        _ => doc! { "whole": n },
    }
}

fn document(rng: &mut Rng, id: i32) -> Document {
    let n = number(rng);
    doc! { "_id": id, "a": n, "b": { "x": n }, "l": [{ "v": n }, n], "m": { "k": { "j": n } } }
}

/// One write, which may fail.
fn write(store: &Store, op: &docdb::Op<'_>, rng: &mut Rng, coll: &str) -> query::Result<()> {
    let id = id(rng);
    match rng.below(6) {
        0..3 => {
            let documents: Vec<RawDocumentBuf> = (0..1 + i32::try_from(rng.below(3)).unwrap())
                .map(|more| raw(&document(rng, id + more)))
                .collect();
            let documents: Vec<&bson::RawDocument> = documents.iter().map(AsRef::as_ref).collect();
            store.insert(op, &ns(coll), &documents, InsertOptions::default())?;
        }
        3..5 => {
            let mut change = set(doc! { "_id": id }, change(rng));
            change.upsert = rng.chance(0.3);
            store.update(op, &ns(coll), &[change], true, false)?;
        }
        _ => {
            let many = rng.chance(0.2);
            let filter = if many {
                doc! { "a": { "$lt": 30 } }
            } else {
                doc! { "_id": id }
            };
            store.delete(op, &ns(coll), &[del(filter, many)], true)?;
        }
    }
    Ok(())
}

fn transaction(lab: &Lab, rng: &mut Rng, number: i64) {
    let store = Arc::clone(&lab.store);
    let mut inner = Rng::new(rng.below(1 << 40));
    let body = move |op: &docdb::Op<'_>| {
        for at in 0..3 {
            let coll = COLLECTIONS[inner.index(3)];
            let new = 1_000 + 3 * i32::try_from(number).unwrap() + at;
            let document = raw(&document(&mut inner, new));
            store.insert(op, &ns(coll), &[&document], InsertOptions::default())?;
            let change = set(doc! { "_id": id(&mut inner) }, change(&mut inner));
            store.update(op, &ns(coll), &[change], true, false)?;
        }
        Ok(())
    };
    let done = lab.store.in_transaction(session(1, number), true, body);
    match done {
        Ok(()) => lab.store.commit_transaction(&session(1, number)).unwrap(),
        Err(_) => drop(lab.store.abort_transaction(&session(1, number))),
    }
}

/// A history with writes of all kinds.
fn history(lab: &Lab, rng: &mut Rng, steps: u32, with_catalog: bool) {
    for step in 0..steps {
        let coll = COLLECTIONS[rng.index(3)];
        match rng.below(40) {
            0 if with_catalog => {
                lab.store.drop_collection(&op(), &ns(coll)).unwrap();
            }
            1 if with_catalog => {
                // Fails for a missing collection, or onto itself.
                drop(lab.store.rename(&op(), &ns(coll), &ns("e"), true));
            }
            2 => {
                let index = doc! { "key": { "a": 1 }, "name": "a" };
                lab.store
                    .create_indexes(&op(), &ns(coll), &[index])
                    .unwrap();
            }
            3 => drop(lab.store.drop_indexes(&op(), &ns(coll), &IndexNames::All)),
            4..12 => transaction(lab, rng, i64::from(step) + 1),
            // Updates that do not fit the document fail, and leave no event.
            _ => drop(write(&lab.store, &op(), rng, coll)),
        }
    }
}

fn apply_all(model: &mut Model, events: &[Event]) {
    for event in events {
        apply(model, &Document::try_from(&*event.document).unwrap());
    }
}

/// Apply an event to a model, as a client that mirrors the collections does.
fn apply(model: &mut Model, event: &Document) {
    let name = |field: &str| {
        let ns = event.get_document(field).ok()?;
        ns.get_str("coll").ok().map(str::to_owned)
    };
    let Some(coll) = name("ns") else {
        return;
    };
    let key = || {
        let key = event.get_document("documentKey").unwrap();
        (coll.clone(), key.get_i32("_id").unwrap())
    };
    match event.get_str("operationType").unwrap() {
        "insert" => {
            let new = event.get_document("fullDocument").unwrap().clone();
            assert!(model.insert(key(), new).is_none(), "{event}");
        }
        "replace" => {
            let new = event.get_document("fullDocument").unwrap().clone();
            model.insert(key(), new).expect("a document is replaced");
        }
        "delete" => {
            model.remove(&key()).expect("a document is deleted");
        }
        "update" => {
            let document = model.get_mut(&key()).expect("a document is updated");
            describe(document, event.get_document("updateDescription").unwrap());
        }
        "drop" => model.retain(|(of, _), _| *of != coll),
        "rename" => {
            let to = name("to").unwrap();
            model.retain(|(of, _), _| *of != to);
            let moved = std::mem::take(model).into_iter();
            let moved = moved.map(|((of, id), document)| {
                let of = if of == coll { to.clone() } else { of };
                ((of, id), document)
            });
            *model = moved.collect();
        }
        _ => {}
    }
}

/// Apply an `updateDescription`. The histories have no names with dots, nor numbers as names.
fn describe(document: &mut Document, description: &Document) {
    for truncated in description.get_array("truncatedArrays").unwrap() {
        let truncated = truncated.as_document().unwrap();
        let size = usize::try_from(truncated.get_i32("newSize").unwrap()).unwrap();
        let place = place(document, truncated.get_str("field").unwrap());
        place.as_array_mut().unwrap().truncate(size);
    }
    for removed in description.get_array("removedFields").unwrap() {
        let path = removed.as_str().unwrap();
        match path.rsplit_once('.') {
            None => drop(document.remove(path)),
            Some((outer, name)) => {
                place(document, outer)
                    .as_document_mut()
                    .unwrap()
                    .remove(name);
            }
        }
    }
    for (path, value) in description.get_document("updatedFields").unwrap() {
        *place(document, path) = value.clone();
    }
}

/// The value at a path, which may be new.
fn place<'d>(document: &'d mut Document, path: &str) -> &'d mut Bson {
    let mut parts = path.split('.');
    let first = parts.next().unwrap();
    let mut here = document.entry(first.to_owned()).or_insert(Bson::Null);
    for part in parts {
        here = match here {
            Bson::Document(inner) => inner.entry(part.to_owned()).or_insert(Bson::Null),
            Bson::Array(list) => {
                let index: usize = part.parse().unwrap();
                while list.len() <= index {
                    list.push(Bson::Null);
                }
                &mut list[index]
            }
            other => panic!("{path} leads to {other}"),
        };
    }
    here
}

fn stored(lab: &Lab) -> Model {
    let mut all = Model::new();
    for coll in COLLECTIONS {
        for document in lab.all(&ns(coll)) {
            all.insert(
                (coll.to_owned(), document.get_i32("_id").unwrap()),
                document,
            );
        }
    }
    all
}

/// Without the order of fields, which events do not tell.
fn unordered(model: &Model) -> BTreeMap<(String, i32), String> {
    fn sorted(value: &Bson) -> Bson {
        match value {
            Bson::Document(inner) => {
                let mut fields: Vec<(String, Bson)> =
                    inner.iter().map(|(n, v)| (n.clone(), sorted(v))).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                Bson::Document(fields.into_iter().collect())
            }
            Bson::Array(list) => Bson::Array(list.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    let text = |(key, document): (&(String, i32), &Document)| {
        let document = sorted(&Bson::Document(document.clone()));
        (key.clone(), document.to_string())
    };
    model.iter().map(text).collect()
}

/// `change::stream`: S1.
#[test]
fn the_events_of_a_history_lead_to_its_documents() {
    for seed in 0..6 {
        on_each(|lab| {
            let mut rng = Rng::new(seed);
            history(lab, &mut rng, 150, true);
            let found = events(&Log::of(&lab.store), &doc! {}, &on(""));
            let mut model = Model::new();
            apply_all(&mut model, &found);
            let (there, here) = (unordered(&stored(lab)), unordered(&model));
            assert_eq!(here, there, "S1: seed {seed} on {}", lab.engine());
            assert!(60 < found.len(), "{}", found.len());
            let updates = kinds(&found)
                .iter()
                .filter(|kind| **kind == "update")
                .count();
            assert!(5 < updates, "{updates}");
        });
    }
}

/// `change::stream`: S1, S5. After each token, and in batches of any length.
#[test]
fn a_stream_resumes_after_each_token_with_the_rest() {
    for seed in 0..3 {
        on_each(|lab| {
            let mut rng = Rng::new(100 + seed);
            history(lab, &mut rng, 60, true);
            let log = Log::of(&lab.store);
            for (stage, ns) in [
                (doc! {}, on("")),
                (doc! { "showExpandedEvents": true }, on("")),
                (doc! { "allChangesForCluster": true }, everything()),
            ] {
                let context = format!("seed {seed} {stage} on {}", lab.engine());
                let whole = events(&log, &stage, &ns);
                for (at, event) in whole.iter().enumerate() {
                    let mut again = stage.clone();
                    again.extend(behind("resumeAfter", &event.token));
                    let rest = events(&log, &again, &ns);
                    let expected = all_brief(&whole[at + 1..]);
                    assert_eq!(all_brief(&rest), expected, "S1: {context}, after {at}");
                }
                let parts = in_parts(&log, &stage, &ns, &mut rng);
                assert_eq!(all_brief(&parts), all_brief(&whole), "S1: {context}");
            }
        });
    }
}

/// `change::event`: V1. The tokens of a stream on everything are those of all others.
#[test]
fn a_stream_resumes_after_the_token_of_another_one() {
    on_each(|lab| {
        let mut rng = Rng::new(11);
        history(lab, &mut rng, 60, false);
        let log = Log::of(&lab.store);
        let stage = doc! { "allChangesForCluster": true, "showExpandedEvents": true };
        let tokens = |events: &[Event]| -> Vec<_> {
            events.iter().map(|event| event.token.clone()).collect()
        };
        let all = tokens(&events(&log, &stage, &everything()));
        for coll in ["", "c", "d", "e"] {
            let whole = tokens(&events(&log, &doc! {}, &on(coll)));
            assert!(4 < whole.len(), "{coll}");
            for (at, token) in whole.iter().enumerate() {
                assert!(all.contains(token), "V1: {coll}");
                let of_another = all.iter().find(|other| *other == token).unwrap();
                let stage = behind("resumeAfter", of_another);
                let rest = tokens(&events(&log, &stage, &on(coll)));
                assert_eq!(rest, whole[at + 1..], "V1: {coll}");
            }
        }
    });
}

/// Reads in batches of random lengths, with the entries becoming visible one after another, and now
/// and then by a new stream that resumes after the token of the old one.
fn in_parts(log: &Log, stage: &Document, ns: &Namespace, rng: &mut Rng) -> Vec<Event> {
    let mut stream = open(stage, ns).unwrap();
    let mut all = Vec::new();
    let beside = Beside::default();
    for (time, _) in &log.entries {
        let mut log = log.clone();
        log.visible = *time;
        loop {
            let most = rng.index(4);
            let mut reading = stream.read(&mut log, &beside).unwrap();
            let mut count = 0;
            let mut ended = false;
            while count < most && !ended {
                let before = reading.position();
                match reading.next_event().unwrap() {
                    None => ended = true,
                    Some(_) if rng.chance(0.2) => {
                        // It did not fit.
                        drop(reading);
                        stream.return_to(before);
                        reading = stream.read(&mut log, &beside).unwrap();
                    }
                    Some(event) => all.push(event),
                }
                count += 1;
            }
            if rng.chance(0.3) {
                let mut again = stage.clone();
                again.extend(behind("resumeAfter", stream.token()));
                stream = open(&again, ns).unwrap();
            }
            if ended {
                break;
            }
        }
    }
    all.extend(drain(&mut stream, &mut log.clone(), &beside).unwrap());
    all
}

/// The operations of an entry.
fn operations<'e>(entry: &Entry<'e>) -> Vec<Operation<'e>> {
    if let Operation::Command { command, .. } = &entry.operation
        && let Command::ApplyOps(group) = Command::parse(command).unwrap()
    {
        return group.operations;
    }
    vec![entry.operation.clone()]
}

/// `scope`: W1. The filter is exact for entries without chains.
#[test]
fn an_entry_is_rejected_if_it_has_no_event() {
    on_each(|lab| {
        let mut rng = Rng::new(7);
        history(lab, &mut rng, 200, true);
        let mut watched = vec![Watched::Deployment, Watched::Database("test".to_owned())];
        watched.push(Watched::Database("other".to_owned()));
        watched.extend(COLLECTIONS.map(|coll| Watched::Collection(ns(coll))));
        let (mut rejected, mut accepted) = (0, 0);
        for what in watched {
            for (expanded, system) in [(false, false), (true, false), (true, true)] {
                let scope = Scope::new(what.clone(), expanded, system);
                for (_, bytes) in &Log::of(&lab.store).entries {
                    let entry = Entry::parse(bytes).unwrap();
                    let has = operations(&entry)
                        .iter()
                        .any(|one| Change::of(&scope, one).unwrap().is_some());
                    let concerns = scope.concerns(bytes).unwrap();
                    assert_eq!(concerns, has, "W1: {scope:?} {bytes:?}");
                    *if has { &mut accepted } else { &mut rejected } += 1;
                }
            }
        }
        assert!(200 < rejected && 200 < accepted, "{rejected} {accepted}");
    });
}
