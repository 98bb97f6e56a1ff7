//! Default read and write concerns: set by `setDefaultRWConcern`, stored in `config.settings` in
//! MongoDB's shape.

use bson::{Bson, DateTime, Document, doc};
use docdb::{ContentVersion, Op, Store};
use kv::Durability;
use query::{Error, Namespace, Result};
use stdx::sync::{Mutex, RwLock};

use super::clock;
use crate::own;

/// `_id` of the document that stores them.
const KEY: &str = "ReadWriteConcernDefaults";

/// The defaults that a client has set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Defaults {
    /// `defaultReadConcern`.
    pub(crate) read: Option<Document>,
    /// `defaultWriteConcern`.
    pub(crate) write: Option<Document>,
    /// When they were set.
    pub(crate) updated: Option<DateTime>,
}

/// The defaults in use.
#[derive(Default)]
pub(crate) struct Concerns(RwLock<Defaults>, Mutex<Option<ContentVersion>>);

fn settings() -> Namespace {
    Namespace {
        db: "config".to_owned(),
        coll: "settings".to_owned(),
    }
}

impl Concerns {
    /// Read the stored defaults.
    ///
    /// # Errors
    /// Those of storage.
    pub(crate) fn load(store: &Store) -> Result<Concerns> {
        let concerns = Concerns::default();
        concerns.read(store)?;
        Ok(concerns)
    }

    /// Read the stored defaults again if the collection has changed.
    ///
    /// # Errors
    /// Those of storage.
    pub(crate) fn refresh(&self, store: &Store) -> Result<()> {
        let version = store.content_version(&settings());
        if *self.1.lock() == version {
            return Ok(());
        }
        self.read(store)
    }

    fn read(&self, store: &Store) -> Result<()> {
        let version = store.content_version(&settings());
        let op = Op::new(Durability::Interval);
        let found = own::find(store, &op, &settings(), &doc! {"_id": KEY})?;
        if let Some(document) = found.first() {
            let concern = |name| document.get_document(name).ok().cloned();
            *self.0.write() = Defaults {
                read: concern("defaultReadConcern"),
                write: concern("defaultWriteConcern"),
                updated: document.get_datetime("updateWallClockTime").ok().copied(),
            };
        }
        *self.1.lock() = version;
        Ok(())
    }

    /// The defaults in use now.
    pub(crate) fn get(&self) -> Defaults {
        self.0.read().clone()
    }

    /// Whether reads without a concern have the level `majority`.
    pub(crate) fn reads_committed(&self) -> bool {
        let defaults = self.0.read();
        let level = defaults
            .read
            .as_ref()
            .and_then(|concern| concern.get_str("level").ok());
        level == Some("majority")
    }

    /// The default of `w` and of `j`, if set.
    pub(crate) fn write(&self) -> Option<(Option<Bson>, Option<bool>)> {
        let defaults = self.0.read();
        let concern = defaults.write.as_ref()?;
        Some((concern.get("w").cloned(), concern.get_bool("j").ok()))
    }

    /// Set the given defaults; an empty read concern removes the default.
    ///
    /// # Errors
    /// `BadValue` when an empty write concern would unset one, which MongoDB refuses; those of
    /// storage.
    pub(crate) fn set(
        &self,
        store: &Store,
        op: &Op<'_>,
        read: Option<Document>,
        write: Option<Document>,
    ) -> Result<Defaults> {
        let mut defaults = self.0.write();
        let mut next = defaults.clone();
        if let Some(read) = read {
            next.read = Some(read).filter(|read| !read.is_empty());
        }
        if let Some(write) = write {
            if write.is_empty() && next.write.is_some() {
                let message = "The global default write concern cannot be unset once it is set.";
                return Err(Error::new(query::Code::ILLEGAL_OPERATION, message));
            }
            next.write = Some(write).filter(|write| !write.is_empty());
        }
        let now = clock::now();
        next.updated = Some(now);
        let mut kept = doc! {"_id": KEY, "updateWallClockTime": now};
        if let Some(read) = &next.read {
            kept.insert("defaultReadConcern", read.clone());
        }
        if let Some(write) = &next.write {
            kept.insert("defaultWriteConcern", write.clone());
        }
        own::put(store, op, &settings(), &[kept])?;
        *defaults = next.clone();
        Ok(next)
    }
}
