//! The context of one operation: start time, deadline, user, session and transaction.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, RawDocumentBuf, Uuid, rawdoc};
use kv::Durability;
use query::Result;
use query::expr::System;
use query::meter::{Budget, Meter};
use query::settings::Settings;
use stdx::sync::atomic::AtomicI32;

use super::catalog::{Held, SeenCatalog};
use super::ends::{self, Ends};
use super::work::Work;
use crate::examined::{Examined, Leaf};

/// The context of one operation.
#[derive(Clone)]
pub struct Op<'a> {
    /// The time of the operation: `$$NOW`, the time of expiry and so on.
    pub now: DateTime,
    /// The time by which it must end (`maxTimeMS`).
    pub deadline: Option<Instant>,
    /// Zero; a kill sets it to the code of the error that the operation ends with, such as
    /// `Interrupted`.
    pub killed: Arc<AtomicI32>,
    /// Durability of its writes when it returns.
    pub durability: Durability,
    /// The session it belongs to.
    pub session: Option<SessionRef>,
    /// The multi-document transaction it runs in, set by the transaction's thread.
    pub transaction: Option<&'a dyn InTransaction>,
    /// The held snapshot that it reads instead of the current state, set by the snapshot's thread.
    pub held: Option<&'a Held<'a>>,
    /// The comment of the command.
    pub comment: Option<Bson>,
    /// The user, as `user@database`.
    pub user: Option<String>,
    /// System values for expressions, other than `$$NOW`.
    pub system: Option<Arc<System>>,
    /// Statistics of the keys and documents it reads, if wanted.
    pub examined: Option<Arc<Examined>>,
    /// The UUID of the collection that it inserts into, updates or deletes from
    /// (`collectionUUID`): another collection is refused.
    pub collection_uuid: Option<Uuid>,
}

/// The session of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef {
    /// The session's id.
    pub id: SessionId,
    /// The number of the transaction or of the retryable write.
    pub txn_number: Option<i64>,
    /// The number of the first statement of a retryable write (`stmtId`; default 0); statement `i`
    /// of a batch has this plus `i`, unless `stmt_ids` names each.
    pub stmt_id: i32,
    /// The numbers of the statements (`stmtIds`).
    pub stmt_ids: Option<Vec<i32>>,
}

/// A logical session: the client's UUID and a digest of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The client's UUID.
    pub id: [u8; 16],
    /// SHA-256 of the user's full name; zeros without users.
    pub uid: [u8; 32],
}

impl SessionId {
    /// The document that names the session: `{id: UUID, uid: BinData}`.
    #[must_use]
    pub fn lsid(&self) -> RawDocumentBuf {
        let binary = |subtype, bytes: &[u8]| Binary {
            subtype,
            bytes: bytes.to_vec(),
        };
        rawdoc! {
            "id": binary(BinarySubtype::Uuid, &self.id),
            "uid": binary(BinarySubtype::Generic, &self.uid),
        }
    }
}

/// The work of an open multi-document transaction, reached from its own thread.
pub trait InTransaction {
    /// Run `body` in the transaction.
    ///
    /// # Errors
    /// Errors of `body`, after which the caller must abort the transaction.
    fn with(&self, body: &mut dyn FnMut(&mut Work<'_>) -> Result<()>) -> Result<()>;

    /// The catalog as seen by the transaction. May be called inside of [`InTransaction::with`].
    fn catalog(&self) -> &SeenCatalog;
}

impl Op<'static> {
    /// The parts of the operation that can be sent to the thread that runs it; the transaction and
    /// the snapshot are left out.
    pub(crate) fn into_parts(self) -> Parts {
        Parts {
            now: self.now,
            deadline: self.deadline,
            killed: self.killed,
            durability: self.durability,
            session: self.session,
            comment: self.comment,
            user: self.user,
            system: self.system,
            examined: self.examined,
            collection_uuid: self.collection_uuid,
        }
    }
}

/// The parts of an operation that can be sent to another thread.
pub(crate) struct Parts {
    now: DateTime,
    deadline: Option<Instant>,
    killed: Arc<AtomicI32>,
    durability: Durability,
    session: Option<SessionRef>,
    comment: Option<Bson>,
    user: Option<String>,
    system: Option<Arc<System>>,
    examined: Option<Arc<Examined>>,
    collection_uuid: Option<Uuid>,
}

impl Parts {
    /// The operation, in a transaction or at a held snapshot of the receiving thread.
    pub(crate) fn within<'a>(
        self,
        transaction: Option<&'a dyn InTransaction>,
        held: Option<&'a Held<'a>>,
    ) -> Op<'a> {
        Op {
            now: self.now,
            deadline: self.deadline,
            killed: self.killed,
            durability: self.durability,
            session: self.session,
            transaction,
            held,
            comment: self.comment,
            user: self.user,
            system: self.system,
            examined: self.examined,
            collection_uuid: self.collection_uuid,
        }
    }
}

impl Op<'_> {
    /// An operation that starts now, with this durability and without limits.
    #[must_use]
    pub fn new(durability: Durability) -> Op<'static> {
        let millis = i64::try_from(stdx::time::wall().as_millis()).unwrap_or(i64::MAX);
        Op {
            now: DateTime::from_millis(millis),
            deadline: None,
            killed: Arc::new(AtomicI32::new(0)),
            durability,
            session: None,
            transaction: None,
            held: None,
            comment: None,
            user: None,
            system: None,
            examined: None,
            collection_uuid: None,
        }
    }

    /// Parser settings: byte order for strings, and the system variables.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::at(self.now);
        settings.variables.set_system(self.system.clone());
        settings
    }

    /// Report the name of a plan that needs no execution.
    pub(crate) fn plan(&self, name: &'static str) {
        if let Some(examined) = &self.examined {
            examined.plan(&[Leaf::plain(name)]);
        }
    }

    /// Begin a stage of known length.
    pub(crate) fn begin_stage(&self, what: &'static str, total: u64) {
        if let Some(examined) = &self.examined {
            examined.progress().begin(what, total);
        }
    }

    /// Report `by` more units of the stage as done.
    pub(crate) fn advance_stage(&self, by: usize) {
        if let Some(examined) = &self.examined {
            examined.progress().advance(by as u64);
        }
    }

    /// End the last stage.
    pub(crate) fn end_stages(&self) {
        if let Some(examined) = &self.examined {
            examined.progress().end();
        }
    }

    /// Whether it reads the current state: no transaction and no held snapshot.
    pub(crate) fn is_now(&self) -> bool {
        self.transaction.is_none() && self.held.is_none()
    }

    /// The time left until its deadline, if it has one.
    pub(crate) fn left(&self) -> Option<Duration> {
        ends::left(self.deadline)
    }

    /// Check that it may continue. Call it at least every few milliseconds.
    ///
    /// # Errors
    /// The code it was killed with (see [`Op::killed`]), `MaxTimeMSExpired`.
    pub fn check(&self) -> Result<()> {
        ends::check(self.deadline, &self.killed)
    }

    /// The meter that stops its work at its deadline or when it is killed, and that takes its
    /// memory from `budget`. Enter it on the thread that does the work.
    #[must_use]
    pub fn meter(&self, budget: Option<Arc<Budget>>) -> Meter {
        Meter::default()
            .with_watch(Arc::new(self.ends()))
            .with_budget(budget)
    }

    /// The conditions that end it, for waits on its behalf.
    pub(crate) fn ends(&self) -> Ends {
        Ends {
            deadline: self.deadline,
            killed: Arc::clone(&self.killed),
        }
    }
}

impl fmt::Debug for Op<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op")
            .field("now", &self.now)
            .field("durability", &self.durability)
            .field("session", &self.session)
            .field("in_transaction", &self.transaction.is_some())
            .finish_non_exhaustive()
    }
}
