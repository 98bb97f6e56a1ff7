//! Waits until a write is acknowledged as its write concern wants, without a thread.
//!
//! - A1. A write is acknowledged by a majority only if the commit point has reached it in the term
//!   in which it was put.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use bson::{Bson, Document, doc};
use docdb::plant::{Plant, planted};
use query::Code;
use repl::position::{Position, Term};

use super::roles::changed;
use crate::cluster::config::SetConfig;
use crate::cluster::letter::number;
use crate::cluster::member::Member;
use crate::cluster::view::Progress;
use crate::request::Request;

/// What a write concern wants.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// This number of members with data.
    Members(usize),
    Majority,
    /// A mode of the configuration.
    Mode(String),
}

/// Wait for the write concern of a request that may have written. Returns its error, if it cannot
/// be satisfied; the write itself was executed.
/// `term` is that of before its execution.
pub(super) async fn wait(request: &Request, term: Option<u64>) -> Option<Document> {
    if !request.writes() || request.generic.in_transaction && !ends(request) {
        return None;
    }
    match &request.server.member {
        Some(member) => several(request, member, term).await,
        None => alone(request),
    }
}

/// The term in which this member accepts writes.
pub(super) fn term(request: &Request) -> Option<u64> {
    request.server.member.as_ref()?.progress.borrow().leads
}

fn ends(request: &Request) -> bool {
    request.command.has(crate::command::ENDS)
}

/// The error of a write concern that a set of one member cannot satisfy.
fn alone(request: &Request) -> Option<Document> {
    if !request.server.topology.is_replica_set() {
        return None;
    }
    match request.generic.write_concern.w.as_ref()? {
        Bson::Int64(n) if *n > 1 => Some(unsatisfiable()),
        Bson::String(mode) if mode != "majority" => Some(unknown(mode)),
        _ => None,
    }
}

fn unsatisfiable() -> Document {
    let message = "Not enough data-bearing nodes";
    error(Code::UNSATISFIABLE_WRITE_CONCERN, message.to_owned())
}

fn unknown(mode: &str) -> Document {
    let message =
        format!("No write concern mode named '{mode}' found in replica set configuration");
    error(Code::UNKNOWN_REPL_WRITE_CONCERN, message)
}

fn error(code: Code, message: String) -> Document {
    doc! {"code": code.0, "codeName": code.name().into_owned(), "errmsg": message}
}

async fn several(request: &Request, member: &Member, term: Option<u64>) -> Option<Document> {
    member.wrote();
    let view = member.view();
    let config = view.config.as_ref()?;
    let (wanted, journal, timeout) = concern(request, config);
    // The write is on this member, and durable there if the concern wants so.
    if matches!(wanted, Wanted::Members(0 | 1)) {
        return None;
    }
    if let Some(error) = impossible(&wanted, config) {
        return Some(error);
    }
    let mut progress = member.progress.clone();
    let stepped_down = || {
        let message = "Primary stepped down while waiting for replication".to_owned();
        error(Code::PRIMARY_STEPPED_DOWN, message)
    };
    // A write without effect waits for what it may have seen.
    let store = &request.server.store;
    let written = request.written.get().copied();
    let seen = written.is_none().then(|| *request.seen.lock()).flatten();
    let until = written.or(seen).or_else(|| store.oplog_seen())?;
    let Some(term) = term else {
        return Some(stepped_down());
    };
    let me = view.me?;
    let reached = async {
        loop {
            let now = progress.borrow_and_update().clone();
            // A1.
            if now.leads != Some(term) {
                return Some(stepped_down());
            }
            let at = Position {
                term: Term(term),
                ts: number(store.oplog_reached(until)),
            };
            if has(&now, at, &wanted, journal, (config, me)) {
                return None;
            }
            if changed(&mut progress).await.is_err() {
                return Some(stepped_down());
            }
        }
    };
    limited(request, reached, timeout).await
}

/// Wait for an outcome, the limit of time, an interruption or the shutdown.
async fn limited(
    request: &Request,
    reached: impl Future<Output = Option<Document>>,
    timeout: Option<Duration>,
) -> Option<Document> {
    let mut stopping = request.server.stopping();
    tokio::select! {
        outcome = reached => outcome,
        () = over(timeout) => {
            let message = "waiting for replication timed out".to_owned();
            let mut error = error(Code::WRITE_CONCERN_TIMEOUT, message);
            error.insert("errInfo", doc! {"wtimeout": true});
            Some(error)
        }
        () = request.interrupted.notified() => {
            let code = request.killed.load(std::sync::atomic::Ordering::Relaxed);
            Some(error(Code(code), "operation was interrupted".to_owned()))
        }
        _ = stopping.wait_for(|stopping| *stopping) => {
            Some(error(Code::SHUTDOWN_IN_PROGRESS, super::run::shutting_down().message))
        }
    }
}

/// Completes after a limit of time; never without one.
async fn over(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// The write concern of a request: given, the default that was set, or that of the configuration.
fn concern(request: &Request, config: &SetConfig) -> (Wanted, bool, Option<Duration>) {
    let given = &request.generic.write_concern;
    let (mut w, mut journal) = (given.w.clone(), given.journal);
    if !given.given
        && let Some((default_w, default_j)) = request.server.concerns.write()
    {
        (w, journal) = (default_w, default_j);
    }
    let wanted = match w {
        Some(Bson::String(mode)) if mode == "majority" => Wanted::Majority,
        Some(Bson::String(mode)) => Wanted::Mode(mode),
        Some(other) => {
            let n = other.as_i64().or_else(|| other.as_i32().map(i64::from));
            Wanted::Members(usize::try_from(n.unwrap_or(1)).unwrap_or(1))
        }
        None => implied(config),
    };
    let timeout = u64::try_from(given.timeout).ok().filter(|ms| 0 < *ms);
    (
        wanted,
        journal.unwrap_or(false),
        timeout.map(Duration::from_millis),
    )
}

/// Without a default: a majority, unless arbiters leave no member with data that may fail.
fn implied(config: &SetConfig) -> Wanted {
    let core = config.core();
    let data = core.members.iter().filter(|m| m.acknowledges()).count();
    let arbiters = core.members.iter().any(|m| m.arbiter);
    match arbiters && data <= core.majority() {
        true => Wanted::Members(1),
        false => Wanted::Majority,
    }
}

fn impossible(wanted: &Wanted, config: &SetConfig) -> Option<Document> {
    match wanted {
        Wanted::Members(n) if config.data_members().count() < *n => Some(unsatisfiable()),
        Wanted::Mode(mode) if !config.settings.modes.contains_key(mode) => Some(unknown(mode)),
        _ => None,
    }
}

/// Whether enough members have all entries up to a position.
fn has(
    now: &Progress,
    at: Position,
    wanted: &Wanted,
    journal: bool,
    (config, me): (&SetConfig, u32),
) -> bool {
    let durable = |id: u32| now.durable_of.get(&id).is_some_and(|own| at <= *own);
    let own = (!journal && at <= now.last) || at <= now.durable;
    let holds = |id: u32| (id == me && own) || durable(id);
    match wanted {
        Wanted::Members(n) => {
            let holding = config.data_members().filter(|m| holds(m.id)).count();
            *n <= holding && (own || !journal)
        }
        Wanted::Majority => at <= now.commit || planted(Plant::AcknowledgeUncommitted),
        Wanted::Mode(mode) => {
            let needs = config.settings.modes.get(mode);
            needs.is_some_and(|needs| {
                needs.iter().all(|(tag, n)| {
                    let holding = config.data_members().filter(|m| holds(m.id));
                    let values: BTreeSet<&String> =
                        holding.filter_map(|m| m.tags.get(tag)).collect();
                    *n <= values.len()
                })
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bson::RawDocumentBuf;

    use super::*;

    fn at(ts: u64) -> Position {
        Position { term: Term(2), ts }
    }

    fn config() -> SetConfig {
        let member = |id: i32, dc: &str| {
            doc! {"_id": id, "host": format!("h{id}:1"), "tags": {"dc": dc}}
        };
        let config = doc! {
            "_id": "rs0", "version": 1,
            "members": [
                member(0, "a"), member(1, "a"), member(2, "b"),
                {"_id": 3, "host": "h3:1", "arbiterOnly": true},
            ],
            "settings": {"getLastErrorModes": {"both": {"dc": 2}}},
        };
        SetConfig::parse(&RawDocumentBuf::try_from(&config).unwrap()).unwrap()
    }

    #[test]
    fn each_concern_counts_what_it_names() {
        let config = config();
        let durable_of = BTreeMap::from([(1, at(5)), (2, at(3)), (3, at(9))]);
        let now = Progress {
            leads: Some(2),
            last: at(9),
            durable: at(4),
            commit: at(4),
            durable_of,
            ..Progress::none()
        };
        let reached = |wanted: &Wanted, journal| {
            let holds = |ts: &u64| has(&now, at(*ts), wanted, journal, (&config, 0));
            (1..12).take_while(holds).last().unwrap_or(0)
        };
        assert_eq!(reached(&Wanted::Members(1), false), 9);
        assert_eq!(reached(&Wanted::Members(1), true), 4);
        assert_eq!(reached(&Wanted::Members(2), false), 5);
        assert_eq!(
            reached(&Wanted::Members(3), false),
            3,
            "arbiters hold nothing"
        );
        assert_eq!(reached(&Wanted::Majority, false), 4, "A1");
        assert_eq!(reached(&Wanted::Mode("both".to_owned()), false), 3);
        let code = |wanted: &Wanted| {
            let error = impossible(wanted, &config)?;
            error.get_i32("code").ok()
        };
        assert_eq!(code(&Wanted::Members(3)), None);
        assert_eq!(code(&Wanted::Members(4)), Some(100));
        assert_eq!(code(&Wanted::Mode("x".to_owned())), Some(79));
        // Three of four voters are a majority: without one of the three none is left.
        assert_eq!(implied(&config), Wanted::Members(1));
        let mut without = config.clone();
        without.members.remove(3);
        assert_eq!(implied(&without), Wanted::Majority);
    }
}
