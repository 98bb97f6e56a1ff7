//! Several operations in one entry: the group of a batch of inserts, and the chain of entries of a
//! transaction.

use std::ops::Range;

use bson::RawDocumentBuf;
use bson::raw::cstr;
use query::{Code, Error, Result};

use super::operations::Operations;
use super::{ENTRY_MAX, close, finished};
use crate::limits::{DOCUMENT_MAX, element_around};

/// Operations of an `applyOps` entry (as MongoDB 8 groups inserts): enough to spread the cost of an
/// entry, and few enough that a reader gets the first events of a large batch early.
pub const GROUP_MAX: usize = 500;

/// Bytes around the operations of an `applyOps`: its name, the array, `partialTxn` and `count`, and
/// of the entry around it, including the largest `lsid`.
const AROUND: usize = 1_024;

/// One entry of a chain.
#[derive(Debug)]
pub struct Link {
    /// Its command, `{applyOps: [..]}`.
    pub command: RawDocumentBuf,
    /// Which operations it has.
    pub operations: Range<usize>,
}

/// The entries that have these operations, in order. Of several, all but the last have
/// `partialTxn: true`, and the last has the `count` of all operations. An entry has at most `most`
/// operations, and the bytes of at most one document of the greatest size, so that each entry is
/// within [`ENTRY_MAX`].
///
/// # Errors
/// `TransactionTooLarge` for an operation that fits no entry.
///
/// # Panics
/// For no operations, or a `most` of 0.
pub fn chain(operations: &Operations, most: usize) -> Result<Vec<Link>> {
    assert!(!operations.is_empty(), "an entry has an operation");
    assert!(0 < most, "an entry may have an operation");
    let mut parts = Vec::new();
    let mut start = 0;
    while start < operations.len() {
        let part = fitting(operations, start, most)?;
        start = part.range.end;
        parts.push(part);
    }
    let last = parts.len() - 1;
    let link = |(index, part): (usize, Part)| {
        let mut out = part.command(operations);
        if index < last {
            out.append(cstr!("partialTxn"), true);
        } else if 0 < last {
            let count = i64::try_from(operations.len()).expect("a length in memory");
            out.append(cstr!("count"), count);
        }
        Link {
            command: out,
            operations: part.range,
        }
    };
    Ok(parts.into_iter().enumerate().map(link).collect())
}

/// The operations of an entry, at least one.
struct Part {
    range: Range<usize>,
    /// The bytes of the elements of the array.
    size: usize,
}

impl Part {
    /// `{applyOps: [..]}`.
    fn command(&self, operations: &Operations) -> RawDocumentBuf {
        let mut out = Vec::with_capacity(AROUND + self.size);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(b"\x04applyOps\0");
        let array = out.len();
        out.extend_from_slice(&[0; 4]);
        for (index, operation) in self.range.clone().enumerate() {
            out.push(0x03);
            out.extend_from_slice(index.to_string().as_bytes());
            out.push(0);
            operations.append_to(operation, &mut out);
        }
        close(&mut out, array);
        close(&mut out, 0);
        finished(out)
    }
}

/// The operations of the next entry, which begins with that of the index `start`.
fn fitting(operations: &Operations, start: usize, most: usize) -> Result<Part> {
    let mut size = 0;
    let mut end = start;
    while end < operations.len() && end - start < most {
        let bytes = operations.size(end) + element_around(end - start);
        if start < end && DOCUMENT_MAX < size + bytes {
            break;
        }
        size += bytes;
        end += 1;
    }
    if ENTRY_MAX - AROUND < size {
        let message = format!("an operation of {size} bytes does not fit into an oplog entry");
        return Err(Error::new(Code::TRANSACTION_TOO_LARGE, message));
    }
    let range = start..end;
    Ok(Part { range, size })
}
