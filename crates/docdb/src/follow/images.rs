//! Pre-images beside the oplog (see `oplog::image`): reading and expiring them.
//!
//! A pre-image expires with its oplog entry, and before that once it is older than the limit
//! ([`crate::Tuning::set_image_age`]). Those of a collection are in the order of their entries, so
//! a pass reads them up to the first one that has not expired, and seeks to the next collection.

use bson::{DateTime, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use kv::{Cursor, Direction, KeyRange};
use query::Result;

use crate::collection::Collection;
use crate::entries::Writer;
use crate::error;
use crate::oplog::image;
use crate::record::RecordId;
use crate::store::Store;
use crate::txn::Op;

/// Pre-images that one transaction removes.
const BATCH: usize = 256;

/// Which pre-images have expired.
struct Expired {
    /// Entries up to this time were removed.
    lost: Timestamp,
    /// Those written before are too old.
    before: Option<DateTime>,
}

impl Expired {
    fn has(&self, time: Timestamp, wall: DateTime) -> bool {
        time <= self.lost || self.before.is_some_and(|before| wall < before)
    }
}

impl Store {
    /// The document right before the operation with an index in the entry of a time; `None` if it
    /// was not kept, or has expired.
    ///
    /// # Errors
    /// Errors of the engine; a damaged pre-image.
    pub(crate) fn image_before(
        &self,
        uuid: Uuid,
        time: Timestamp,
        index: i64,
    ) -> Result<Option<RawDocumentBuf>> {
        let Some(images) = self.collection(&image::namespace()) else {
            return Ok(None);
        };
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let found = snapshot.get(images.records(), &image::key(uuid, time, index)?);
        let found = found.map_err(error::engine)?;
        found.map(|stored| image::document(&stored)).transpose()
    }

    /// Remove the pre-images that have expired by `op.now`; returns their number.
    ///
    /// # Errors
    /// The operation must end; errors of the engine; a damaged pre-image.
    pub fn expire_images(&self, op: &Op<'_>) -> Result<u64> {
        let (Some(oplog), Some(images)) = (self.oplog(), self.collection(&image::namespace()))
        else {
            return Ok(0);
        };
        let age = self.tuning().image_age();
        let millis = |age: std::time::Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let before = age.map(|age| op.now.timestamp_millis().saturating_sub(millis(age)));
        let expired = Expired {
            lost: oplog.segments().lost(),
            before: before.map(DateTime::from_millis),
        };
        let mut removed = 0;
        // Most passes find none, and need no snapshot if there are no pre-images at all.
        while images.count() != 0 {
            self.check_open(op)?;
            let found = self.expired_images(&images, &expired)?;
            let gone = self.remove_images(op, &found)?;
            removed += gone;
            if gone == 0 {
                break;
            }
        }
        Ok(removed)
    }

    /// The keys of some that have expired, at most [`BATCH`].
    fn expired_images(&self, images: &Collection, expired: &Expired) -> Result<Vec<Vec<u8>>> {
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let cursor = snapshot.cursor(images.records(), KeyRange::ALL, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        let mut found = Vec::new();
        let mut more = cursor.advance().map_err(error::engine)?;
        while more && found.len() < BATCH {
            let (uuid, time, wall) = image::origin(cursor.value())?;
            more = if expired.has(time, wall) {
                found.push(cursor.key().to_vec());
                cursor.advance().map_err(error::engine)?
            } else {
                pass(cursor.as_mut(), uuid)?
            };
        }
        Ok(found)
    }

    fn remove_images(&self, op: &Op<'_>, keys: &[Vec<u8>]) -> Result<u64> {
        if keys.is_empty() {
            return Ok(0);
        }
        self.write(op, &mut |work| {
            let Some(images) = work.images()? else {
                return Ok(0);
            };
            let mut removed = 0;
            let mut writer = Writer::new(work);
            for key in keys {
                let found = writer.work().snapshot()?.get(images.records(), key);
                if let Some(stored) = found.map_err(error::engine)? {
                    let stored = RawDocument::from_bytes(&stored)?;
                    writer.remove(&images, &RecordId::clustered(key), stored)?;
                    removed += 1;
                }
            }
            Ok(removed)
        })
    }
}

/// Move behind the pre-images of a collection. False if none follows.
fn pass(cursor: &mut dyn Cursor, uuid: Uuid) -> Result<bool> {
    let end = Timestamp {
        time: u32::MAX,
        increment: u32::MAX,
    };
    let end = image::key(uuid, end, i64::MAX)?;
    cursor.seek(&end).map_err(error::engine)
}
