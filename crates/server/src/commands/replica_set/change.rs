//! Commands that change a replica set of several members, or the state of this one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::{RawDocumentBuf, doc};
use query::{Code, Error, Result};
use wire::Builder;

use super::{member, name, not_initialized};
use crate::arguments::integer;
use crate::cluster::config::SetConfig;
use crate::cluster::driver::Ask;
use crate::cluster::member::Member;
use crate::cluster::peers::Probed;
use crate::request::{Call, Request};
use crate::server::Server;

/// How long a change of the configuration waits for the one before it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between attempts of that.
const PAUSE: Duration = Duration::from_millis(50);

/// Time between an election and the end of waiting for it.
const ELECTION: Duration = Duration::from_secs(30);

pub(super) fn initiate(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let Some(member) = member(request)? else {
        let message = "already initialized";
        return Err(Error::new(Code::ALREADY_INITIALIZED, message));
    };
    if member.view().config.is_some() {
        return Err(Error::new(Code::ALREADY_INITIALIZED, "already initialized"));
    }
    let set = name(request)?.to_owned();
    let given = match request.target() {
        bson::RawBsonRef::Document(given) if !given.is_empty() => given.to_owned(),
        bson::RawBsonRef::Document(_)
        | bson::RawBsonRef::Int32(_)
        | bson::RawBsonRef::Double(_) => {
            // Without a configuration this server is the only member at first.
            let host = request.server.topology.me.as_str();
            RawDocumentBuf::try_from(&doc! {
                "_id": set.as_str(), "version": 1, "members": [{"_id": 0, "host": host}],
            })?
        }
        _ => {
            let message = "replSetInitiate needs a configuration document";
            return Err(Error::type_mismatch(message));
        }
    };
    let mut config = SetConfig::parse(&given)?;
    if config.name != set {
        let message = format!(
            "Attempting to initiate a replica set with name {}, but this server belongs to {set}",
            config.name
        );
        return Err(Error::new(Code::INVALID_REPLICA_SET_CONFIG, message));
    }
    if config.members.iter().any(|member| member.newly_added) {
        let message = "newlyAdded is set by the server only";
        return Err(Error::new(Code::INVALID_REPLICA_SET_CONFIG, message));
    }
    config.settings.id = Some(ObjectId::new());
    config.term = 0;
    let server = Arc::clone(&request.server);
    request.later.set(async move {
        begin(&server, config).await?;
        Ok(RawDocumentBuf::new())
    });
    Ok(())
}

/// Begin a set when all members are there.
async fn begin(server: &Arc<Server>, config: SetConfig) -> Result<()> {
    let member = here(server)?;
    let mut asked = tokio::task::JoinSet::new();
    for of in &config.members {
        let (peers, host) = (Arc::clone(&member.peers), of.host.clone());
        let (id, set) = (of.id, config.name.clone());
        asked.spawn(async move { (id, peers.probe(&host, &set).await) });
    }
    let mut found: BTreeMap<u32, Probed> = BTreeMap::new();
    while let Some(answer) = asked.join_next().await {
        let (id, probed) = answer.map_err(|error| Error::bad_value(error.to_string()))?;
        let host = config.host(id);
        let probed = probed.map_err(|error| {
            let message = format!(
                "replSetInitiate quorum check failed because not all proposed set members \
                 responded affirmatively: {host} failed with {error}"
            );
            Error::new(Code::NODE_NOT_FOUND, message)
        })?;
        found.insert(id, probed);
    }
    let own = server.topology.process;
    let mut mine = found.iter().filter(|(_, probed)| probed.process == own);
    let (Some((&me, _)), None) = (mine.next(), mine.next()) else {
        let message = "exactly one host of the configuration must be this server";
        return Err(Error::new(Code::INVALID_REPLICA_SET_CONFIG, message));
    };
    for (id, probed) in &found {
        let host = config.host(*id);
        let refuse = |why: &str| {
            let message = format!("replSetInitiate quorum check failed: {host} {why}");
            Err(Error::new(Code::INVALID_REPLICA_SET_CONFIG, message))
        };
        if probed.belongs && *id != me {
            return refuse("belongs to a replica set already");
        }
        if !probed.empty && *id != me {
            return refuse("has data; a new member begins with an empty data directory");
        }
    }
    let config = Box::new(config);
    member.ask(Ask::Initiate { config, me }).await
}

pub(super) fn reconfig(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    if member(request)?.is_none() {
        let message = "replSetReconfig: the only member of this set began it at its start; a set \
            of several members begins with replication.initiate: command";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let given = request
        .target()
        .as_document()
        .ok_or_else(|| Error::type_mismatch("replSetReconfig needs a configuration document"))?;
    let config = SetConfig::parse(given)?;
    let force = request.arguments().is_on("force")?;
    let limit = request.generic.max_time.unwrap_or(PATIENCE);
    let server = Arc::clone(&request.server);
    request.later.set(async move {
        change(here(&server)?, config, force, limit).await?;
        Ok(RawDocumentBuf::new())
    });
    Ok(())
}

/// Change the configuration, as soon as the one before it allows.
async fn change(member: &Member, config: SetConfig, force: bool, limit: Duration) -> Result<()> {
    let begun = stdx::time::now();
    loop {
        let ask = Ask::Reconfig {
            config: Box::new(config.clone()),
            force,
        };
        match member.ask(ask).await {
            Err(error)
                if error.code == Code::CONFIGURATION_IN_PROGRESS && begun.elapsed() < limit =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

pub(super) fn step_down(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    if member(request)?.is_none() {
        let message = "No electable secondaries caught up: this is the only member of the set";
        return Err(Error::new(Code::EXCEEDED_TIME_LIMIT, message));
    }
    let arguments = request.arguments();
    let seconds = match request.target() {
        bson::RawBsonRef::Boolean(true) => 60,
        other => integer(other).unwrap_or(60),
    };
    let force = arguments.is_on("force")?;
    let wait = arguments.long("secondaryCatchUpPeriodSecs")?;
    let wait = wait.unwrap_or(if force { 0 } else { 10 });
    let valid = |n: i64| u64::try_from(n).ok().filter(|n| *n <= 31_536_000);
    let (Some(frozen), Some(wait)) = (valid(seconds), valid(wait)) else {
        let message = "replSetStepDown: seconds must be from 0 to 31536000";
        return Err(Error::bad_value(message));
    };
    if frozen < wait {
        let message = "stepdown period must be longer than secondaryCatchUpPeriodSecs";
        return Err(Error::bad_value(message));
    }
    ask(
        request,
        Ask::StepDown {
            wait: Duration::from_secs(wait),
            force,
            frozen: Duration::from_secs(frozen),
        },
    )
}

pub(super) fn step_up(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    several(request)?;
    let server = Arc::clone(&request.server);
    request.later.set(async move {
        let member = here(&server)?;
        let term = member.view().term;
        member.ask(Ask::StepUp).await?;
        let mut progress = member.progress.clone();
        let elected = progress.wait_for(|now| now.leads.is_some_and(|own| term <= own));
        let elected = tokio::time::timeout(ELECTION, elected).await;
        match elected {
            Ok(Ok(_)) => Ok(RawDocumentBuf::new()),
            _ => Err(Error::new(Code(125), "Election failed.")),
        }
    });
    Ok(())
}

pub(super) fn freeze(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let seconds = integer(request.target()).and_then(|n| u64::try_from(n).ok());
    let seconds = seconds.filter(|n| *n <= 31_536_000);
    let seconds = seconds
        .ok_or_else(|| Error::bad_value("replSetFreeze: seconds must be from 0 to 31536000"))?;
    ask(request, Ask::Freeze(Duration::from_secs(seconds)))
}

pub(super) fn maintain(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let on = crate::arguments::switch(request.target());
    let on = on.ok_or_else(|| Error::type_mismatch("replSetMaintenance needs true or false"))?;
    ask(request, Ask::Maintenance(on))
}

pub(super) fn sync_from(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let member = several(request)?;
    let host = request.target().as_str();
    let host = host.ok_or_else(|| Error::type_mismatch("replSetSyncFrom needs host:port"))?;
    let view = member.view();
    let config = view.config.as_ref().ok_or_else(not_initialized)?;
    let source = config.members.iter().find(|m| m.host == host);
    let source = source.ok_or_else(|| {
        let message = format!("Could not find member \"{host}\" in replica set");
        Error::new(Code::NODE_NOT_FOUND, message)
    })?;
    ask(request, Ask::SyncFrom(source.id))
}

pub(super) fn abort_catch_up(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    ask(request, Ask::AbortCatchUp)
}

/// Ask the driver, and answer when it has.
fn ask(request: &Call<'_>, ask: Ask) -> Result<()> {
    several(request)?;
    let server = Arc::clone(&request.server);
    request.later.set(async move {
        here(&server)?.ask(ask).await?;
        Ok(RawDocumentBuf::new())
    });
    Ok(())
}

/// The membership in a set of several members.
fn several(request: &Request) -> Result<&Member> {
    member(request)?.ok_or_else(|| {
        let command = request.command.name;
        let message = format!("{command}: this server is the only member of its set");
        Error::new(Code::ILLEGAL_OPERATION, message)
    })
}

fn here(server: &Server) -> Result<&Member> {
    server.member.as_ref().ok_or_else(not_initialized)
}
