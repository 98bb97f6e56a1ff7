//! `replSetGetStatus` and `replSetGetConfig` of a set of several members.

use bson::{Bson, DateTime, Document, doc};
use docdb::Store;
use query::Result;
use repl::position::Position;
use repl::replica::Reason;
use wire::Builder;

use super::not_initialized;
use crate::cluster::config::{MemberConfig, SetConfig};
use crate::cluster::letter::{date_of, position};
use crate::cluster::member::Member;
use crate::cluster::standing::Standing;
use crate::cluster::view::{Progress, View};
use crate::long::long;
use crate::request::Call;
use crate::state::clock;

pub(super) fn config(member: &Member, reply: &mut Builder) -> Result<()> {
    let view = member.view();
    let config = view.config.as_ref().ok_or_else(not_initialized)?;
    reply.value("config", &Bson::Document(config.to_document()));
    Ok(())
}

pub(super) fn status(request: &Call<'_>, member: &Member, reply: &mut Builder) -> Result<()> {
    let view = member.view();
    let progress = member.progress.borrow().clone();
    let config = view.config.as_ref().ok_or_else(not_initialized)?;
    let core = config.core();
    let source = progress
        .source
        .filter(|_| view.standing != Standing::Primary);
    reply
        .string("set", &config.name)
        .date("date", clock::now())
        .int("myState", view.standing.number())
        .long("term", long(view.term))
        .string("syncSourceHost", source.map_or("", |id| config.host(id)))
        .int("syncSourceId", source.map_or(-1, int))
        .long(
            "heartbeatIntervalMillis",
            long(config.settings.heartbeat_ms),
        )
        .int("majorityVoteCount", count(core.majority()))
        .int("writeMajorityCount", count(core.majority()))
        .int("votingMembersCount", count(core.voters().count()))
        .int(
            "writableVotingMembersCount",
            count(core.members.iter().filter(|m| m.acknowledges()).count()),
        );
    reply.value("optimes", &Bson::Document(optimes(&progress)));
    let shown = uncommitted(&progress, config);
    reply.value("uncommitted", &Bson::Document(shown));
    if let Some(why) = &view.halted {
        reply.string("halted", why);
    }
    elections(&view, config, &progress, reply);
    if let Some(shown) = member.status.to_document() {
        reply.value("initialSyncStatus", &Bson::Document(shown));
    }
    let uptime = request.server.started.elapsed().as_secs();
    let shown = config.members.iter().map(|of| {
        let own = Some(of.id) == view.me;
        Bson::Document(match own {
            true => this(
                of,
                (&view, config),
                &progress,
                (&request.server.store, uptime),
            ),
            false => other(of, config, member, &progress),
        })
    });
    let shown: Vec<Bson> = shown.collect();
    reply.value("members", &Bson::Array(shown));
    Ok(())
}

/// What the primary has written and a majority has not.
fn uncommitted(progress: &Progress, config: &SetConfig) -> Document {
    let uncommitted = progress.uncommitted;
    doc! {
        "millis": long(uncommitted.age.as_millis()),
        "bytes": long(uncommitted.bytes),
        "heldBy": uncommitted.held_by.map_or("", |id| config.host(id)),
        "majorityReached": !uncommitted.stuck,
    }
}

fn optimes(progress: &Progress) -> Document {
    doc! {
        "lastCommittedOpTime": position(progress.commit),
        "lastCommittedWallTime": date_of(progress.commit),
        "readConcernMajorityOpTime": position(progress.commit.min(progress.applied)),
        "appliedOpTime": position(progress.applied),
        "writtenOpTime": position(progress.last),
        "durableOpTime": position(progress.durable),
        "lastAppliedWallTime": date_of(progress.applied),
        "lastWrittenWallTime": date_of(progress.last),
        "lastDurableWallTime": date_of(progress.durable),
    }
}

/// The election of this primary, and the last vote of this member.
fn elections(view: &View, config: &SetConfig, progress: &Progress, reply: &mut Builder) {
    let own = view.me.and_then(|me| config.member(me));
    let priority = own.map_or(0.0, |own| own.priority);
    if let Some(election) = progress.election.as_ref() {
        let mut shown = doc! {
            "lastElectionReason": match election.reason {
                Reason::Timeout => "electionTimeout",
                Reason::Priority => "priorityTakeover",
                Reason::StepUp => "stepUpRequest",
                Reason::HandOver => "stepUpRequestSkipDryRun",
            },
            "lastElectionDate": election.date,
            "electionTerm": long(election.term),
            "lastCommittedOpTimeAtElection": position(election.committed),
            "lastSeenOpTimeAtElection": position(election.last),
            "numVotesNeeded": count(config.core().majority()),
            "priorityAtElection": priority,
            "electionTimeoutMillis": long(config.settings.election_ms),
        };
        if let Some(began) = election.began {
            shown.insert("newTermStartDate", began);
        }
        if let Some(majority) = election.majority {
            shown.insert("wMajorityWriteAvailabilityDate", majority);
        }
        reply.value("electionCandidateMetrics", &Bson::Document(shown));
    }
    if let Some(vote) = progress.vote.as_ref() {
        let shown = doc! {
            "votedForCandidate": true,
            "electionTerm": long(vote.term),
            "lastVoteDate": vote.date,
            "electionCandidateMemberId": int(vote.candidate),
            "voteReason": "",
            "lastAppliedOpTimeAtElection": position(vote.applied),
            "maxAppliedOpTimeInSet": position(vote.newest),
            "priorityAtElection": priority,
        };
        reply.value("electionParticipantMetrics", &Bson::Document(shown));
    }
}

fn this(
    of: &MemberConfig,
    (view, config): (&View, &SetConfig),
    progress: &Progress,
    (store, uptime): (&Store, u64),
) -> Document {
    let source = progress
        .source
        .filter(|_| view.standing != Standing::Primary);
    let mut shown = doc! {
        "_id": int(of.id), "name": &of.host, "health": 1.0,
        "state": view.standing.number(), "stateStr": view.standing.name(),
        "uptime": long(uptime),
    };
    times(&mut shown, of, (progress.applied, progress.durable));
    shown.extend(doc! {
        "syncSourceHost": source.map_or("", |id| config.host(id)),
        "syncSourceId": source.map_or(-1, int),
        "infoMessage": view.halted.as_deref().unwrap_or(&progress.info),
        "configVersion": long(config.version), "configTerm": long(config.term),
        "self": true, "lastHeartbeatMessage": "",
    });
    lag(&mut shown, of, progress);
    let own = store.engine();
    engine(&mut shown, own.name(), own.capabilities().limits.key_max);
    if let Some(elected) = progress.elected.filter(|_| view.is_writable()) {
        election(&mut shown, elected);
    }
    shown
}

fn other(of: &MemberConfig, config: &SetConfig, member: &Member, progress: &Progress) -> Document {
    let health = member.health(of.id);
    let report = progress.reports.get(&of.id);
    let late = std::time::Duration::from_millis(2 * config.settings.election_ms);
    let fresh = |at: std::time::Instant| at.elapsed() <= late;
    let up = report.is_some_and(|report| fresh(report.at));
    let standing = match report {
        None => Standing::Unknown,
        Some(_) if !up => Standing::Down,
        Some(report) => report.note.standing,
    };
    let mut shown = doc! {
        "_id": int(of.id), "name": &of.host, "health": f64::from(u8::from(up)),
        "state": standing.number(), "stateStr": standing.name(),
        "uptime": report.filter(|_| up).map_or(0, |r| long(r.since.elapsed().as_secs())),
    };
    if let Some(report) = report {
        let durable = progress.durable_of.get(&of.id).copied();
        let durable = durable.map_or(report.durable, |known| known.max(report.durable));
        times(&mut shown, of, (report.note.applied, durable));
        shown.insert("lastHeartbeatRecv", report.at_date);
    }
    let answered = health.answered.map(|at| {
        let ago = i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        DateTime::from_millis(clock::now().timestamp_millis().saturating_sub(ago))
    });
    if let Some(answered) = answered {
        shown.insert("lastHeartbeat", answered);
    }
    let source = report.and_then(|report| report.note.source);
    let source = source.filter(|_| standing != Standing::Primary);
    shown.extend(doc! {
        "pingMs": long(health.ping.as_millis()),
        "lastHeartbeatMessage": health.error,
        "syncSourceHost": source.map_or("", |id| config.host(id)),
        "syncSourceId": source.map_or(-1, int),
        "infoMessage": "",
        "configVersion": report.map_or(-1, |report| long(report.config_version)),
        "configTerm": report.map_or(-1, |report| long(report.config_term)),
    });
    lag(&mut shown, of, progress);
    if let Some(own) = report.and_then(|report| report.note.engine.as_ref()) {
        engine(&mut shown, &own.name, own.key_max);
    }
    let elected = report.and_then(|report| report.note.elected);
    if let Some(elected) = elected.filter(|_| standing == Standing::Primary) {
        election(&mut shown, elected);
    }
    shown
}

/// For how long the member has lacked something.
fn lag(shown: &mut Document, of: &MemberConfig, progress: &Progress) {
    if let Some(lag) = progress.lags.get(&of.id) {
        shown.insert("lagMillis", long(lag.as_millis()));
    }
}

/// The storage engine of the member.
fn engine(shown: &mut Document, name: &str, key_max: usize) {
    shown.insert("storageEngine", name);
    shown.insert("keyMaxBytes", long(key_max));
}

/// The times of a member that has data.
fn times(shown: &mut Document, of: &MemberConfig, (applied, durable): (Position, Position)) {
    if of.arbiter {
        return;
    }
    shown.extend(doc! {
        "optime": position(applied), "optimeDurable": position(durable),
        "optimeDate": date_of(applied), "optimeDurableDate": date_of(durable),
        "lastAppliedWallTime": date_of(applied), "lastDurableWallTime": date_of(durable),
    });
}

fn election(shown: &mut Document, elected: DateTime) {
    let seconds = u32::try_from(elected.timestamp_millis() / 1_000).unwrap_or(0);
    shown.insert(
        "electionTime",
        bson::Timestamp {
            time: seconds,
            increment: 1,
        },
    );
    shown.insert("electionDate", elected);
}

fn int(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
