//! Terms, members and positions: the names of points in the history of a replica set.

use std::fmt;

/// The number of an election. At most one member is the primary of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The term of the next election.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a member in the configuration (`_id` of MongoDB's `members`); never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u32);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of an oplog entry (MongoDB's optime): the term of the primary that wrote it, and
/// its timestamp. Order is by term first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The term of the primary that wrote the entry.
    pub term: Term,
    /// The timestamp: it increases with each entry of a log.
    pub ts: u64,
}

impl Position {
    /// The position before the first entry.
    pub const ZERO: Self = Self {
        term: Term(0),
        ts: 0,
    };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(t{}, ts{})", self.term, self.ts)
    }
}
