//! What a member must not forget: its number, the term, its vote and the configuration, in the
//! file `replset` of the data directory. It is replaced whole, and is not in the storage engine: a
//! vote must not wait for a writer of the engine.
//!
//! ```text
//! offset  bytes  content
//!      0      8  ROMREPL1
//!      8      4  n, the length of the document, little endian
//!     12      4  CRC32C of the document
//!     16      n  a BSON document: me, term, votedFor, config
//! ```
//!
//! - F1. After a crash the file has the content of one call of [`write`], and at least that of the
//!   last one that has returned.
//! - F2. Content that is not whole is refused: a member without its vote could vote twice.

use std::path::{Path, PathBuf};
use std::{fs, io};

use bson::{RawDocument, RawDocumentBuf, doc};
use query::{Code, Error, Result};

use super::config::SetConfig;
use crate::arguments::Arguments;
use crate::long::long;

const MAGIC: &[u8; 8] = b"ROMREPL1";

/// Bytes before the document.
const HEADER: usize = 16;

/// Bytes of the file: a configuration of 50 members with long names and tags has 100 KiB.
pub(super) const FILE_MAX: usize = 1 << 20;

/// The content of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    /// The number of this member.
    pub(crate) me: u32,
    pub(crate) term: u64,
    /// The member that it voted for in that term.
    pub(crate) voted_for: Option<u32>,
    pub(crate) config: SetConfig,
}

/// The file in a data directory.
pub(crate) fn path(db_path: &Path) -> PathBuf {
    db_path.join("replset")
}

/// Replace the file, and sync it (F1).
///
/// # Errors
/// Those of the operating system; the file has its former content.
pub(crate) fn write(path: &Path, stored: &Stored) -> io::Result<()> {
    vfs::write_atomic(path, &encode(stored)?)
}

/// Read the file; `None` if it does not exist: the member belongs to no set yet.
///
/// # Errors
/// Those of the operating system; content that is not whole (F2).
pub(crate) fn read(path: &Path) -> Result<Option<Stored>> {
    let refuse = |why: String| {
        let place = path.display();
        let message = format!(
            "{place}, which has the vote and the configuration of this member, {why}; restore the \
             file, or begin with an empty data directory"
        );
        Error::new(Code::INTERNAL_ERROR, message)
    };
    let length = match fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(format!("cannot be read: {error}"))),
    };
    if (FILE_MAX as u64) < length {
        return Err(refuse(format!("has {length} bytes, more than {FILE_MAX}")));
    }
    let bytes = fs::read(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let decoded = decode(&bytes).map_err(|error| refuse(format!("is damaged: {error}")));
    decoded.map(Some)
}

fn encode(stored: &Stored) -> io::Result<Vec<u8>> {
    let mut document = doc! {
        "me": i64::from(stored.me),
        "term": long(stored.term),
        "config": stored.config.to_document(),
    };
    if let Some(candidate) = stored.voted_for {
        document.insert("votedFor", i64::from(candidate));
    }
    let raw = RawDocumentBuf::try_from(&document).map_err(io::Error::other)?;
    let body = raw.as_bytes();
    let length = u32::try_from(body.len()).ok();
    let length = length.filter(|_| body.len() <= FILE_MAX - HEADER);
    let length = length.ok_or_else(|| io::Error::other("the configuration is too large"))?;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    bytes.extend_from_slice(body);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<Stored> {
    let broken = |what: &str| Error::new(Code::INVALID_BSON, what.to_owned());
    let (magic, rest) = bytes
        .split_first_chunk::<8>()
        .ok_or_else(|| broken("too short"))?;
    if magic != MAGIC {
        return Err(broken("it does not begin with ROMREPL1"));
    }
    let (length, rest) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| broken("too short"))?;
    let (sum, body) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| broken("too short"))?;
    if usize::try_from(u32::from_le_bytes(*length)) != Ok(body.len()) {
        return Err(broken("its length is wrong"));
    }
    if u32::from_le_bytes(*sum) != crc32c::crc32c(body) {
        return Err(broken("its checksum is wrong"));
    }
    wire::validate(body).map_err(|error| broken(&error.to_string()))?;
    let document = RawDocument::from_bytes(body)?;
    let fields = Arguments::of("replset", document)?;
    fields.only(&["me", "term", "votedFor", "config"])?;
    let member = |name: &str| -> Result<Option<u32>> {
        let number = fields.long(name)?;
        let number = number.map(|n| u32::try_from(n).map_err(|_| broken("a number is negative")));
        number.transpose()
    };
    let config = SetConfig::parse(fields.need_document("config")?)?;
    Ok(Stored {
        me: member("me")?.ok_or_else(|| broken("it names no member"))?,
        term: u64::try_from(fields.long("term")?.unwrap_or(-1))
            .map_err(|_| broken("it has no term"))?,
        voted_for: member("votedFor")?,
        config,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Stored {
        let config = doc! {"_id": "rs0", "version": 2, "term": 3_i64, "members": [
            {"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1", "tags": {"dc": "x"}},
        ]};
        let raw = RawDocumentBuf::try_from(&config).unwrap();
        Stored {
            me: 1,
            term: 5,
            voted_for: Some(0),
            config: SetConfig::parse(&raw).unwrap(),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        assert_eq!(read(&path).unwrap(), None);
        for voted_for in [Some(0), None] {
            let stored = Stored {
                voted_for,
                ..stored()
            };
            write(&path, &stored).unwrap();
            assert_eq!(read(&path).unwrap(), Some(stored), "F1");
        }
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "F1: no temporary file is left");
    }

    #[test]
    fn damaged_content_is_refused_with_the_name_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        let whole = encode(&stored()).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.message.contains("replset"), "F2: {error}");
        };
        for cut in 0..whole.len() {
            refused(whole.get(..cut).unwrap());
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            *bytes.get_mut(at).unwrap() ^= 0x10;
            refused(&bytes);
        }
        let mut longer = whole.clone();
        longer.push(0);
        refused(&longer);
        refused(&vec![0; FILE_MAX + 1]);
        // A whole document with wrong fields.
        for bad in [
            doc! {},
            doc! {"me": -1, "term": 1_i64, "config": stored().config.to_document()},
            doc! {"me": 1, "term": -1_i64, "config": stored().config.to_document()},
            doc! {"me": 1, "term": 1_i64, "config": {}},
        ] {
            let body = RawDocumentBuf::try_from(&bad).unwrap();
            let mut bytes = MAGIC.to_vec();
            let length = u32::try_from(body.as_bytes().len()).unwrap();
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&crc32c::crc32c(body.as_bytes()).to_le_bytes());
            bytes.extend_from_slice(body.as_bytes());
            refused(&bytes);
        }
    }
}
