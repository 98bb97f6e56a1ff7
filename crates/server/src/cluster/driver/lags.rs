//! How far members are behind, and which of them holds the commit point back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use repl::config::Member;
use repl::event::State;
use repl::position::{MemberId, Position};

use super::{Driver, Seat};
use crate::cluster::lag::History;
use crate::cluster::standing::Standing;
use crate::cluster::view::Uncommitted;
use crate::long::long;

/// Time between measurements of members.
const PERIOD: Duration = Duration::from_millis(250);

/// A member that is further behind is logged.
const LATE: Duration = Duration::from_secs(10);

/// A member that was logged and is not further behind any more has caught up.
const CAUGHT_UP: Duration = Duration::from_secs(1);

/// What is measured.
#[derive(Debug, Default)]
pub(super) struct Lags {
    history: History,
    /// Bytes of all entries that were written here, and the size of the oplog at the last look.
    written: u64,
    size: u64,
    measured: Duration,
    /// The lag of each member with data, if it is known.
    pub(super) of: Arc<BTreeMap<u32, Duration>>,
    /// What the primary has written and a majority has not.
    pub(super) uncommitted: Uncommitted,
    /// Members that are logged as late, and the longest lag of each.
    late: BTreeMap<u32, Duration>,
}

impl Lags {
    /// Whether a line of the log is due for a member: `Some(true)` when it begins to be late.
    fn turns(&mut self, id: u32, lag: Duration) -> Option<bool> {
        match self.late.get_mut(&id) {
            None if LATE < lag => {
                self.late.insert(id, lag);
                Some(true)
            }
            Some(_) if lag <= CAUGHT_UP => Some(false),
            Some(longest) => {
                *longest = lag.max(*longest);
                None
            }
            None => None,
        }
    }
}

impl Driver {
    /// Measure how far members are behind.
    pub(super) fn measure(&mut self) {
        let (now, size) = (self.now(), self.storage.bytes());
        let Some(seat) = &mut self.seat else { return };
        let own = seat.replica.node().last();
        let reported = seat.reports.values().map(|report| report.last).max();
        let newest = reported.map_or(own, |reported| reported.max(own));
        let lags = &mut seat.lags;
        // Removed segments make the oplog smaller.
        lags.written += size.saturating_sub(lags.size);
        lags.size = size;
        lags.history.note(now, newest, lags.written);
        seat.lags.uncommitted = uncommitted(seat, now);
        if now < seat.lags.measured + PERIOD {
            return;
        }
        seat.lags.measured = now;
        let found = found(seat, now);
        seat.lags.late.retain(|id, _| found.contains_key(id));
        seat.lags.of = Arc::new(found);
        self.log_late();
    }

    /// A primary logs which members are late; a member that is none logs that it is itself.
    fn log_late(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        let leads = matches!(seat.replica.node().state(), State::Primary { .. });
        let found = Arc::clone(&seat.lags.of);
        let (me, mut turned) = (seat.me, Vec::new());
        for (id, lag) in found.iter().filter(|(id, _)| leads != (**id == me)) {
            if let Some(late) = seat.lags.turns(*id, *lag) {
                turned.push((*id, *lag, late));
            }
        }
        for (id, lag, late) in turned {
            match late {
                true => self.log_one(id, lag),
                false => {
                    let seat = self.seat.as_mut();
                    let longest = seat.and_then(|seat| seat.lags.late.remove(&id));
                    let attributes = doc! {
                        "host": self.host_of(id),
                        "longestLagSeconds": long(longest.unwrap_or(lag).as_secs()),
                    };
                    self.log(9_100_081, "A member has caught up", attributes);
                }
            }
        }
    }

    fn log_one(&self, id: u32, lag: Duration) {
        let Some(seat) = &self.seat else { return };
        let report = seat.reports.get(&id);
        let (standing, applied) = match report {
            Some(report) if id != seat.me => (report.note.standing, report.note.applied),
            _ => (Standing::of(seat.replica.node().state()), seat.applied),
        };
        let attributes = doc! {
            "host": self.host_of(id),
            "lagSeconds": long(lag.as_secs()),
            "state": standing.name(),
            "applied": super::effects::shown(applied),
            "newest": super::effects::shown(seat.replica.node().last()),
            "holdsBackCommitPoint": seat.lags.uncommitted.held_by == Some(id),
            "answers": self.network.health(id).error.is_empty(),
        };
        self.warn(9_100_080, "A member is late", attributes);
    }
}

/// The lags of members that hold data and copy entries.
fn found(seat: &Seat, now: Duration) -> BTreeMap<u32, Duration> {
    let mut lags = BTreeMap::new();
    for member in seat.config.data_members() {
        let applied = match seat.reports.get(&member.id) {
            _ if member.id == seat.me => Some(seat.applied),
            // It has no positions yet that could be late.
            Some(report) if report.note.standing == Standing::Startup2 => None,
            report => report.map(|report| report.note.applied),
        };
        if let Some(applied) = applied {
            lags.insert(member.id, seat.lags.history.lag(now, applied));
        }
    }
    lags
}

/// What a primary has written that is not committed.
fn uncommitted(seat: &Seat, now: Duration) -> Uncommitted {
    let node = seat.replica.node();
    let (commit, last) = (node.commit(), node.last());
    if !matches!(node.state(), State::Primary { .. }) || commit == last {
        return Uncommitted::default();
    }
    let core = node.config();
    let durable = |member: &Member| match member.id.0 == seat.me {
        true => node.durable(),
        false => node.durable_of(member.id),
    };
    let voters = core.members.iter().filter(|m| m.acknowledges());
    let mut voters: Vec<(Position, MemberId)> = voters.map(|m| (durable(m), m.id)).collect();
    voters.sort_unstable_by(|a, b| b.cmp(a));
    let marginal = voters.get(core.majority() - 1);
    let fresh = |id: &MemberId| {
        let silence = Duration::from_millis(seat.config.settings.election_ms);
        let report = seat.reports.get(&id.0);
        id.0 == seat.me || report.is_some_and(|report| report.at.elapsed() <= silence)
    };
    let reached = voters.iter().filter(|(_, id)| fresh(id)).count();
    Uncommitted {
        age: seat.lags.history.lag(now, commit),
        bytes: seat.lags.history.bytes_after(commit),
        held_by: marginal.map(|(_, id)| id.0),
        stuck: reached < core.majority(),
    }
}
