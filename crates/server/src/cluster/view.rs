//! What clients and writers see of a member: values that its driver replaces as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bson::DateTime;
use bson::oid::ObjectId;
use repl::position::Position;

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
    /// The member that this one fetches from.
    pub(crate) source: Option<u32>,
    /// When this member became primary.
    pub(crate) elected: Option<DateTime>,
    /// Why the member is not a secondary.
    pub(crate) info: String,
}

/// What a member reported last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) at: Instant,
    pub(crate) at_date: DateTime,
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
            source: None,
            elected: None,
            info: String::new(),
        }
    }
}
