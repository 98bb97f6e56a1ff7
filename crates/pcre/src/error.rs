//! Errors of compiling and matching, with PCRE2's messages.

use std::borrow::Cow;

use pcre2_sys::{PCRE2_ERROR_CALLOUT, PCRE2_ERROR_MATCHLIMIT, pcre2_get_error_message_8};

/// Buffer size for a message of PCRE2; longer than any of them.
const MESSAGE_MAX: usize = 256;

/// An error of compiling or matching.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// PCRE2 refuses the pattern.
    #[error("PCRE2: error compiling pattern at offset {at}: {}", message(*code))]
    Pattern {
        /// PCRE2's error code.
        code: i32,
        /// The position of the error in the pattern, in bytes.
        at: usize,
    },
    /// PCRE2 ended the match with an error, mostly because of a limit.
    #[error("PCRE2: error matching: {}", message(*code))]
    Match {
        /// PCRE2's error code.
        code: i32,
    },
    /// The caller interrupted the match.
    #[error("the match was interrupted")]
    Stopped,
}

impl Error {
    /// The error for the result `code` of a match.
    pub(crate) fn of_match(code: i32) -> Error {
        match code {
            PCRE2_ERROR_CALLOUT => Error::Stopped,
            code => Error::Match { code },
        }
    }

    /// Whether the match exceeded PCRE2's match limit.
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
