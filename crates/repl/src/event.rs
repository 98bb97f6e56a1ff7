//! What goes into a node and what comes out.

use std::sync::Arc;

use crate::config::{Config, ConfigError, Member};
use crate::log::{Log, Run};
use crate::message::Envelope;
use crate::position::{MemberId, Position, Term};

/// What a member must not forget: kept in one small file that is replaced whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hard {
    /// The newest term known.
    pub term: Term,
    /// The candidate that has this member's vote in that term.
    pub voted_for: Option<MemberId>,
    /// The newest configuration.
    pub config: Arc<Config>,
}

/// An input of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message arrived.
    Receive(Envelope),
    /// The election timeout passed, or an operator asked the member to become primary.
    Campaign {
        /// Whether a dry run comes first.
        dry_run: bool,
        /// Whether it means to replace a primary that works, as
        /// [`VoteRequest::takeover`](crate::message::VoteRequest::takeover).
        takeover: bool,
    },
    /// It is time to send a heartbeat to a member.
    Beat(MemberId),
    /// It is time to ask a sync source for entries. It ends a campaign.
    Fetch(MemberId),
    /// All entries up to this one survive a crash. A failed sync never produces this event.
    Durable(Position),
    /// The file with this content survives a crash.
    Persisted(Hard),
    /// A primary that catches up stops waiting for newer entries.
    CatchUpEnded,
    /// A new primary has applied its whole log; `ts` is for the entry that begins its term.
    Drained {
        /// A timestamp after that of the last entry.
        ts: u64,
    },
    /// A client's write was committed to the engine with this timestamp.
    Append {
        /// A timestamp after that of the last entry.
        ts: u64,
    },
    /// The engine has undone the entries after the common point that an effect named.
    RolledBack,
    /// An operator changes the members.
    Reconfig(Vec<Member>),
    /// An operator asks the primary to step down: it refuses writes, and hands over as soon as an
    /// electable member has all entries.
    StepDown,
    /// The time for a hand-over is over.
    StepDownEnded {
        /// Whether to step down all the same; otherwise writes are accepted again.
        force: bool,
    },
    /// Initial sync begins: the member has no entries, and copies the data of another one.
    InitialSync,
    /// Initial sync has ended: the member has the entries of this log, as another member had them
    /// durably, and they survive a crash.
    Synced(Log),
    /// The member enters or leaves maintenance, or cannot catch up with any source.
    Maintenance(bool),
}

/// An output of a node, to be done in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a message.
    Send(Envelope),
    /// Store this in the file, then give [`Event::Persisted`]; a newer one may replace it.
    Persist(Hard),
    /// Write the entries of a batch to the log, then sync it.
    Write {
        /// The entry before the first.
        after: Position,
        /// Which entries follow.
        runs: Vec<Run>,
    },
    /// Write the noop entry that begins a term.
    WriteNoop(Position),
    /// Undo all entries after this one, then give [`Event::RolledBack`].
    Rollback(Position),
    /// The source cannot be followed: its log is older, or lacks committed entries.
    SourceRefused(MemberId),
    /// The role or the phase of the primary changed.
    Role(State),
    /// All entries up to this one are committed and can be applied.
    Committed(Position),
    /// A configuration is in use.
    Installed(Arc<Config>),
    /// The request was refused.
    Refused(Refusal),
}

/// The state of a member, by the names that clients and tools see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum State {
    /// In initial sync.
    Startup2,
    /// In maintenance, or too far behind.
    Recovering,
    /// Copies the log of another member.
    Secondary,
    /// Accepts writes, if `writable`.
    Primary {
        /// Whether it has caught up, applied its log and does not step down.
        writable: bool,
    },
    /// Undoes entries.
    Rollback,
    /// Votes without data.
    Arbiter,
    /// Not in the configuration.
    Removed,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Only a primary that accepts writes can do it.
    #[error("not a writable primary; send the request to the primary")]
    NotPrimary,
    /// The member cannot become primary.
    #[error("not electable: no vote, priority 0, or not a secondary")]
    NotElectable,
    /// A majority of voters does not have the current configuration yet.
    #[error("the current configuration is not on a majority of voters yet; retry")]
    ConfigNotCommitted,
    /// No entry of this term is committed in the current configuration yet.
    #[error("no entry of this term is committed by the current configuration yet; retry")]
    NothingCommitted,
    /// The configuration breaks a rule.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
