//! The beginning of a copy: the former data are removed, and the catalog of the source is made.

use std::collections::VecDeque;

use bson::{RawDocument, RawDocumentBuf, Uuid};
use kv::Durability;
use query::{Code, Error, Result};

use super::state::{Copying, Left, Phase};
use super::{Listed, Origin, Part};
use crate::catalog::Stored as StoredCollection;
use crate::error;
use crate::oplog::entry::OpTime;
use crate::oplog::{Replayed, is_replicated, mark, spec_in_full};
use crate::record::RecordId;
use crate::replica::append::check;
use crate::replica::before;
use crate::replica::role::Replica;
use crate::txn::Op;

/// Collections whose last record numbers are stored in one transaction.
const TOGETHER: usize = 256;

/// A collection or a view of the source.
struct Parsed {
    stored: StoredCollection,
    last: i64,
}

impl Replica<'_> {
    /// Begin a copy: remove all replicated data of this follower, and make the collections of
    /// `origin` without their documents. `label` is for the caller, at most some hundred bytes.
    ///
    /// Undo records are not kept from now on: the caller keeps them again once it is complete.
    ///
    /// # Errors
    /// `IllegalOperation` for a primary; an origin that is malformed, before anything is removed;
    /// what the engine cannot have; the operation must end; errors of the engine. The copy must
    /// restart then.
    pub fn begin_copy(&self, op: &Op<'_>, label: &RawDocument, origin: &Origin) -> Result<()> {
        let locks = self.locks();
        let _appends = locks.appends.lock();
        let _applies = locks.applies.lock();
        self.check_follows("copy another member")?;
        let at = check(OpTime::NONE, &origin.entry)?;
        let parsed: Result<Vec<Parsed>> = origin.catalog.iter().map(parse).collect();
        let parsed = parsed?;
        let copy = |phase, left| Copying {
            phase,
            label: label.to_owned(),
            since: at,
            floor: OpTime::NONE,
            left,
        };
        self.keep_undo(op, false)?;
        self.put_copy(op, copy(Phase::Begun, VecDeque::new()))?;
        self.reset(op, before(at.ts))?;
        self.put(op, &[(at, &origin.entry)])?;
        self.mark_origin(op, at)?;
        {
            let _replayed = Replayed::begin(at);
            let is_view = |parsed: &&Parsed| parsed.stored.uuid.is_none();
            let collections = parsed.iter().filter(|parsed| !is_view(parsed));
            for parsed in collections.chain(parsed.iter().filter(is_view)) {
                let ns = &parsed.stored.ns;
                self.make_collection(op, &parsed.stored)
                    .map_err(|error| error.within(format_args!("cannot create {ns}")))?;
            }
        }
        let mut left = VecDeque::new();
        for some in parsed.chunks(TOGETHER) {
            self.reserve_records(op, at, some)?;
        }
        for Parsed { stored, last } in &parsed {
            let Some(uuid) = stored.uuid else { continue };
            let part = Part::Collection(Uuid::from_bytes(uuid));
            match (stored.options.clustered.is_some(), *last) {
                (true, _) => left.push_back(Left::new(part, Vec::new())),
                // Y3: there was nothing when the copy began.
                (false, 0) => {}
                (false, last) => left.push_back(Left::new(part, RecordId::number(last).key())),
            }
        }
        left.make_contiguous().sort_by_key(|left| left.part);
        left.push_back(Left::new(Part::Sessions, Vec::new()));
        left.push_back(Left::new(Part::Images, Vec::new()));
        self.put_copy(op, copy(Phase::Copying, left))
    }

    /// The data are those of the first entry.
    fn mark_origin(&self, op: &Op<'_>, at: OpTime) -> Result<()> {
        let _turn = self.store.turn(op)?;
        let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
        mark::put(txn.as_mut(), self.store.trees().catalog, at)?;
        txn.commit(Durability::Group).map_err(error::engine)?;
        self.log.applied().set(Some(at));
        Ok(())
    }

    fn make_collection(&self, op: &Op<'_>, stored: &StoredCollection) -> Result<()> {
        let (store, ns, options) = (self.store, &stored.ns, stored.options.clone());
        let Some(uuid) = stored.uuid else {
            return store.create(op, ns, options);
        };
        let uuid = Uuid::from_bytes(uuid);
        store.create_again(op, ns, options, (uuid, stored.temporary))?;
        // The build of an index that is not ready ends with an entry.
        let ready = |index: &&crate::catalog::StoredIndex| index.ready && !index.spec.is_id();
        let indexes = stored.indexes.iter().filter(ready);
        let specs: Result<Vec<RawDocumentBuf>> = indexes
            .map(|index| spec_in_full(&index.spec, &stored.options))
            .collect();
        let specs = specs?;
        if !specs.is_empty() {
            store.create_indexes_raw(op, ns, &specs)?;
        }
        Ok(())
    }

    /// Give numbers to new records that are higher than those that are copied (Y3).
    fn reserve_records(&self, op: &Op<'_>, at: OpTime, some: &[Parsed]) -> Result<()> {
        self.store.write(op, &mut |work| {
            work.apply_to(at);
            for Parsed { stored, last } in some.iter().filter(|parsed| 0 < parsed.last) {
                let Some(collection) = work.collection(&stored.ns)? else {
                    continue;
                };
                collection.core().counts.skip_records(*last);
                work.count(&collection, 0, 0, *last);
            }
            work.txn().map(|_| ())
        })
    }
}

/// A collection or a view as the source has sent it.
fn parse(listed: &Listed) -> Result<Parsed> {
    let stored = StoredCollection::from_bytes(&listed.stored)?;
    // Half of the numbers are left for what is inserted.
    if !is_replicated(&stored.ns) || !(0..1 << 62).contains(&listed.last) {
        let message = format!("{} is no collection that can be copied", stored.ns);
        return Err(Error::new(Code::BAD_VALUE, message));
    }
    Ok(Parsed {
        stored,
        last: listed.last,
    })
}
