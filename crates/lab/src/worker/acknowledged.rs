//! What was acknowledged, written down where a kill of this process does not reach: a file for each
//! client, to which the numbers of the rows of every commit are appended once it has returned.
//!
//! I1: a row is in a file only after its commit returned. I2: the files of a client are in the
//! order of its commits. What was written survives the process, since it is in the page cache.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// The file of one client.
pub(super) struct Acknowledged(File);

impl Acknowledged {
    /// Begin the file of a client in `directory`.
    pub(super) fn create(directory: &Path, client: u32) -> Result<Acknowledged, String> {
        let path = directory.join(client.to_string());
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.map(Acknowledged)
            .map_err(|e| format!("cannot create {}: {e}", path.display()))
    }

    /// The commit of these rows returned.
    pub(super) fn note(&mut self, rows: Range<u64>) -> Result<(), String> {
        let mut bytes = Vec::with_capacity(8);
        for id in rows {
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        // One call, so that a kill cuts between commits.
        let written = self.0.write_all(&bytes);
        written.map_err(|e| format!("cannot note what was acknowledged: {e}"))
    }
}

/// The rows acknowledged to each client, in the order of the commits. A number cut off at the end
/// of a file is passed over.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Vec<u64>>> {
    let mut clients = Vec::new();
    for entry in fs::read_dir(directory)? {
        let bytes = fs::read(entry?.path())?;
        let (numbers, _) = bytes.as_chunks::<8>();
        clients.push(numbers.iter().map(|n| u64::from_be_bytes(*n)).collect());
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_back_but_for_a_torn_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = Acknowledged::create(dir.path(), 0).unwrap();
        one.note(5..8).unwrap();
        one.note(11..12).unwrap();
        one.0.write_all(&[0, 0, 0]).unwrap();
        Acknowledged::create(dir.path(), 1).unwrap();
        let mut read = read(dir.path()).unwrap();
        read.sort();
        assert_eq!(read, [vec![], vec![5, 6, 7, 11]]);
    }
}
