//! A temporary file of records that do not fit into memory: written once, then read once.
//!
//! The file never has a name (`O_TMPFILE`) where the file system supports that. Elsewhere it is
//! created under a random, unused name (`O_EXCL`, which follows no symbolic link) and unlinked at
//! once. No file is thus left behind, however the process ends, and no other user can open the file
//! or replace it. A record is its length (4 bytes, little-endian) followed by its bytes.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use query::execute::Spill;
use query::{Code, Error, Result};

/// Buffer size per file: large enough that a merge of several runs reads sequentially.
const BUFFER: usize = 256 * 1024;
/// Maximum record size: a document plus overhead.
const RECORD_MAX: usize = 64 * 1024 * 1024;

/// A file being written or read.
pub(crate) struct SpillFile {
    state: State,
}

enum State {
    Writing(BufWriter<File>),
    Reading(BufReader<File>),
    Failed,
}

impl SpillFile {
    /// An empty file in `directory`, which is created with access for its owner only if it is
    /// missing.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn create(directory: &Path) -> Result<SpillFile> {
        let open = || -> io::Result<File> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
            let file = tempfile::tempfile_in(directory)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(file)
        };
        let file = open().map_err(|error| failed("create a temporary file", &error))?;
        Ok(SpillFile {
            state: State::Writing(BufWriter::with_capacity(BUFFER, file)),
        })
    }

    /// Switch from writing to reading.
    fn turn(&mut self) -> Result<()> {
        let State::Writing(file) = std::mem::replace(&mut self.state, State::Failed) else {
            return Ok(());
        };
        let turned = || -> io::Result<File> {
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(file)
        };
        let file = turned().map_err(|error| failed("write a temporary file", &error))?;
        self.state = State::Reading(BufReader::with_capacity(BUFFER, file));
        Ok(())
    }
}

impl Spill for SpillFile {
    /// Records appended after the first read are refused.
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let State::Writing(file) = &mut self.state else {
            return Err(Error::new(
                Code::INTERNAL_ERROR,
                "a temporary file is written after it was read",
            ));
        };
        let length = u32::try_from(record.len()).map_err(|_| too_long(record.len()))?;
        let mut write = || {
            file.write_all(&length.to_le_bytes())?;
            file.write_all(record)
        };
        write().map_err(|error| failed("write a temporary file", &error))
    }

    fn read(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        if let State::Writing(_) = self.state {
            self.turn()?;
        }
        let State::Reading(file) = &mut self.state else {
            return Err(Error::new(
                Code::INTERNAL_ERROR,
                "a temporary file failed before",
            ));
        };
        let mut length = [0; 4];
        match file.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(failed("read a temporary file", &error)),
        }
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if RECORD_MAX < length {
            return Err(too_long(length));
        }
        record.resize(length, 0);
        file.read_exact(record)
            .map_err(|error| failed("read a temporary file", &error))?;
        Ok(true)
    }
}

fn failed(what: &str, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => Code::OUT_OF_DISK_SPACE,
        _ => Code::INTERNAL_ERROR,
    };
    Error::new(code, format!("cannot {what}: {error}"))
}

fn too_long(length: usize) -> Error {
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!("a temporary record of {length} bytes is too long"),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_spill_file_has_no_name_and_only_its_owner_may_use_it() {
        let outer = tempfile::tempdir().unwrap();
        let directory = outer.path().join("_tmp");
        let mut file = SpillFile::create(&directory).unwrap();
        file.append(b"secret").unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        let State::Writing(file) = &file.state else {
            panic!("it is being written");
        };
        let found = file.get_ref().metadata().unwrap();
        assert_eq!((found.nlink(), found.mode() & 0o777), (0, 0o600));
    }

    #[test]
    fn records_come_back_in_order_and_no_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = SpillFile::create(directory.path()).unwrap();
        let records: Vec<Vec<u8>> = (0..300u16)
            .map(|n| vec![n.to_le_bytes()[0]; usize::from(n) * 7])
            .collect();
        for record in &records {
            file.append(record).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut record = Vec::new();
        for expected in &records {
            assert!(file.read(&mut record).unwrap());
            assert_eq!(&record, expected);
        }
        assert!(!file.read(&mut record).unwrap());
        assert!(file.append(b"late").is_err());
    }
}
