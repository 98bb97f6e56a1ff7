//! `fsync` and `fsyncUnlock`.

use std::time::Duration;

use query::{Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::command::{ADMIN, Lane};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "fsync",
        fsync,
        "Flush all data to disk; with `lock: true`, block writes",
    )
    .lane(Lane::Reserved)
    .flags(ADMIN)
    .fields(&["lock", "fsyncLockAcquisitionTimeoutMillis", "async"])
    .privilege(Privilege::Cluster("fsync")),
    Row::new(
        "fsyncUnlock",
        unlock,
        "Unblock writes after `fsync` with `lock: true`",
    )
    .lane(Lane::Reserved)
    .flags(ADMIN)
    .privilege(Privilege::Cluster("unlock")),
];

/// Default time that a lock waits for running writes: MongoDB's value.
const WAIT: Duration = Duration::from_secs(90);

fn fsync(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let limit = match arguments.long("fsyncLockAcquisitionTimeoutMillis")? {
        None => WAIT,
        Some(millis) => match u64::try_from(millis) {
            Ok(millis) => Duration::from_millis(millis),
            Err(_) => {
                let message = "fsyncLockAcquisitionTimeoutMillis has to be >= 0";
                return Err(Error::bad_value(message));
            }
        },
    };
    let server = &request.server;
    if !arguments.is_on("lock")? {
        server.store.checkpoint()?;
        reply.int("numFiles", 1);
        return Ok(());
    }
    let count = server.freeze.lock(limit)?;
    server.store.pause(true);
    if let Err(error) = server.store.checkpoint() {
        if server.freeze.unlock()? == 0 {
            server.store.pause(false);
        }
        return Err(error);
    }
    reply.string(
        "info",
        "now locked against writes, use db.fsyncUnlock() to unlock",
    );
    reply.long("lockCount", count);
    reply.string("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
    Ok(())
}

fn unlock(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let server = &request.server;
    let left = server.freeze.unlock()?;
    if left == 0 {
        server.store.pause(false);
    }
    reply.string("info", "fsyncUnlock completed");
    reply.long("lockCount", left);
    Ok(())
}
