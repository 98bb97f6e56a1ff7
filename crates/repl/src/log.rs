//! The shape of a member's oplog: for each term, the timestamp of its last entry.
//!
//! The protocol does not need the entries. The entries of a term are written by its only primary,
//! in order, and copied in that order, so two logs that contain the same entry are equal up to it
//! (*log matching*). The last timestamp of each term is enough to decide whether a log contains an
//! entry, and where two logs diverge; it costs 16 bytes for each election.
//!
//! - G1. Terms and timestamps of the runs of a log increase strictly.

use crate::position::{Position, Term};

/// The entries of one term in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// The term.
    pub term: Term,
    /// The timestamp of the last entry.
    pub last: u64,
}

/// Which entries a log contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Log {
    runs: Vec<Run>,
}

impl Log {
    /// A log of `runs`; `None` if they do not keep G1, so runs of a message can be checked.
    #[must_use]
    pub fn of(runs: Vec<Run>) -> Option<Self> {
        let log = Self { runs };
        log.is_ordered().then_some(log)
    }

    /// The runs, oldest first.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The last entry; [`Position::ZERO`] if there is none.
    #[must_use]
    pub fn last(&self) -> Position {
        self.runs.last().map_or(Position::ZERO, |run| Position {
            term: run.term,
            ts: run.last,
        })
    }

    /// Whether the log contains the entry `at`, which some member has or had.
    #[must_use]
    pub fn contains(&self, at: Position) -> bool {
        let mut runs = self.runs.iter().rev();
        at == Position::ZERO || runs.any(|run| run.term == at.term && at.ts <= run.last)
    }

    /// The entries after `at`, which the log contains.
    #[must_use]
    pub fn after(&self, at: Position) -> Vec<Run> {
        let later = |run: &&Run| at.term < run.term || (run.term == at.term && at.ts < run.last);
        self.runs.iter().filter(later).copied().collect()
    }

    /// The last entry that this log and one of `runs` have in common.
    #[must_use]
    pub fn common(&self, runs: &[Run]) -> Position {
        for mine in self.runs.iter().rev() {
            if let Some(other) = runs.iter().find(|other| other.term == mine.term) {
                return Position {
                    term: mine.term,
                    ts: mine.last.min(other.last),
                };
            }
        }
        Position::ZERO
    }

    /// Whether `runs` can follow the last entry.
    #[must_use]
    pub fn takes(&self, runs: &[Run]) -> bool {
        let mut last = self.last();
        runs.iter().all(|run| {
            let follows = last.term <= run.term && last.ts < run.last;
            last = Position {
                term: run.term,
                ts: run.last,
            };
            follows
        })
    }

    /// Appends entries that [`Log::takes`].
    pub fn append(&mut self, runs: &[Run]) {
        for run in runs {
            match self.runs.last_mut().filter(|last| last.term == run.term) {
                Some(last) => last.last = run.last,
                None => self.runs.push(*run),
            }
        }
        assert!(self.is_ordered(), "G1: runs increase after an append");
    }

    /// Removes the entries after `to`, which the log contains.
    pub fn truncate(&mut self, to: Position) {
        self.runs.retain(|run| run.term <= to.term);
        if let Some(last) = self.runs.last_mut().filter(|last| last.term == to.term) {
            last.last = last.last.min(to.ts);
        }
        assert!(self.is_ordered(), "G1: runs increase after a truncation");
    }

    fn is_ordered(&self) -> bool {
        self.runs.windows(2).all(|pair| match pair {
            [a, b] => a.term < b.term && a.last < b.last,
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(runs: &[(u64, u64)]) -> Log {
        let run = |&(term, last)| Run {
            term: Term(term),
            last,
        };
        Log::of(runs.iter().map(run).collect()).unwrap()
    }

    fn at(term: u64, ts: u64) -> Position {
        Position {
            term: Term(term),
            ts,
        }
    }

    #[test]
    fn a_log_contains_the_entries_of_its_terms_up_to_the_last() {
        let log = log(&[(1, 3), (4, 6)]);
        assert!(log.contains(Position::ZERO));
        assert!(log.contains(at(1, 3)) && log.contains(at(4, 5)));
        assert!(!log.contains(at(1, 4)) && !log.contains(at(2, 4)) && !log.contains(at(4, 7)));
    }

    #[test]
    fn the_common_point_is_in_the_newest_term_of_both() {
        let mine = log(&[(1, 3), (2, 5)]);
        assert_eq!(mine.common(log(&[(1, 2), (3, 4)]).runs()), at(1, 2));
        assert_eq!(mine.common(log(&[(1, 3), (2, 4), (3, 9)]).runs()), at(2, 4));
        assert_eq!(mine.common(log(&[(3, 9)]).runs()), Position::ZERO);
    }

    #[test]
    fn a_truncation_undoes_an_append() {
        let mut mine = log(&[(1, 3), (2, 5)]);
        let before = mine.clone();
        let more = log(&[(2, 6), (3, 7)]);
        assert!(mine.takes(more.runs()));
        mine.append(more.runs());
        assert_eq!(mine.after(at(2, 5)), more.runs());
        mine.truncate(at(2, 5));
        assert_eq!(mine, before);
        assert!(!mine.takes(log(&[(1, 9)]).runs()));
    }

    #[test]
    fn runs_out_of_order_are_no_log() {
        let run = |term, last| Run {
            term: Term(term),
            last,
        };
        assert!(Log::of(vec![run(2, 1), run(1, 2)]).is_none(), "G1: terms");
        assert!(Log::of(vec![run(1, 2), run(2, 2)]).is_none(), "G1: times");
    }
}
