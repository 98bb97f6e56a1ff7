//! A cursor over a list built when the cursor was opened: collections, indexes, results of bulk
//! writes.

use std::vec;

use bson::RawDocumentBuf;
use query::{Namespace, Result};

use super::batch::{Batch, Collector};
use super::get_more::GetMore;
use super::open::{Cursor, Next};
use crate::store::Store;
use crate::txn::Op;

/// Bytes of a document in addition to its own.
const DOCUMENT: usize = 64;

/// The rest of a list.
struct ListCursor {
    rest: vec::IntoIter<RawDocumentBuf>,
    pending: Option<RawDocumentBuf>,
}

impl ListCursor {
    fn take(&mut self, wanted: u64) -> Next {
        let mut collector = Collector::new(wanted, self.pending.take());
        while collector.left() > 0 {
            match self.rest.next() {
                Some(document) => collector.place(document),
                None => break,
            }
        }
        let (documents, pending) = collector.finish();
        self.pending = pending;
        let over = self.pending.is_none() && self.rest.len() == 0;
        Next::of(documents, over)
    }
}

impl Cursor for ListCursor {
    fn more(&mut self, _: &Store, _: &Op<'_>, request: &GetMore) -> Result<Next> {
        Ok(self.take(request.wanted()))
    }

    fn bytes(&self) -> usize {
        let kept = self.rest.as_slice().iter().chain(&self.pending);
        kept.map(|document| DOCUMENT + document.as_bytes().len())
            .sum()
    }
}

impl Store {
    /// Return a list through a cursor: a first batch of at most `batch_size` documents (default: as
    /// many as fit into 16 MiB), the rest by [`Store::get_more`].
    ///
    /// # Errors
    /// `ExceededMemoryLimit` when the budget of all queries refuses the rest.
    pub fn open_list(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        documents: Vec<RawDocumentBuf>,
        batch_size: Option<u64>,
    ) -> Result<Batch> {
        let mut cursor = ListCursor {
            rest: documents.into_iter(),
            pending: None,
        };
        let Next {
            documents, ended, ..
        } = cursor.take(batch_size.unwrap_or(u64::MAX));
        let id = match ended {
            true => 0,
            false => self.cursors().open(op, ns, false, Box::new(cursor))?,
        };
        Ok(Batch {
            id,
            ns: ns.clone(),
            documents,
            awaits: None,
            resume: None,
        })
    }
}
