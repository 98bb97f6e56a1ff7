//! Lookup of one document by its `_id`.

use std::sync::Arc;

use bson::RawBson;
use query::Result;

use super::cx::Cx;
use super::item::{Counts, Item, Step};
use super::output::Output;
use crate::collection::Collection;
use crate::examined::Leaf;

/// The lookup of one `_id`.
pub(crate) struct Point {
    id: RawBson,
    collection: Arc<Collection>,
    output: Output,
    leaf: Leaf,
    done: bool,
    counts: Counts,
}

impl Point {
    /// A lookup that has not run yet; `leaf` describes it in the plan.
    pub(crate) fn new(
        id: RawBson,
        collection: Arc<Collection>,
        output: Output,
        leaf: Leaf,
    ) -> Point {
        Point {
            id,
            collection,
            output,
            leaf,
            done: false,
            counts: Counts::default(),
        }
    }

    /// The plan leaf.
    pub(crate) fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The document, at the first call only.
    pub(crate) fn next(&mut self, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        if self.done {
            return Ok(Step::End);
        }
        self.done = true;
        self.counts.works += 1;
        self.counts.keys += 1;
        cx.work()?;
        let record = self
            .collection
            .find_id(cx.snapshot, self.id.as_raw_bson_ref())?;
        let Some(record) = record else {
            return Ok(Step::End);
        };
        let mut scratch = Vec::new();
        let item = self
            .output
            .again(&record, cx, &mut scratch, &mut self.counts)?;
        Ok(match item {
            None => Step::End,
            Some(item) => {
                self.counts.returned += 1;
                Step::Row(item)
            }
        })
    }
}
