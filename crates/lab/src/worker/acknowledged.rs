//! Logs acknowledged commits in files that survive a kill of this process. Each client has its own
//! file. After each commit it appends the numbers of the rows of the commit.
//!
//! I1: a row is in a file only after its commit returned. I2: the file of a client has the order of
//! its commits. Written data survives the process, since it is in the page cache.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use lab_report::error::{Error, Result};

use crate::protocol::Acknowledged;

/// The acknowledgement file of one client.
pub(super) struct AckLog(File);

impl AckLog {
    /// Create the file of a client in `directory`.
    pub(super) fn create(directory: &Path, client: u32) -> Result<AckLog> {
        let path = directory.join(client.to_string());
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.map(AckLog)
            .map_err(|e| Error::environment(format!("cannot create {}: {e}", path.display())))
    }

    /// Run the commit of these rows and, once it has returned, record them.
    pub(super) fn commit<T>(
        &mut self,
        rows: Range<u64>,
        commit: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let done = commit()?;
        self.note(rows)?;
        Ok(done)
    }

    fn note(&mut self, rows: Range<u64>) -> Result<()> {
        let mut bytes = Vec::with_capacity(8);
        for id in rows {
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        // One write call, so that a kill cannot separate the rows of one commit.
        let written = self.0.write_all(&bytes);
        written.map_err(|e| Error::environment(format!("cannot record the acknowledged rows: {e}")))
    }
}

/// Read the acknowledged rows of each client. If power was cut, only the rows within the file sizes
/// `before_cut` must be present. A number that is truncated, by the end of a file or by its size
/// before the cut, is ignored.
pub(super) fn read(
    directory: &Path,
    before_cut: Option<&BTreeMap<String, u64>>,
) -> io::Result<Vec<Acknowledged>> {
    let mut clients = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let bytes = fs::read(entry.path())?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let rows: Vec<u64> = numbers.iter().map(|n| u64::from_be_bytes(*n)).collect();
        let due = before_cut.map_or(rows.len(), |sizes| {
            let size = entry.file_name().to_str().and_then(|name| sizes.get(name));
            let held = size.map_or(0, |bytes| bytes / 8);
            usize::try_from(held).map_or(rows.len(), |held| held.min(rows.len()))
        });
        clients.push(Acknowledged { rows, due });
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_recorded_only_after_their_commit_returned() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = AckLog::create(dir.path(), 0).unwrap();
        let recorded = || read(dir.path(), None).unwrap()[0].rows.clone();
        let commit = || {
            assert!(recorded().is_empty(), "I1: not before the commit returns");
            Ok(recorded)
        };
        let recorded = log.commit(3..5, commit).unwrap();
        assert_eq!(recorded(), [3, 4]);
        let full = Error::environment("disk full");
        let failed = log.commit(5..7, || Err::<(), _>(full.clone()));
        assert_eq!(failed.unwrap_err(), full);
        assert_eq!(recorded(), [3, 4], "I1: not after it failed");
    }

    #[test]
    fn what_was_noted_is_read_back_but_for_a_torn_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = AckLog::create(dir.path(), 0).unwrap();
        one.commit(5..8, || Ok(())).unwrap();
        one.commit(11..12, || Ok(())).unwrap();
        one.0.write_all(&[0, 0, 0]).unwrap();
        AckLog::create(dir.path(), 1).unwrap();
        let clients = |before: Option<&BTreeMap<String, u64>>| {
            let mut read = read(dir.path(), before).unwrap();
            read.sort_by_key(|client| client.rows.len());
            read
        };
        let client = Acknowledged::of;
        let all = client(&[5, 6, 7, 11], 4);
        assert_eq!(clients(None), [client(&[], 0), all], "I2: in order");
        let cut = BTreeMap::from([("0".to_owned(), 3 * 8 + 5)]);
        assert_eq!(
            clients(Some(&cut)),
            [client(&[], 0), client(&[5, 6, 7, 11], 3)]
        );
    }
}
