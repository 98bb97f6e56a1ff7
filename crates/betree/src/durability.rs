//! How durable a commit is when the call that made it returns.

use std::fmt;
use std::str::FromStr;

/// What a power loss may take of a commit that has returned. Every level is atomic, and what is
/// lost is always the youngest: the store opens with a prefix of its commits. The levels differ in
/// nothing else; commits of all levels may be mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Durability {
    /// Nothing is promised before the next checkpoint. With a log, the commit is in it soon; the
    /// end of the process may take the youngest.
    None,
    /// In the log, handed to the operating system before the call returns, so that the end of the
    /// process takes nothing, and synced every [`crate::Options::interval`].
    Interval,
    /// Synced before the call returns; the sync may wait for [`crate::Options::group_delay`] to be
    /// shared with other commits.
    Group,
    /// Synced before the call returns, at once.
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
        let known = Durability::ALL.into_iter().find(|d| d.name() == text);
        known
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
