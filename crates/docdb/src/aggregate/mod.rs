//! Pipelines.

use bson::{Bson, Document, RawDocumentBuf};
use query::{Error, Namespace, Result};

use crate::cursor::{Batch, Collector};
use crate::explain::Verbosity;
use crate::find::{CountRequest, DistinctRequest, FindRequest};
use crate::op::Op;
use crate::store::Store;

/// A pipeline between batches.
pub(crate) struct PipelineCursor {
    pending: Option<RawDocumentBuf>,
}

impl PipelineCursor {
    pub(crate) fn take_pending(&mut self) -> Option<RawDocumentBuf> {
        self.pending.take()
    }

    pub(crate) fn set_pending(&mut self, pending: Option<RawDocumentBuf>) {
        self.pending = pending;
    }
}

impl Store {
    pub(crate) fn more_of_pipeline(
        &self,
        _op: &Op<'_>,
        _cursor: &mut PipelineCursor,
        _collector: &mut Collector,
    ) -> Result<bool> {
        Err(Error::bad_value("views"))
    }

    pub(crate) fn find_in_view(
        &self,
        _op: &Op<'_>,
        _ns: &Namespace,
        _request: &FindRequest,
    ) -> Result<Batch> {
        Err(Error::bad_value("views"))
    }

    pub(crate) fn count_in_view(
        &self,
        _op: &Op<'_>,
        _ns: &Namespace,
        _request: &CountRequest,
    ) -> Result<u64> {
        Err(Error::bad_value("views"))
    }

    pub(crate) fn distinct_in_view(
        &self,
        _op: &Op<'_>,
        _ns: &Namespace,
        _request: &DistinctRequest,
    ) -> Result<Vec<Bson>> {
        Err(Error::bad_value("views"))
    }

    pub(crate) fn explain_find_in_view(
        &self,
        _op: &Op<'_>,
        _ns: &Namespace,
        _request: &FindRequest,
        _verbosity: Verbosity,
    ) -> Result<Document> {
        Err(Error::bad_value("views"))
    }
}
