//! One command in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use bson::{Bson, RawBsonRef, RawDocument};
use docdb::{Examined, Op, Origin, SessionId, SessionRef};
use kv::Durability;
use query::expr::System;
use query::namespace::Namespace;
use query::{Code, Error, Result};
use stdx::sync::OnceLock;
use wire::Message;

use super::arguments::{Arguments, type_name};
use super::generic::Generic;
use super::row::{Row, WRITES};
use crate::auth;
use crate::auth::privilege::Wanted;
use crate::server::Server;
use crate::state::Client;

/// The owner of sessions of clients that are no user.
pub(crate) const NOBODY: [u8; 32] = [0; 32];

/// The digest of an owner of sessions, by the name `user@database`.
pub(crate) fn digest(user: &str) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(user.as_bytes()).into()
}

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
    /// Statements of it were done before: it is sent again.
    pub(crate) repeated: AtomicBool,
    /// Zero, or the code of the error with which somebody interrupted it.
    pub(crate) killed: Arc<AtomicI32>,
    /// What it has read.
    pub(crate) examined: Arc<Examined>,
    /// What opened the cursor that it goes on with.
    pub(crate) origin: OnceLock<Arc<Origin>>,
    /// What its user had to be allowed to do, with which its cursors are kept; none where nothing
    /// was asked for.
    pub(crate) needs: OnceLock<Arc<Vec<Wanted>>>,
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
        self.end_with(Code::INTERRUPTED);
    }

    /// Interrupt it because the server ends: drivers send it again elsewhere.
    pub(crate) fn kill_at_shutdown(&self) {
        self.end_with(Code::INTERRUPTED_AT_SHUTDOWN);
    }

    /// Whether somebody interrupted it.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed) != 0
    }

    /// The first reason stays.
    fn end_with(&self, code: Code) {
        let (order, none) = (Ordering::Relaxed, 0);
        // Whoever came first has said why.
        let _: Result<i32, i32> = self.killed.compare_exchange(none, code.0, order, order);
    }

    /// When it must have ended, if its client said so.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.generic.max_time.map(|limit| self.started + limit)
    }

    /// What storage is told of it.
    pub(crate) fn op(&self) -> Op<'static> {
        Op {
            deadline: self.deadline(),
            killed: Arc::clone(&self.killed),
            session: self.session(),
            comment: self.generic.comment.clone(),
            user: self.user(),
            system: Some(Arc::new(self.system())),
            examined: Some(Arc::clone(&self.examined)),
            ..Op::new(self.durability())
        }
    }

    /// What expressions read of the system.
    fn system(&self) -> System {
        let server = &self.server;
        let is_member = server.store.options().replica_set.is_some();
        let user = auth::user(server, &self.client);
        System {
            cluster_time: is_member.then(|| Bson::Timestamp(server.clock.times().0)),
            user_roles: Some(user.map_or_else(no_roles, |user| Arc::clone(&user.shown))),
        }
    }

    /// The user, as owner of cursors.
    pub(crate) fn user(&self) -> Option<String> {
        self.client.user()
    }

    /// Whose sessions its own are: a digest of the user, or [`NOBODY`].
    pub(crate) fn owner(&self) -> [u8; 32] {
        let user = self.client.displayed_user();
        user.map_or(NOBODY, |user| digest(&user))
    }

    fn session(&self) -> Option<SessionRef> {
        let generic = &self.generic;
        generic.lsid.map(|id| SessionRef {
            id: SessionId {
                id,
                uid: self.owner(),
            },
            txn_number: generic.txn_number,
            stmt_id: generic.stmt_id.unwrap_or(0),
            stmt_ids: generic.stmt_ids.clone(),
        })
    }

    /// What a write has survived when it is acknowledged. Without a write concern a member of a
    /// replica set writes for the majority, and the majority has it in its logs; a standalone
    /// server acknowledges earlier. So does `w: 1`.
    fn durability(&self) -> Durability {
        if !self.row.has(WRITES) {
            return Durability::Interval;
        }
        let concern = &self.generic.write_concern;
        let (mut w, mut journal) = (concern.w.clone(), concern.journal);
        if !concern.given
            && let Some((default_w, default_j)) = self.server.concerns.write()
        {
            (w, journal) = (default_w, default_j);
        }
        let majority = match &w {
            None => self.server.topology.is_replica_set(),
            Some(Bson::String(_)) => true,
            Some(Bson::Int64(n)) => *n > 1,
            Some(Bson::Int32(n)) => *n > 1,
            Some(_) => false,
        };
        match journal.unwrap_or(majority) {
            true => Durability::Group,
            false => Durability::Interval,
        }
    }

    /// How long it has been in work.
    pub(crate) fn taken(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The roles of nobody.
fn no_roles() -> Arc<Bson> {
    static NONE: OnceLock<Arc<Bson>> = OnceLock::new();
    Arc::clone(NONE.get_or_init(|| Arc::new(Bson::Array(Vec::new()))))
}
