//! `createBackup`: a backup of the store at work, into a directory or an archive of this machine.
//!
//! The command is Percona Server's, with `incremental`, `compression` and `throttle` added. It
//! takes turns on the processors like other long operations, and ends when it is killed or its
//! client is gone; what it wrote is then removed. Writes wait only for the cut (see
//! `Engine::backup_to`).
//!
//! - U1. A copy that has an entry of the oplog has undo records from the first entry on that it
//!   lacks: a restore to a time takes back what follows that (`docdb::replica::replay`).

mod place;
mod stream;

use std::path::Path;
use std::time::Duration;

use backup::{Clock, Codec, Facts, Manifest, Monotonic, OperationTime, Place, Throttle};
use docdb::Store;
use kv::{ErrorKind, Flow, Progress};
use query::{Code, Error, Result, meter};
use wire::Builder;

use crate::access::Privilege;
use crate::command::{ABANDON, ADMIN, Lane};
use crate::long::long;
use crate::request::Call;
use crate::row::Row;
use crate::version::ROMANESCO;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "createBackup",
        create,
        "Back the store up to a directory or an archive on the server's machine",
    )
    .lane(Lane::Storage)
    .flags(ADMIN | ABANDON)
    .fields(&[
        "backupDir",
        "archive",
        "incremental",
        "compression",
        "throttle",
    ])
    .privilege(Privilege::Cluster("startBackup")),
    Row::new(
        "streamBackup",
        stream::run,
        "Begin a backup that the client receives, or return the next part of it",
    )
    .lane(Lane::Storage)
    .flags(ADMIN)
    .fields(&["stream", "end", "compression", "throttle"])
    .privilege(Privilege::Cluster("startBackup")),
];

/// How `currentOp` describes it.
const STAGE: &str = "Backup: copying files";

/// The name in the store's properties of its identifier.
const STORE_ID: &str = crate::store_id::PROPERTY;

/// The clock of the throttle: a wait holds no time slice.
#[derive(Default)]
struct Resting(Monotonic);

impl Clock for Resting {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) {
        meter::rest();
        self.0.sleep(duration);
    }
}

fn create(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let (codec, rate) = options(call)?;
    let throttle = rate.map(|rate| Throttle::new(rate, Box::new(Resting::default())));
    let place = place::asked(arguments, &call.server.config)?;
    let Some(_alone) = call.server.backing_up.try_lock_for(Duration::ZERO) else {
        return Err(busy());
    };
    let base = place::base(arguments, &place)?;
    let manifest = take(call, &place, codec, throttle, base.as_deref())?;
    describe(&place, &manifest, reply);
    Ok(())
}

/// The compression, and the limit of bytes per second.
fn options(call: &Call<'_>) -> Result<(Codec, Option<u64>)> {
    let arguments = call.arguments();
    let codec = arguments.string("compression")?.unwrap_or("none");
    let codec: Codec = codec.parse().map_err(Error::bad_value)?;
    let Some(rate) = arguments.long("throttle")? else {
        return Ok((codec, None));
    };
    match u64::try_from(rate) {
        Ok(rate @ 1..) => Ok((codec, Some(rate))),
        _ => {
            let message = "throttle is a number of bytes per second, at least 1";
            Err(Error::bad_value(message))
        }
    }
}

fn busy() -> Error {
    let message = "another backup is being taken; wait for it or end it with killOp";
    Error::new(Code::CONFLICTING_OPERATION_IN_PROGRESS, message)
}

/// What the manifest states about the store.
fn facts(store: &Store) -> Result<Facts> {
    Ok(Facts {
        product: ROMANESCO.to_owned(),
        store: store
            .property(STORE_ID)?
            .map(|id| crate::store_id::text(&id)),
        operation_time: store.oplog_visible().map(|time| OperationTime {
            seconds: time.time,
            increment: time.increment,
        }),
    })
}

fn take(
    call: &Call<'_>,
    place: &Place,
    codec: Codec,
    throttle: Option<Throttle>,
    base: Option<&Path>,
) -> Result<Manifest> {
    let store = &call.server.store;
    let _undo = match call.server.member {
        // It keeps undo records all the time.
        Some(_) => None,
        None => KeptUndo::begin(call)?,
    };
    let facts = facts(store)?;
    let mut stopped = None;
    let mut before = 0;
    let mut watch = |progress: Progress| {
        call.examined
            .set_stage(STAGE, progress.done_bytes, progress.total_bytes);
        let bytes = usize::try_from(progress.done_bytes - before).unwrap_or(usize::MAX);
        before = progress.done_bytes;
        match call.op().check().and_then(|()| meter::read(bytes)) {
            Ok(()) => Flow::Continue,
            Err(error) => {
                stopped = Some(error);
                Flow::Cancel
            }
        }
    };
    let engine = store.engine();
    let taken = backup::take(engine, place, codec, throttle, facts, base, &mut watch);
    match (taken, stopped) {
        (Ok(Some(manifest)), _) => Ok(manifest),
        (_, Some(stopped)) => Err(stopped),
        (Ok(None), None) => Err(Error::new(Code::INTERRUPTED, "the backup was cancelled")),
        (Err(error), None) => Err(failure(&error)),
    }
}

/// Undo records, which the only member of a set keeps while it is copied (U1).
struct KeptUndo<'s>(&'s Store);

impl<'s> KeptUndo<'s> {
    /// Keep undo records from now on. All entries that have none are committed when it returns.
    fn begin(call: &'s Call<'_>) -> Result<Option<KeptUndo<'s>>> {
        let store = &call.server.store;
        let Some(replica) = store.replica() else {
            return Ok(None);
        };
        replica.keep_undo(call.op(), true)?;
        let kept = KeptUndo(store);
        if let Some(last) = store.oplog_last() {
            store.settle_oplog(call.op(), last)?;
        }
        Ok(Some(kept))
    }
}

impl Drop for KeptUndo<'_> {
    fn drop(&mut self) {
        let Some(replica) = self.0.replica() else {
            return;
        };
        // It takes no turn to end this, and cannot fail.
        let ended = replica.keep_undo(&docdb::Op::new(kv::Durability::Interval), false);
        debug_assert!(ended.is_ok(), "only the begin writes");
        replica.set_committed(replica.visible());
    }
}

/// The client error for an error of a backup.
fn failure(error: &kv::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::Exists | ErrorKind::Invalid => Code::BAD_VALUE,
        ErrorKind::NotFound => Code::NON_EXISTENT_PATH,
        ErrorKind::Full => Code::OUT_OF_DISK_SPACE,
        ErrorKind::Unsupported => Code::COMMAND_NOT_SUPPORTED,
        ErrorKind::Closed => Code::INTERRUPTED_AT_SHUTDOWN,
        _ => Code::OPERATION_FAILED,
    };
    Error::new(code, format!("the backup failed: {error}"))
}

/// The reply: what was written.
fn describe(place: &Place, manifest: &Manifest, reply: &mut Builder) {
    let sum = |size: fn(&backup::FileEntry) -> u64| {
        let sizes = manifest.files.iter().map(size);
        long(sizes.sum::<u64>())
    };
    reply.open_document("backup");
    reply.string("path", &place.path().to_string_lossy());
    reply.string("engine", &manifest.engine);
    reply.string("compression", &manifest.codec.to_string());
    if let Some(base) = &manifest.base {
        reply.string("base", &base.name);
    }
    reply.long("files", long(manifest.files.len()));
    reply.long("bytes", sum(|file| file.size));
    reply.long("storedBytes", sum(|file| file.stored_size));
    reply.close();
}
