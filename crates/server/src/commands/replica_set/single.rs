//! The replica set whose only member is this server since its start: `replSetGetStatus` and
//! `replSetGetConfig`; and `replSetResizeOplog`.

use std::time::Duration;

use bson::{Bson, DateTime, Document, RawBsonRef, doc};
use query::{Code, Error, Result};
use wire::Builder;

use super::name;
use crate::oplog;
use crate::request::Call;
use crate::state::clock;

fn optime(time: bson::Timestamp, term: i64) -> Document {
    doc! {"ts": time, "t": term}
}

pub(super) fn status(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let set = name(request)?;
    let server = &request.server;
    let topology = &server.topology;
    let time = server.written();
    let date = DateTime::from_millis(i64::from(time.time) * 1_000);
    let optime = optime(time, topology.term);
    let uptime = i32::try_from(server.started.elapsed().as_secs()).unwrap_or(i32::MAX);
    let started = server.started_at;
    let elected = u32::try_from(started.timestamp_millis() / 1_000).unwrap_or(0);
    let elected = bson::Timestamp {
        time: elected,
        increment: 1,
    };
    reply
        .string("set", set)
        .date("date", clock::now())
        .int("myState", 1);
    reply
        .long("term", topology.term)
        .string("syncSourceHost", "")
        .int("syncSourceId", -1);
    reply
        .long("heartbeatIntervalMillis", 2_000)
        .int("majorityVoteCount", 1);
    reply
        .int("writeMajorityCount", 1)
        .int("votingMembersCount", 1);
    reply.int("writableVotingMembersCount", 1);
    reply.value("optimes", &Bson::Document(doc! {
        "lastCommittedOpTime": optime.clone(), "lastCommittedWallTime": date,
        "readConcernMajorityOpTime": optime.clone(), "appliedOpTime": optime.clone(),
        "durableOpTime": optime.clone(), "lastAppliedWallTime": date, "lastDurableWallTime": date,
    }));
    reply.value("members", &Bson::Array(vec![Bson::Document(doc! {
        "_id": 0, "name": topology.me.as_str(), "health": 1.0, "state": 1, "stateStr": "PRIMARY",
        "uptime": uptime, "optime": optime, "optimeDate": date,
        "lastAppliedWallTime": date, "lastDurableWallTime": date,
        "syncSourceHost": "", "syncSourceId": -1, "infoMessage": "",
        "electionTime": elected, "electionDate": started,
        "configVersion": 1, "configTerm": topology.term, "self": true,
        "lastHeartbeatMessage": "",
    })]));
    Ok(())
}

pub(super) fn config(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    name(request)?;
    if let Some(config) = request.server.topology.configuration() {
        reply.value("config", &Bson::Document(config));
    }
    Ok(())
}

pub(super) fn resize(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    name(request)?;
    let arguments = request.arguments();
    let number = |name: &str| -> Result<Option<f64>> {
        let Some(value) = arguments.get(name) else {
            return Ok(None);
        };
        let number = match value {
            RawBsonRef::Double(n) => n,
            RawBsonRef::Int32(n) => f64::from(n),
            #[expect(
                clippy::cast_precision_loss,
                reason = "checked to be small by the caller"
            )]
            RawBsonRef::Int64(n) => n as f64,
            _ => {
                let message = format!("BSON field 'replSetResizeOplog.{name}' must be a number");
                return Err(Error::type_mismatch(message));
            }
        };
        Ok(Some(number))
    };
    let (size, hours) = (number("size")?, number("minRetentionHours")?);
    if size.is_none() && hours.is_none() {
        let message = "replSetResizeOplog needs size (megabytes) or minRetentionHours";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if size.is_some_and(|size| !(990.0..=1e9).contains(&size)) {
        let message = "replSetResizeOplog.size must be from 990 to 1000000000 megabytes";
        return Err(Error::bad_value(message));
    }
    if hours.is_some_and(|hours| !(0.0..=1e6).contains(&hours)) {
        let message = "replSetResizeOplog.minRetentionHours must be from 0 to 1000000";
        return Err(Error::bad_value(message));
    }
    let store = &request.server.store;
    if let Some(hours) = hours {
        let age = Duration::from_secs_f64(hours * 3_600.0);
        store.set_oplog_limits(|limits| limits.age = age);
    }
    if let Some(megabytes) = size {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be in range just above"
        )]
        let bytes = (megabytes * f64::from(1 << 20)) as u64;
        oplog::resize(store, bytes)?;
    }
    Ok(())
}
