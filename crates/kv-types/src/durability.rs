//! How durable a commit is when it returns.

use std::fmt;
use std::str::FromStr;

/// What a commit survives when the call returns. Commits at every level are atomic, and what a
/// power loss takes is always the newest: a store opens with a prefix of its commits. The levels
/// differ in how much that is; commits of all levels may be mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Durability {
    /// No promise before the next checkpoint. With a log the commit is soon in it; the end of the
    /// process may take the newest. The log may be switched off.
    None,
    /// In the log, which is synced at an interval that is an option of the engine: a power loss
    /// loses at most the newest commits of about that time.
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

    /// The name of the level, as parsed by [`FromStr`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Interval => "interval",
            Durability::Group => "group",
            Durability::Sync => "sync",
        }
    }

    /// Whether a commit at this level must be synced before it returns.
    #[must_use]
    pub fn is_synced(self) -> bool {
        matches!(self, Durability::Group | Durability::Sync)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_read_back() {
        for level in Durability::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert!("fsync".parse::<Durability>().unwrap_err().contains("group"));
    }

    #[test]
    fn levels_are_ordered_by_strength() {
        assert!(Durability::ALL.is_sorted());
        let synced: Vec<bool> = Durability::ALL.map(Durability::is_synced).to_vec();
        assert_eq!(synced, [false, false, true, true]);
    }
}
