//! Backups of a store: taken while it is read and written, verified without restoring, restored.
//!
//! A backup is a directory, or one tar archive with the same names:
//!
//! ```text
//! files/...         the files of a copy of the store, compressed in frames or as they are
//! backup.manifest   what they are: engine, time, codec, and the size and digest of each
//! ```
//!
//! - B1. The manifest is written last, after all files are durable, and atomically. A backup
//!   without a valid manifest is incomplete and is refused.
//! - B2. Nothing that existed before is overwritten, neither by a backup nor by a restore.
//! - B3. Every byte of a backup is covered by a digest: a changed, missing or additional byte is
//!   found and its file is named.
//! - B4. What is read from a backup is not trusted: paths stay below the directory of the restored
//!   store, and every count and length is bounded before memory is allocated for it.
//! - B5. An increment leaves out what its base has, another backup of the store beside it; the
//!   manifest names that by its digest. A base that is missing or another one is named.
//!
//! An oplog archive (`oplog`) has the entries that lead from a backup to a later time.
//!
//! The stages of a backup: the engine passes its files on ([`kv::BackupSink`]), `sink` throttles,
//! digests and compresses them, a target (`directory`, `archive`) stores them. [`Source`] reads
//! both kinds.

mod archive;
mod chain;
mod codec;
mod copy;
mod directory;
mod entry;
mod increment;
mod manifest;
mod mark;
mod name;
mod oplog;
mod owner;
mod pieces;
mod pinned;
mod place;
mod restore;
mod sink;
mod slice;
mod source;
mod stream;
mod take;
mod target;
mod throttle;
mod verify;

pub use codec::Codec;
pub use manifest::{Base, FILE as MANIFEST, FORMAT, FileEntry, Manifest, OperationTime};
pub use mark::{FILE as MARK, Mark};
pub use oplog::{ArchivedEntries, OplogArchive, OplogWriter};
pub use owner::Visit;
pub use pieces::Pieces;
pub use place::{ARCHIVE_SUFFIX, Place};
pub use restore::{restore, restore_and};
pub use slice::{ArchivedEntry, Position, SLICE_BYTES, SliceHeader, digest as entry_digest};
pub use source::Source;
pub use stream::{Received, stream};
pub use take::{Facts, take};
pub use throttle::{Clock, Monotonic, Throttle};
pub use verify::{Finding, Problem, Report, verify};
