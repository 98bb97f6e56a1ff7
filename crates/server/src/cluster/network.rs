//! How a member reaches the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use repl::message::Envelope;
use repl::position::MemberId;

use super::config::SetConfig;
use super::letter::Letter;
use super::storage::StoredEntry;
use super::sync::letter::{Answer, Asked};

/// The connections to the other members.
pub(crate) trait Network: Send + Sync {
    /// Talk to the members of this configuration, but for `me`, from now on.
    fn configure(&self, config: &Arc<SetConfig>, me: u32);

    /// Send a message. It may be lost.
    fn send(&self, letter: Letter);

    /// Ask a member for entries. The answer is given to `done`, once.
    fn fetch(&self, envelope: Envelope, done: FetchDone);

    /// Ask a member for what a copy of it lacks. The answer is given to `done`, once.
    fn copy(&self, from: MemberId, asked: Asked, done: CopyDone);

    /// What is known of the connection to a member.
    fn health(&self, member: u32) -> Health;
}

/// Takes the answer to a request of a copy.
pub(crate) type CopyDone = Box<dyn FnOnce(Result<Answer, String>) + Send>;

/// Takes the answer to a fetch.
pub(crate) type FetchDone = Box<dyn FnOnce(Result<Fetched, String>) + Send>;

/// The answer to a fetch.
#[derive(Debug)]
pub(crate) enum Fetched {
    Batch(Envelope, Vec<StoredEntry>),
    Diverged(Envelope),
    /// The source has removed entries that this member lacks.
    TooOld,
}

/// What is known of the connection to a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// When it answered last.
    pub(crate) answered: Option<Instant>,
    /// The time of a round trip.
    pub(crate) ping: Duration,
    /// The last error since then.
    pub(crate) error: String,
}
