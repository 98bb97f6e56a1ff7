//! How durable a commit is when it returns.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a commit survives when the call returns. Commits at every level are atomic, and survive the
/// end of the process as far as [`crate::Capabilities`] says; the levels differ in what a power
/// loss may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// No promise before the next checkpoint. The log may be switched off.
    None,
    /// In the log, which is synced every [`crate::EngineOptions::interval`]: a power loss loses at
    /// most the newest commits of about that time.
    Interval,
    /// Synced before the call returns; the sync may wait a little to be shared with other commits.
    Group,
    /// Synced before the call returns, without waiting for other commits.
    Sync,
}

impl Durability {
    /// All levels, weakest first.
    pub const ALL: [Durability; 4] = [
        Durability::None,
        Durability::Interval,
        Durability::Group,
        Durability::Sync,
    ];

    /// The word for this level, as read by [`FromStr`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Interval => "interval",
            Durability::Group => "group",
            Durability::Sync => "sync",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Durability, String> {
        Durability::ALL
            .into_iter()
            .find(|d| d.name() == text)
            .ok_or_else(|| format!("not a durability: {text:?}; use sync, group, interval or none"))
    }
}
