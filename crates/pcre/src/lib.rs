//! PCRE2 over UTF-8 text, with matches that the caller can interrupt.
//!
//! A match of PCRE2 tries one start after another. Its match limit bounds the backtracking from one
//! start; nothing in PCRE2 bounds the number of starts, so `(?:a*)[b-c]` on a megabyte of `a` reads
//! half a terabyte. The only way out of a running match is a *callout*: an item of the pattern that
//! calls a function, which may end the match.
//!
//! R1: a pattern is compiled with a callout that every long attempt passes (module `callout`). So
//!     the caller is asked after every [`Pace::every`] attempts.
//! R2: an attempt takes at most `WORK_MAX` bytes of reading: the match limit is lowered to what
//!     the length of the text allows. An attempt that needs more is repeated with a callout before
//!     every item of the pattern, and PCRE2's own limit. That is several times slower, and stops
//!     anywhere.
//! R3: callouts change neither what matches nor the error of a bad pattern. Where the callout of R1
//!     stands keeps PCRE2's optimizations of the start of a pattern, without which ordinary
//!     patterns take time in the square of the text. One exception is PCRE2's: where a pattern sets
//!     how lines end (`(*ANY)`), a match that begins between CR and LF is found or not by those
//!     optimizations.
//! R4: groups and callouts together switch off optimizations of PCRE2. A match is therefore
//!     searched without groups where no part of the pattern can refer to one (`refers`): with
//!     fewer groups a reference would compile and mean another. The groups of a match are found by
//!     a second search from where it begins.
//!
//! A [`Regex`] may be used by several threads at once: each search takes the memory that it works
//! in from a pool behind a lock, which is held for the taking alone.

mod callout;
mod code;
mod error;

use std::ops::Range;

use stdx::sync::OnceLock;

use callout::Place;
use code::{Code, How};

pub use error::Error;

/// PCRE2's default: units of backtracking from one start.
const MATCH_LIMIT: u32 = 10_000_000;
/// The least that the match limit is lowered to (R2).
const MATCH_LIMIT_LEAST: u32 = 64;
/// Bytes that an attempt reads at most without a callout: about a tenth of a second.
const WORK_MAX: usize = 256 << 20;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Letters match in any case.
    pub caseless: bool,
    /// `^` and `$` match at lines.
    pub multi_line: bool,
    /// `.` matches newlines.
    pub dot_all: bool,
    /// Spaces and comments in the pattern are left out.
    pub extended: bool,
}

/// How a match asks its caller whether to continue.
pub struct Pace<'a> {
    /// Callouts between two questions.
    pub every: u32,
    /// The question: gets the number of callouts since the last one; false ends the match. It is
    /// asked a last time when the match has ended, and its answer is ignored then.
    pub ask: &'a mut dyn FnMut(u32) -> bool,
}

/// A group of a match, in bytes of the text; none for one that took no part.
pub type Group = Option<Range<usize>>;

/// A compiled pattern.
pub struct Regex {
    /// Finds whole matches; without groups where that can be (R4).
    matcher: Form,
    /// The pattern with its groups, compiled when they are asked for first.
    grouped: OnceLock<Result<Form, Error>>,
    /// Whether a match that is known to begin at a place can be searched from there: nothing in the
    /// pattern depends on where the search began, or moves the beginning of the match.
    movable: bool,
    pattern: Box<str>,
}

/// Whether some part of a pattern may refer to a group, have a name, or switch capturing on or off:
/// anything but groups, lookarounds and the flags `imsx`. Takes characters of classes and quotes
/// for what they look like, too.
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

/// Whether a group that begins with `(?` and this neither has a name nor refers to another.
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
    /// Compiles `pattern`, for the processor at hand where PCRE2 can.
    ///
    /// # Errors
    /// [`Error::Pattern`], with PCRE2's message and the place in the pattern.
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

    /// Whether some part of `text` matches.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the caller ends it, [`Error::Match`] beyond PCRE2's limits.
    pub fn is_match(&self, text: &str, pace: Pace<'_>) -> Result<bool, Error> {
        self.matcher.search(&self.pattern, text, 0, pace, None)
    }

    /// The first match that begins at `start` or behind it, and its groups; the whole match first.
    ///
    /// # Errors
    /// As [`Regex::is_match`].
    ///
    /// # Panics
    /// When `start` is not at a character of the text or at its end.
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

/// A pattern compiled with or without its groups.
struct Form {
    how: How,
    /// With the callout of R1, or without one if no attempt is long.
    quick: Code,
    /// Whether `quick` has a callout.
    called: bool,
    /// With a callout before every item (R2), compiled when it is needed first.
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

/// The pattern with a callout at `at`; where PCRE2 does not take one there, at its beginning.
fn with_callout(pattern: &str, how: How, at: usize) -> Result<Code, Error> {
    let put = |at: usize| {
        let (before, after) = pattern.split_at(at);
        Code::new(&format!("{before}{}{after}", callout::ITEM), how)
    };
    if let Ok(code) = put(at) {
        return Ok(code);
    }
    // The error of a bad pattern is that of the pattern as it is (R3).
    drop(Code::new(pattern, how)?);
    put(callout::beginning(pattern))
}

#[cfg(test)]
mod tests;
