//! Change streams over the oplogs of real stores: the events of each kind of operation, of
//! transactions and chains; invalidation and resuming; damaged entries.

mod catalog;
mod damaged;
mod documents;
mod history;
mod images;
mod resume;
mod store;
mod wake;

use std::cell::RefCell;
use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, Timestamp, Uuid, doc};
use docdb::change::event::{Documents, Event};
use docdb::change::options::Options;
use docdb::change::stream::{Entries, Stream};
use docdb::change::token::Token;
use docdb::oplog::entry::Entry;
use docdb::{Namespace, Store};

use crate::lab::raw;
use crate::replay::{self, BEGIN};

/// Entries as an oplog has them.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) entries: Vec<(Timestamp, RawDocumentBuf)>,
    /// The entry that `advance` returns next.
    next: usize,
    /// Entries before this time are removed.
    pub(super) first: Timestamp,
    pub(super) visible: Timestamp,
}

impl Log {
    pub(super) fn of(store: &Store) -> Log {
        Log::from_entries(replay::entries(store))
    }

    pub(super) fn from_entries(entries: Vec<RawDocumentBuf>) -> Log {
        let timed = |bytes: RawDocumentBuf| (Entry::parse(&bytes).unwrap().at.ts, bytes);
        let entries: Vec<(Timestamp, RawDocumentBuf)> = entries.into_iter().map(timed).collect();
        Log {
            visible: entries.last().map_or(BEGIN, |(time, _)| *time),
            entries,
            next: 0,
            first: BEGIN,
        }
    }
}

impl Entries for Log {
    fn seek(&mut self, time: Timestamp) -> query::Result<bool> {
        self.next = self.entries.partition_point(|(at, _)| *at < time);
        Ok(self.first <= time)
    }

    fn advance(&mut self) -> query::Result<Option<(Timestamp, &RawDocument)>> {
        let entry = self.entries.get(self.next);
        self.next += usize::from(entry.is_some());
        Ok(entry
            .filter(|(time, _)| *time <= self.visible)
            .map(|(time, bytes)| (*time, &**bytes)))
    }

    fn entry(&mut self, time: Timestamp) -> query::Result<Option<RawDocumentBuf>> {
        let found = self.entries.iter().find(|(at, _)| *at == time);
        Ok(found
            .filter(|_| self.first <= time)
            .map(|(_, bytes)| bytes.clone()))
    }

    fn visible(&self) -> Timestamp {
        self.visible
    }
}

/// Documents beside the oplog, and what was asked for.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) current: BTreeMap<String, Document>,
    pub(super) before: Option<Document>,
    asked: RefCell<Vec<String>>,
}

impl Documents for Beside {
    fn current(
        &self,
        ns: &str,
        _: Uuid,
        key: &RawDocument,
    ) -> query::Result<Option<RawDocumentBuf>> {
        let id = format!("{ns} {:?}", key.get("_id").unwrap().unwrap());
        self.asked.borrow_mut().push(id.clone());
        Ok(self.current.get(&id).map(raw))
    }

    fn before(&self, _: Uuid, _: Timestamp, index: i64) -> query::Result<Option<RawDocumentBuf>> {
        self.asked.borrow_mut().push(format!("before {index}"));
        Ok(self.before.as_ref().map(raw))
    }
}

pub(super) fn on(coll: &str) -> Namespace {
    match coll {
        "" => Namespace::collectionless("test"),
        coll => Namespace::new("test", coll).unwrap(),
    }
}

/// The whole deployment.
pub(super) fn everything() -> Namespace {
    Namespace::collectionless("admin")
}

/// A stream that starts at the beginning, unless the stage says where.
pub(super) fn open(stage: &Document, ns: &Namespace) -> query::Result<Stream> {
    let mut stage = stage.clone();
    let starts = ["resumeAfter", "startAfter", "startAtOperationTime"];
    if !starts.iter().any(|name| stage.contains_key(name)) {
        stage.insert(
            "startAtOperationTime",
            Timestamp {
                time: 1,
                increment: 0,
            },
        );
    }
    Stream::new(Options::parse(&raw(&stage), ns)?, BEGIN, false)
}

/// All events that a stream has now.
pub(super) fn drain(
    stream: &mut Stream,
    log: &mut Log,
    beside: &Beside,
) -> query::Result<Vec<Event>> {
    let mut reading = stream.read(log, beside)?;
    let mut events = Vec::new();
    while let Some(event) = reading.next_event()? {
        events.push(event);
    }
    Ok(events)
}

/// The events of a stage on a namespace.
pub(super) fn events(log: &Log, stage: &Document, ns: &Namespace) -> Vec<Event> {
    let mut stream = open(stage, ns).unwrap();
    drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap()
}

/// An event without the fields that every event has.
pub(super) fn brief(event: &Event) -> Document {
    let mut document = Document::try_from(&*event.document).unwrap();
    let id = document.remove("_id").unwrap();
    let token = Document::try_from(&*event.token.to_document()).unwrap();
    assert_eq!(id, Bson::Document(token), "the token is the _id");
    let time = document.remove("clusterTime").unwrap();
    assert_eq!(time, Bson::Timestamp(event.token.time()));
    assert!(matches!(
        document.remove("wallTime"),
        Some(Bson::DateTime(_))
    ));
    document
}

pub(super) fn all_brief(events: &[Event]) -> Vec<Document> {
    events.iter().map(brief).collect()
}

pub(super) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.name()).collect()
}

/// The stage with a token in a field.
pub(super) fn behind(field: &str, token: &Token) -> Document {
    doc! { field: Document::try_from(&*token.to_document()).unwrap() }
}
