//! Writes an encoded document, with nested ones in the same buffer.

use bson::RawDocumentBuf;
use bson::spec::ElementType;

use crate::{Code, Error, Result};

/// An encoded document being written. The outer document is open from the start.
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// Maximum number of bytes.
    limit: usize,
}

/// An open document: the position of its length.
#[must_use]
pub(super) struct Open(usize);

impl Writer {
    /// A writer of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> (Writer, Open) {
        Writer::into(Vec::new(), limit)
    }

    /// A writer without a limit, which allocates memory for `room` bytes at once.
    pub(super) fn with_room(room: usize) -> (Writer, Open) {
        Writer::into(Vec::with_capacity(room), usize::MAX)
    }

    fn into(bytes: Vec<u8>, limit: usize) -> (Writer, Open) {
        let mut writer = Writer { bytes, limit };
        let open = writer.length();
        (writer, open)
    }

    /// Appends a field: its type byte, name and value.
    pub(super) fn element(&mut self, element: &[u8]) -> Result<()> {
        if self.limit.saturating_sub(self.bytes.len()) < element.len() {
            return Err(too_large());
        }
        self.bytes.extend_from_slice(element);
        Ok(())
    }

    /// Appends a value under the name of the parts.
    pub(super) fn value(&mut self, kind: ElementType, name: [&str; 2], value: &[u8]) -> Result<()> {
        self.head(kind, name)?;
        self.element(value)
    }

    /// Opens a document or an array under the name of the parts.
    pub(super) fn open(&mut self, kind: ElementType, name: [&str; 2]) -> Result<Open> {
        self.head(kind, name)?;
        Ok(self.length())
    }

    /// Closes a document or an array.
    pub(super) fn close(&mut self, open: Open) -> Result<()> {
        self.element(&[0])?;
        let length = self.bytes.len() - open.0;
        let length = i32::try_from(length).map_err(|_| too_large())?;
        if let Some(place) = self.bytes.get_mut(open.0..open.0 + size_of::<i32>()) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    /// Bytes written.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the outer document.
    pub(super) fn finish(mut self, outer: Open) -> Result<Vec<u8>> {
        self.close(outer)?;
        Ok(self.bytes)
    }

    /// The outer document.
    pub(super) fn into_document(self, outer: Open) -> Result<RawDocumentBuf> {
        Ok(RawDocumentBuf::from_bytes(self.finish(outer)?)?)
    }

    fn head(&mut self, kind: ElementType, name: [&str; 2]) -> Result<()> {
        let [first, second] = name;
        self.element(&[kind as u8])?;
        self.element(first.as_bytes())?;
        self.element(second.as_bytes())?;
        self.element(&[0])
    }

    fn length(&mut self) -> Open {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; size_of::<i32>()]);
        Open(at)
    }
}

fn too_large() -> Error {
    let message = "the document after the update is too large to be encoded";
    Error::new(Code::BSON_OBJECT_TOO_LARGE, message)
}
