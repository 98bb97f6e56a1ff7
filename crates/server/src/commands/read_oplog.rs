//! `readOplog`: the next entries of the oplog as they are stored, for an archive. Unlike the
//! documents of `local.oplog.rs` they have the records of retryable writes and transactions.
//!
//! - D1. What is returned is never taken back: a majority of the members has it on disk; of a set
//!   whose only member is this server, this one.

use bson::raw::RawBinaryRef;
use bson::spec::BinarySubtype;
use bson::{Bson, RawBsonRef, RawDocument, Timestamp, doc};
use docdb::oplog::entry::OpTime;
use docdb::replica::Replica;
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::Arguments;
use crate::command::{ADMIN, Lane};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[Row::new(
    "readOplog",
    read,
    "Return the next entries of the oplog as they are stored, for an archive",
)
.lane(Lane::Storage)
.flags(ADMIN)
.fields(&["after", "maxBytes"])
.privilege(Privilege::Cluster("startBackup"))];

/// Bytes of the entries in a reply by default, and at most; more only for one that is longer.
const BYTES: i64 = 4 << 20;
const BYTES_MAX: i64 = 16 << 20;

/// Entries in a reply.
const ENTRIES: usize = 5_000;

fn read(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let bytes = arguments.long("maxBytes")?.unwrap_or(BYTES);
    let bytes = usize::try_from(bytes.min(BYTES_MAX)).unwrap_or(0);
    if bytes == 0 {
        return Err(Error::bad_value(
            "maxBytes is a number of bytes, at least 1",
        ));
    }
    let asked = arguments.document("after")?.map(position).transpose()?;
    let server = &call.server;
    let replica = server.store.replica().ok_or_else(|| {
        let message = "this server keeps no oplog: replication.replSetName and oplogSizeMB say so";
        Error::new(Code::NO_REPLICATION_ENABLED, message)
    })?;
    let after = match asked {
        Some(after) => after,
        None => replica.oldest()?,
    };
    let digest = digest(&replica, after)?;
    let through = through(call, &replica, after)?;
    let name = server.topology.set_name.as_deref().unwrap_or_default();
    reply.string("set", name).value(
        "after",
        &Bson::Document(doc! {"ts": after.ts, "t": after.term}),
    );
    reply.string("digest", &digest);
    reply.value("through", &Bson::Timestamp(through));
    reply.open_array("entries");
    if after.ts < through {
        let found = replica.stored_after(after.ts, ENTRIES, bytes)?;
        let settled = found.iter().take_while(|entry| entry.at.ts <= through);
        for (i, entry) in settled.enumerate() {
            let binary = RawBsonRef::Binary(RawBinaryRef {
                subtype: BinarySubtype::Generic,
                bytes: &entry.value,
            });
            reply.raw(&i.to_string(), binary);
        }
    }
    reply.close();
    Ok(())
}

fn position(after: &RawDocument) -> Result<OpTime> {
    let after = Arguments::of("after", after)?;
    let term = after.long("t")?;
    match (after.get("ts"), term) {
        (Some(RawBsonRef::Timestamp(ts)), Some(term)) => Ok(OpTime { ts, term }),
        _ => Err(Error::bad_value(
            "after is a position: {ts: TIMESTAMP, t: TERM}",
        )),
    }
}

/// The digest of the entry at a position, which the oplog must have, with all behind it; empty
/// before all entries. By it an archive knows that it is of this deployment: two servers that began
/// in the same second have entries at the same positions.
fn digest(replica: &Replica<'_>, after: OpTime) -> Result<String> {
    if let Some(entry) = replica.stored_entry(after)? {
        return Ok(backup::entry_digest(&entry.value));
    }
    if after == OpTime::NONE && replica.has(after)? {
        return Ok(String::new());
    }
    let OpTime { ts, term } = after;
    let shown = format!("Timestamp({}, {}) of term {term}", ts.time, ts.increment);
    let why = match ts < replica.oldest()?.ts {
        true => "it was removed, and what follows it may be as well",
        false => "it is of another deployment, or was rolled back",
    };
    let message = format!("the oplog does not have the entry {shown}: {why}");
    Err(Error::new(Code::CAPPED_POSITION_LOST, message))
}

/// The time up to which entries are returned (D1).
fn through(call: &Call<'_>, replica: &Replica<'_>, after: OpTime) -> Result<Timestamp> {
    let visible = replica.visible().ts;
    if visible <= after.ts {
        return Ok(visible);
    }
    match &call.server.member {
        Some(_) => Ok(visible.min(replica.committed())),
        None => Ok(replica.sync()?.ts),
    }
}
