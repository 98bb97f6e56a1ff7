//! A command at work: the request, and what storage is told of it.

use std::ops::Deref;
use std::sync::Arc;

use docdb::{Op, Store};
use query::{Code, Error, Result};
use wire::Builder;

use super::failure;
use super::request::Request;

/// What a command sees. Inside of a transaction it runs on the transaction's own thread.
pub(crate) struct Call<'a> {
    request: &'a Request,
    op: &'a Op<'a>,
}

impl Deref for Call<'_> {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.request
    }
}

impl Call<'_> {
    /// The operation, with the transaction it is part of.
    pub(crate) fn op(&self) -> &Op<'_> {
        self.op
    }

    /// Do something with the documents.
    ///
    /// # Errors
    /// Those of `body`.
    pub(crate) fn with_store<T>(
        &self,
        body: impl FnOnce(&Store, &Op<'_>) -> Result<T>,
    ) -> Result<T> {
        body(&self.request.server.store, self.op)
    }
}

fn direct(request: &Request, op: &Op<'_>) -> Result<Builder> {
    let mut reply = Builder::new();
    (request.row.run)(&Call { request, op }, &mut reply)?;
    Ok(reply)
}

/// Run a command.
pub(super) fn call(request: &Arc<Request>) -> Result<Builder> {
    direct(request, &request.op())
}
