//! `local.oplog.rs`: the oplog as a collection that clients read.
//!
//! It is a capped collection of the catalog without stored records of its own: its tree is the one
//! of `follow::seen`, its counts are the totals of the segments, and no operation writes or changes
//! it.

use std::sync::Arc;

use query::{Code, Error, Namespace, Result};
use stdx::sync::Mutex;
use stdx::sync::atomic::AtomicBool;

use crate::collection::{Collection, Core, Counts, Latch, OPLOG};

/// The UUID: the bytes of `local.oplog.rs`, with the bits of a random UUID.
const UUID: [u8; 16] = *b"local.\x4fp\x8fog.rs.0";

/// Database and name.
const NAME: (&str, &str) = ("local", "oplog.rs");

/// The namespace of the oplog.
pub(crate) fn namespace() -> Namespace {
    Namespace {
        db: NAME.0.to_owned(),
        coll: NAME.1.to_owned(),
    }
}

/// The parts of the collection that all its states share, with these counts.
pub(crate) fn core(entries: u64, bytes: u64) -> Arc<Core> {
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Arc::new(Core {
        uuid: UUID,
        records: OPLOG,
        counts: Counts::shown(whole(entries), whole(bytes)),
        latch: Arc::new(Latch::default()),
        dropped: AtomicBool::new(false),
        writes: Arc::default(),
        highest_id: Mutex::new(Vec::new()),
        capped: Arc::new(Latch::default()),
    })
}

impl Collection {
    /// Check that documents of the collection may be written.
    ///
    /// # Errors
    /// `InvalidNamespace` for the oplog and the pre-images.
    pub(crate) fn check_written(&self) -> Result<()> {
        if self.is_oplog() || self.is_images() {
            let message = format!("cannot write to {}", self.ns());
            return Err(Error::new(Code::INVALID_NAMESPACE, message));
        }
        Ok(())
    }

    /// Check that the collection may be changed, renamed or dropped.
    ///
    /// # Errors
    /// `IllegalOperation` for the oplog and the pre-images.
    pub(crate) fn check_changeable(&self) -> Result<()> {
        if self.is_oplog() {
            return Err(fixed("change"));
        }
        if self.is_images() {
            let message = format!("cannot change {}: only the server writes it", self.ns());
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        Ok(())
    }
}

/// The error of an operation on the oplog, by its verb.
pub(crate) fn fixed(verb: &str) -> Error {
    let message = format!("can't {verb} live oplog while replicating");
    Error::new(Code::ILLEGAL_OPERATION, message)
}
