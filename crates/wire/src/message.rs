//! `OP_MSG`: flags, one body, any number of document sequences, and an optional checksum.
//!
//! A [`Message`] keeps the received bytes; the documents of an insert are slices of these bytes.
//!
//! - M1. The offsets in a message point to valid documents in its bytes; `decode` checks this.

use std::ops::Range;

use bson::RawDocument;
use zeroize::Zeroize as _;

use crate::decoder::Frame;
use crate::error::{Error, Result};
use crate::header::{Header, read_i32};
use crate::limits::{HEADER, MAX_IDENTIFIER, MAX_SEQUENCE_DOCUMENTS, MAX_SEQUENCES};
use crate::validate::validate;

/// The flags of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// A checksum follows the sections.
    pub const CHECKSUM: u32 = 1;
    /// In a request: the server must not reply. In a reply: another reply follows without a
    /// request.
    pub const MORE_TO_COME: u32 = 1 << 1;
    /// The client accepts more than one reply.
    pub const EXHAUST_ALLOWED: u32 = 1 << 16;

    /// Whether a flag is set.
    #[must_use]
    pub fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

/// A document sequence: an argument of the command that is sent outside of its body, as a list of
/// documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The name of the argument.
    pub name: String,
    documents: Vec<Range<usize>>,
}

/// A command or a reply, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The header of the message.
    pub header: Header,
    /// The flags of the message.
    pub flags: Flags,
    bytes: Vec<u8>,
    body: Range<usize>,
    sequences: Vec<Sequence>,
    /// Whether the message contains a password or a key.
    secret: bool,
}

impl Drop for Message {
    fn drop(&mut self) {
        if self.secret {
            self.bytes.zeroize();
        }
    }
}

impl Message {
    /// Mark the message as containing a password or a key: its bytes are overwritten when it is
    /// dropped.
    pub fn set_secret(&mut self) {
        self.secret = true;
    }

    /// Find and check the parts of a message, with the limits of the protocol.
    ///
    /// # Errors
    /// The errors of [`Message::decode_within`].
    pub fn decode(frame: Frame) -> Result<Message> {
        Message::decode_within(frame, MAX_SEQUENCE_DOCUMENTS)
    }

    /// Find and check the parts of a message; its document sequences may have at most `documents`
    /// documents in total.
    ///
    /// # Errors
    /// [`Error::Flags`], [`Error::Checksum`], [`Error::Malformed`], [`Error::Sequences`],
    /// [`Error::Documents`], [`Error::Duplicate`], [`Error::Bson`], [`Error::Depth`].
    pub fn decode_within(frame: Frame, documents: usize) -> Result<Message> {
        let Frame { header, bytes } = frame;
        let flags = read_i32(&bytes, HEADER).ok_or(Error::Malformed("no flags"))?;
        let flags = Flags(u32::from_le_bytes(flags.to_le_bytes()));
        let unknown = flags.0 & 0xFFFF & !(Flags::CHECKSUM | Flags::MORE_TO_COME);
        if unknown != 0 {
            return Err(Error::Flags(flags.0));
        }
        let end = match flags.has(Flags::CHECKSUM) {
            true => check_sum(&bytes)?,
            false => bytes.len(),
        };
        let mut parts = Sections {
            bytes: bytes.get(..end).unwrap_or_default(),
            at: HEADER.saturating_add(4),
            body: None,
            sequences: Vec::new(),
            limit: documents,
            left: documents,
        };
        while parts.at < end {
            parts.section()?;
        }
        let Sections {
            body, sequences, ..
        } = parts;
        Ok(Message {
            header,
            flags,
            body: body.ok_or(Error::Malformed("no body"))?,
            sequences,
            bytes,
            secret: false,
        })
    }

    /// A message made from the body of a legacy query.
    pub(crate) fn of_body(header: Header, bytes: Vec<u8>, body: Range<usize>) -> Message {
        Message {
            header,
            flags: Flags::default(),
            bytes,
            body,
            sequences: Vec::new(),
            secret: false,
        }
    }

    /// The body: the command or the reply.
    #[must_use]
    pub fn body(&self) -> &RawDocument {
        self.document(&self.body)
    }

    /// The names of the document sequences.
    pub fn sequence_names(&self) -> impl Iterator<Item = &str> {
        self.sequences.iter().map(|sequence| sequence.name.as_str())
    }

    /// The documents of the sequence `name`, in order; `None` if the message has no such sequence.
    #[must_use]
    pub fn sequence(&self, name: &str) -> Option<Vec<&RawDocument>> {
        let sequence = self.sequences.iter().find(|s| s.name == name)?;
        Some(
            sequence
                .documents
                .iter()
                .map(|at| self.document(at))
                .collect(),
        )
    }

    /// Number of documents of the sequence `name`; `None` if the message has no such sequence.
    #[must_use]
    pub fn sequence_len(&self, name: &str) -> Option<usize> {
        let sequence = self.sequences.iter().find(|s| s.name == name)?;
        Some(sequence.documents.len())
    }

    /// Size of the message in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    fn document(&self, at: &Range<usize>) -> &RawDocument {
        let bytes = self.bytes.get(at.clone()).unwrap_or_default();
        RawDocument::from_bytes(bytes).expect("M1: the offsets name sound documents")
    }
}

/// Check the checksum, if the flags announce one; returns the end of the sections.
fn check_sum(bytes: &[u8]) -> Result<usize> {
    let end = bytes.len().saturating_sub(4);
    let told = read_i32(bytes, end).ok_or(Error::Checksum)?;
    let sum = crc32c::crc32c(bytes.get(..end).unwrap_or_default());
    if sum.to_le_bytes() != told.to_le_bytes() {
        return Err(Error::Checksum);
    }
    Ok(end)
}

struct Sections<'a> {
    /// The bytes before the checksum.
    bytes: &'a [u8],
    at: usize,
    body: Option<Range<usize>>,
    sequences: Vec<Sequence>,
    /// Maximum number of documents in all sequences.
    limit: usize,
    /// Number of documents that the remaining sequences may have.
    left: usize,
}

impl Sections<'_> {
    fn section(&mut self) -> Result<()> {
        let kind = self.bytes.get(self.at).copied();
        self.at = self.at.saturating_add(1);
        match kind {
            Some(0) if self.body.is_some() => Err(Error::Malformed("two bodies")),
            Some(0) => {
                let body = self.document(self.bytes.len())?;
                self.body = Some(body);
                Ok(())
            }
            Some(1) => self.sequence(),
            _ => Err(Error::Malformed("an unknown kind of section")),
        }
    }

    /// Check the document that starts here; it must end at or before `end`.
    fn document(&mut self, end: usize) -> Result<Range<usize>> {
        let start = self.at;
        let length = validate(self.bytes.get(start..end).unwrap_or_default())?;
        self.at = start.saturating_add(length);
        Ok(start..self.at)
    }

    fn sequence(&mut self) -> Result<()> {
        if self.sequences.len() >= MAX_SEQUENCES {
            return Err(Error::Sequences);
        }
        let start = self.at;
        let size = read_i32(self.bytes, start).and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or(Error::Malformed("a sequence without a size"))?;
        let end = start.saturating_add(size);
        if end > self.bytes.len() {
            return Err(Error::Malformed("a sequence longer than its message"));
        }
        self.at = start.saturating_add(4);
        let name = self.identifier(end)?;
        if self.sequences.iter().any(|s| s.name == name) {
            return Err(Error::Duplicate(name));
        }
        let mut documents = Vec::new();
        while self.at < end {
            let left = self.left.checked_sub(1);
            self.left = left.ok_or(Error::Documents(self.limit))?;
            documents.push(self.document(end)?);
        }
        if self.at != end {
            return Err(Error::Malformed("a sequence shorter than its head"));
        }
        self.sequences.push(Sequence { name, documents });
        Ok(())
    }

    fn identifier(&mut self, end: usize) -> Result<String> {
        let rest = self.bytes.get(self.at..end).unwrap_or_default();
        let window = rest
            .get(..rest.len().min(MAX_IDENTIFIER))
            .unwrap_or_default();
        let length = window.iter().position(|&byte| byte == 0);
        let text = length.and_then(|length| std::str::from_utf8(window.get(..length)?).ok());
        let name = text.ok_or(Error::Malformed("a sequence without a name"))?;
        self.at = self.at.saturating_add(name.len()).saturating_add(1);
        Ok(name.to_owned())
    }
}
