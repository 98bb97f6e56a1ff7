//! Messages between members. The network may lose, repeat, delay and reorder them.

use std::sync::Arc;

use crate::config::{Config, ConfigId};
use crate::log::Run;
use crate::position::{MemberId, Position, Term};

/// How many members pass a position on at most: as many as a chain of voters has.
pub const HOPS_MAX: u8 = 7;

/// A message with its sender, its receiver and the term that the sender had.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Envelope {
    /// The receiver.
    pub to: MemberId,
    /// The sender.
    pub from: MemberId,
    /// The sender's term when it sent the message.
    pub term: Term,
    /// The content.
    pub message: Message,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// The state of the sender, sent to every member at an interval. The commit point and the
    /// configuration spread by it.
    Heartbeat(Heartbeat),
    /// A candidate asks for a vote.
    VoteRequest(VoteRequest),
    /// The answer.
    VoteReply {
        /// Whether it answers a dry run.
        dry_run: bool,
        /// The term of the election.
        election: Term,
        /// Whether the vote is for the candidate.
        granted: bool,
    },
    /// A member asks its sync source for the entries after its last one.
    Fetch {
        /// The last entry of the member that asks.
        after: Position,
    },
    /// Entries of a sync source. Their content travels beside this message.
    Batch {
        /// The entry before the first of the batch.
        after: Position,
        /// Which entries follow.
        runs: Vec<Run>,
        /// The commit point of the source.
        commit: Position,
    },
    /// The source does not have the entry `after` of a fetch: the shape of its log.
    Diverged {
        /// Its runs.
        runs: Vec<Run>,
    },
    /// A member has stored entries durably. Sent to the sync source, which passes it on.
    Positions(Row),
    /// A primary that steps down asks the receiver to take over at once.
    TakeOver,
}

/// The state of a member, as it reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Heartbeat {
    /// The last written entry.
    pub last: Position,
    /// The last entry that survives a crash.
    pub durable: Position,
    /// The commit point as known by the sender.
    pub commit: Position,
    /// The newest configuration that the sender has stored durably.
    pub config: ConfigId,
    /// The configuration itself, if the receiver may have an older one.
    pub body: Option<Arc<Config>>,
    /// Whether the sender is the primary.
    pub primary: bool,
}

/// What a voter must know of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoteRequest {
    /// Whether the candidate only asks what the voter would answer (pre-vote).
    pub dry_run: bool,
    /// Whether it means to replace a primary that works: it has a higher priority, or an operator
    /// asked for it. Otherwise it has lost the primary, and members that receive word of a
    /// primary do not answer its dry run.
    pub takeover: bool,
    /// The term of the election.
    pub election: Term,
    /// The last entry of the candidate.
    pub last: Position,
    /// The configuration of the candidate.
    pub config: ConfigId,
}

/// The durable position of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The member.
    pub member: MemberId,
    /// Its term when it reported the position; members that pass the row on do not change it.
    pub term: Term,
    /// Its last durable entry.
    pub durable: Position,
    /// How many more members may pass the row on. Sources can form a circle for a moment, in which
    /// a row would travel for ever.
    pub hops: u8,
}
