//! One running command, independent of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use bson::{RawBsonRef, RawDocument};
use docdb::{Examined, Origin};
use query::namespace::Namespace;
use query::{Code, Error, Result};
use stdx::sync::OnceLock;
use tokio::sync::Notify;
use wire::Message;

use super::Client;
use crate::arguments::{Arguments, Generic, Parsed, type_name};
use crate::command::{CONTINUES, Command, Kind, WRITES};

/// The owner of the sessions of unauthenticated clients.
pub(crate) const NO_USER: [u8; 32] = [0; 32];

/// The digest that identifies the owner of a session: MongoDB's, of `user@database`. The name of a
/// user may contain `@`, so a database with one is joined by a NUL instead, which neither contains:
/// no two users share a digest.
pub(crate) fn digest(user: &str, database: &str) -> [u8; 32] {
    use sha2::Digest as _;
    let joint = if database.contains('@') { '\0' } else { '@' };
    sha2::Sha256::digest(format!("{user}{joint}{database}")).into()
}

/// A command and the client that sent it.
pub(crate) struct Operation {
    /// The connection.
    pub(crate) client: Arc<Client>,
    /// The message and its arguments.
    pub(crate) parsed: Parsed,
    pub(crate) command: &'static Command,
    /// The arguments that every command accepts.
    pub(crate) generic: Generic,
    /// Its number among the running commands.
    pub(crate) number: i32,
    /// When it began.
    pub(crate) started: Instant,
    /// Zero, or the code of the error that interrupts it.
    pub(crate) killed: Arc<AtomicI32>,
    /// Ends its wait for documents when it is interrupted.
    pub(crate) interrupted: Notify,
    /// Statistics of its reads.
    pub(crate) examined: Arc<Examined>,
    /// The command that opened the cursor that it continues.
    pub(crate) origin: OnceLock<Arc<Origin>>,
}

impl Operation {
    /// The message that contains it.
    pub(crate) fn message(&self) -> &Message {
        self.parsed.message()
    }

    /// The command with its arguments.
    pub(crate) fn body(&self) -> &RawDocument {
        self.message().body()
    }

    pub(crate) fn arguments(&self) -> &Arguments<'_> {
        self.parsed.arguments()
    }

    /// The name by which the client called it.
    pub(crate) fn name(&self) -> &str {
        self.arguments().name()
    }

    /// The database that the command is sent to.
    pub(crate) fn database(&self) -> &str {
        &self.generic.database
    }

    /// The value of the first field: for many commands the name of a collection.
    pub(crate) fn target(&self) -> RawBsonRef<'_> {
        self.arguments().target()
    }

    /// The collection that the command works on, as the client names it.
    pub(crate) fn collection(&self) -> Option<&str> {
        match self.command.has(CONTINUES) {
            true => self.arguments().string("collection").ok().flatten(),
            false => self.target().as_str(),
        }
    }

    /// The collection the command names in its first field.
    ///
    /// # Errors
    /// `InvalidNamespace` when it is no name of a collection.
    pub(crate) fn namespace(&self) -> Result<Namespace> {
        match self.target() {
            RawBsonRef::String(name) => Namespace::new(self.database(), name),
            other => {
                let found = type_name(other);
                let message = format!("collection name has invalid type {found}");
                Err(Error::new(Code::INVALID_NAMESPACE, message))
            }
        }
    }

    /// Whether it writes or may write.
    pub(crate) fn writes(&self) -> bool {
        let stage = self.command.writing_stage;
        self.command.has(WRITES) || stage.is_some_and(|stage| stage(self.body()).is_some())
    }

    /// Interrupt it. It ends at its next check.
    pub(crate) fn kill(&self) {
        self.end_with(Code::INTERRUPTED);
    }

    /// Interrupt it because the server shuts down: drivers retry it on another server.
    pub(crate) fn kill_at_shutdown(&self) {
        self.end_with(Code::INTERRUPTED_AT_SHUTDOWN);
    }

    /// Interrupt it because this member is no primary any more: drivers retry it on the next one.
    pub(crate) fn kill_at_step_down(&self) {
        self.end_with(Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
    }

    /// Whether it was interrupted.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed) != 0
    }

    /// Set the reason of the interruption, unless one is already set.
    fn end_with(&self, code: Code) {
        let (order, none) = (Ordering::Relaxed, 0);
        // An earlier interruption keeps its reason.
        let _: Result<i32, i32> = self.killed.compare_exchange(none, code.0, order, order);
        self.interrupted.notify_one();
    }

    /// The time by which it must end, if its client set a limit. The limit of a `getMore` is that
    /// of its wait for data.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let limit = self.generic.max_time?;
        (self.command.kind != Kind::GetMore).then(|| self.started + limit)
    }

    /// The user, as owner of cursors.
    pub(crate) fn user(&self) -> Option<String> {
        self.client.user()
    }

    /// The owner of its sessions: a digest of the user, or [`NO_USER`].
    pub(crate) fn owner(&self) -> [u8; 32] {
        let state = self.client.state.lock();
        let user = state.identity.as_ref();
        user.map_or(NO_USER, |user| digest(&user.name, &user.database))
    }

    /// The time that it has been running.
    pub(crate) fn taken(&self) -> Duration {
        self.started.elapsed()
    }

    /// The time that it has been running, without its waits for documents that other clients
    /// insert: those say nothing about the server.
    pub(crate) fn worked(&self) -> Duration {
        self.taken().saturating_sub(self.examined.waited())
    }
}
