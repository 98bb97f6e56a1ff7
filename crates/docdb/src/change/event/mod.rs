//! Events: what a change stream delivers of an operation of the oplog.
//!
//! The fields of an event, in order. Only `_id`, `operationType`, `clusterTime` and `wallTime` are
//! in every event:
//!
//! | field | value |
//! |---|---|
//! | `_id` | the resume token (see `token`) |
//! | `operationType` | the name of its [`Kind`] |
//! | `clusterTime` | the time of the oplog entry, of a chain that of the last one |
//! | `txnNumber`, `lsid` | the transaction; retryable writes do not have them |
//! | `collectionUUID` | with `showExpandedEvents` |
//! | `wallTime` | the wall clock when the entry was written |
//! | `fullDocument` | the new document, or null; see [`FullDocument`] |
//! | `ns` | `{db, coll}`; without `coll` for a database; missing in `invalidate` |
//! | `to` | the new `{db, coll}` of a renamed collection |
//! | `documentKey` | `{_id}` of a changed document |
//! | `operationDescription` | a change of the catalog, with `showExpandedEvents` |
//! | `updateDescription` | the difference of an update: see `describe` |
//! | `stateBeforeChange` | what a `modify` changed |
//! | `nsType` | of a `create`: `collection` or `view` |
//! | `fullDocumentBeforeChange` | the old document, or null; see [`Before`] |
//!
//! MongoDB's manual shows this order. `convertToCapped` is a `modify` with the options `capped` and
//! `size`: this server has one entry for it, where MongoDB renames a copy of the collection.
//!
//! An event is built of the bytes of its entry: documents are copied, and not decoded.
//!
//! - V1. The token of an event depends on its entry only, and not on what the stream watches or
//!   shows. So a stream resumes after an event of another one, if it watches the collection.

mod catalog;
mod describe;

use std::borrow::Cow;

use bson::raw::cstr;
use bson::{Binary, DateTime, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use query::{Code, Error, Result};

use super::scope::{Kind, Scope};
use super::token::{self, Token};
use crate::oplog::entry::{Command, Operation, Session};
use catalog::Catalog;

/// Which new document an update event has; inserts and replacements always have theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullDocument {
    /// None.
    Default,
    /// The current document, or null if it is deleted.
    UpdateLookup,
    /// The document right after the update, or null if it is unknown.
    WhenAvailable,
    /// The same, or the stream fails.
    Required,
}

/// Which old document the events of updates, replacements and deletes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// None.
    Off,
    /// The document right before the change, or null if it is unknown.
    WhenAvailable,
    /// The same, or the stream fails.
    Required,
}

/// Documents that are not in the oplog. The store implements it.
pub trait Documents {
    /// The current document with a key, in the collection of a name if it has the UUID.
    ///
    /// # Errors
    /// Those of reading a document.
    fn current(&self, ns: &str, uuid: Uuid, key: &RawDocument) -> Result<Option<RawDocumentBuf>>;

    /// The document right before a change, if the collection keeps such documents and it is not
    /// expired: the change with an index in the entry of a time.
    ///
    /// # Errors
    /// Those of reading a document.
    fn before(&self, uuid: Uuid, time: Timestamp, index: i64) -> Result<Option<RawDocumentBuf>>;
}

/// What a stream shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The new document of updates.
    pub full: FullDocument,
    /// The old document.
    pub before: Before,
}

/// The place of an operation in the oplog.
#[derive(Clone, Copy, Debug)]
pub struct Site<'e> {
    /// The time of its entry; of a chain that of the last entry.
    pub time: Timestamp,
    /// The wall clock of the same entry.
    pub wall: DateTime,
    /// Its transaction.
    pub transaction: Option<Session<'e>>,
    /// Its index in the entry, or in the chain.
    pub index: i64,
    /// The entry that has it, and its index there.
    pub within: (Timestamp, i64),
}

/// An event of a stream.
#[derive(Clone, Debug)]
pub struct Event {
    /// The position after it: its `_id`.
    pub token: Token,
    /// Its kind.
    pub kind: Kind,
    /// The document.
    pub document: RawDocumentBuf,
}

/// A change that has an event.
#[derive(Debug)]
pub struct Change<'e> {
    kind: Kind,
    /// The name of the collection with the database, or the database.
    ns: Cow<'e, str>,
    uuid: Option<Uuid>,
    body: Body<'e>,
}

#[derive(Debug)]
enum Body<'e> {
    Document {
        key: Cow<'e, RawDocument>,
        /// The new document.
        new: Option<&'e RawDocument>,
        /// The difference to the old one.
        diff: Option<&'e RawDocument>,
    },
    Catalog(Box<Catalog>),
}

impl<'e> Change<'e> {
    /// The change of an operation; `None` if the scope does not have it.
    ///
    /// # Errors
    /// `InvalidBSON`; `FailedToParse`, `TypeMismatch` or `BadValue` for what is no change of a
    /// document or of the catalog.
    pub fn of(scope: &Scope, operation: &Operation<'e>) -> Result<Option<Change<'e>>> {
        let (kind, place, body) = match operation {
            Operation::Insert {
                place,
                document,
                key,
            } => {
                let key = match key {
                    Some(key) => Cow::Borrowed(*key),
                    None => Cow::Owned(id_of(document)?),
                };
                let (new, diff) = (Some(*document), None);
                (Kind::Insert, place, Body::Document { key, new, diff })
            }
            Operation::Update { place, update, key } => {
                let key = Cow::Borrowed(*key);
                let (kind, new, diff) = match diff_of(update)? {
                    Some(diff) => (Kind::Update, None, Some(diff)),
                    None => (Kind::Replace, Some(*update), None),
                };
                (kind, place, Body::Document { key, new, diff })
            }
            Operation::Delete { place, key } => {
                let key = Cow::Borrowed(*key);
                let (new, diff) = (None, None);
                (Kind::Delete, place, Body::Document { key, new, diff })
            }
            Operation::Command {
                database,
                uuid,
                command,
                replaced,
            } => {
                let command = Command::parse(command)?;
                if matches!(command, Command::ApplyOps(_)) {
                    return Err(Error::parse("an oplog entry has a group within a group"));
                }
                let Some(kind) = scope.kind_of(database, *uuid, &command) else {
                    return Ok(None);
                };
                return Change::of_catalog(kind, (database, *uuid), &command, *replaced).map(Some);
            }
            Operation::Nothing { .. } => return Ok(None),
        };
        Ok(scope.covers(place.ns).then_some(Change {
            kind,
            ns: Cow::Borrowed(place.ns),
            uuid: Some(place.uuid),
            body,
        }))
    }

    fn of_catalog(
        kind: Kind,
        (database, uuid): (&str, Option<Uuid>),
        command: &Command<'e>,
        replaced: Option<&RawDocument>,
    ) -> Result<Change<'e>> {
        let (collection, catalog) = catalog::describe(command, uuid, replaced)?;
        let ns = match command {
            Command::RenameCollection { from, .. } => Cow::Borrowed(*from),
            Command::DropDatabase => Cow::Owned(database.to_owned()),
            _ => Cow::Owned(format!("{database}.{collection}")),
        };
        let uuid = if kind == Kind::DropDatabase {
            None
        } else {
            uuid
        };
        let body = Body::Catalog(Box::new(catalog));
        Ok(Change {
            kind,
            ns,
            uuid,
            body,
        })
    }

    /// The kind of the event.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The token of the event, or of the `invalidate` that it causes.
    ///
    /// # Errors
    /// `InvalidBSON`.
    pub fn token(&self, site: &Site<'_>, invalidate: bool) -> Result<Token> {
        let mut identifier = RawDocumentBuf::new();
        identifier.append(cstr!("operationType"), self.kind.name());
        match &self.body {
            Body::Document { key, .. } => identifier.append(cstr!("documentKey"), &**key),
            Body::Catalog(catalog) => {
                if let Some(description) = &catalog.description {
                    identifier.append(cstr!("operationDescription"), &**description);
                }
            }
        }
        let event = token::Event {
            index: site.index,
            invalidate,
            uuid: self.uuid,
            fragment: None,
        };
        Token::event(site.time, event, &identifier)
    }

    /// The event.
    ///
    /// # Errors
    /// `InvalidBSON`; `NoMatchingDocument` for a required document that is unknown; those of
    /// [`Documents`].
    pub fn event(
        &self,
        (site, token): (&Site<'_>, Token),
        (scope, shown): (&Scope, Shown),
        documents: &dyn Documents,
    ) -> Result<Event> {
        let before = self.before(site, &token, shown, documents)?;
        let mut out = head(&token, self.kind, site);
        if scope.is_expanded()
            && let Some(uuid) = self.uuid
        {
            out.append(cstr!("collectionUUID"), Binary::from(uuid));
        }
        out.append(cstr!("wallTime"), site.wall);
        self.append_full(&mut out, before.as_deref(), &token, shown, documents)?;
        append_namespace(&mut out, cstr!("ns"), &self.ns);
        match &self.body {
            Body::Document { key, diff, .. } => {
                out.append(cstr!("documentKey"), &**key);
                if let Some(diff) = diff {
                    let described = describe::describe(diff, scope.is_expanded())?;
                    out.append(cstr!("updateDescription"), described);
                }
            }
            Body::Catalog(catalog) => catalog.append_to(&mut out, scope.is_expanded()),
        }
        if shown.before != Before::Off && self.has_before() {
            append_or_null(
                &mut out,
                cstr!("fullDocumentBeforeChange"),
                before.as_deref(),
            );
        }
        Ok(Event {
            token,
            kind: self.kind,
            document: out,
        })
    }

    /// The `invalidate` that follows the event. It has no namespace.
    #[must_use]
    pub fn invalidate(site: &Site<'_>, token: Token) -> Event {
        let mut out = head(&token, Kind::Invalidate, site);
        out.append(cstr!("wallTime"), site.wall);
        Event {
            token,
            kind: Kind::Invalidate,
            document: out,
        }
    }

    /// Whether there was a document before the change.
    fn has_before(&self) -> bool {
        matches!(self.kind, Kind::Update | Kind::Replace | Kind::Delete)
    }

    /// The document before the change, if the event or its new document needs it.
    fn before(
        &self,
        site: &Site<'_>,
        token: &Token,
        shown: Shown,
        documents: &dyn Documents,
    ) -> Result<Option<RawDocumentBuf>> {
        let for_new = self.kind == Kind::Update
            && matches!(
                shown.full,
                FullDocument::WhenAvailable | FullDocument::Required
            );
        let for_old = shown.before != Before::Off && self.has_before();
        let (true, Some(uuid)) = (for_new || for_old, self.uuid) else {
            return Ok(None);
        };
        let found = documents.before(uuid, site.within.0, site.within.1)?;
        if found.is_none() && for_old && shown.before == Before::Required {
            return Err(missing("pre-image", "update, delete and replace", token));
        }
        Ok(found)
    }

    fn append_full(
        &self,
        out: &mut RawDocumentBuf,
        before: Option<&RawDocument>,
        token: &Token,
        shown: Shown,
        documents: &dyn Documents,
    ) -> Result<()> {
        let Body::Document { key, new, diff } = &self.body else {
            return Ok(());
        };
        let name = cstr!("fullDocument");
        if let Some(new) = new {
            out.append(name, *new);
        }
        let (Some(diff), Some(uuid)) = (diff, self.uuid) else {
            return Ok(());
        };
        let found = match shown.full {
            FullDocument::Default => return Ok(()),
            FullDocument::UpdateLookup => documents.current(&self.ns, uuid, key)?,
            FullDocument::WhenAvailable | FullDocument::Required => before
                .map(|before| query::update::delta(before, diff))
                .transpose()?,
        };
        if found.is_none() && shown.full == FullDocument::Required {
            return Err(missing("post-image", "update", token));
        }
        append_or_null(out, name, found.as_deref());
        Ok(())
    }
}

/// The fields that every event begins with.
fn head(token: &Token, kind: Kind, site: &Site<'_>) -> RawDocumentBuf {
    let mut out = RawDocumentBuf::new();
    out.append(cstr!("_id"), token.to_document());
    out.append(cstr!("operationType"), kind.name());
    out.append(cstr!("clusterTime"), site.time);
    if let Some(transaction) = &site.transaction {
        out.append(cstr!("txnNumber"), transaction.number);
        out.append(cstr!("lsid"), transaction.id);
    }
    out
}

/// Append `{db, coll}` of a full name.
fn append_namespace(out: &mut RawDocumentBuf, name: &bson::raw::CStr, ns: &str) {
    let mut parts = RawDocumentBuf::new();
    match ns.split_once('.') {
        Some((database, collection)) => {
            parts.append(cstr!("db"), database);
            parts.append(cstr!("coll"), collection);
        }
        None => parts.append(cstr!("db"), ns),
    }
    out.append(name, parts);
}

fn append_or_null(out: &mut RawDocumentBuf, name: &bson::raw::CStr, value: Option<&RawDocument>) {
    match value {
        Some(value) => out.append(name, value),
        None => out.append(name, RawBsonRef::Null),
    }
}

/// `{_id: ..}` of a document.
fn id_of(document: &RawDocument) -> Result<RawDocumentBuf> {
    let mut key = RawDocumentBuf::new();
    if let Some(id) = document.get("_id")? {
        key.append(cstr!("_id"), id);
    }
    Ok(key)
}

/// The diff of an update; `None` for a new document.
fn diff_of(update: &RawDocument) -> Result<Option<&RawDocument>> {
    match update.get("$v")? {
        None => Ok(None),
        Some(RawBsonRef::Int32(2) | RawBsonRef::Int64(2)) => match update.get("diff")? {
            Some(RawBsonRef::Document(diff)) => Ok(Some(diff)),
            _ => Err(Error::type_mismatch(
                "an oplog entry needs a document in 'o.diff'",
            )),
        },
        Some(other) => Err(Error::location(
            6_741_200,
            format!("Unsupported or missing oplog version, $v: {other:?}"),
        )),
    }
}

fn missing(image: &str, events: &str, token: &Token) -> Error {
    let message = format!(
        "Change stream was configured to require a {image} for all {events} events, but the \
         {image} was not found for event: {:?}",
        token.to_document()
    );
    Error::new(Code::NO_MATCHING_DOCUMENT, message)
}
