//! The parameters of the whole replica set, set by `setClusterParameter` and stored in
//! `config.clusterParameters` in MongoDB's shape.
//!
//! There is one: `changeStreamOptions`, with the age at which pre-images expire.

use std::time::Duration;

use bson::{Bson, Document, Timestamp, doc};
use docdb::{ContentVersion, Op, Store};
use kv::Durability;
use query::{Namespace, Result};
use stdx::sync::{Mutex, RwLock};

use crate::own;

/// The name of the parameter, and `_id` of the document that stores it.
pub(crate) const CHANGE_STREAMS: &str = "changeStreamOptions";

/// `changeStreamOptions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChangeStreams {
    /// `preAndPostImages.expireAfterSeconds`; `None` for `off`.
    pub(crate) seconds: Option<i64>,
    /// `clusterParameterTime`: when it was set; zero before.
    time: Option<Timestamp>,
}

/// The parameters in use.
#[derive(Default)]
pub(crate) struct ClusterParameters(RwLock<ChangeStreams>, Mutex<Option<ContentVersion>>);

fn collection() -> Namespace {
    Namespace {
        db: "config".to_owned(),
        coll: "clusterParameters".to_owned(),
    }
}

impl ChangeStreams {
    /// As `getClusterParameter` shows it and it is stored.
    pub(crate) fn to_document(self) -> Document {
        let zero = Timestamp {
            time: 0,
            increment: 0,
        };
        let seconds = self.seconds.map_or_else(|| Bson::from("off"), Bson::Int64);
        doc! {
            "_id": CHANGE_STREAMS,
            "clusterParameterTime": self.time.unwrap_or(zero),
            "preAndPostImages": { "expireAfterSeconds": seconds },
        }
    }

    /// What is stored. Clients may write the collection: what is no age counts as `off`.
    fn of(stored: &Document) -> ChangeStreams {
        let images = stored.get_document("preAndPostImages").ok();
        let seconds = images.and_then(|images| images.get_i64("expireAfterSeconds").ok());
        ChangeStreams {
            seconds: seconds.filter(|seconds| 0 < *seconds),
            time: stored.get_timestamp("clusterParameterTime").ok(),
        }
    }

    /// Let it take effect.
    fn apply(self, store: &Store) {
        let seconds = self.seconds.and_then(|seconds| u64::try_from(seconds).ok());
        store
            .tuning()
            .set_image_age(seconds.map(Duration::from_secs));
    }
}

impl ClusterParameters {
    /// Read the stored parameters.
    ///
    /// # Errors
    /// Those of storage.
    pub(crate) fn load(store: &Store) -> Result<ClusterParameters> {
        let parameters = ClusterParameters::default();
        parameters.refresh(store)?;
        Ok(parameters)
    }

    /// Read the stored parameters again if the collection has changed: another member has set them.
    ///
    /// # Errors
    /// Those of storage.
    pub(crate) fn refresh(&self, store: &Store) -> Result<()> {
        let version = store.content_version(&collection());
        if *self.1.lock() == version {
            return Ok(());
        }
        let op = Op::new(Durability::Interval);
        let found = own::find(store, &op, &collection(), &doc! { "_id": CHANGE_STREAMS })?;
        let options = found.first().map(ChangeStreams::of).unwrap_or_default();
        options.apply(store);
        *self.0.write() = options;
        *self.1.lock() = version;
        Ok(())
    }

    /// `changeStreamOptions`.
    pub(crate) fn change_streams(&self) -> ChangeStreams {
        *self.0.read()
    }

    /// Set the age at which pre-images expire, in seconds; `None` lets them expire with the oplog.
    ///
    /// # Errors
    /// Those of storage.
    pub(crate) fn set_image_age(
        &self,
        (store, op): (&Store, &Op<'_>),
        seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<()> {
        let mut options = self.0.write();
        let next = ChangeStreams {
            seconds,
            time: Some(now),
        };
        own::put(store, op, &collection(), &[next.to_document()])?;
        next.apply(store);
        *options = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_and_other_values_are_off() {
        let options = ChangeStreams {
            seconds: Some(100),
            time: Some(Timestamp {
                time: 5,
                increment: 1,
            }),
        };
        assert_eq!(ChangeStreams::of(&options.to_document()), options);
        for images in [
            Bson::Null,
            Bson::from(doc! { "expireAfterSeconds": "off" }),
            Bson::from(doc! { "expireAfterSeconds": -1_i64 }),
            Bson::from(doc! { "expireAfterSeconds": [] }),
        ] {
            let stored = doc! { "_id": CHANGE_STREAMS, "preAndPostImages": images };
            assert_eq!(ChangeStreams::of(&stored), ChangeStreams::default());
        }
    }
}
