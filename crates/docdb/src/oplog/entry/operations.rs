//! The operations of an engine transaction, encoded, in one allocation: a batch of a thousand
//! documents must not cost a thousand allocations.

use bson::RawDocument;

use super::{Operation, with_room};

/// Bytes of an operation beside its documents, for most names of collections.
const AROUND: usize = 128;

/// `stmtId: int32` as a field of an operation, without its value.
const STATEMENT: &[u8] = b"\x10stmtId\0";

/// Encoded operations, in order.
#[derive(Debug, Default)]
pub struct Operations {
    /// The documents of [`Operation::to_document`], one after another.
    bytes: Vec<u8>,
    /// Where each of them ends in `bytes`.
    ends: Vec<usize>,
    /// The statements of a retryable write, in order: the index of its first operation, and its
    /// number.
    statements: Vec<(usize, i32)>,
    /// Memory in which the next operation is encoded.
    scratch: Vec<u8>,
}

impl Operations {
    /// Add an operation.
    pub fn push(&mut self, operation: &Operation<'_>) {
        let mut one = with_room(std::mem::take(&mut self.scratch), AROUND);
        operation.append_to(&mut one);
        let one = one.into_bytes();
        self.bytes.extend_from_slice(&one);
        self.ends.push(self.bytes.len());
        self.scratch = one;
    }

    /// Give a statement's number to the first operation that belongs to no statement yet, if there
    /// is one.
    pub fn statement(&mut self, number: i32) {
        let index = self.statements.last().map_or(0, |(index, _)| index + 1);
        if index < self.len() {
            self.statements.push((index, number));
        }
    }

    /// The number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The operation with this index, without the number of its statement.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&RawDocument> {
        RawDocument::from_bytes(self.bytes_of(index)?).ok()
    }

    /// The number of the statement that begins with the operation with this index.
    #[must_use]
    pub fn statement_of(&self, index: usize) -> Option<i32> {
        let found = self.statements.binary_search_by_key(&index, |(of, _)| *of);
        let (_, number) = self.statements.get(found.ok()?)?;
        Some(*number)
    }

    /// The size of [`Operations::append_to`], in bytes.
    pub(super) fn size(&self, index: usize) -> usize {
        let statement = match self.statement_of(index) {
            Some(_) => STATEMENT.len() + size_of::<i32>(),
            None => 0,
        };
        self.bytes_of(index).map_or(0, <[u8]>::len) + statement
    }

    /// Append the document of an operation, with the number of its statement as MongoDB has it in
    /// `applyOps`.
    pub(super) fn append_to(&self, index: usize, out: &mut Vec<u8>) {
        let operation = self.bytes_of(index).unwrap_or_default();
        let start = out.len();
        out.extend_from_slice(operation);
        if let Some(number) = self.statement_of(index) {
            out.pop();
            out.extend_from_slice(STATEMENT);
            out.extend_from_slice(&number.to_le_bytes());
            super::close(out, start);
        }
    }

    fn bytes_of(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }
}
