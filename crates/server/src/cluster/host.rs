//! What the driver of the protocol needs of the server around it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bson::Document;

use super::config::SetConfig;

/// The server of a member.
pub(crate) trait Host: Send + Sync {
    /// The reply to `hello` has changed.
    fn changed(&self);

    /// Clients may write from now on.
    fn open(&self);

    /// Refuse new writes, interrupt those under way, and end transactions. Completes when none is
    /// left.
    fn shut(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Entries were applied: what is kept in memory of users, roles and defaults is outdated.
    fn applied(&self);

    /// A configuration is in use.
    fn configured(&self, config: &Arc<SetConfig>);

    /// The engines of all members store keys of this length.
    fn limited(&self, key_max: usize);

    /// Write a line of the log.
    fn log(&self, line: Line);
}

/// A line of the log.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) warning: bool,
    pub(crate) id: i32,
    pub(crate) message: &'static str,
    pub(crate) attributes: Document,
}
