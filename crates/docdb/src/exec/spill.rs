//! A temporary file of records that do not fit into memory: written once, then read once.
//!
//! The file never has a name (`O_TMPFILE`) where the file system supports that. Elsewhere it is
//! created under a random, unused name (`O_EXCL`, which follows no symbolic link) and unlinked at
//! once. No file is thus left behind, however the process ends, and no other user can open the file
//! or replace it. On an engine that encrypts its files, the file is encrypted, too. A record is its
//! length (4 bytes, little-endian) followed by its bytes.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

use crypt::{TemporaryReader, TemporaryWriter};
use query::execute::Spill;
use query::{Code, Error, Result};

use crate::store::Store;

/// Buffer size per file: large enough that a merge of several runs reads sequentially.
const BUFFER: usize = 256 * 1024;
/// Maximum record size: a document plus overhead.
const RECORD_MAX: usize = 64 * 1024 * 1024;

/// Where temporary files are made.
#[derive(Debug, Clone)]
pub(crate) struct SpillPlace {
    pub(crate) directory: PathBuf,
    /// Whether they are encrypted, each with a key that is thrown away with it.
    pub(crate) encrypted: bool,
}

impl Store {
    /// Where temporary files are made; encrypted as the engine's files are.
    pub(crate) fn spill_place(&self) -> SpillPlace {
        SpillPlace {
            directory: self.options().temp_dir.clone(),
            encrypted: self.engine().encryption().is_some(),
        }
    }
}

/// A file being written or read.
pub(crate) struct SpillFile {
    state: State,
}

enum State {
    Writing(BufWriter<File>),
    Reading(BufReader<File>),
    Sealing(Box<TemporaryWriter<File>>),
    Opening(Box<TemporaryReader<File>>),
    Failed,
}

impl SpillFile {
    /// An empty file in the directory, which is created with access for its owner only if it is
    /// missing.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn create(place: &SpillPlace) -> Result<SpillFile> {
        let directory = &place.directory;
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
        let state = if place.encrypted {
            let writer = TemporaryWriter::new(file);
            let writer = writer.map_err(|error| {
                Error::new(Code::INTERNAL_ERROR, format!("cannot encrypt: {error}"))
            })?;
            State::Sealing(Box::new(writer))
        } else {
            State::Writing(BufWriter::with_capacity(BUFFER, file))
        };
        Ok(SpillFile { state })
    }

    /// Switch from writing to reading.
    fn turn(&mut self) -> Result<()> {
        let turned = match std::mem::replace(&mut self.state, State::Failed) {
            State::Writing(file) => file
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
                .and_then(rewound)
                .map(|file| State::Reading(BufReader::with_capacity(BUFFER, file))),
            State::Sealing(writer) => writer.finish().and_then(|(file, opener)| {
                let reader = TemporaryReader::new(rewound(file)?, opener);
                Ok(State::Opening(Box::new(reader)))
            }),
            other => Ok(other),
        };
        self.state = turned.map_err(|error| failed("write a temporary file", &error))?;
        Ok(())
    }
}

impl Spill for SpillFile {
    /// Records appended after the first read are refused.
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let file: &mut dyn Write = match &mut self.state {
            State::Writing(file) => file,
            State::Sealing(writer) => writer,
            _ => {
                return Err(Error::new(
                    Code::INTERNAL_ERROR,
                    "a temporary file is written after it was read",
                ));
            }
        };
        let length = u32::try_from(record.len()).map_err(|_| too_long(record.len()))?;
        let mut write = || {
            file.write_all(&length.to_le_bytes())?;
            file.write_all(record)
        };
        write().map_err(|error| failed("write a temporary file", &error))
    }

    fn read(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        if let State::Writing(_) | State::Sealing(_) = self.state {
            self.turn()?;
        }
        let file: &mut dyn Read = match &mut self.state {
            State::Reading(file) => file,
            State::Opening(reader) => reader,
            _ => {
                return Err(Error::new(
                    Code::INTERNAL_ERROR,
                    "a temporary file failed before",
                ));
            }
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

/// The file at its beginning.
fn rewound(mut file: File) -> io::Result<File> {
    file.rewind()?;
    Ok(file)
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

    fn place(directory: &std::path::Path, encrypted: bool) -> SpillPlace {
        SpillPlace {
            directory: directory.to_owned(),
            encrypted,
        }
    }

    #[test]
    fn an_encrypted_spill_file_holds_nothing_readable() {
        let directory = tempfile::tempdir().unwrap();
        let bytes = |file: &File| {
            let mut bytes = Vec::new();
            let mut file = file.try_clone().unwrap();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        };
        for encrypted in [true, false] {
            let mut file = SpillFile::create(&place(directory.path(), encrypted)).unwrap();
            (0..20_000).for_each(|_| file.append(b"a planted secret").unwrap());
            let written = match &file.state {
                State::Writing(file) => bytes(file.get_ref()),
                State::Sealing(writer) => bytes(writer.inner()),
                _ => panic!("it is being written"),
            };
            assert!(100_000 < written.len(), "most of it is in the file");
            let found = written.windows(16).any(|at| at == b"a planted secret");
            assert_eq!(found, !encrypted);
        }
    }

    #[test]
    fn a_spill_file_has_no_name_and_only_its_owner_may_use_it() {
        let outer = tempfile::tempdir().unwrap();
        let directory = outer.path().join("_tmp");
        let mut file = SpillFile::create(&place(&directory, false)).unwrap();
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
        for encrypted in [false, true] {
            come_back(encrypted);
        }
    }

    fn come_back(encrypted: bool) {
        let directory = tempfile::tempdir().unwrap();
        let mut file = SpillFile::create(&place(directory.path(), encrypted)).unwrap();
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
