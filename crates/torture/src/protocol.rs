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

/// A request of the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Open the store, check it, send its entries.
    Start(Box<Start>),
    /// Start to write.
    Go,
    /// Stop writing, close the store, end.
    Close,
}

/// How a worker starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// The engine's name.
    pub engine: String,
    /// The store.
    pub directory: PathBuf,
    /// The engine's options.
    pub options: EngineOptions,
    /// The seed of the worker's operations.
    pub seed: u64,
    /// How many writers.
    pub writers: u32,
    /// The counter of each writer's first commit: above all counters used before.
    pub first: u64,
    /// How the worker cheats, in tests of the supervisor.
    pub lie: Option<Lie>,
    /// Where the worker kills itself, if its engine is betree.
    pub abort: Option<Abort>,
}

/// A call of the engine to the operating system in which the process kills itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// The call's site begins with this; empty: any call that changes a file.
    pub site: String,
    /// Which of those calls, from 1 on.
    pub nth: u64,
    /// Before, in the middle of, or after the call.
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

    /// `SITE:N`: after the N-th call at SITE.
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
    /// Nothing.
    Before,
    /// A write writes the first half of its bytes; other calls are executed.
    Half,
    /// All of it.
    After,
}

/// Ways to cheat: each must be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// Sometimes acknowledge a commit that is not executed.
    Skip,
    /// Acknowledge every commit, and execute it with the next one.
    Hold,
    /// Sometimes execute half of a commit.
    Tear,
    /// Commit a transaction that is reported as rolled back.
    Leak,
    /// Do not send the newest commit's entries after opening, as if it had been lost.
    Drop,
}

/// A change of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Set a key to the commit's value of that length.
    Put(Key, u32),
    /// Remove a key.
    Delete(Key),
    /// Remove the keys of a tree from one to before the other.
    DeleteRange(Key, Key),
}

/// The announcement of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The writer.
    pub writer: u32,
    /// The writer's counter of this commit; counters ascend.
    pub counter: u64,
    /// How durable it will be when it is acknowledged.
    pub durability: Durability,
    /// A transaction, not a batch.
    pub transaction: bool,
    /// Its changes, in order.
    pub changes: Vec<Change>,
}

/// A message of the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The store is open.
    Opened,
    /// The engine checked itself; false: it has no such check.
    Verified(bool),
    /// An entry of a tree; its bytes follow this line.
    Entry {
        /// The tree.
        tree: u8,
        /// Bytes of the key.
        key: u32,
        /// Bytes of the value.
        value: u32,
    },
    /// All entries were sent.
    Dumped,
    /// A commit begins.
    Intend(Intent),
    /// A commit returned.
    Acked(u32, u64),
    /// A commit was rolled back, or refused with a conflict.
    Aborted(u32, u64),
    /// A sync of all commits begins.
    SyncBegun,
    /// It returned.
    Synced,
    /// An unexpected error, or a wrong result.
    Wrong(String),
    /// The store was closed.
    Closed,
}
