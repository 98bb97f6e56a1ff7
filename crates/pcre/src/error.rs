//! What can go wrong, with PCRE2's own messages.

use std::borrow::Cow;

use pcre2_sys::{PCRE2_ERROR_CALLOUT, PCRE2_ERROR_MATCHLIMIT, pcre2_get_error_message_8};

/// Longer than any of PCRE2's messages.
const MESSAGE_MAX: usize = 256;

/// An error of compiling or matching.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pattern is none: PCRE2's code, and the place in bytes of the pattern.
    #[error("PCRE2: error compiling pattern at offset {at}: {}", message(*code))]
    Pattern {
        /// PCRE2's number of the error.
        code: i32,
        /// Where in the pattern, in bytes.
        at: usize,
    },
    /// PCRE2 gave up, mostly because of a limit.
    #[error("PCRE2: error matching: {}", message(*code))]
    Match {
        /// PCRE2's number of the error.
        code: i32,
    },
    /// The caller ended the match.
    #[error("the match was interrupted")]
    Stopped,
}

impl Error {
    /// The error of a match that returned `code`.
    pub(crate) fn of_match(code: i32) -> Error {
        match code {
            PCRE2_ERROR_CALLOUT => Error::Stopped,
            code => Error::Match { code },
        }
    }

    /// Whether a match took more steps than its limit.
    pub(crate) fn is_match_limit(&self) -> bool {
        matches!(self, Error::Match { code } if *code == PCRE2_ERROR_MATCHLIMIT)
    }
}

fn message(code: i32) -> Cow<'static, str> {
    let mut buffer = [0_u8; MESSAGE_MAX];
    // SAFETY: the length is that of the buffer, and PCRE2 keeps no pointer to it.
    let length = unsafe { pcre2_get_error_message_8(code, buffer.as_mut_ptr(), buffer.len()) };
    let text = usize::try_from(length).ok().and_then(|n| buffer.get(..n));
    match text.map(String::from_utf8_lossy) {
        Some(text) => Cow::Owned(text.into_owned()),
        None => Cow::Borrowed("unknown error"),
    }
}
