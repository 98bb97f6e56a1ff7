//! Messages between members. They never wait for the pool of command threads: a stalled engine does
//! not delay heartbeats.

use std::sync::Arc;

use bson::{Document, RawBsonRef, RawDocumentBuf};
use query::{Code, Error, Result};
use repl::message::{Envelope, Message};
use repl::position::Position;
use wire::Builder;

use super::{member, not_initialized};
use crate::cluster::letter::{Letter, fetched_reply, parse_fetch};
use crate::cluster::member::{Member, gone};
use crate::cluster::storage::{Read, Storage as _};
use crate::request::{Call, Request};
use crate::server::Server;

/// The arguments of `replSetMessage`.
pub(super) const MESSAGE: &[&str] = &[
    "set",
    "from",
    "to",
    "term",
    "heartbeat",
    "voteRequest",
    "voteReply",
    "positions",
    "takeOver",
];

/// Bytes of the entries in one reply; more only for one entry that is longer.
const BATCH: usize = 4 << 20;

/// The membership, for a client that may be another member.
///
/// # Errors
/// `Unauthorized` for a client on another machine while members do not authenticate.
pub(super) fn inside(request: &Request) -> Result<&Member> {
    let far = !request.client.peer.ip().is_loopback();
    if !request.server.config.authorization && far {
        let command = request.command.name;
        let message = format!(
            "{command} from another machine needs security.keyFile, by which members recognize \
             each other"
        );
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    member(request)?.ok_or_else(not_initialized)
}

pub(super) fn message(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let member = inside(request)?;
    let (set, letter) = Letter::parse(request.body())?;
    member.deliver(set, letter);
    Ok(())
}

pub(super) fn probe(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let member = inside(request)?;
    let set = request.arguments().need_string("set")?;
    let own = super::name(request)?;
    if set != own {
        let message = format!("this server belongs to the replica set {own}, not to {set}");
        return Err(Error::new(Code::INVALID_REPLICA_SET_CONFIG, message));
    }
    let empty = member.storage.last() == Position::ZERO;
    reply
        .object_id("processId", request.server.topology.process)
        .boolean("belongs", member.view().config.is_some())
        .boolean("empty", empty);
    Ok(())
}

pub(super) fn fetch(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    inside(request)?;
    let (set, envelope) = parse_fetch(request.arguments())?;
    let server = Arc::clone(&request.server);
    request
        .later
        .set(async move { answer(&server, set, envelope).await });
    Ok(())
}

async fn answer(server: &Arc<Server>, set: String, envelope: Envelope) -> Result<RawDocumentBuf> {
    let member = server.member.as_ref().ok_or_else(not_initialized)?;
    let mut stopping = server.stopping();
    let served = tokio::select! {
        served = member.serve(set, envelope) => served?,
        _ = stopping.wait_for(|stopping| *stopping) => {
            return Err(gone());
        }
    };
    let fields = fetched_reply(&served.envelope);
    let Message::Batch { after, .. } = served.envelope.message else {
        return Ok(RawDocumentBuf::try_from(&fields)?);
    };
    let (storage, through) = (Arc::clone(&member.storage), served.through);
    let read = tokio::task::spawn_blocking(move || match after < through {
        true => storage.read(after, through, BATCH),
        false => Ok(Read::Entries(Vec::new())),
    });
    let read = read.await.map_err(|_| not_initialized())??;
    reply(fields, &read)
}

fn reply(fields: Document, read: &Read) -> Result<RawDocumentBuf> {
    let Read::Entries(entries) = read else {
        return Ok(RawDocumentBuf::try_from(&bson::doc! {"tooOld": true})?);
    };
    let mut builder = Builder::new();
    builder.fields(&RawDocumentBuf::try_from(&fields)?);
    builder.open_array("entries");
    for (i, entry) in entries.iter().enumerate() {
        let binary = RawBsonRef::Binary(bson::raw::RawBinaryRef {
            subtype: bson::spec::BinarySubtype::Generic,
            bytes: entry,
        });
        builder.raw(&i.to_string(), binary);
    }
    builder.close();
    Ok(builder.into_document())
}
