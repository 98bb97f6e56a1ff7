//! What a member of a replica set may do in its state.
//!
//! | state | reads | writes |
//! |---|---|---|
//! | PRIMARY | all | all |
//! | SECONDARY | with a read preference other than `primary`; cursors continue | 10107 |
//! | others | 13436 | 10107 |
//!
//! - R1. A read of what is committed is answered only if a majority has all that it saw. Its time
//!   is compared with the commit point of the same log: a rollback since the read began ends it.
//! - R2. A linearizable read is answered only if, after it, the primary has committed an entry of
//!   its own term: no other primary has committed anything before the read.
//! - R3. A change stream that begins now is answered when a majority has what is before it: were
//!   that taken back, other entries could get earlier times than its position.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, Timestamp};
use docdb::Op;
use docdb::plant::{Plant, planted};
use query::{Code, Error, Result};
use tokio::sync::oneshot;
use tokio::sync::watch::Receiver;

use crate::arguments::{Arguments, Generic};
use crate::cluster::letter::number;
use crate::cluster::member::Member;
use crate::cluster::standing::Standing;
use crate::cluster::view::Progress;
use crate::command::{CONTINUES, Class, Command, READS, WRITES};
use crate::request::{Request, stream_of};
use crate::server::Server;

/// How long a wait for a position goes without looking whether that position will ever be written.
const GIVEN_UP: Duration = Duration::from_millis(50);

/// The level that reads what no later primary can have changed.
const LINEARIZABLE: &str = "linearizable";

/// What a member was when a request began.
#[derive(Clone, Copy)]
pub(super) struct Began {
    /// The term in which it accepted writes.
    term: Option<u64>,
    /// How many rollbacks it had begun.
    rollbacks: u64,
}

/// What this server is as a request begins; `None` if it is no member of a set of several.
pub(super) fn begin(request: &Request) -> Option<Began> {
    let member = request.server.member.as_ref()?;
    let rollbacks = member.storage.rollbacks();
    let term = member.progress.borrow().leads;
    Some(Began { term, rollbacks })
}

/// Check that a member in this state runs the command.
///
/// # Errors
/// `NotWritablePrimary`, `NotPrimaryNoSecondaryOk`, `NotPrimaryOrSecondary`.
pub(super) fn check(
    server: &Server,
    command: &Command,
    generic: &Generic,
    (arguments, body): (&Arguments<'_>, &RawDocument),
) -> Result<()> {
    let Some(member) = &server.member else {
        return Ok(());
    };
    if member.is_writable() || generic.database == "local" {
        return Ok(());
    }
    let stage = command.writing_stage;
    let writes = command.has(WRITES) || stage.is_some_and(|stage| stage(body).is_some());
    if writes || generic.in_transaction {
        return Err(Error::new(Code::NOT_WRITABLE_PRIMARY, "not primary"));
    }
    let concern = generic.read_concern.as_ref();
    if concern.is_some_and(|concern| concern.level == LINEARIZABLE) {
        let message = "cannot satisfy linearizable read concern on non-primary node";
        return Err(Error::new(Code::NOT_WRITABLE_PRIMARY, message));
    }
    let reads = command.class == Class::Read || command.has(READS);
    if !reads {
        return Ok(());
    }
    match member.view().standing {
        Standing::Secondary if command.has(CONTINUES) || is_secondary_ok(arguments) => Ok(()),
        Standing::Secondary | Standing::Arbiter => Err(Error::new(
            Code::NOT_PRIMARY_NO_SECONDARY_OK,
            "not primary and secondaryOk=false",
        )),
        other => {
            let message = format!(
                "node is not in primary or recovering state: {}",
                other.name()
            );
            Err(Error::new(Code::NOT_PRIMARY_OR_SECONDARY, message))
        }
    }
}

/// Whether a client accepts the data of a secondary.
fn is_secondary_ok(arguments: &Arguments<'_>) -> bool {
    let preference = arguments.document("$readPreference").ok().flatten();
    let mode = preference.and_then(|preference| preference.get_str("mode").ok());
    mode.is_some_and(|mode| mode != "primary")
}

/// Before a read on a secondary: wait until it has applied the time that the read names. After the
/// waits of reads with `majority`, see [`committed`].
///
/// # Errors
/// When the operation must end.
pub(super) async fn reach(request: &Request) -> Result<()> {
    let Some(member) = &request.server.member else {
        return Ok(());
    };
    let concern = request.generic.read_concern.as_ref();
    let time = concern.and_then(|concern| concern.after.max(concern.at));
    let Some(time) = time.filter(|_| !member.is_writable()) else {
        return Ok(());
    };
    let time = crate::cluster::letter::number(time);
    let mut progress = member.progress.clone();
    let reached = async {
        let done = progress.wait_for(|now| time <= now.applied.ts).await;
        done.map(|_| ()).map_err(|_| super::run::shutting_down())
    };
    limited(request, reached).await
}

/// Wait until what was read is committed by a majority, for a read that wants so (R1, R2).
///
/// # Errors
/// When the operation must end.
pub(super) async fn committed(request: &Arc<Request>, began: Option<Began>) -> Result<()> {
    let (Some(member), Some(began)) = (&request.server.member, began) else {
        return Ok(());
    };
    let concern = request.generic.read_concern.as_ref();
    let level = concern.map_or("", |concern| concern.level.as_str());
    // A snapshot is of an exact time (see `moment`), that of a transaction is committed with it.
    let past = level == "snapshot" && !request.generic.in_transaction;
    let waits = request.reads_committed() || past || level == LINEARIZABLE;
    if request.writes() || !(waits || begins_stream(request.body())) {
        return Ok(());
    }
    if planted(Plant::ReadUncommitted) && level != LINEARIZABLE {
        return Ok(());
    }
    if level == LINEARIZABLE {
        if planted(Plant::ReadWithoutEntry) {
            return Ok(());
        }
        confirm(request).await?;
        // Up to the entry behind the read.
        *request.seen.lock() = request.server.store.oplog_seen();
    }
    let exact = request.read.get().copied().filter(|_| past);
    let Some(seen) = exact.or_else(|| *request.seen.lock()) else {
        return Ok(());
    };
    limited(request, reached(request, member, (began, seen))).await
}

/// R3: whether a command opens a change stream that begins now.
fn begins_stream(body: &RawDocument) -> bool {
    let starts = ["resumeAfter", "startAfter", "startAtOperationTime"];
    let given = |stage: &RawDocument| {
        starts
            .iter()
            .any(|name| matches!(stage.get(name), Ok(Some(_))))
    };
    stream_of(body).is_some_and(|stage| !given(stage))
}

/// Put an entry behind a read (R2).
async fn confirm(request: &Arc<Request>) -> Result<()> {
    let (answer, done) = oneshot::channel();
    let job = Arc::clone(request);
    let taken = request.server.pool.submit(move || {
        let note = bson::rawdoc! {"msg": "linearizable read"};
        // A client that has disconnected receives no answer.
        let _: std::result::Result<(), _> =
            answer.send(job.server.store.append_oplog_note(&job.op(), &note));
    });
    if !taken {
        return Err(super::run::shutting_down());
    }
    let done = done.await;
    done.unwrap_or_else(|_| Err(super::run::failed_inside(request)))
}

/// Wait until the commit point has reached a time.
async fn reached(
    request: &Request,
    member: &Member,
    (began, time): (Began, Timestamp),
) -> Result<()> {
    member.wrote();
    let mut progress = member.progress.clone();
    loop {
        let (commit, leads) = {
            let now = progress.borrow_and_update();
            (now.commit.ts, now.leads)
        };
        let time = number(request.server.store.oplog_reached(time));
        // After the commit point was read: it is that of the log that was read (R1).
        if member.storage.rollbacks() != began.rollbacks {
            let message = "what was read was rolled back; retry the read";
            return Err(Error::new(
                Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                message,
            ));
        }
        if time <= commit {
            return Ok(());
        }
        if began.term.is_some() && leads != began.term {
            let message = "Primary stepped down while waiting for replication";
            return Err(Error::new(Code::PRIMARY_STEPPED_DOWN, message));
        }
        if changed(&mut progress).await.is_err() {
            return Err(super::run::shutting_down());
        }
    }
}

/// Wait until the positions of the members have changed, or until a write may have been given up,
/// which changes none.
///
/// # Errors
/// When the member has ended.
pub(super) async fn changed(progress: &mut Receiver<Progress>) -> std::result::Result<(), ()> {
    match tokio::time::timeout(GIVEN_UP, progress.changed()).await {
        Ok(Err(_)) => Err(()),
        Ok(Ok(())) | Err(_) => Ok(()),
    }
}

/// Wait, unless the operation must end before.
async fn limited(request: &Request, reached: impl Future<Output = Result<()>>) -> Result<()> {
    let deadline = request.deadline().or_else(|| request.ends.get().copied());
    tokio::select! {
        done = reached => done,
        () = until(deadline) => Op { deadline, ..request.op() }.check(),
        () = request.interrupted.notified() => request.op().check(),
    }
}

/// Completes at a time; never without one.
async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn streams_that_begin_now_wait_and_resumed_ones_do_not() {
        let body = |stage: bson::RawDocumentBuf| rawdoc! {"aggregate": 1, "pipeline": [stage]};
        let begins = |options: bson::RawDocumentBuf| {
            begins_stream(&body(rawdoc! {"$changeStream": options}))
        };
        assert!(begins(rawdoc! {}), "R3: from now on");
        assert!(begins(rawdoc! {"fullDocument": "updateLookup"}), "R3");
        assert!(!begins(rawdoc! {"resumeAfter": {"_data": "82"}}));
        assert!(!begins(rawdoc! {"startAfter": {"_data": "82"}}));
        let time = bson::Timestamp {
            time: 1,
            increment: 1,
        };
        assert!(!begins(rawdoc! {"startAtOperationTime": time}));
        assert!(!begins_stream(&body(rawdoc! {"$match": {}})));
        assert!(!begins_stream(&rawdoc! {"find": "c"}));
    }
}
