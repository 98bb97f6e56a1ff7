//! Lookups of one `_id` by the names that MongoDB has for them.
//!
//! `{_id: value}` and nothing else MongoDB answers without its planner, by a plan of one stage:
//! `EXPRESS_IXSCAN`, `EXPRESS_CLUSTERED_IXSCAN`, for writes `EXPRESS_UPDATE` and `EXPRESS_DELETE`
//! (manual, Explain Results). Where more is asked than that - a batch size, an upsert, a projection
//! that does more than choose fields - it is `IDHACK`. Here both are the same lookup.

use std::sync::Arc;

use bson::Document;
use query::projection::Projection;

use super::build::Purpose;
use crate::collection::Collection;
use crate::examined::Leaf;

/// The stage of a write.
pub(crate) type Write = &'static str;

pub(crate) const UPDATE: Write = "EXPRESS_UPDATE";
pub(crate) const DELETE: Write = "EXPRESS_DELETE";

/// A lookup of one `_id` that MongoDB would do without planning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Express {
    pub(crate) clustered: bool,
    /// What is done with the document, when it is not returned.
    pub(crate) write: Option<Write>,
}

impl Express {
    /// Of a collection, to return the document.
    pub(crate) fn read(collection: &Collection) -> Express {
        Express {
            clustered: collection.is_clustered(),
            write: None,
        }
    }

    /// Of a collection, to write.
    pub(crate) fn write(collection: &Collection, write: Write) -> Express {
        Express {
            write: Some(write),
            ..Express::read(collection)
        }
    }

    /// The stage that finds the document.
    pub(crate) fn scan(self) -> &'static str {
        match self.clustered {
            true => "EXPRESS_CLUSTERED_IXSCAN",
            false => "EXPRESS_IXSCAN",
        }
    }
}

impl Purpose {
    /// The express plan of a lookup for this purpose, if it is none of more than that.
    pub(crate) fn express(&self) -> Option<Express> {
        let tail = &self.tail;
        let chooses = tail.projection.as_deref().is_none_or(Projection::is_simple);
        let dotted = |spec: &Document| spec.keys().any(|name| name.contains('.'));
        let plain = tail.skip == 0
            && !tail.return_key
            && !tail.record_id
            && !self.tailable
            && chooses
            && !self.projection.as_ref().is_some_and(dotted);
        self.express.filter(|_| plain)
    }

    /// Where a lookup of an `_id` reads.
    pub(super) fn point(&self, collection: &Collection) -> Leaf {
        match self.express() {
            None => Leaf::plain("IDHACK"),
            Some(express) => Leaf {
                name: express.scan(),
                index: collection.id_index().map(Arc::clone),
                write: express.write,
            },
        }
    }
}
