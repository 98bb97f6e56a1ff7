//! One command in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bson::{RawBsonRef, RawDocument};
use query::namespace::Namespace;
use query::{Code, Error, Result};
use wire::Message;

use super::arguments::{Arguments, type_name};
use super::generic::Generic;
use super::row::Row;
use crate::server::Server;
use crate::state::Client;

/// A command, who sent it, and what it is allowed.
pub(crate) struct Request {
    /// The server.
    pub(crate) server: Arc<Server>,
    /// The connection.
    pub(crate) client: Arc<Client>,
    /// What it came in.
    pub(crate) message: Message,
    /// The command.
    pub(crate) row: &'static Row,
    /// The name it was called by.
    pub(crate) name: String,
    /// The arguments every command takes.
    pub(crate) generic: Generic,
    /// Its number among the commands in work.
    pub(crate) operation: i32,
    /// When it began.
    pub(crate) started: Instant,
    /// It has more to say to a client that takes several replies.
    pub(crate) more: AtomicBool,
    /// Somebody interrupted it.
    pub(crate) killed: Arc<AtomicBool>,
}

impl Request {
    /// The command with its arguments.
    pub(crate) fn body(&self) -> &RawDocument {
        self.message.body()
    }

    /// The arguments.
    ///
    /// # Errors
    /// `InvalidBSON`, which the decoder of messages rules out.
    pub(crate) fn arguments(&self) -> Result<Arguments<'_>> {
        Arguments::of(&self.name, self.body())
    }

    /// The database the command is sent to.
    pub(crate) fn database(&self) -> &str {
        &self.generic.database
    }

    /// The value of the first field: for many commands the name of a collection.
    pub(crate) fn target(&self) -> Result<RawBsonRef<'_>> {
        let first = self.body().iter().next().transpose()?;
        first
            .map(|(_, value)| value)
            .ok_or_else(|| Error::parse("an empty command"))
    }

    /// The collection the command names in its first field.
    ///
    /// # Errors
    /// `InvalidNamespace` when it is no name of a collection.
    pub(crate) fn namespace(&self) -> Result<Namespace> {
        match self.target()? {
            RawBsonRef::String(name) => Namespace::new(self.database(), name),
            other => {
                let found = type_name(other);
                let message = format!("collection name has invalid type {found}");
                Err(Error::new(Code::INVALID_NAMESPACE, message))
            }
        }
    }

    /// Interrupt it; it sees so when it next looks.
    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    /// When it must have ended, if its client said so.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.generic.max_time.map(|limit| self.started + limit)
    }

    /// How long it has been in work.
    pub(crate) fn taken(&self) -> Duration {
        self.started.elapsed()
    }
}
