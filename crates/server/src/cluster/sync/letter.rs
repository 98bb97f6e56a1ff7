//! The command `replSetCopy` and its reply.
//!
//! ```text
//! {replSetCopy: 1, set, from, to, begin: true}
//! {replSetCopy: 1, set, from, to, after, since,
//!  part: {collection: UUID | sessions: true | images: true, from: BinData, until: BinData}}
//!
//! {store: BinData, origin: {entry: BinData, catalog: [{stored, last, documents, bytes}, ..]}}
//! {store: BinData, at, whole, entries: [BinData, ..],
//!  records: {part: .., keys: [BinData, ..], values: [BinData, ..], next: BinData, end}}
//! {store: BinData, again: "why the copy must restart"}
//! ```
//!
//! What arrives is decoded into a `Result`; the documents in it are checked by the store.

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, Document, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Uuid, doc};
use docdb::replica::copy::{Left, Listed, Origin, Part, Portion, Records, Wanted};
use query::{Code, Error, Result};

use crate::arguments::Arguments;
use crate::cluster::letter::{member, parse_position, position};
use crate::cluster::store::{optime, position as place};

/// The fields of the command.
pub(crate) const FIELDS: &[&str] = &["set", "from", "to", "begin", "after", "since", "part"];

/// Bytes of a catalog: a reply must have room for it.
pub(crate) const CATALOG: usize = 32 << 20;

/// Bytes of the entries in a reply; more only for one entry that is longer.
const ENTRIES: usize = 4 << 20;

/// Bytes of the records in a reply; more only for one record that is longer.
const RECORDS: usize = 1 << 20;

/// Longest key of a record.
const KEY: usize = 64 << 10;

/// What a member asks for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// The beginning of a copy.
    Begin,
    /// A portion.
    Portion(Wanted),
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    /// The key of the set.
    pub(crate) set: String,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) asked: Asked,
}

/// The answer of a source.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The identifier of its store.
    pub(crate) store: Vec<u8>,
    pub(crate) content: Content,
}

/// See [`Answer`].
#[derive(Debug)]
pub(crate) enum Content {
    Origin(Origin),
    Portion(Portion),
    /// Why the copy must restart.
    Again(String),
}

impl Request {
    pub(crate) fn to_command(&self) -> Result<Document> {
        let mut command = doc! {
            "replSetCopy": 1, "set": &self.set,
            "from": i64::from(self.from), "to": i64::from(self.to),
        };
        match &self.asked {
            Asked::Begin => drop(command.insert("begin", true)),
            Asked::Portion(wanted) => {
                command.insert("after", position(place(wanted.after)?));
                command.insert("since", position(place(wanted.since)?));
                if let Some(left) = &wanted.left {
                    let mut part = Document::try_from(&*of_part(left.part))?;
                    part.insert("from", binary(&left.from));
                    part.insert("until", binary(&left.until));
                    command.insert("part", part);
                }
            }
        }
        Ok(command)
    }

    /// # Errors
    /// The first field that is not right.
    pub(crate) fn parse(fields: &Arguments<'_>) -> Result<Request> {
        let asked = match fields.is_on("begin")? {
            true => Asked::Begin,
            false => {
                let part = fields.document("part")?.map(parse_left).transpose()?;
                Asked::Portion(Wanted {
                    after: optime(parse_position(fields, "after")?),
                    since: optime(parse_position(fields, "since")?),
                    left: part,
                    entries: ENTRIES,
                    records: RECORDS,
                })
            }
        };
        Ok(Request {
            set: fields.need_string("set")?.to_owned(),
            from: member(fields, "from")?,
            to: member(fields, "to")?,
            asked,
        })
    }
}

fn of_part(part: Part) -> RawDocumentBuf {
    let mut out = RawDocumentBuf::new();
    match part {
        Part::Collection(uuid) => {
            let uuid = Binary {
                subtype: BinarySubtype::Uuid,
                bytes: uuid.bytes().to_vec(),
            };
            out.append(cstr!("collection"), uuid);
        }
        Part::Sessions => out.append(cstr!("sessions"), true),
        Part::Images => out.append(cstr!("images"), true),
    }
    out
}

fn parse_part(fields: &Arguments<'_>) -> Result<Part> {
    if fields.is_on("sessions")? {
        return Ok(Part::Sessions);
    }
    if fields.is_on("images")? {
        return Ok(Part::Images);
    }
    let bytes = bytes(fields, "collection")?;
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| wrong("collection"))?;
    Ok(Part::Collection(Uuid::from_bytes(bytes)))
}

fn parse_left(part: &RawDocument) -> Result<Left> {
    let fields = Arguments::of("part", part)?;
    fields.only(&["collection", "sessions", "images", "from", "until"])?;
    let key = |name| -> Result<Vec<u8>> {
        let key = bytes(&fields, name)?;
        match key.len() <= KEY {
            true => Ok(key.to_vec()),
            false => Err(wrong(name)),
        }
    };
    Ok(Left {
        part: parse_part(&fields)?,
        from: key("from")?,
        until: key("until")?,
    })
}

/// The reply with an answer.
///
/// # Errors
/// A position that no entry has.
pub(crate) fn reply(answer: &Answer) -> Result<RawDocumentBuf> {
    let mut out = RawDocumentBuf::new();
    out.append(cstr!("store"), binary(&answer.store));
    match &answer.content {
        Content::Again(why) => out.append(cstr!("again"), why.as_str()),
        Content::Origin(origin) => {
            let mut catalog = RawArrayBuf::new();
            for listed in &origin.catalog {
                let mut one = RawDocumentBuf::new();
                one.append(cstr!("stored"), binary(&listed.stored));
                one.append(cstr!("last"), listed.last);
                one.append(cstr!("documents"), listed.documents);
                one.append(cstr!("bytes"), listed.bytes);
                catalog.push(one);
            }
            let mut made = RawDocumentBuf::new();
            made.append(cstr!("entry"), binary(&origin.entry));
            made.append(cstr!("catalog"), catalog);
            out.append(cstr!("origin"), made);
        }
        Content::Portion(portion) => {
            let at = position(place(portion.at)?);
            out.append(cstr!("at"), RawDocumentBuf::try_from(&at)?);
            out.append(cstr!("whole"), portion.whole);
            out.append(cstr!("entries"), binaries(portion.entries.iter()));
            if let Some(records) = &portion.records {
                let mut made = RawDocumentBuf::new();
                made.append(cstr!("part"), of_part(records.part));
                let (keys, values) = (records.pairs.iter(), records.pairs.iter());
                made.append(cstr!("keys"), binaries(keys.map(|(key, _)| key)));
                made.append(cstr!("values"), binaries(values.map(|(_, value)| value)));
                made.append(cstr!("next"), binary(&records.next));
                made.append(cstr!("end"), records.end);
                out.append(cstr!("records"), made);
            }
        }
    }
    Ok(out)
}

/// Decode a reply.
///
/// # Errors
/// The first field that is not right.
pub(crate) fn parse_reply(reply: &RawDocument) -> Result<Answer> {
    let fields = Arguments::of("replSetCopy", reply)?;
    let store = bytes(&fields, "store")?.to_vec();
    if let Some(why) = fields.string("again")? {
        let content = Content::Again(why.to_owned());
        return Ok(Answer { store, content });
    }
    let content = match fields.document("origin")? {
        Some(origin) => Content::Origin(parse_origin(origin)?),
        None => Content::Portion(Portion {
            entries: list(&fields, "entries")?,
            at: optime(parse_position(&fields, "at")?),
            whole: fields.is_on("whole")?,
            records: fields.document("records")?.map(parse_records).transpose()?,
        }),
    };
    Ok(Answer { store, content })
}

fn parse_origin(origin: &RawDocument) -> Result<Origin> {
    let fields = Arguments::of("origin", origin)?;
    let mut catalog = Vec::new();
    for listed in fields.need_array("catalog")? {
        let listed = listed?.as_document().ok_or_else(|| wrong("catalog"))?;
        let listed = Arguments::of("catalog", listed)?;
        let number = |name| -> Result<i64> {
            let number = listed.long(name)?.filter(|n| 0 <= *n);
            number.ok_or_else(|| wrong(name))
        };
        catalog.push(Listed {
            stored: bytes(&listed, "stored")?.to_vec(),
            last: number("last")?,
            documents: number("documents")?,
            bytes: number("bytes")?,
        });
    }
    Ok(Origin {
        entry: bytes(&fields, "entry")?.to_vec(),
        catalog,
    })
}

fn parse_records(records: &RawDocument) -> Result<Records> {
    let fields = Arguments::of("records", records)?;
    let part = Arguments::of("part", fields.need_document("part")?)?;
    let (keys, values) = (list(&fields, "keys")?, list(&fields, "values")?);
    if keys.len() != values.len() {
        return Err(wrong("values"));
    }
    Ok(Records {
        part: parse_part(&part)?,
        pairs: keys.into_iter().zip(values).collect(),
        next: bytes(&fields, "next")?.to_vec(),
        end: fields.is_on("end")?,
    })
}

fn binary(bytes: &[u8]) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    }
}

fn binaries<'b>(all: impl Iterator<Item = &'b Vec<u8>>) -> RawArrayBuf {
    let mut out = RawArrayBuf::new();
    for bytes in all {
        out.push(binary(bytes));
    }
    out
}

fn bytes<'a>(fields: &Arguments<'a>, name: &str) -> Result<&'a [u8]> {
    match fields.get(name) {
        Some(RawBsonRef::Binary(binary)) => Ok(binary.bytes),
        _ => Err(wrong(name)),
    }
}

fn list(fields: &Arguments<'_>, name: &str) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for value in fields.need_array(name)? {
        let RawBsonRef::Binary(binary) = value? else {
            return Err(wrong(name));
        };
        all.push(binary.bytes.to_vec());
    }
    Ok(all)
}

fn wrong(name: &str) -> Error {
    let message = format!("a message of an initial sync has no valid field {name}");
    Error::new(Code::FAILED_TO_PARSE, message)
}

#[cfg(test)]
mod tests {
    use docdb::oplog::entry::OpTime;
    use stdx::Tape;

    use super::*;

    fn at(increment: u32) -> OpTime {
        let ts = bson::Timestamp { time: 1, increment };
        OpTime { ts, term: 2 }
    }

    fn parse(command: &Document) -> Result<Request> {
        let raw = RawDocumentBuf::try_from(command).unwrap();
        Request::parse(&Arguments::of("replSetCopy", &raw)?)
    }

    fn answers() -> Vec<Content> {
        let uuid = Uuid::from_bytes([7; 16]);
        let portion = |part| {
            Content::Portion(Portion {
                entries: vec![vec![1, 2], Vec::new()],
                at: at(3),
                whole: true,
                records: Some(Records {
                    part,
                    pairs: vec![(vec![1], vec![2, 3]), (vec![4], Vec::new())],
                    next: vec![4],
                    end: false,
                }),
            })
        };
        vec![
            Content::Again("why".to_owned()),
            Content::Origin(Origin {
                entry: vec![1, 2],
                catalog: vec![Listed {
                    stored: vec![3],
                    last: 4,
                    documents: 5,
                    bytes: 6,
                }],
            }),
            portion(Part::Collection(uuid)),
            portion(Part::Sessions),
            portion(Part::Images),
        ]
    }

    #[test]
    fn requests_and_answers_are_read_as_they_were_written() {
        for part in [None, Some(Part::Sessions), Some(Part::Images)] {
            let left = part.map(|part| Left {
                part,
                from: vec![1, 2],
                until: Vec::new(),
            });
            let asked = Asked::Portion(Wanted {
                after: at(5),
                since: at(4),
                left,
                entries: ENTRIES,
                records: RECORDS,
            });
            let request = Request {
                set: "rs0:1".to_owned(),
                from: 1,
                to: 2,
                asked,
            };
            let read = parse(&request.to_command().unwrap()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{request:?}"));
        }
        for content in answers() {
            let answer = Answer {
                store: vec![9],
                content,
            };
            let read = parse_reply(&reply(&answer).unwrap()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{answer:?}"));
        }
    }

    #[test]
    fn malformed_requests_and_answers_are_refused() {
        let begin = doc! {"replSetCopy": 1, "set": "rs0", "from": 1, "to": 0, "begin": true};
        assert!(parse(&begin).is_ok());
        for (name, value) in [
            ("set", bson::Bson::Int32(1)),
            ("from", bson::Bson::Int32(300)),
            ("to", bson::Bson::Int32(-1)),
            ("begin", bson::Bson::Boolean(false)),
        ] {
            let mut bad = begin.clone();
            bad.insert(name, value);
            parse(&bad).unwrap_err();
        }
        for content in answers() {
            let answer = Answer {
                store: vec![9],
                content,
            };
            let good = reply(&answer).unwrap();
            for seed in 0..2_000 {
                let mut tape = Tape::from_seed(seed, 16);
                let mut bytes = good.as_bytes().to_vec();
                for _ in 0..1 + tape.byte() % 3 {
                    let at = tape.index(bytes.len());
                    bytes[at] = tape.byte();
                }
                if let Ok(read) = RawDocument::from_bytes(&bytes) {
                    drop(parse_reply(read));
                }
            }
        }
    }
}
