//! Capped collections: the oldest documents beyond the bounds are removed.
//!
//! Writers of a capped collection run one after another, from before the beginning of their engine
//! transaction until its end, so that the counts they see are the committed ones.

use bson::RawDocument;
use kv::{Direction, KeyRange};
use query::{Code, Error, Result};

use super::writer::Writer;
use crate::collection::Collection;
use crate::error;
use crate::txn::Work;

/// Number of documents examined at a time.
const CHUNK: usize = 64;

impl Work<'_> {
    /// Become the only writer of a capped collection until this work ends. Does nothing for other
    /// collections. Call it before the engine transaction begins.
    pub(crate) fn hold_capped(&mut self, collection: &Collection) -> Result<()> {
        if !collection.is_capped() {
            return Ok(());
        }
        if self.is_multi_document() {
            let message = format!(
                "Collection '{}' is a capped collection. Writes in transactions are not allowed \
                 on capped collections.",
                collection.ns()
            );
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                message,
            ));
        }
        debug_assert!(
            !self.is_begun(),
            "engines with one writer would wait for us"
        );
        let alone = collection
            .core()
            .capped
            .alone(None, &|| self.check_ends())?;
        if let Some(alone) = alone {
            self.keep(alone);
        }
        Ok(())
    }
}

impl Writer<'_, '_> {
    /// Remove the oldest documents of a capped collection until it is within its bounds.
    pub(crate) fn evict(&mut self, collection: &Collection) -> Result<()> {
        let Some(bounds) = collection.options().capped else {
            return Ok(());
        };
        loop {
            let (documents, bytes) = self.work().counts(collection);
            let full = bounds.size < bytes || bounds.max.is_some_and(|max| max < documents);
            if !full || documents <= 1 {
                return Ok(());
            }
            let mut oldest: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            {
                let snapshot = self.work().snapshot()?;
                let cursor =
                    snapshot.cursor(collection.records(), KeyRange::ALL, Direction::Forward);
                let mut cursor = cursor.map_err(error::engine)?;
                while oldest.len() < CHUNK && cursor.advance().map_err(error::engine)? {
                    oldest.push((cursor.key().to_vec(), cursor.value().to_vec()));
                }
            }
            if oldest.is_empty() {
                return Ok(());
            }
            for (key, bytes) in oldest {
                let (documents, size) = self.work().counts(collection);
                let full = bounds.size < size || bounds.max.is_some_and(|max| max < documents);
                if !full || documents <= 1 {
                    return Ok(());
                }
                let record = collection.record(&key)?;
                self.remove(collection, &record, RawDocument::from_bytes(&bytes)?)?;
            }
        }
    }
}
