//! The rest of a command that waits for other members: it holds no thread and no place of the pool.

use std::future::Future;
use std::pin::Pin;

use bson::RawDocumentBuf;
use query::Result;
use stdx::sync::Mutex;

/// The fields that complete a reply.
type Rest = Pin<Box<dyn Future<Output = Result<RawDocumentBuf>> + Send>>;

/// What is still to be waited for.
#[derive(Default)]
pub(crate) struct Later(Mutex<Option<Rest>>);

impl Later {
    /// Wait for this when the function of the command has returned; its fields are added to the
    /// reply.
    pub(crate) fn set(&self, rest: impl Future<Output = Result<RawDocumentBuf>> + Send + 'static) {
        *self.0.lock() = Some(Box::pin(rest));
    }

    pub(crate) fn take(&self) -> Option<Rest> {
        self.0.lock().take()
    }
}
