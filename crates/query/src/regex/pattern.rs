//! A compiled pattern with its options.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::prefix;
use crate::meter::{self, Held};
use crate::{Code, Error, Result};

/// Maximum length of a pattern: the limit of PCRE2, which is also MongoDB's.
const MAX_PATTERN: usize = 16_384;
/// Number of match attempts that count as one step; an attempt takes some ten nanoseconds.
const ATTEMPTS: usize = 16;

struct Inner {
    pattern: Box<str>,
    options: Box<str>,
    compiled: pcre::Regex,
    /// The memory of the compiled pattern: a short one may take a thousand times its length.
    _held: Held,
}

/// A regular expression; cheap to clone.
#[derive(Clone)]
pub struct Regex(Arc<Inner>);

/// The positions of a match and its groups, in bytes from the start of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures {
    /// The whole match.
    pub whole: Range<usize>,
    /// The groups in order; `None` for a group that did not take part in the match.
    pub groups: Vec<Option<Range<usize>>>,
}

impl Regex {
    /// Compiles `pattern`. Options: `i` ignores case, `m` makes `^` and `$` match at lines, `s`
    /// makes the dot match newlines, `x` allows spaces and comments, `u` is UTF-8 (always on).
    ///
    /// # Errors
    /// 51108 for another option, 51091 for a pattern that PCRE2 refuses, `BadValue` for a zero
    /// byte.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if pattern.contains('\0') || options.contains('\0') {
            return Err(Error::bad_value(
                "Regular expression cannot contain an embedded null byte",
            ));
        }
        if pattern.len() > MAX_PATTERN {
            return Err(invalid("regular expression is too large"));
        }
        let mut how = pcre::Options::default();
        for option in options.chars() {
            match option {
                'i' => how.caseless = true,
                'm' => how.multi_line = true,
                's' => how.dot_all = true,
                'x' => how.extended = true,
                'u' => {}
                other => {
                    return Err(Error::new(
                        Code(51108),
                        format!("invalid flag in regex options: {other}"),
                    ));
                }
            }
        }
        let compiled =
            pcre::Regex::new(pattern, how).map_err(|error| invalid(&error.to_string()))?;
        let mut held = Held::new();
        held.retain("A regular expression", compiled.size())?;
        Ok(Regex(Arc::new(Inner {
            pattern: pattern.into(),
            options: sorted(options),
            compiled,
            _held: held,
        })))
    }

    /// The pattern as written.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// The options, in the order of the alphabet.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// Whether a part of `text` matches.
    ///
    /// # Errors
    /// 51156 when matching takes more steps than PCRE2 allows; errors of [`meter::step`].
    pub fn is_match(&self, text: &str) -> Result<bool> {
        meter::read(text.len())?;
        metered(text.len(), |pace| self.0.compiled.is_match(text, pace))
    }

    /// The first match that begins at or after `start`; `None` without a match, or if `start` is
    /// beyond the end.
    ///
    /// # Errors
    /// As [`Regex::is_match`].
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>> {
        if start > text.len() {
            return Ok(None);
        }
        if !text.is_char_boundary(start) {
            // The previous match ended inside a character, as `\C` can.
            return Err(failed("bad offset into UTF string"));
        }
        let compiled = &self.0.compiled;
        let length = text.len() - start;
        let groups = metered(length, |pace| compiled.captures_at(text, start, pace))?;
        let Some(groups) = groups else {
            // The whole rest was searched.
            meter::read(length)?;
            return Ok(None);
        };
        let mut groups = groups.into_iter();
        let whole = groups.next().flatten().unwrap_or(start..start);
        meter::read(whole.end.saturating_sub(start))?;
        Ok(Some(Captures {
            whole,
            groups: groups.collect(),
        }))
    }

    /// A prefix that every matching text has, if the pattern determines one (`^abc`). Not every
    /// text with this prefix matches.
    #[must_use]
    pub fn prefix(&self) -> Option<String> {
        prefix::literal(self.pattern(), self.options())
    }

    /// The pattern as a BSON value.
    #[must_use]
    pub fn to_bson(&self) -> bson::Bson {
        let text =
            |text: &str| bson::raw::CString::try_from(text).expect("Regex::new refuses zero bytes");
        bson::Bson::RegularExpression(bson::Regex {
            pattern: text(self.pattern()),
            options: text(self.options()),
        })
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.pattern() == other.pattern() && self.options() == other.options()
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.pattern(), self.options())
    }
}

/// The options without repetitions, in alphabetical order, as BSON requires.
fn sorted(options: &str) -> Box<str> {
    let mut options: Vec<char> = options.chars().collect();
    options.sort_unstable();
    options.dedup();
    options.into_iter().collect::<String>().into()
}

fn invalid(reason: &str) -> Error {
    Error::new(
        Code(51091),
        format!("Regular expression is invalid: {reason}"),
    )
}

/// Runs a match over `length` bytes of text and counts its attempts as steps of the meter. One
/// attempt may read the whole text, and does so sixteen times as fast as the meter assumes for
/// reading.
fn metered<T>(
    length: usize,
    run: impl FnOnce(pcre::Pace<'_>) -> std::result::Result<T, pcre::Error>,
) -> Result<T> {
    let weight = 1 + length / meter::STEP_BYTES;
    let every = (meter::LOOK_EVERY * ATTEMPTS / weight).max(1);
    let mut stopped = None;
    let mut ask = |attempts: u32| {
        let attempts = usize::try_from(attempts).unwrap_or(usize::MAX);
        let counted = meter::steps(attempts.saturating_mul(weight) / ATTEMPTS);
        let go_on = counted.is_ok();
        stopped = stopped.take().or(counted.err());
        go_on
    };
    let outcome = run(pcre::Pace {
        every: u32::try_from(every).unwrap_or(u32::MAX),
        ask: &mut ask,
    });
    match (stopped, outcome) {
        (Some(error), _) => Err(error),
        (None, Ok(value)) => Ok(value),
        (None, Err(error)) => Err(failed(error)),
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(
        Code(51156),
        format!("Error occurred while executing the regular expression: {error}"),
    )
}
