//! PCRE2 over UTF-8 text, with matches that the caller can interrupt.
//!
//! A match of PCRE2 tries one start position after another; each try is an attempt. The match limit
//! of PCRE2 bounds the backtracking of one attempt, but nothing bounds the number of attempts, so
//! `(?:a*)[b-c]` on a megabyte of `a` reads half a terabyte. A running match can be ended only by a
//! *callout*: an item of the pattern that calls a function, which may end the match.
//!
//! R1: a pattern is compiled with a callout that every long attempt reaches (module `callout`). So
//!     the caller is asked whether to continue after every [`Pace::every`] attempts.
//! R2: an attempt reads at most `WORK_MAX` bytes: the match limit is lowered according to the
//!     length of the text. An attempt that needs more is repeated with PCRE2's own limit and with a
//!     callout before every item of the pattern. That is several times slower, but can be
//!     interrupted anywhere.
//! R3: callouts change neither what matches nor the error of an invalid pattern. The place of the
//!     callout of R1 keeps PCRE2's optimizations of the start of a pattern, without which ordinary
//!     patterns take quadratic time. There is one exception, caused by PCRE2: if a pattern sets how
//!     lines end (`(*ANY)`), these optimizations decide whether a match that begins between CR and
//!     LF is found.
//! R4: groups and callouts together disable optimizations of PCRE2. A match is therefore first
//!     searched with non-capturing groups, unless a part of the pattern may refer to a group
//!     (`refers`): such a reference would then mean another group. A second search, from the start
//!     of the match, finds the groups.
//!
//! Several threads may use a [`Regex`] at the same time: each search takes its memory from a pool,
//! whose lock is held only while it is taken or returned.

mod callout;
mod code;
mod error;

use std::ops::Range;

use stdx::sync::OnceLock;

use callout::Place;
use code::{Code, How};

pub use error::Error;

/// PCRE2's default match limit, in units of backtracking of one attempt.
const MATCH_LIMIT: u32 = 10_000_000;
/// The lowest match limit (R2).
const MATCH_LIMIT_LEAST: u32 = 64;
/// Maximum number of bytes that an attempt may read without a callout; takes about a tenth of a
/// second.
const WORK_MAX: usize = 256 << 20;

/// Options of a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Ignore the case of letters.
    pub caseless: bool,
    /// `^` and `$` match at the start and end of each line.
    pub multi_line: bool,
    /// `.` also matches newlines.
    pub dot_all: bool,
    /// Ignore spaces and comments in the pattern.
    pub extended: bool,
}

/// How a match asks its caller whether to continue.
pub struct Pace<'a> {
    /// Number of callouts between two calls of `ask`.
    pub every: u32,
    /// Gets the number of callouts since the last call; returns false to end the match. Called once
    /// more after the match has ended; then the result is ignored.
    pub ask: &'a mut dyn FnMut(u32) -> bool,
}

/// A group of a match, in bytes of the text; `None` for a group that did not take part.
pub type Group = Option<Range<usize>>;

/// A compiled pattern.
pub struct Regex {
    /// Finds whole matches; without capturing groups if possible (R4).
    matcher: Form,
    /// The pattern with its groups, compiled at the first request for groups.
    grouped: OnceLock<Result<Form, Error>>,
    /// Whether the groups of a match can be found by a search that starts where the match begins:
    /// nothing in the pattern depends on the start of the search or moves the start of the match.
    movable: bool,
    pattern: Box<str>,
}

/// Whether a part of a pattern may refer to a group, name one, or change whether groups capture.
/// Such is everything with a bracket except plain groups, lookarounds and the flags `imsx`.
/// Characters in classes and quotes are not excluded, so the result may be true without a reason.
fn refers(pattern: &str) -> bool {
    let escapes = pattern.split('\\').skip(1);
    let mut escapes = escapes.filter_map(|rest| rest.chars().next());
    let opens = pattern
        .match_indices('(')
        .map(|(at, _)| pattern.get(at + 1..));
    let mut opens = opens.map(Option::unwrap_or_default);
    escapes.any(|c| c.is_ascii_digit() || c == 'g' || c == 'k')
        || opens.any(|inside| match inside.strip_prefix('?') {
            Some(kind) => !is_plain(kind),
            None => inside.starts_with('*'),
        })
}

/// Whether a group that begins with `(?` and then `kind` neither has a name nor refers to another
/// group.
fn is_plain(kind: &str) -> bool {
    if [":", "=", "!", ">", "|", "#", "<=", "<!"]
        .iter()
        .any(|it| kind.starts_with(it))
    {
        return true;
    }
    let flags = kind.trim_start_matches(['i', 'm', 's', 'x']);
    flags.starts_with([')', ':'])
}

impl Regex {
    /// Compiles `pattern`, to machine code if PCRE2 supports the processor.
    ///
    /// # Errors
    /// [`Error::Pattern`], with PCRE2's message and the position in the pattern.
    pub fn new(pattern: &str, options: Options) -> Result<Regex, Error> {
        let how = How {
            options,
            groupless: pattern.contains('(') && !refers(pattern),
            ..How::default()
        };
        Ok(Regex {
            matcher: Form::new(pattern, how)?,
            grouped: OnceLock::new(),
            movable: !["\\G", "\\K", "(*"].iter().any(|it| pattern.contains(it)),
            pattern: pattern.into(),
        })
    }

    /// About the bytes that the compiled pattern takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.matcher.size() + self.pattern.len()
    }

    /// Whether a part of `text` matches.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the caller ends the match, [`Error::Match`] beyond PCRE2's limits.
    pub fn is_match(&self, text: &str, pace: Pace<'_>) -> Result<bool, Error> {
        self.matcher.search(&self.pattern, text, 0, pace, None)
    }

    /// The groups of the first match that begins at `start` or after it; the first group is the
    /// whole match.
    ///
    /// # Errors
    /// As [`Regex::is_match`].
    ///
    /// # Panics
    /// If `start` is neither the position of a character of the text nor its end.
    pub fn captures_at(
        &self,
        text: &str,
        start: usize,
        pace: Pace<'_>,
    ) -> Result<Option<Vec<Group>>, Error> {
        let Pace { every, ask } = pace;
        let pace = Pace {
            every,
            ask: &mut *ask,
        };
        let (pattern, mut groups) = (&self.pattern, Vec::new());
        let matcher = &self.matcher;
        if !matcher.search(pattern, text, start, pace, Some(&mut groups))? {
            return Ok(None);
        }
        if !matcher.how.groupless {
            return Ok(Some(groups));
        }
        let whole = groups.first().cloned().flatten();
        let start = whole
            .filter(|_| self.movable)
            .map_or(start, |whole| whole.start);
        groups.clear();
        let how = How {
            groupless: false,
            ..matcher.how
        };
        let grouped = self.grouped.get_or_init(|| Form::new(pattern, how));
        let grouped = grouped.as_ref().map_err(Clone::clone)?;
        let found = grouped.search(pattern, text, start, Pace { every, ask }, Some(&mut groups))?;
        Ok(found.then_some(groups))
    }
}

/// The size of all forms of a pattern, in sizes of its quick form: callouts lengthen the code.
const FORMS: usize = 2;

/// A pattern, compiled with or without capturing groups.
struct Form {
    how: How,
    /// Compiled with the callout of R1, or without a callout if no attempt is long.
    quick: Code,
    /// Whether `quick` has a callout.
    called: bool,
    /// Compiled with a callout before every item (R2), when this is needed for the first time.
    careful: OnceLock<Result<Code, Error>>,
}

impl Form {
    fn new(pattern: &str, how: How) -> Result<Form, Error> {
        let (quick, called) = match callout::place(pattern, how.options.extended) {
            Place::Nowhere => (Code::new(pattern, how)?, false),
            Place::At(at) => (with_callout(pattern, how, at)?, true),
        };
        Ok(Form {
            how,
            quick,
            called,
            careful: OnceLock::new(),
        })
    }

    /// About the bytes of all compiled forms, also of those that are not needed yet.
    fn size(&self) -> usize {
        FORMS * self.quick.size()
    }

    fn search(
        &self,
        pattern: &str,
        text: &str,
        start: usize,
        pace: Pace<'_>,
        mut groups: Option<&mut Vec<Group>>,
    ) -> Result<bool, Error> {
        let Pace { every, ask } = pace;
        let limit = match self.called {
            true => quick_limit(text.len().saturating_sub(start)),
            false => MATCH_LIMIT,
        };
        let pace = Pace {
            every,
            ask: &mut *ask,
        };
        let outcome = self
            .quick
            .search(text, start, limit, pace, groups.as_deref_mut());
        if limit == MATCH_LIMIT || !matches!(&outcome, Err(error) if error.is_match_limit()) {
            return outcome;
        }
        let how = How {
            careful: true,
            ..self.how
        };
        let careful = self.careful.get_or_init(|| Code::new(pattern, how));
        let careful = careful.as_ref().map_err(Clone::clone)?;
        careful.search(text, start, MATCH_LIMIT, Pace { every, ask }, groups)
    }
}

/// The match limit of R2 for a text of this length.
fn quick_limit(length: usize) -> u32 {
    let limit = u32::try_from(WORK_MAX / length.max(1)).unwrap_or(MATCH_LIMIT);
    limit.clamp(MATCH_LIMIT_LEAST, MATCH_LIMIT)
}

/// Compiles the pattern with a callout at `at`; if PCRE2 refuses a callout there, with one at the
/// beginning.
fn with_callout(pattern: &str, how: How, at: usize) -> Result<Code, Error> {
    let put = |at: usize| {
        let (before, after) = pattern.split_at(at);
        Code::new(&format!("{before}{}{after}", callout::ITEM), how)
    };
    if let Ok(code) = put(at) {
        return Ok(code);
    }
    // If the pattern is invalid, the error must be that of the pattern without a callout (R3).
    drop(Code::new(pattern, how)?);
    put(callout::beginning(pattern))
}

#[cfg(test)]
mod tests;
