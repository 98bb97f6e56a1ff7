//! Several operations in one entry: the group of a batch of inserts, and the chain of entries of a
//! transaction.

use bson::RawDocumentBuf;
use query::{Code, Error, Result};

use super::ENTRY_MAX;
use super::command::apply_ops;
use crate::limits::DOCUMENT_MAX;

/// Operations of an `applyOps` entry (as MongoDB 8 groups inserts): enough to spread the cost of an
/// entry, and few enough that a reader gets the first events of a large batch early.
pub const GROUP_MAX: usize = 500;

/// Bytes around the operations of an `applyOps`: its name, the array, `partialTxn` and `count`, and
/// of the entry around it, including the largest `lsid`.
const AROUND: usize = 1_024;

/// The commands of the entries that have these operations (see `Operation::to_document`), in order:
/// `{applyOps: [..]}` for one entry; for several `partialTxn: true` in all but the last, which has
/// the `count` of all operations. An entry has at most `most` operations, and the bytes of at most
/// one document of the greatest size, so that each entry is within [`ENTRY_MAX`].
///
/// # Errors
/// `TransactionTooLarge` for an operation that fits no entry.
///
/// # Panics
/// For no operations, or a `most` of 0.
pub fn chain(operations: &[RawDocumentBuf], most: usize) -> Result<Vec<RawDocumentBuf>> {
    assert!(!operations.is_empty(), "an entry has an operation");
    assert!(0 < most, "an entry may have an operation");
    let mut lists = Vec::new();
    let mut rest = operations;
    while !rest.is_empty() {
        let (part, others) = rest.split_at(fitting(rest, most)?);
        lists.push(part);
        rest = others;
    }
    let last = lists.len() - 1;
    let command = |(index, part): (usize, &[RawDocumentBuf])| {
        let list = part.iter().map(|operation| &**operation).collect();
        let count = i64::try_from(operations.len()).expect("a length in memory");
        let ends_chain = 0 < last && index == last;
        apply_ops(list, index < last, ends_chain.then_some(count))
    };
    Ok(lists.into_iter().enumerate().map(command).collect())
}

/// How many of the operations the next entry has, at least one.
fn fitting(operations: &[RawDocumentBuf], most: usize) -> Result<usize> {
    let mut size = 0;
    let mut count = 0;
    for operation in operations.iter().take(most) {
        // The type, the index as a name, and its end.
        let bytes = operation.as_bytes().len() + count.to_string().len() + 2;
        if 0 < count && DOCUMENT_MAX < size + bytes {
            break;
        }
        size += bytes;
        count += 1;
    }
    if ENTRY_MAX - AROUND < size {
        let message = format!("an operation of {size} bytes does not fit into an oplog entry");
        return Err(Error::new(Code::TRANSACTION_TOO_LARGE, message));
    }
    Ok(count)
}
