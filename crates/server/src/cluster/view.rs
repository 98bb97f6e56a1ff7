//! What clients and writers see of a member: values that its driver replaces as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::DateTime;
use bson::oid::ObjectId;
use repl::position::Position;
use repl::replica::Reason;

use super::config::SetConfig;
use super::letter::Note;
use super::standing::Standing;

/// The role of the member, as `hello` shows it. A change of it is a change of the topology.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) standing: Standing,
    pub(crate) config: Option<Arc<SetConfig>>,
    /// The number of this member.
    pub(crate) me: Option<u32>,
    pub(crate) term: u64,
    /// The primary, if one is known.
    pub(crate) primary: Option<u32>,
    /// Why the member takes no part any more.
    pub(crate) halted: Option<String>,
}

/// How far the members are, for writers that wait and for `replSetGetStatus`.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Whether this member accepts writes, and of which term.
    pub(crate) leads: Option<u64>,
    pub(crate) last: Position,
    pub(crate) durable: Position,
    pub(crate) commit: Position,
    pub(crate) applied: Position,
    /// The last durable entry of each other member, as it reported.
    pub(crate) durable_of: BTreeMap<u32, Position>,
    /// What the other members reported.
    pub(crate) reports: BTreeMap<u32, Report>,
    /// For how long members with data have lacked something.
    pub(crate) lags: Arc<BTreeMap<u32, Duration>>,
    /// What this primary has written and a majority has not.
    pub(crate) uncommitted: Uncommitted,
    /// The member that this one fetches from.
    pub(crate) source: Option<u32>,
    /// When this member became primary.
    pub(crate) elected: Option<DateTime>,
    /// The election that made it primary.
    pub(crate) election: Option<Arc<Election>>,
    /// Its last vote for another member.
    pub(crate) vote: Option<Arc<Vote>>,
    /// Why the member is not a secondary.
    pub(crate) info: String,
}

/// What a primary has written that is not committed; nothing on other members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncommitted {
    /// How long ago the first of these entries was written.
    pub(crate) age: Duration,
    /// About their bytes.
    pub(crate) bytes: u64,
    /// The member whose next acknowledgement lets the commit point advance.
    pub(crate) held_by: Option<u32>,
    /// Whether too few voters with data are in contact: nothing can be committed.
    pub(crate) stuck: bool,
}

/// The election of a primary, as the primary knows it.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    pub(crate) reason: Reason,
    pub(crate) date: DateTime,
    pub(crate) term: u64,
    /// The commit point, and the last entry, when it was elected.
    pub(crate) committed: Position,
    pub(crate) last: Position,
    /// When it began to accept writes.
    pub(crate) began: Option<DateTime>,
    /// When a majority had its first entry.
    pub(crate) majority: Option<DateTime>,
}

/// A vote for another member.
#[derive(Clone, Debug)]
pub(crate) struct Vote {
    pub(crate) candidate: u32,
    pub(crate) date: DateTime,
    pub(crate) term: u64,
    /// What the voter had applied, and the last entry that it knew of.
    pub(crate) applied: Position,
    pub(crate) newest: Position,
}

/// What a member reported last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) at: Instant,
    pub(crate) at_date: DateTime,
    /// Since when it reports without a gap.
    pub(crate) since: Instant,
    pub(crate) last: Position,
    pub(crate) durable: Position,
    pub(crate) config_version: u64,
    pub(crate) config_term: u64,
    pub(crate) note: Note,
    /// The term that the member was in.
    pub(crate) term: u64,
}

impl View {
    /// A member that belongs to no set yet.
    pub(crate) fn startup() -> View {
        View {
            standing: Standing::Startup,
            config: None,
            me: None,
            term: 0,
            primary: None,
            halted: None,
        }
    }

    /// Whether clients may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.standing == Standing::Primary
    }

    /// Identifies the election of the term; later ones compare higher, as in MongoDB.
    pub(crate) fn election(&self) -> ObjectId {
        let mut election = [0; 12];
        let (high, low) = election.split_at_mut(4);
        high.copy_from_slice(&[0x7F, 0xFF, 0xFF, 0xFF]);
        low.copy_from_slice(&self.term.to_be_bytes());
        ObjectId::from_bytes(election)
    }
}

impl Progress {
    pub(crate) fn none() -> Progress {
        Progress {
            leads: None,
            last: Position::ZERO,
            durable: Position::ZERO,
            commit: Position::ZERO,
            applied: Position::ZERO,
            durable_of: BTreeMap::new(),
            reports: BTreeMap::new(),
            lags: Arc::default(),
            uncommitted: Uncommitted::default(),
            source: None,
            elected: None,
            election: None,
            vote: None,
            info: String::new(),
        }
    }
}
