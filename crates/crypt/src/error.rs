//! Why keys cannot be used.

use std::error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why keys cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// The file of the master key cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file of the master key is not private, not a file, or has another content.
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The data keys were wrapped by another master key.
    WrongMaster,
    /// The key file of a store was written by a newer program.
    Version(u32),
    /// The key file of a store is damaged, or belongs to another store.
    Damaged(&'static str),
    /// A data key is needed that the key file does not have.
    Missing(u32),
    /// A store has as many data keys as its key file can hold.
    TooMany,
    /// The operating system returned no random numbers.
    Random,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Unreadable { path, source } => write!(
                f,
                "the file of the master key, {}, cannot be read: {source}",
                path.display()
            ),
            KeyError::Unfit { path, why } => {
                write!(f, "the file of the master key, {}, {why}", path.display())
            }
            KeyError::WrongMaster => f.write_str(
                "the master key is not the one of this store: name the key file that the store \
                 was encrypted with, or to which it was rotated last",
            ),
            KeyError::Version(version) => write!(
                f,
                "the key file of the store has version {version}, which this program does not \
                 know: open the store with the program that wrote it"
            ),
            KeyError::Damaged(why) => write!(
                f,
                "the key file of the store {why}: put a copy of it back; without it the data \
                 cannot be decrypted"
            ),
            KeyError::Missing(key) => write!(
                f,
                "data key {key} is not in the key file of the store: put the newest key file of \
                 this store back"
            ),
            KeyError::TooMany => f.write_str(
                "the store has the most data keys that its key file can hold: copy the data into \
                 a new store to continue with a new key",
            ),
            KeyError::Random => f.write_str(
                "the operating system returned no random numbers for keys: try again later",
            ),
        }
    }
}

impl error::Error for KeyError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            KeyError::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
