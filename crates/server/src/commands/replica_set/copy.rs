//! `replSetCopy`: answers a member that copies the data of this one.

use std::sync::Arc;
use std::time::Duration;

use bson::RawDocumentBuf;
use query::{Code, Error, Result};
use repl::position::Position;
use wire::Builder;

use super::not_initialized;
use super::talk::inside;
use crate::cluster::driver::key_of;
use crate::cluster::member::{Member, gone};
use crate::cluster::standing::Standing;
use crate::cluster::sync::letter::{Answer, Content, Request, reply};
use crate::request::Call;
use crate::server::Server;

/// How long an answer waits for the disk.
const WAIT: Duration = Duration::from_secs(10);

pub(super) fn copy(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    inside(request)?;
    let asked = Request::parse(request.arguments())?;
    let server = Arc::clone(&request.server);
    request
        .later
        .set(async move { answer(&server, asked).await });
    Ok(())
}

async fn answer(server: &Arc<Server>, request: Request) -> Result<RawDocumentBuf> {
    let member = server.member.as_ref().ok_or_else(not_initialized)?;
    check(member, &request)?;
    let rollbacks = member.storage.rollbacks();
    let storage = Arc::clone(&member.storage);
    let read = tokio::task::spawn_blocking(move || storage.answer(request.from, &request.asked));
    let (answer, at) = read.await.map_err(|_| gone())??;
    let mut stopping = server.stopping();
    tokio::select! {
        durable = await_durable(member, at) => durable?,
        _ = stopping.wait_for(|stopping| *stopping) => return Err(gone()),
    }
    // `cluster::sync`: Z1.
    let answer = match member.storage.rollbacks() == rollbacks {
        true => answer,
        false => Answer {
            content: Content::Again("the source rolls back".to_owned()),
            ..answer
        },
    };
    reply(&answer)
}

/// Check that the request is for this member, which has data, from another one of its set.
fn check(member: &Member, request: &Request) -> Result<()> {
    let view = member.view();
    let serves = matches!(view.standing, Standing::Primary | Standing::Secondary);
    let config = view.config.as_ref().ok_or_else(not_initialized)?;
    let known = request.set == key_of(config)
        && view.me == Some(request.to)
        && request.from != request.to
        && config.member(request.from).is_some();
    if !known || !serves {
        let message = "this server does not serve members of that set in its present state";
        return Err(Error::new(Code::NOT_PRIMARY_OR_SECONDARY, message));
    }
    Ok(())
}

/// Wait until the entries up to a position survive a loss of power.
async fn await_durable(member: &Member, at: Position) -> Result<()> {
    let mut progress = member.progress.clone();
    let durable = progress.wait_for(|progress| at <= progress.durable);
    match tokio::time::timeout(WAIT, durable).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(gone()),
        Err(_) => {
            let message = "the entries of this member are not durable in time";
            Err(Error::new(Code::EXCEEDED_TIME_LIMIT, message))
        }
    }
}
