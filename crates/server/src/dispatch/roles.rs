//! What a member of a replica set may do in its state.
//!
//! | state | reads | writes |
//! |---|---|---|
//! | PRIMARY | all | all |
//! | SECONDARY | with a read preference other than `primary`; cursors continue | 10107 |
//! | others | 13436 | 10107 |

use bson::RawDocument;
use query::{Code, Error, Result};

use crate::arguments::{Arguments, Generic};
use crate::cluster::standing::Standing;
use crate::command::{CONTINUES, Class, Command, READS, WRITES};
use crate::request::Request;
use crate::server::Server;

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
    let limit = request.deadline();
    tokio::select! {
        done = reached => done,
        () = until(limit) => request.op().check(),
        () = request.interrupted.notified() => request.op().check(),
    }
}

/// Wait until what was read is committed by a majority, for a read that wants so.
///
/// # Errors
/// When the operation must end.
pub(super) async fn committed(request: &Request) -> Result<()> {
    let Some(member) = &request.server.member else {
        return Ok(());
    };
    let concern = request.generic.read_concern.as_ref();
    let majority = concern.is_some_and(|c| matches!(c.level.as_str(), "majority" | "snapshot"));
    // Secondaries apply only what is committed.
    if !majority || !member.is_writable() || request.writes() {
        return Ok(());
    }
    let read = request.read.get().copied();
    let Some(read) = read.or_else(|| request.server.store.oplog_visible()) else {
        return Ok(());
    };
    let read = crate::cluster::letter::number(read);
    member.wrote();
    let mut progress = member.progress.clone();
    let reached = async {
        loop {
            let (commit, leads) = {
                let now = progress.borrow_and_update();
                (now.commit.ts, now.leads)
            };
            if read <= commit {
                return Ok(());
            }
            if leads.is_none() {
                let message = "Primary stepped down while waiting for replication";
                return Err(Error::new(Code::PRIMARY_STEPPED_DOWN, message));
            }
            if progress.changed().await.is_err() {
                return Err(super::run::shutting_down());
            }
        }
    };
    tokio::select! {
        done = reached => done,
        () = until(request.deadline()) => request.op().check(),
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
