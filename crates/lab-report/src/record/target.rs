//! Targets as planned: their specification, and facts that reports need.

use std::collections::BTreeMap;

use kv::Writes;
use serde::{Deserialize, Serialize};

/// A target as written after `-t`: `rocksdb:compaction=universal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Its name in tables and file names: the specification itself, unless two are equal.
    pub name: String,
    /// The engine: `betree`, `lmdb`, `rocksdb`, `wiredtiger`, `memory`, or `null` (the generator
    /// alone).
    pub engine: String,
    /// The engine's own options.
    pub options: BTreeMap<String, String>,
    /// Facts that reports need; `None` if the specification is invalid, or if an older version
    /// planned the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<TargetFacts>,
}

impl TargetSpec {
    /// Whether the target is the load generator alone, which stores nothing.
    #[must_use]
    pub fn is_generator(&self) -> bool {
        self.engine == "null"
    }

    /// Whether another target differs at most in its name: a run of both is an A/A run.
    #[must_use]
    pub fn is_equal(&self, other: &TargetSpec) -> bool {
        self.engine == other.engine && self.options == other.options
    }

    /// Whether the target is a server, whose CPU does not include the client's.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.facts.is_some_and(|facts| facts.runs != Runs::InWorker)
    }

    /// How its storage engine writes; `None` if unknown, or if it stores nothing.
    #[must_use]
    pub fn writes(&self) -> Option<Writes> {
        self.facts?.writes
    }
}

/// Facts about a target that are known without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Where its storage engine runs.
    pub runs: Runs,
    /// Whether commits survive the end of its process.
    pub persistent: bool,
    /// How its storage engine writes changes to disk; `None` if unknown.
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
