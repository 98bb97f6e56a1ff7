//! The stored form of an entry: its document, and behind it what only members read.
//!
//! ```text
//! +----------------------+---------------------------------------------------------------+
//! | the entry, MongoDB's | {retry: {session: BinData, clear: bool, records: [{k, v}, ..]}} |
//! +----------------------+---------------------------------------------------------------+
//! ```
//!
//! The second document, the *hidden part*, is missing in most entries. Clients, restore tools and
//! change streams are shown the first one only. A member fetches the stored value as it is.
//!
//! - H1. The hidden part of a retryable write or a transaction has the records that its commit has
//!   put for its session. It is behind the last entry of the commit, so a member that has applied
//!   that entry answers a retried statement as the primary does.

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf};
use query::{Error, Result};

use super::entry::ENTRY_MAX;

/// The largest hidden part, in bytes: the record of a `findAndModify` has a whole document, and the
/// records of a batch of upserts have their `_id`s.
pub(crate) const HIDDEN_MAX: usize = ENTRY_MAX;

/// Bytes of the id of a session, the first part of the keys of its records.
const SESSION: usize = 48;
/// Bytes of the rest of a key: none, or the number of a statement.
const STATEMENT: usize = 4;

/// The records that a commit has put for a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retry {
    /// The id of the session and the digest of its user, as in the keys of its records.
    pub(crate) session: Vec<u8>,
    /// Whether the records of single statements of earlier numbers were removed before.
    pub(crate) clear: bool,
    /// The records: the rest of the key, and the value.
    pub(crate) records: Vec<(Vec<u8>, RawDocumentBuf)>,
}

/// A stored value in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'v> {
    /// The entry.
    pub(crate) entry: &'v RawDocument,
    /// The hidden part.
    pub(crate) hidden: Option<&'v RawDocument>,
}

impl<'v> Stored<'v> {
    /// The parts of a stored value.
    ///
    /// # Errors
    /// `InvalidBSON`; parts that are too large.
    pub(crate) fn split(value: &'v [u8]) -> Result<Stored<'v>> {
        let length = value.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let parts = length.and_then(|length| value.split_at_checked(length));
        let Some((entry, hidden)) = parts else {
            return Err(Error::bad_value("an oplog entry is cut"));
        };
        if HIDDEN_MAX < hidden.len() {
            let message = format!(
                "the hidden part of an oplog entry has {} bytes, at most {HIDDEN_MAX} are allowed",
                hidden.len()
            );
            return Err(Error::bad_value(message));
        }
        let hidden = match hidden {
            [] => None,
            bytes => Some(RawDocument::from_bytes(bytes)?),
        };
        Ok(Stored {
            entry: RawDocument::from_bytes(entry)?,
            hidden,
        })
    }

    /// The records of its session (H1).
    ///
    /// # Errors
    /// `InvalidBSON`; what is no hidden part.
    pub(crate) fn retry(&self) -> Result<Option<Retry>> {
        match self.hidden.map(|hidden| hidden.get("retry")).transpose()? {
            None | Some(None) => Ok(None),
            Some(Some(RawBsonRef::Document(retry))) => Retry::parse(retry).map(Some),
            Some(Some(_)) => Err(wrong()),
        }
    }
}

/// The length of the document at the beginning of a stored value; all of it if that is damaged.
pub(crate) fn shown(value: &[u8]) -> &[u8] {
    Stored::split(value).map_or(value, |stored| stored.entry.as_bytes())
}

impl Retry {
    /// The hidden part with these records.
    pub(crate) fn to_hidden(&self) -> RawDocumentBuf {
        let mut records = RawArrayBuf::new();
        for (key, value) in &self.records {
            let mut record = RawDocumentBuf::new();
            record.append(cstr!("k"), binary(key));
            record.append(cstr!("v"), value.as_ref());
            records.push(record);
        }
        let mut retry = RawDocumentBuf::new();
        retry.append(cstr!("session"), binary(&self.session));
        retry.append(cstr!("clear"), self.clear);
        retry.append(cstr!("records"), records);
        let mut hidden = RawDocumentBuf::new();
        hidden.append(cstr!("retry"), retry);
        hidden
    }

    fn parse(retry: &RawDocument) -> Result<Retry> {
        let (
            Some(RawBsonRef::Binary(session)),
            Some(RawBsonRef::Boolean(clear)),
            Some(RawBsonRef::Array(list)),
        ) = (
            retry.get("session")?,
            retry.get("clear")?,
            retry.get("records")?,
        )
        else {
            return Err(wrong());
        };
        if session.bytes.len() != SESSION {
            return Err(wrong());
        }
        let mut records = Vec::new();
        for record in list {
            let RawBsonRef::Document(record) = record? else {
                return Err(wrong());
            };
            let (Some(RawBsonRef::Binary(key)), Some(RawBsonRef::Document(value))) =
                (record.get("k")?, record.get("v")?)
            else {
                return Err(wrong());
            };
            if ![0, STATEMENT].contains(&key.bytes.len()) {
                return Err(wrong());
            }
            records.push((key.bytes.to_vec(), value.to_owned()));
        }
        Ok(Retry {
            session: session.bytes.to_vec(),
            clear,
            records,
        })
    }
}

fn binary(bytes: &[u8]) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    }
}

fn wrong() -> Error {
    Error::bad_value("the hidden part of an oplog entry is malformed")
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;
    use stdx::Tape;

    use super::*;

    fn some() -> Retry {
        Retry {
            session: vec![7; SESSION],
            clear: true,
            records: vec![
                (Vec::new(), rawdoc! { "n": 1_i64 }),
                (vec![0, 0, 0, 1], rawdoc! { "n": 1_i64, "c": 1 }),
            ],
        }
    }

    fn value(hidden: &RawDocument) -> Vec<u8> {
        let entry = rawdoc! { "op": "n" };
        [entry.as_bytes(), hidden.as_bytes()].concat()
    }

    /// H1.
    #[test]
    fn the_hidden_part_is_read_and_is_not_shown() {
        let entry = rawdoc! { "op": "n" };
        let plain = Stored::split(entry.as_bytes()).unwrap();
        assert_eq!(plain.entry, &*entry);
        assert_eq!(plain.retry().unwrap(), None);
        let value = value(&some().to_hidden());
        let stored = Stored::split(&value).unwrap();
        assert_eq!(stored.entry, &*entry);
        assert_eq!(stored.retry().unwrap(), Some(some()), "H1");
        assert_eq!(shown(&value), entry.as_bytes());
        assert_eq!(shown(b"short"), b"short");
    }

    #[test]
    fn what_is_no_stored_entry_is_refused() {
        for bad in [
            &b""[..],
            b"\x05\0\0",
            b"\x06\0\0\0\0",
            b"\xff\xff\xff\xff\0",
        ] {
            assert!(Stored::split(bad).is_err());
        }
        let bin = |length| binary(&vec![1; length]);
        for retry in [
            rawdoc! {},
            rawdoc! { "session": bin(47), "clear": true, "records": [] },
            rawdoc! { "session": bin(48), "clear": 1, "records": [] },
            rawdoc! { "session": bin(48), "clear": true, "records": [1] },
            rawdoc! { "session": bin(48), "clear": true, "records": [{ "k": bin(3), "v": {} }] },
            rawdoc! { "session": bin(48), "clear": true, "records": [{ "k": bin(4), "v": 1 }] },
        ] {
            let value = value(&rawdoc! { "retry": retry });
            assert!(Stored::split(&value).unwrap().retry().is_err());
        }
        let value = value(&rawdoc! { "retry": 1 });
        assert!(Stored::split(&value).unwrap().retry().is_err());
    }

    #[test]
    fn damaged_values_are_decoded_or_refused() {
        for seed in 0..5_000 {
            let mut tape = Tape::from_seed(seed, 16);
            let mut bytes = value(&some().to_hidden());
            for _ in 0..1 + tape.byte() % 3 {
                let at = tape.index(bytes.len());
                bytes[at] = tape.byte();
            }
            if let Ok(stored) = Stored::split(&bytes) {
                drop(stored.retry());
            }
        }
    }
}
