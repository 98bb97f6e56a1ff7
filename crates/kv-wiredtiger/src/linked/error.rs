//! Converts the library's error codes to this API's errors.

use std::ffi::{CStr, c_int};
use std::io;

use kv::{Error, ErrorKind};

use super::{handler, sys};
use crate::support::NAME;

/// A failed call of the library: a code of the library (negative) or an `errno` (positive), with
/// the library's message, if there is one.
#[derive(Debug)]
pub(super) struct Fault {
    code: c_int,
    message: Option<String>,
    /// The call found damaged bytes.
    damaged: bool,
}

/// A result of the thin layer.
pub(super) type Called<T> = Result<T, Fault>;

/// Convert a code: success, or the fault.
#[inline]
pub(super) fn check(code: c_int) -> Called<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(Fault::of(code))
    }
}

/// Convert a code: true for success, false for "not found", else the fault.
#[inline]
pub(super) fn check_found(code: c_int) -> Called<bool> {
    match code {
        0 => Ok(true),
        sys::WT_NOTFOUND => Ok(false),
        _ => Err(Fault::of(code)),
    }
}

impl Fault {
    #[cold]
    pub(super) fn of(code: c_int) -> Fault {
        let mut heard = handler::take();
        let damage = heard.damage();
        Fault {
            code,
            damaged: damage.is_some(),
            message: damage.or_else(|| heard.about(code)),
        }
    }

    /// Whether the library has panicked and refuses all further work.
    pub(super) fn is_panic(&self) -> bool {
        self.code == sys::WT_PANIC
    }

    /// Whether the transaction must be rolled back: another transaction wrote first, or the cache
    /// cannot hold this one.
    pub(super) fn is_rollback(&self) -> bool {
        self.code == sys::WT_ROLLBACK
    }

    /// Whether the key already exists.
    pub(super) fn is_duplicate(&self) -> bool {
        self.code == sys::WT_DUPLICATE_KEY
    }

    /// Whether the object is in use.
    pub(super) fn is_busy(&self) -> bool {
        self.code == sys::EBUSY
    }

    /// Whether the time limit of the call has passed.
    pub(super) fn is_timeout(&self) -> bool {
        self.code == sys::ETIMEDOUT
    }

    /// Whether the named object does not exist.
    pub(super) fn is_missing(&self) -> bool {
        self.code == sys::ENOENT || self.code == sys::WT_NOTFOUND
    }

    /// Convert the fault of `operation` to this API's error.
    pub(super) fn into_error(self, operation: &'static str) -> Error {
        let message = self.sentence();
        let error = Error::new(self.kind(), message)
            .with_engine(NAME)
            .with_operation(operation);
        if 0 < self.code {
            return error.with_source(io::Error::from_raw_os_error(self.code));
        }
        error
    }

    fn kind(&self) -> ErrorKind {
        match self.code {
            sys::WT_PANIC if self.damaged => ErrorKind::Corrupt,
            sys::WT_ROLLBACK => ErrorKind::Conflict,
            sys::WT_DUPLICATE_KEY => ErrorKind::Exists,
            sys::WT_NOTFOUND => ErrorKind::NotFound,
            sys::WT_PANIC | sys::WT_RUN_RECOVERY => ErrorKind::Closed,
            sys::WT_CACHE_FULL => ErrorKind::Full,
            sys::WT_ERROR | sys::WT_TRY_SALVAGE => ErrorKind::Corrupt,
            sys::EBUSY => ErrorKind::Conflict,
            sys::EINVAL => ErrorKind::Invalid,
            sys::ENOENT => ErrorKind::NotFound,
            sys::EEXIST => ErrorKind::Exists,
            sys::ENOSPC => ErrorKind::Full,
            sys::EDQUOT => ErrorKind::Full,
            sys::ENOMEM => ErrorKind::Full,
            _ => ErrorKind::Io,
        }
    }

    fn sentence(&self) -> String {
        let said = self.message.as_deref().map(strip_prefix);
        match self.code {
            sys::WT_ROLLBACK => "another transaction wrote the key first, or the cache is full of \
                                 changes that open snapshots pin; retry"
                .to_owned(),
            sys::WT_PANIC => format!(
                "the library has failed and refuses further work; open the store again ({})",
                said.unwrap_or("no reason given")
            ),
            code => match said {
                Some(said) => format!("{} ({said})", describe(code)),
                None => describe(code),
            },
        }
    }
}

/// The library's text for a code.
fn describe(code: c_int) -> String {
    // SAFETY: the function takes any number and returns a text in static or thread-local memory
    // that ends in a zero byte; it is copied before anything else is called.
    let text = unsafe { CStr::from_ptr(sys::wiredtiger_strerror(code)) };
    text.to_string_lossy().into_owned()
}

/// The part of a message after the library's time stamp and thread id (`[1580000000:1][2:0x7f], `).
fn strip_prefix(message: &str) -> &str {
    if message.starts_with('[') {
        message.split_once("], ").map_or(message, |(_, rest)| rest)
    } else {
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(code: c_int) -> ErrorKind {
        Fault::of(code).into_error("test").kind()
    }

    #[test]
    fn every_code_says_what_to_do() {
        assert_eq!(kind_of(sys::WT_ROLLBACK), ErrorKind::Conflict);
        assert_eq!(kind_of(sys::WT_PANIC), ErrorKind::Closed);
        assert_eq!(kind_of(sys::WT_CACHE_FULL), ErrorKind::Full);
        assert_eq!(kind_of(sys::WT_TRY_SALVAGE), ErrorKind::Corrupt);
        assert_eq!(kind_of(sys::ENOSPC), ErrorKind::Full);
        assert_eq!(kind_of(sys::EBUSY), ErrorKind::Conflict);
        assert_eq!(kind_of(5), ErrorKind::Io);
    }

    #[test]
    fn a_code_of_the_system_keeps_its_source() {
        let error = Fault::of(sys::ENOSPC).into_error("commit");
        let text = error.to_string();
        assert!(text.contains("space") && text.contains("commit"), "{text}");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn the_time_stamp_of_a_message_is_dropped() {
        assert_eq!(
            strip_prefix("[12:34][5:0x6], t.wt: bad page"),
            "t.wt: bad page"
        );
        assert_eq!(strip_prefix("plain"), "plain");
    }
}
