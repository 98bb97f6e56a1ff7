//! Oplog entries: what a committed operation changed, in MongoDB's shape.
//!
//! ```text
//! {lsid, txnNumber, op: "i", ns: "db.c", ui: UUID, o: {_id: 1, a: 2}, o2: {_id: 1},
//!  needsRetryImage, stmtId, ts: Timestamp(5, 1), t: 1, v: 2, wall: Date, prevOpTime: {ts, t}}
//! ```
//!
//! | `op` | `o` | `o2` |
//! |---|---|---|
//! | `i` | the document | its key, if it fits |
//! | `u` | `{$v: 2, diff}` (see `query::update::diff`) or the new document | the key |
//! | `d` | the key | |
//! | `c` | a command: see [`Command`]; `ns` is `db.$cmd` | what it replaced, if anything |
//! | `n` | a note, such as `{msg: ..}`; nothing changes | |
//!
//! The key of a document is `{_id: ..}`. Fields without a value are left out. An entry has values
//! and no computations: applying it twice is the same as applying it once.
//!
//! An entry is a view of bytes: building one and parsing one copy no document.
//!
//! - E1. Parsing the bytes of an entry gives the entry.
//! - E2. An entry has at most [`ENTRY_MAX`] bytes. More operations than fit are a chain of entries,
//!   each with the time of the one before in `prevOpTime`.
//! - E3. Bytes of others (a client, another server, a file) are decoded into a result. Unknown
//!   fields are ignored, as MongoDB adds some in each version.

mod chain;
mod command;
mod operations;
#[cfg(test)]
mod tests;

use bson::raw::{RawBinaryRef, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use query::value::uuid_raw;
use query::{Code, Error, Result};

pub use chain::{GROUP_MAX, Link, chain};
pub use command::{ApplyOps, Command, IndexBuild};
pub use operations::Operations;

/// The largest entry, in bytes: MongoDB's limit for internal documents. It leaves 16 KiB for the
/// fields around the largest document.
pub const ENTRY_MAX: usize = crate::limits::RESULT_MAX;
/// The version of the shape.
const VERSION: i64 = 2;
/// Bytes of an entry beside its documents, for most names of collections.
const AROUND: usize = 256;

/// The time of an entry, with the term of the primary that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTime {
    /// The time, which orders the entries.
    pub ts: Timestamp,
    /// The term: -1 before the first election.
    pub term: i64,
}

impl OpTime {
    /// No entry: the one before the first of a chain.
    pub const NONE: OpTime = OpTime {
        ts: Timestamp {
            time: 0,
            increment: 0,
        },
        term: -1,
    };
}

/// An entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Its time.
    pub at: OpTime,
    /// The wall clock when it was written.
    pub wall: DateTime,
    /// What changed.
    pub operation: Operation<'a>,
    /// The session of a retryable write or a transaction.
    pub session: Option<Session<'a>>,
    /// The numbers of the statements of a retryable write.
    pub statements: Vec<i32>,
    /// The entry before in the transaction, or in the session's retryable write.
    pub previous: Option<OpTime>,
    /// The document that a retried `findAndModify` returns.
    pub image: Option<Image>,
}

/// The session of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Session<'a> {
    /// `lsid`.
    pub id: &'a RawDocument,
    /// `txnNumber`.
    pub number: i64,
}

/// The document that a retried `findAndModify` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// The document before the change.
    Before,
    /// The document after the change.
    After,
}

/// What an entry changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<'a> {
    /// A document was inserted.
    Insert {
        /// Its collection.
        place: Place<'a>,
        /// The document.
        document: &'a RawDocument,
        /// Its key; left out where the entry would be too large with it, and in old oplogs.
        key: Option<&'a RawDocument>,
    },
    /// A document was changed.
    Update {
        /// Its collection.
        place: Place<'a>,
        /// `{$v: 2, diff}`, or the new document.
        update: &'a RawDocument,
        /// Its key.
        key: &'a RawDocument,
    },
    /// A document was deleted.
    Delete {
        /// Its collection.
        place: Place<'a>,
        /// Its key.
        key: &'a RawDocument,
    },
    /// A command changed the catalog, or several documents at once.
    Command {
        /// The database: `ns` without `.$cmd`.
        database: &'a str,
        /// The UUID of the collection.
        uuid: Option<Uuid>,
        /// The command, which [`Command`] makes and parses.
        command: &'a RawDocument,
        /// What it replaced or removed.
        replaced: Option<&'a RawDocument>,
    },
    /// Nothing changed.
    Nothing {
        /// The namespace, which is often empty.
        ns: &'a str,
        /// The note.
        note: &'a RawDocument,
    },
}

/// A collection of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Its name with the database, when the entry was written.
    pub ns: &'a str,
    /// Its UUID, which takes precedence over the name.
    pub uuid: Uuid,
}

impl<'a> Entry<'a> {
    /// The entry of an operation without a session.
    #[must_use]
    pub fn new(at: OpTime, wall: DateTime, operation: Operation<'a>) -> Entry<'a> {
        Entry {
            at,
            wall,
            operation,
            session: None,
            statements: Vec::new(),
            previous: None,
            image: None,
        }
    }

    /// The bytes of the entry.
    ///
    /// # Errors
    /// `BSONObjectTooLarge` for more than [`ENTRY_MAX`] bytes.
    pub fn to_raw(&self) -> Result<RawDocumentBuf> {
        let mut out = with_room(Vec::new(), AROUND + self.operation.size());
        if let Some(session) = &self.session {
            out.append(cstr!("lsid"), session.id);
            out.append(cstr!("txnNumber"), session.number);
        }
        self.operation.append_to(&mut out);
        if let Some(image) = self.image {
            let name = match image {
                Image::Before => "preImage",
                Image::After => "postImage",
            };
            out.append(cstr!("needsRetryImage"), name);
        }
        match self.statements.as_slice() {
            [] => {}
            [one] => out.append(cstr!("stmtId"), *one),
            several => {
                let list: bson::RawArrayBuf = several.iter().copied().collect();
                out.append(cstr!("stmtId"), list);
            }
        }
        out.append(cstr!("ts"), self.at.ts);
        out.append(cstr!("t"), self.at.term);
        out.append(cstr!("v"), VERSION);
        out.append(cstr!("wall"), self.wall);
        if let Some(previous) = self.previous {
            let mut time = RawDocumentBuf::new();
            time.append(cstr!("ts"), previous.ts);
            time.append(cstr!("t"), previous.term);
            out.append(cstr!("prevOpTime"), time);
        }
        check_size(&out)?;
        Ok(out)
    }

    /// The entry in these bytes.
    ///
    /// # Errors
    /// `InvalidBSON`; `FailedToParse`, `TypeMismatch` or `BadValue` for what is no entry.
    pub fn parse(entry: &'a RawDocument) -> Result<Entry<'a>> {
        check_size(entry)?;
        let fields = Fields::of(entry)?;
        if let Some(version) = integer("v", fields.v)?
            && version != VERSION
        {
            let message = format!("an oplog entry has version {version}, expected {VERSION}");
            return Err(Error::bad_value(message));
        }
        let session = match (fields.lsid, integer("txnNumber", fields.txn_number)?) {
            (Some(id), Some(number)) => Some(Session {
                id: document("lsid", Some(id))?,
                number,
            }),
            (None, None) => None,
            _ => return Err(Error::parse("an oplog entry has half of a session")),
        };
        let at = OpTime {
            ts: timestamp("ts", fields.ts)?,
            term: integer("t", fields.t)?.unwrap_or(OpTime::NONE.term),
        };
        let Some(RawBsonRef::DateTime(wall)) = fields.wall else {
            return Err(wrong("wall", "a date"));
        };
        let previous = match fields.previous {
            None => None,
            Some(value) => Some(op_time(document("prevOpTime", Some(value))?)?),
        };
        Ok(Entry {
            at,
            wall,
            operation: Operation::of(&fields)?,
            session,
            statements: statements(fields.statements)?,
            previous,
            image: match fields.image {
                None => None,
                Some(RawBsonRef::String("preImage")) => Some(Image::Before),
                Some(RawBsonRef::String("postImage")) => Some(Image::After),
                Some(_) => return Err(wrong("needsRetryImage", "preImage or postImage")),
            },
        })
    }
}

impl<'a> Operation<'a> {
    /// The operation in an entry, or in the list of an `applyOps`.
    ///
    /// # Errors
    /// As [`Entry::parse`].
    pub fn parse(document: &'a RawDocument) -> Result<Operation<'a>> {
        Operation::of(&Fields::of(document)?)
    }

    /// The operation as it stands in the list of an `applyOps`.
    #[must_use]
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut out = with_room(Vec::new(), AROUND + self.size());
        self.append_to(&mut out);
        out
    }

    /// The bytes of its documents.
    fn size(&self) -> usize {
        let (o, o2) = match self {
            Operation::Insert { document, key, .. } => (document, *key),
            Operation::Update { update, key, .. } => (update, Some(*key)),
            Operation::Delete { key, .. } => (key, None),
            Operation::Command {
                command, replaced, ..
            } => (command, *replaced),
            Operation::Nothing { note, .. } => (note, None),
        };
        o.as_bytes().len() + o2.map_or(0, |o2| o2.as_bytes().len())
    }

    fn append_to(&self, out: &mut RawDocumentBuf) {
        let (letter, place, o, o2) = match self {
            Operation::Insert {
                place,
                document,
                key,
            } => ("i", place, *document, *key),
            Operation::Update { place, update, key } => ("u", place, *update, Some(*key)),
            Operation::Delete { place, key } => ("d", place, *key, None),
            Operation::Command {
                database,
                uuid,
                command,
                replaced,
            } => {
                out.append(cstr!("op"), "c");
                out.append(cstr!("ns"), format!("{database}.$cmd"));
                if let Some(uuid) = uuid {
                    out.append(cstr!("ui"), Binary::from(*uuid));
                }
                out.append(cstr!("o"), *command);
                if let Some(replaced) = replaced {
                    out.append(cstr!("o2"), *replaced);
                }
                return;
            }
            Operation::Nothing { ns, note } => {
                out.append(cstr!("op"), "n");
                out.append(cstr!("ns"), *ns);
                out.append(cstr!("o"), *note);
                return;
            }
        };
        out.append(cstr!("op"), letter);
        out.append(cstr!("ns"), place.ns);
        out.append(
            cstr!("ui"),
            RawBinaryRef {
                subtype: BinarySubtype::Uuid,
                bytes: &place.uuid.bytes(),
            },
        );
        out.append(cstr!("o"), o);
        if let Some(o2) = o2 {
            out.append(cstr!("o2"), o2);
        }
    }

    fn of(fields: &Fields<'a>) -> Result<Operation<'a>> {
        let (letter, ns) = (text("op", fields.op)?, text("ns", fields.ns)?);
        let o = document("o", fields.o)?;
        let key = || document("o2", fields.o2);
        let o2 = || fields.o2.map(|o2| document("o2", Some(o2))).transpose();
        let place = || {
            if ns
                .split_once('.')
                .is_none_or(|(db, name)| db.is_empty() || name.is_empty())
            {
                return Err(wrong("ns", "the name of a collection"));
            }
            let uuid = uuid("ui", fields.ui)?;
            let uuid = uuid.ok_or_else(|| wrong("ui", "the UUID of a collection"))?;
            Ok(Place { ns, uuid })
        };
        Ok(match letter {
            "i" => Operation::Insert {
                place: place()?,
                document: o,
                key: o2()?,
            },
            "u" => Operation::Update {
                place: place()?,
                update: o,
                key: key()?,
            },
            "d" => Operation::Delete {
                place: place()?,
                key: o,
            },
            "c" => Operation::Command {
                database: match ns.strip_suffix(".$cmd") {
                    Some(database) if !database.is_empty() => database,
                    _ => return Err(wrong("ns", "a database and .$cmd")),
                },
                uuid: uuid("ui", fields.ui)?,
                command: o,
                replaced: o2()?,
            },
            "n" => Operation::Nothing { ns, note: o },
            other => {
                let message = format!("an oplog entry has the unknown op '{other}'");
                return Err(Error::bad_value(message));
            }
        })
    }
}

/// The fields of an entry that have a meaning.
#[derive(Default)]
struct Fields<'a> {
    lsid: Option<RawBsonRef<'a>>,
    txn_number: Option<RawBsonRef<'a>>,
    op: Option<RawBsonRef<'a>>,
    ns: Option<RawBsonRef<'a>>,
    ui: Option<RawBsonRef<'a>>,
    o: Option<RawBsonRef<'a>>,
    o2: Option<RawBsonRef<'a>>,
    image: Option<RawBsonRef<'a>>,
    statements: Option<RawBsonRef<'a>>,
    ts: Option<RawBsonRef<'a>>,
    t: Option<RawBsonRef<'a>>,
    v: Option<RawBsonRef<'a>>,
    wall: Option<RawBsonRef<'a>>,
    previous: Option<RawBsonRef<'a>>,
}

impl<'a> Fields<'a> {
    fn of(document: &'a RawDocument) -> Result<Fields<'a>> {
        let mut fields = Fields::default();
        for element in document {
            let (name, value) = element?;
            let place = match name.as_str() {
                "lsid" => &mut fields.lsid,
                "txnNumber" => &mut fields.txn_number,
                "op" => &mut fields.op,
                "ns" => &mut fields.ns,
                "ui" => &mut fields.ui,
                "o" => &mut fields.o,
                "o2" => &mut fields.o2,
                "needsRetryImage" => &mut fields.image,
                "stmtId" => &mut fields.statements,
                "ts" => &mut fields.ts,
                "t" => &mut fields.t,
                "v" => &mut fields.v,
                "wall" => &mut fields.wall,
                "prevOpTime" => &mut fields.previous,
                _ => continue,
            };
            if place.replace(value).is_some() {
                let name = name.as_str();
                let message = format!("an oplog entry has the field '{name}' twice");
                return Err(Error::parse(message));
            }
        }
        Ok(fields)
    }
}

/// An empty document with memory for `room` bytes more, in place of what `memory` has.
fn with_room(mut memory: Vec<u8>, room: usize) -> RawDocumentBuf {
    memory.clear();
    memory.reserve(room);
    memory.extend_from_slice(&[0; 4]);
    close(&mut memory, 0);
    finished(memory)
}

/// End the document or array that begins at `start` with four bytes for its length.
fn close(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = i32::try_from(out.len() - start).expect("an entry is far below 2 GiB");
    if let Some(place) = out.get_mut(start..start + size_of::<i32>()) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// The document in the bytes that [`close`] has ended.
fn finished(bytes: Vec<u8>) -> RawDocumentBuf {
    RawDocumentBuf::from_bytes(bytes).expect("its length has just been written")
}

fn check_size(entry: &RawDocument) -> Result<()> {
    let size = entry.as_bytes().len();
    if size <= ENTRY_MAX {
        return Ok(());
    }
    let message = format!("an oplog entry has {size} bytes, at most {ENTRY_MAX} are allowed");
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message))
}

fn wrong(name: &str, expected: &str) -> Error {
    Error::type_mismatch(format!("an oplog entry needs {expected} in '{name}'"))
}

fn text<'a>(name: &str, value: Option<RawBsonRef<'a>>) -> Result<&'a str> {
    match value {
        Some(RawBsonRef::String(text)) => Ok(text),
        _ => Err(wrong(name, "a string")),
    }
}

fn document<'a>(name: &str, value: Option<RawBsonRef<'a>>) -> Result<&'a RawDocument> {
    match value {
        Some(RawBsonRef::Document(document)) => Ok(document),
        _ => Err(wrong(name, "a document")),
    }
}

fn timestamp(name: &str, value: Option<RawBsonRef<'_>>) -> Result<Timestamp> {
    match value {
        Some(RawBsonRef::Timestamp(time)) => Ok(time),
        _ => Err(wrong(name, "a timestamp")),
    }
}

fn integer(name: &str, value: Option<RawBsonRef<'_>>) -> Result<Option<i64>> {
    match value {
        None => Ok(None),
        Some(RawBsonRef::Int32(number)) => Ok(Some(i64::from(number))),
        Some(RawBsonRef::Int64(number)) => Ok(Some(number)),
        Some(_) => Err(wrong(name, "an integer")),
    }
}

fn uuid(name: &str, value: Option<RawBsonRef<'_>>) -> Result<Option<Uuid>> {
    let parsed = |value| uuid_raw(value).ok_or_else(|| wrong(name, "a UUID"));
    value.map(parsed).transpose()
}

fn op_time(value: &RawDocument) -> Result<OpTime> {
    Ok(OpTime {
        ts: timestamp("prevOpTime.ts", value.get("ts")?)?,
        term: integer("prevOpTime.t", value.get("t")?)?.unwrap_or(OpTime::NONE.term),
    })
}

fn statements(value: Option<RawBsonRef<'_>>) -> Result<Vec<i32>> {
    match value {
        None => Ok(Vec::new()),
        Some(RawBsonRef::Int32(one)) => Ok(vec![one]),
        Some(RawBsonRef::Array(list)) => {
            let one = |value| match value {
                Ok(RawBsonRef::Int32(one)) => Ok(one),
                Ok(_) => Err(wrong("stmtId", "integers")),
                Err(error) => Err(Error::from(error)),
            };
            list.into_iter().map(one).collect()
        }
        Some(_) => Err(wrong("stmtId", "an integer")),
    }
}
