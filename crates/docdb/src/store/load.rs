//! Loading a store: reads the catalog and drops the trees that a crash left behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bson::Timestamp;
use kv::{Direction, Durability, Engine, ErrorKind, KeyRange, Snapshot, TreeId, TreeOptions};
use query::filter::Filter;
use query::settings::Settings;
use query::{Namespace, Result};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use super::{Options, Store, Trees, Tuning};
use crate::catalog::{self, Catalog, Named, Stored, StoredIndex};
use crate::collate;
use crate::collection::{COUNTS, Collection, CollectionOptions, Core, Counts, Latch};
use crate::error;
use crate::index::{Index, Parts};
use crate::intent::Intents;
use crate::key::Collate;
use crate::limits::{INDEX_FIELDS_MAX, INDEX_KEY_MAX, INDEX_KEY_SLACK};
use crate::oplog::entry::OpTime;
use crate::oplog::{Log, Undo, mark, segment, undo};
use crate::turn::Turns;

/// Name of the tree of sessions.
const SESSIONS: &str = "_sessions";

impl Store {
    /// Load the store in an engine, created if the engine is empty; also returns its temporary
    /// collections.
    ///
    /// # Errors
    /// Errors of the engine; a catalog that cannot be read.
    pub(crate) fn load(
        engine: Arc<dyn Engine>,
        options: Options,
        parts: super::Parts,
    ) -> Result<(Store, Vec<Namespace>)> {
        let before = engine.trees().map_err(error::engine)?;
        let trees = Trees {
            catalog: ensure(engine.as_ref(), catalog::TREE)?,
            counts: ensure(engine.as_ref(), COUNTS)?,
            sessions: ensure(engine.as_ref(), SESSIONS)?,
        };
        if options.foreign_oplog {
            discard_oplog(engine.as_ref(), trees.catalog, &before)?;
        }
        let oplog = match options.oplog && options.replica_set.is_some() {
            true => Some(open_oplog(&engine, &options, trees.catalog, &before)?),
            false => {
                // What is changed from now on would be missing in it.
                discard_oplog(engine.as_ref(), trees.catalog, &before)?;
                None
            }
        };
        let store = Store {
            turns: Turns::of(engine.as_ref()),
            engine,
            tuning: Tuning::new(&options),
            options,
            trees,
            oplog,
            catalog: ArcSwap::from_pointee(Catalog::default()),
            changes: Mutex::new(()),
            undropped: Mutex::new(Vec::new()),
            intents: Intents::default(),
            commits: AtomicU64::new(0),
            reading: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            figures: super::WorkFigures::default(),
            parts,
        };
        if let (Some(oplog), Some(second)) = (store.oplog(), store.reserved_time()?) {
            oplog.begin_after(second);
        }
        let temporary = store.load_catalog()?;
        store.show_oplog();
        Ok((store, temporary))
    }

    /// Read the catalog; returns the names of the temporary collections.
    fn load_catalog(&self) -> Result<Vec<Namespace>> {
        self.mark_unknown()?;
        let mut temporary = Vec::new();
        let mut known: BTreeSet<String> =
            [catalog::TREE, COUNTS, SESSIONS].map(str::to_owned).into();
        let mut all = Vec::new();
        {
            let snapshot = self.engine.begin_read().map_err(error::engine)?;
            let cursor = snapshot.cursor(self.trees.catalog, KeyRange::ALL, Direction::Forward);
            let mut cursor = cursor.map_err(error::engine)?;
            while cursor.advance().map_err(error::engine)? {
                if cursor.key().starts_with(b"c") {
                    all.push(Stored::from_bytes(cursor.value())?);
                }
            }
            drop(cursor);
            let mut catalog = Catalog::default();
            for stored in all {
                let ns = stored.ns.clone();
                if stored.temporary {
                    temporary.push(ns.clone());
                }
                known.extend(trees_of(&stored));
                let named = self.load_named(snapshot.as_ref(), stored)?;
                catalog.insert(ns, named);
            }
            self.set_catalog(catalog);
        }
        for stored in self.kept_formers()? {
            known.extend(trees_of(&stored));
        }
        let all = self.engine.trees().map_err(error::engine)?;
        let ours = |name: &String| name.starts_with("c.") || name.starts_with("i.");
        self.drop_named(all.into_iter().filter(|n| ours(n) && !known.contains(n)));
        Ok(temporary)
    }

    /// The collection or view that a document of the catalog describes.
    ///
    /// # Errors
    /// Errors of the engine; what cannot be read.
    pub(crate) fn load_named(&self, snapshot: &dyn Snapshot, stored: Stored) -> Result<Named> {
        Ok(match stored.uuid {
            None => Named::View(Arc::new(stored.options)),
            Some(uuid) => Named::Collection(Arc::new(self.load_one(snapshot, stored, uuid)?)),
        })
    }

    /// The catalog's documents in all undo records.
    ///
    /// # Errors
    /// Errors of the engine; records that cannot be decoded.
    pub(crate) fn kept_formers(&self) -> Result<Vec<Stored>> {
        let tree = self.oplog().and_then(|oplog| oplog.undo().tree());
        let Some(tree) = tree else {
            return Ok(Vec::new());
        };
        let all = (OpTime::NONE.ts, END);
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let formers = Undo::formers(snapshot.as_ref(), tree, all)?;
        formers
            .iter()
            .map(|bytes| Stored::from_bytes(bytes))
            .collect()
    }

    fn load_one(
        &self,
        snapshot: &dyn Snapshot,
        stored: Stored,
        uuid: [u8; 16],
    ) -> Result<Collection> {
        let records = self.open_tree(&Stored::records_tree(&uuid))?;
        let counts = Counts::load(snapshot, self.trees.counts, &uuid)?;
        let core = Arc::new(self.core(uuid, records, counts));
        let mut indexes = Vec::new();
        for index in stored.indexes {
            let tree = self.open_tree(&Stored::index_tree(&uuid, index.number))?;
            if index.spec.is_id() {
                *core.highest_id.lock() = last_key(snapshot, tree)?;
            }
            let bits = self.multikey_bits(snapshot, &uuid, index.number)?;
            indexes.push(Arc::new(self.index(index, tree, &stored.options, bits)?));
        }
        self.assemble(stored.ns, stored.options, indexes, core)
    }

    /// Build a collection from its parts.
    pub(crate) fn assemble(
        &self,
        ns: Namespace,
        options: CollectionOptions,
        indexes: Vec<Arc<Index>>,
        core: Arc<Core>,
    ) -> Result<Collection> {
        let collation = self.collation(options.collation.as_ref())?;
        let validator = match &options.validator {
            None => None,
            Some(validator) => {
                let mut settings = Settings::default();
                if let Some(collation) = &options.collation {
                    settings.collator = collate::collator(collation)?;
                }
                Some(Filter::parse(validator, &settings)?)
            }
        };
        Ok(Collection::new(ns, options, indexes, core, collation).with_validator(validator))
    }

    /// Build the part that all states of a collection share.
    pub(crate) fn core(&self, uuid: [u8; 16], records: TreeId, counts: Counts) -> Core {
        Core {
            uuid,
            records,
            counts,
            latch: Arc::new(Latch::default()),
            dropped: AtomicBool::new(false),
            writes: Arc::default(),
            highest_id: Mutex::new(Vec::new()),
            capped: Arc::new(Latch::default()),
        }
    }

    /// Build an index from its stored form and its tree.
    pub(crate) fn index(
        &self,
        stored: StoredIndex,
        tree: TreeId,
        options: &CollectionOptions,
        multikey: Vec<u32>,
    ) -> Result<Index> {
        let clustered = options.clustered.is_some();
        let parts = Parts {
            number: stored.number,
            tree,
            collation: self.collation(stored.spec.collation.as_ref())?,
            partial: partial(&stored.spec)?,
            clustered,
            multikey,
            ready: stored.ready,
            key_limit: self.key_limit(clustered),
            since: i64::try_from(stdx::time::wall().as_millis()).unwrap_or(0),
        };
        Index::new(stored.spec, parts)
    }

    /// The longest `_id` of a new document in a clustered collection. A follower stores what its
    /// primary has accepted, if its engine can.
    pub(crate) fn clustered_limit(&self) -> usize {
        let own = self.key_limit(true);
        if self.is_follower() {
            return own;
        }
        own.min(self.tuning().key_max().saturating_sub(INDEX_KEY_SLACK) / 2)
    }

    /// The longest key of an index; in a clustered collection half of the engine's limit, since the
    /// record after it may be as long.
    pub(crate) fn key_limit(&self, clustered: bool) -> usize {
        let most = self.engine.capabilities().limits.key_max - INDEX_KEY_SLACK;
        INDEX_KEY_MAX.min(if clustered { most / 2 } else { most })
    }

    fn multikey_bits(
        &self,
        snapshot: &dyn Snapshot,
        uuid: &[u8; 16],
        number: u32,
    ) -> Result<Vec<u32>> {
        // The additional word records whether keys were truncated.
        let mut bits = vec![0; INDEX_FIELDS_MAX + 1];
        let (start, end) = catalog::multikey_range(uuid);
        let range = KeyRange::half_open(&start, &end);
        let cursor = snapshot.cursor(self.trees.catalog, range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        while cursor.advance().map_err(error::engine)? {
            if let Some((index, field, part)) = catalog::read_multikey(cursor.key())
                && index == number
                && let Some(bits) = bits.get_mut(usize::from(field))
            {
                *bits |= 1_u32.checked_shl(part.into()).unwrap_or(0);
            }
        }
        Ok(bits)
    }

    fn collation(&self, spec: Option<&bson::Document>) -> Result<Option<Arc<dyn Collate>>> {
        let collator = spec.map_or(Ok(None), collate::collator)?;
        Ok(collator.map(|collator| collator as Arc<dyn Collate>))
    }

    pub(super) fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.engine.open_tree(name).map_err(error::engine)
    }
}

/// The last time.
const END: Timestamp = Timestamp {
    time: u32::MAX,
    increment: u32::MAX,
};

/// The trees of a collection; none of a view.
fn trees_of(stored: &Stored) -> Vec<String> {
    let Some(uuid) = &stored.uuid else {
        return Vec::new();
    };
    let indexes = stored.indexes.iter();
    let indexes = indexes.map(|index| Stored::index_tree(uuid, index.number));
    indexes.chain([Stored::records_tree(uuid)]).collect()
}

/// Open the oplog of a store with these trees.
fn open_oplog(
    engine: &Arc<dyn Engine>,
    options: &Options,
    catalog: TreeId,
    before: &[String],
) -> Result<Log> {
    let mark = {
        let snapshot = engine.begin_read().map_err(error::engine)?;
        mark::read(snapshot.as_ref(), catalog)?
    };
    let used = !before.is_empty();
    let log = Log::open(engine.as_ref(), (options.oplog_limits, used), mark)?;
    if options.follower && mark.is_none() {
        let last = log.last_entry();
        let mut txn = engine.begin_write().map_err(error::engine)?;
        mark::put(txn.as_mut(), catalog, last)?;
        txn.commit(Durability::Group).map_err(error::engine)?;
        log.applied().set(Some(last));
    }
    Ok(log)
}

/// Remove the oplog, and the mark of what of it is applied.
fn discard_oplog(engine: &dyn Engine, catalog: TreeId, before: &[String]) -> Result<()> {
    let mark = {
        let snapshot = engine.begin_read().map_err(error::engine)?;
        mark::read(snapshot.as_ref(), catalog)?
    };
    if mark.is_some() {
        let mut txn = engine.begin_write().map_err(error::engine)?;
        mark::remove(txn.as_mut(), catalog)?;
        txn.commit(Durability::Group).map_err(error::engine)?;
    }
    if before.iter().any(|tree| tree == undo::TREE) {
        engine.drop_tree(undo::TREE).map_err(error::engine)?;
    }
    segment::discard(engine, before)
}

/// Parse the filter of a partial index.
fn partial(spec: &crate::index::IndexSpec) -> Result<Option<Filter>> {
    let Some(filter) = &spec.partial else {
        return Ok(None);
    };
    let mut settings = Settings::default();
    if let Some(collation) = &spec.collation {
        settings.collator = collate::collator(collation)?;
    }
    Filter::parse(filter, &settings).map(Some)
}

fn ensure(engine: &dyn Engine, name: &str) -> Result<TreeId> {
    match engine.open_tree(name) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let options = TreeOptions::default();
            engine.create_tree(name, &options).map_err(error::engine)
        }
        other => other.map_err(error::engine),
    }
}

/// The highest key of a tree; empty for an empty tree.
fn last_key(snapshot: &dyn Snapshot, tree: TreeId) -> Result<Vec<u8>> {
    let cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Backward);
    let mut cursor = cursor.map_err(error::engine)?;
    let found = cursor.advance().map_err(error::engine)?;
    Ok(if found {
        cursor.key().to_vec()
    } else {
        Vec::new()
    })
}
