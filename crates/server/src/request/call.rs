//! A request, the function that runs it, and the call of that function: one recursive type.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bson::{Bson, RawDocument, Timestamp};
use docdb::{Op, SessionId, SessionRef, Store};
use kv::Durability;
use query::Result;
use query::expr::System;
use stdx::sync::{Mutex, OnceLock};
use wire::Builder;

use super::Understood;
use super::awaits::Awaits;
use super::later::Later;
use crate::auth::User;
use crate::auth::privilege::Wanted;
use crate::command::{CONTINUES, Class, READS, WRITES};
use crate::server::Server;
use crate::state::Operation;

/// The function of a command. It fills the reply but for `ok` and the times.
pub(crate) type Run = fn(&Call<'_>, &mut Builder) -> Result<()>;

/// Whether a request is brief: it may run on the thread of its connection.
pub(crate) type Brief = fn(&Request) -> bool;

/// The options of the change stream that a command opens, if it opens one.
pub(crate) fn stream_of(body: &RawDocument) -> Option<&RawDocument> {
    let first = body.get_array("pipeline").ok()?.into_iter().next()?.ok()?;
    first.as_document()?.get_document("$changeStream").ok()
}

/// An operation on a server.
pub(crate) struct Request {
    pub(crate) server: Arc<Server>,
    /// The command, its arguments and its client.
    pub(crate) operation: Arc<Operation>,
    /// The function that runs it.
    pub(crate) run: Run,
    /// Whether it is brief; never without this.
    pub(crate) brief: Option<Brief>,
    /// Its writes are committed without a sync, and the log is synced before the reply.
    pub(crate) synced_later: AtomicBool,
    /// The time of the last oplog entry that it has committed.
    pub(crate) written: OnceLock<Timestamp>,
    /// The time of what it has read: all entries of the oplog up to then.
    pub(crate) read: OnceLock<Timestamp>,
    /// Of a member of a set of several: the time up to which it may have read entries.
    pub(crate) seen: Mutex<Option<Timestamp>>,
    /// Of a `getMore`, the time by which the operations of its cursor must end, if that is limited.
    pub(crate) ends: OnceLock<Instant>,
    /// Whether another reply follows, for a client that accepts a stream of replies.
    pub(crate) more: AtomicBool,
    /// Whether it is a retry, some of whose statements were already executed.
    pub(crate) repeated: AtomicBool,
    /// Its wait for the data of its cursor.
    pub(crate) awaits: Awaits,
    /// What it waits for, without a thread, before its reply is complete.
    pub(crate) later: Later,
    /// The privileges that it required, which are kept with its cursors; empty if it required none.
    pub(crate) needs: OnceLock<Arc<Vec<Wanted>>>,
    /// The arguments as authorization parsed them, for commands whose parsing is costly.
    pub(crate) understood: Option<Understood>,
}

/// The argument of a command's function. In a transaction it runs on the transaction's own thread.
pub(crate) struct Call<'a> {
    request: &'a Request,
    op: &'a Op<'a>,
    doomed: Cell<bool>,
}

impl Deref for Request {
    type Target = Operation;

    fn deref(&self) -> &Operation {
        &self.operation
    }
}

impl Deref for Call<'_> {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.request
    }
}

impl Request {
    /// A request that is not brief and needed no privileges.
    pub(crate) fn new(server: &Arc<Server>, operation: Operation, run: Run) -> Request {
        Request {
            server: Arc::clone(server),
            operation: Arc::new(operation),
            run,
            brief: None,
            synced_later: AtomicBool::new(false),
            written: OnceLock::new(),
            read: OnceLock::new(),
            seen: Mutex::new(None),
            ends: OnceLock::new(),
            more: AtomicBool::new(false),
            repeated: AtomicBool::new(false),
            awaits: Awaits::default(),
            later: Later::default(),
            needs: OnceLock::new(),
            understood: None,
        }
    }

    /// Whether another reply of a stream follows.
    pub(crate) fn has_more(&self) -> bool {
        self.more.load(Ordering::Relaxed)
    }

    /// The operation as storage sees it.
    pub(crate) fn op(&self) -> Op<'static> {
        Op {
            deadline: self.deadline(),
            killed: Arc::clone(&self.killed),
            session: self.session(),
            comment: self.generic.comment.clone(),
            user: self.user(),
            system: Some(Arc::new(system(
                &self.server,
                self.server.user_of(&self.client).as_deref(),
            ))),
            examined: Some(Arc::clone(&self.examined)),
            ..Op::new(match self.synced_later.load(Ordering::Relaxed) {
                true => Durability::None,
                false => self.durability(),
            })
        }
    }

    /// Whether it is a read that is answered only when a majority has what it has read: so its own
    /// concern, the default one, or that of the command that opened its cursor. What a transaction
    /// has read is waited for when it commits, and change streams show nothing else.
    pub(crate) fn reads_committed(&self) -> bool {
        let command = self.command;
        if self.generic.in_transaction || !(command.class == Class::Read || command.has(READS)) {
            return false;
        }
        if command.has(CONTINUES) {
            return self.origin.get().is_some_and(|origin| origin.committed);
        }
        let concern = self.generic.read_concern.as_ref();
        match concern.map_or("", |concern| concern.level.as_str()) {
            _ if stream_of(self.body()).is_some() => false,
            "" => self.server.concerns.reads_committed(),
            level => level == "majority",
        }
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

    /// The durability of an acknowledged write. Without a write concern, a member of a replica set
    /// writes with `w: "majority"`, which includes the log; a standalone server, and `w: 1`,
    /// acknowledge earlier.
    pub(crate) fn durability(&self) -> Durability {
        if !self.command.has(WRITES) {
            return Durability::Interval;
        }
        let concern = &self.generic.write_concern;
        let (mut w, mut journal) = (concern.w.clone(), concern.journal);
        if !concern.given
            && let Some((default_w, default_j)) = self.server.concerns.write()
        {
            (w, journal) = (default_w, default_j);
        }
        // A majority of several members needs no sync of this one, which comes meanwhile.
        let several = self.server.member.is_some();
        let majority = match &w {
            _ if several => false,
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
}

impl Call<'_> {
    /// The operation, with the transaction it is part of.
    pub(crate) fn op(&self) -> &Op<'_> {
        self.op
    }

    /// Run another command as part of this one.
    ///
    /// # Errors
    /// Those of the command.
    pub(crate) fn within(&self, request: &Request, reply: &mut Builder) -> Result<()> {
        let call = Call {
            request,
            op: self.op,
            doomed: Cell::new(false),
        };
        (request.run)(&call, reply)
    }

    /// Abort its transaction although the reply is not an error: one statement failed.
    pub(crate) fn doom(&self) {
        self.doomed.set(true);
    }

    /// Use the store in this operation.
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

/// Run a command; returns the reply, and whether its transaction must end.
///
/// # Errors
/// Those of the command.
pub(crate) fn run(request: &Request, op: &Op<'_>) -> Result<(Builder, bool)> {
    let mut reply = Builder::new();
    let call = Call {
        request,
        op,
        doomed: Cell::new(false),
    };
    (request.run)(&call, &mut reply)?;
    Ok((reply, call.doomed.get()))
}

/// The system variables of expressions, for an operation of a user.
pub(crate) fn system(server: &Server, user: Option<&User>) -> System {
    let is_member = server.store.options().replica_set.is_some();
    System {
        cluster_time: is_member.then(|| Bson::Timestamp(server.clock.times().0)),
        user_roles: Some(user.map_or_else(no_roles, |user| Arc::clone(&user.shown))),
    }
}

/// The roles of clients that have not authenticated.
fn no_roles() -> Arc<Bson> {
    static NONE: OnceLock<Arc<Bson>> = OnceLock::new();
    Arc::clone(NONE.get_or_init(|| Arc::new(Bson::Array(Vec::new()))))
}
