//! MongoDB's plan names for lookups of one `_id`.
//!
//! MongoDB answers a plain `{_id: value}` without its planner, by a plan of one stage:
//! `EXPRESS_IXSCAN`, `EXPRESS_CLUSTERED_IXSCAN`, for writes `EXPRESS_UPDATE` and `EXPRESS_DELETE`
//! (manual, Explain Results). With anything more - a batch size, an upsert, a projection that does
//! more than select fields - the plan is `IDHACK`. Here both are the same lookup.

use std::sync::Arc;

use bson::Document;
use query::projection::Projection;

use super::build::Purpose;
use crate::collection::Collection;
use crate::examined::Leaf;

/// Name of the stage of a write.
pub(crate) type Write = &'static str;

pub(crate) const UPDATE: Write = "EXPRESS_UPDATE";
pub(crate) const DELETE: Write = "EXPRESS_DELETE";

/// A lookup of one `_id` that MongoDB would do without planning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Express {
    pub(crate) clustered: bool,
    /// The write stage, if the document is written and not returned.
    pub(crate) write: Option<Write>,
}

impl Express {
    /// A lookup that returns the document.
    pub(crate) fn read(collection: &Collection) -> Express {
        Express {
            clustered: collection.is_clustered(),
            write: None,
        }
    }

    /// A lookup that writes the document.
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
    /// The express plan of a lookup; `None` if more than a plain lookup is requested.
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

    /// The plan leaf of a lookup of an `_id`.
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
