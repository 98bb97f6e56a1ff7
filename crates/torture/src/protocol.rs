//! The messages between supervisor and worker: JSON, one message per line. After an `entry` line
//! the bytes of its key and value follow, unencoded.
//!
//! Both ends are the same binary. I1: the worker writes each message whole, under one lock, so that
//! the order of messages is their order in time.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use kv::{Durability, EngineOptions};
use serde::{Deserialize, Serialize};

use crate::key::Key;

/// A request from the supervisor to the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Open the store, check it, and send its entries.
    Start(Box<Start>),
    /// Start to write.
    Go,
    /// Stop writing, close the store, and exit.
    Close,
}

/// The parameters of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// The name of the engine.
    pub engine: String,
    /// The directory of the store.
    pub directory: PathBuf,
    /// The engine's options.
    pub options: EngineOptions,
    /// The seed for the worker's operations.
    pub seed: u64,
    /// The number of writers.
    pub writers: u32,
    /// The counter of each writer's first commit; greater than all counters used before.
    pub first: u64,
    /// How the worker cheats; used in tests of the supervisor.
    pub lie: Option<Lie>,
    /// The call in which the worker kills itself, if the engine is betree.
    pub abort: Option<Abort>,
}

/// A system call of the engine in which the process kills itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// Prefix of the call's site; if empty, every call that changes a file counts.
    pub site: String,
    /// The number of the call among the matching calls, from 1.
    pub nth: u64,
    /// Whether the process ends before, during or after the call.
    pub part: Part,
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Abort { site, nth, part } = self;
        let part = match part {
            Part::Before => "before",
            Part::Half => "in the middle of",
            Part::After => "after",
        };
        let site = if site.is_empty() { "any site" } else { site };
        write!(f, "{part} call {nth} of {site}")
    }
}

impl FromStr for Abort {
    type Err = String;

    /// Parses `SITE:N`: the process ends after the N-th call at SITE.
    fn from_str(text: &str) -> Result<Abort, String> {
        let parts = text.rsplit_once(':');
        let parsed = parts.and_then(|(site, nth)| Some((site, nth.parse().ok()?)));
        let (site, nth) = parsed.ok_or_else(|| format!("{text}: write SITE:N, as log.sync:3"))?;
        Ok(Abort {
            site: site.to_owned(),
            nth,
            part: Part::After,
        })
    }
}

/// How much of the last call is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The call is not executed.
    Before,
    /// A write writes only the first half of its bytes; other calls are executed whole.
    Half,
    /// The call is executed whole.
    After,
}

/// Ways in which a worker cheats; the supervisor must detect each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// Sometimes acknowledge a commit that is not executed.
    Skip,
    /// Acknowledge every commit at once, but execute it only together with the next one.
    Hold,
    /// Sometimes execute half of a commit.
    Tear,
    /// Commit a transaction that is reported as rolled back.
    Leak,
    /// After opening, do not send the entries of the newest commit, as if they had been lost.
    Drop,
}

/// One change within a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Set a key to a value of this length, whose bytes depend on the commit.
    Put(Key, u32),
    /// Remove a key.
    Delete(Key),
    /// Delete the keys of a tree from the first (inclusive) to the second (exclusive).
    DeleteRange(Key, Key),
}

/// The announcement of a commit, sent before the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The writer.
    pub writer: u32,
    /// The number of the commit; a writer's numbers ascend.
    pub counter: u64,
    /// The durability that the acknowledgement will promise.
    pub durability: Durability,
    /// Whether it is a transaction; otherwise it is a batch.
    pub transaction: bool,
    /// The changes of the commit, in order.
    pub changes: Vec<Change>,
}

/// A message from the worker to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The store is open.
    Opened,
    /// The engine's own check has run; false if the engine has no such check.
    Verified(bool),
    /// An entry of a tree; its bytes follow this line.
    Entry {
        /// The number of the tree.
        tree: u8,
        /// Length of the key in bytes.
        key: u32,
        /// Length of the value in bytes.
        value: u32,
    },
    /// All entries were sent.
    Dumped,
    /// A commit is about to start.
    Intend(Intent),
    /// The commit of this writer with this counter returned.
    Acked(u32, u64),
    /// The commit of this writer with this counter was rolled back, or refused with a conflict.
    Aborted(u32, u64),
    /// A sync of all commits has started.
    SyncBegun,
    /// This sync returned.
    Synced,
    /// An unexpected error, or a wrong result.
    Wrong(String),
    /// The store was closed.
    Closed,
}
