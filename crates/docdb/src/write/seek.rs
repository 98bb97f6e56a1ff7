//! Selection of the documents to update or delete: parses the statement and finds the documents
//! through the planner.

use std::sync::Arc;

use bson::{Bson, Document, RawDocument, RawDocumentBuf};
use query::Result;
use query::collation::Collator;
use query::filter::{Details, Filter};
use query::settings::Settings;
use query::sort::Sort;

use crate::collate;
use crate::collection::Collection;
use crate::find::Write;
use crate::record::RecordId;
use crate::txn::{Op, Work};
use crate::variables::Let;
use crate::{Matched, Matching};

/// The parsed selection of a statement.
pub(crate) struct Seek {
    pub(crate) settings: Settings,
    pub(crate) filter: Arc<Filter>,
    sort: Option<Sort>,
    hint: Option<Bson>,
    collation: Option<RawDocumentBuf>,
    write: Option<Write>,
}

/// The arguments of a statement that select its documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'s> {
    pub(crate) filter: &'s RawDocument,
    pub(crate) sort: Option<&'s RawDocument>,
    pub(crate) hint: Option<&'s Bson>,
    pub(crate) collation: Option<&'s RawDocument>,
    pub(crate) variables: Option<&'s Let>,
    /// MongoDB's express write stage for a filter on one `_id`, if it has one.
    pub(crate) write: Option<Write>,
}

pub(crate) struct Found {
    pub(crate) record: RecordId,
    pub(crate) document: RawDocumentBuf,
    pub(crate) details: Details,
}

impl Seek {
    /// Parse a selection. `collection` provides the default collation.
    pub(crate) fn parse(
        op: &Op<'_>,
        selection: &Selection<'_>,
        collection: Option<&Collection>,
    ) -> Result<Seek> {
        let mut settings = op.settings();
        settings.collator = collator(selection.collation, collection)?;
        if let Some(variables) = selection.variables {
            settings.variables = variables.over(&settings.variables)?;
        }
        let sort = selection.sort.filter(|sort| !sort.is_empty());
        Ok(Seek {
            filter: Arc::new(Filter::parse(selection.filter, &settings)?),
            sort: sort.map(Sort::parse).transpose()?,
            hint: selection.hint.cloned(),
            collation: selection.collation.map(ToOwned::to_owned),
            write: selection.write,
            settings,
        })
    }

    /// The selection in the planner's form.
    pub(crate) fn matching(&self, limit: Option<u64>) -> Matching {
        Matching {
            filter: Arc::clone(&self.filter),
            sort: self.sort.clone(),
            hint: self.hint.clone(),
            collation: self.collation.clone(),
            limit,
            write: self.write,
        }
    }

    /// The first matching document, as the work's transaction sees it.
    pub(crate) fn first(
        &self,
        op: &Op<'_>,
        work: &mut Work<'_>,
        collection: &Arc<Collection>,
    ) -> Result<Option<Found>> {
        let store = work.store;
        let snapshot = work.snapshot()?;
        let matching = self.matching(Some(1));
        let mut matched = store.matching(op, collection, snapshot, &matching)?;
        let first = matched.next(op, snapshot);
        matched.report(op);
        match first? {
            None => Ok(None),
            Some((record, document)) => self.details(record, document),
        }
    }

    /// A stream of the matching documents.
    pub(crate) fn all(
        &self,
        op: &Op<'_>,
        work: &mut Work<'_>,
        collection: &Arc<Collection>,
    ) -> Result<Matched> {
        let store = work.store;
        store.matching(op, collection, work.snapshot()?, &self.matching(None))
    }

    /// Read a document by its record id; `None` if it no longer matches.
    pub(crate) fn again(
        &self,
        work: &mut Work<'_>,
        collection: &Collection,
        record: &RecordId,
    ) -> Result<Option<Found>> {
        let mut bytes = Vec::new();
        if !collection.fetch(work.snapshot()?, record, &mut bytes)? {
            return Ok(None);
        }
        self.details(record.clone(), RawDocumentBuf::from_bytes(bytes)?)
    }

    /// A found document with its matched array positions.
    pub(crate) fn details(
        &self,
        record: RecordId,
        document: RawDocumentBuf,
    ) -> Result<Option<Found>> {
        let mut details = Details::default();
        let matches = self.filter.matches_at(&document, &mut details)?;
        Ok(matches.then_some(Found {
            record,
            document,
            details,
        }))
    }
}

/// The collator of an operation: its own, or else the collection's.
fn collator(
    asked: Option<&RawDocument>,
    collection: Option<&Collection>,
) -> Result<Option<Arc<Collator>>> {
    if let Some(asked) = asked.filter(|asked| !asked.is_empty()) {
        return collate::collator(&Document::try_from(asked)?);
    }
    let default = collection.and_then(|c| c.options().collation.as_ref());
    default.map_or(Ok(None), collate::collator)
}
