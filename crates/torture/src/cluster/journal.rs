//! What happened, in the order of time: operations with their outcomes, and faults.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use stdx::sync::Mutex;
use stdx::time;

/// Lines that are kept; older ones are dropped.
const LINES_MAX: usize = 400_000;

/// Lines of each kind that a failure prints.
const SHOWN: usize = 30;

/// The author of faults.
pub(super) const FAULTS: &str = "fault";

/// A journal of a run.
pub(super) struct Journal {
    begun: Instant,
    lines: Mutex<VecDeque<Line>>,
}

struct Line {
    ms: u128,
    who: String,
    text: String,
}

impl Journal {
    pub(super) fn new() -> Journal {
        Journal {
            begun: time::now(),
            lines: Mutex::new(VecDeque::new()),
        }
    }

    pub(super) fn note(&self, who: &str, text: String) {
        let line = Line {
            ms: self.begun.elapsed().as_millis(),
            who: who.to_owned(),
            text,
        };
        let mut lines = self.lines.lock();
        if LINES_MAX <= lines.len() {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last faults, and the last lines that name a number of `story`.
    pub(super) fn around(&self, story: &str) -> String {
        let numbers: Vec<&str> = story
            .split(|c: char| !c.is_ascii_digit())
            .filter(|number| 4 <= number.len())
            .collect();
        let lines = self.lines.lock();
        let mut shown = String::new();
        let named = |line: &&Line| numbers.iter().any(|number| line.text.contains(number));
        let faults: Vec<&Line> = lines.iter().filter(|line| line.who == FAULTS).collect();
        let others: Vec<&Line> = lines
            .iter()
            .filter(|line| line.who != FAULTS)
            .filter(named)
            .collect();
        for (title, found) in [("faults", faults), ("operations", others)] {
            let _: Result<(), _> = write!(shown, "\n  the last {title}:");
            let skipped = found.len().saturating_sub(SHOWN);
            for line in found.into_iter().skip(skipped) {
                let _: Result<(), _> = write!(shown, "\n    {}", line.shown());
            }
        }
        shown
    }

    /// Write all lines to a file.
    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let lines = self.lines.lock();
        let text: String = lines
            .iter()
            .map(|line| format!("{}\n", line.shown()))
            .collect();
        fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Line {
    fn shown(&self) -> String {
        let seconds = self.ms / 1_000;
        format!(
            "{seconds:>5}.{:03} {:<10} {}",
            self.ms % 1_000,
            self.who,
            self.text
        )
    }
}
