//! Which entries are applied together.

use bson::Timestamp;
use query::Result;

use super::{Kind, kind};
use crate::oplog::Stored;
use crate::oplog::entry::{Command, Entry, Operation};
use crate::replica::append::StoredEntry;
use crate::replica::role::Replica;

/// Operations of a batch: its transaction is small enough for each engine, and large enough that
/// its commit costs little per operation.
const OPERATIONS_MAX: usize = 5_000;

/// Bytes of the entries of a batch, which are held in memory.
const BYTES_MAX: usize = 16 << 20;

impl Replica<'_> {
    /// The next entries to apply together, with times after `after` and up to `until`: a command of
    /// the catalog, or entries without one. Empty at the end.
    pub(super) fn next_batch(
        &self,
        after: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<StoredEntry>> {
        let mut batch: Vec<StoredEntry> = Vec::new();
        let (mut operations, mut bytes) = (0, 0);
        self.visit(after, until, |at, value| {
            let entry = Entry::parse(Stored::split(value)?.entry)?;
            let (alone, more) = match (kind(&entry), count(&entry)) {
                (Ok(kind), Ok(more)) => (matches!(kind, Kind::Command), more),
                // The entries before it are applied first.
                _ if !batch.is_empty() => return Ok(false),
                (kind, _) => return kind.map(|_| false),
            };
            let size = value.len();
            let full = OPERATIONS_MAX < operations + more || BYTES_MAX < bytes + size;
            if !batch.is_empty() && (alone || full) {
                return Ok(false);
            }
            operations += more;
            bytes += size;
            let value = value.to_vec();
            batch.push(StoredEntry { at, value });
            Ok(!alone)
        })?;
        Ok(batch)
    }
}

/// The operations of an entry. The last entry of a transaction counts for all of its entries.
fn count(entry: &Entry<'_>) -> Result<usize> {
    let Operation::Command { command, .. } = &entry.operation else {
        return Ok(1);
    };
    Ok(match Command::parse(command)? {
        Command::ApplyOps(group) => match group.count {
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX / 2),
            None => group.operations.len(),
        },
        _ => 1,
    })
}
