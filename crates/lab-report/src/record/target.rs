//! Targets as planned: their words, and what reports need to know of them.

use std::collections::BTreeMap;

use kv::Writes;
use serde::{Deserialize, Serialize};

/// A target as written after `-t`: `rocksdb:compaction=universal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Its name in tables and file names; the spec itself unless two are equal.
    pub name: String,
    /// The engine: `betree`, `lmdb`, `rocksdb`, `wiredtiger`, `memory`, or `null` (the generator
    /// alone).
    pub engine: String,
    /// The engine's own options.
    pub options: BTreeMap<String, String>,
    /// What reports need to know of it; `None` where its words make no sense, or where the run was
    /// planned by a version that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<TargetFacts>,
}

impl TargetSpec {
    /// Whether the target is a server, whose client's CPU is not within its own.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.facts.is_some_and(|facts| facts.runs != Runs::InWorker)
    }

    /// How its storage engine writes; `None` where that is not known, or it keeps nothing.
    #[must_use]
    pub fn writes(&self) -> Option<Writes> {
        self.facts?.writes
    }
}

/// What is known of a target without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Where its storage engine runs.
    pub runs: Runs,
    /// Whether commits survive the end of its process.
    pub persistent: bool,
    /// How its storage engine brings changes to disk; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Writes>,
}

/// Where a storage engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// In the worker.
    InWorker,
    /// In a server that the laboratory starts, within the limits.
    Started,
    /// In a server that runs already, outside of the limits.
    Foreign,
}

/// Whether an option of a target is on.
///
/// # Errors
/// A sentence, for what is neither on nor off.
pub fn switch(option: &str, value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        _ => Err(format!("{option}={value}: write {option}=1 or {option}=0")),
    }
}
