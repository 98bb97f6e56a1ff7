//! Range deletes of a batch, written out as deletes of the keys there are. Under the commit lock,
//! so that it is known which keys those are; the log holds the deletes, so that replay does not
//! depend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use super::core::Core;
use crate::batch::{Batch, Change};
use crate::cursor::MergeCursor;
use crate::error::Result;
use crate::run::Direction;
use crate::types::{Seq, TreeId};

impl Core {
    /// `batch` without range deletes, as of commit `now`.
    pub(crate) fn expand(&self, batch: &Batch, now: Seq) -> Result<Batch> {
        let mut out = Batch::new();
        let mut put: BTreeMap<TreeId, BTreeSet<&[u8]>> = BTreeMap::new();
        for change in batch.ops() {
            match change {
                Change::Put { tree, key, value } => {
                    out.put(tree, key, value);
                    put.entry(tree).or_default().insert(key);
                }
                Change::Delete { tree, key } => out.delete(tree, key),
                Change::DeleteRange { tree, start, end } => {
                    let own = put.entry(tree).or_default();
                    for key in own.iter().filter(|key| (start, end).contains(**key)) {
                        out.delete(tree, key);
                    }
                    self.delete_stored(&mut out, tree, now, start, end)?;
                }
            }
        }
        Ok(out)
    }

    fn delete_stored(
        &self,
        out: &mut Batch,
        tree: TreeId,
        now: Seq,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<()> {
        let stored = self.catalog.tree(tree)?;
        let mut cursor = MergeCursor::new(stored, None, now, start, end, Direction::Forward);
        while cursor.advance()? {
            out.delete(tree, cursor.key());
        }
        Ok(())
    }
}
