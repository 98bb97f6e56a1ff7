//! An open WiredTiger database.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::error::{Called, Fault, check};
use super::handler::Handler;
use super::session::Session;
use super::sys::{self, call};

/// A connection to an open database. Sessions keep it alive, so it is closed after the last of
/// them.
pub(super) struct Connection {
    raw: Option<NonNull<sys::WT_CONNECTION>>,
    handler: Box<Handler>,
}

// SAFETY: WiredTiger's connection handle may be used by any number of threads at once (manual,
// "Multithreading"); closing it needs exclusive access, which `close` and `drop` have.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    /// Open the database in `home`, which must exist.
    pub(super) fn open(home: &Path, config: &str) -> Called<Arc<Connection>> {
        let home = CString::new(home.as_os_str().as_bytes()).map_err(|_| invalid())?;
        let config = c_string(config)?;
        let handler = Handler::new();
        let mut raw = ptr::null_mut();
        // SAFETY: both texts end in a zero byte and live during the call; the handler is boxed and
        // lives as long as the connection, because the connection owns it.
        let code = unsafe {
            sys::wiredtiger_open(
                home.as_ptr(),
                handler.as_ptr(),
                config.as_ptr(),
                &raw mut raw,
            )
        };
        check(code)?;
        Ok(Arc::new(Connection {
            raw: NonNull::new(raw),
            handler,
        }))
    }

    pub(super) fn open_session(self: &Arc<Connection>) -> Called<Session> {
        let raw = self.raw.ok_or_else(invalid)?;
        let config = c"isolation=snapshot,cache_cursors=false";
        let mut session = ptr::null_mut();
        // SAFETY: the connection is open until `self` is dropped; a null handler means the
        // connection's own.
        let code = unsafe {
            call!(
                raw.as_ptr(),
                open_session,
                ptr::null_mut(),
                config.as_ptr(),
                &raw mut session
            )
        };
        check(code)?;
        let session = NonNull::new(session).ok_or_else(invalid)?;
        // SAFETY: the session is new and no other code has it; it holds a share of the connection.
        Ok(unsafe { Session::new(session, Arc::clone(self)) })
    }

    /// Whether the library has panicked.
    #[inline]
    pub(super) fn panicked(&self) -> bool {
        self.handler.panicked()
    }

    /// The library's message about its panic, if it has panicked.
    pub(super) fn panic(&self) -> Option<String> {
        self.handler.panic()
    }

    /// Close the connection: the library takes a last checkpoint and syncs everything.
    pub(super) fn close(mut self) -> Called<()> {
        self.close_raw()
    }

    fn close_raw(&mut self) -> Called<()> {
        let Some(raw) = self.raw.take() else {
            return Ok(());
        };
        // SAFETY: the handle was open, is not used by other code (`&mut self`, and every session
        // holds a share of this connection), and is never used again.
        check(unsafe { call!(raw.as_ptr(), close, ptr::null()) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A caller that needs the error calls `close`.
        let _ = self.close_raw();
    }
}

/// The version of the library.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature without the library"
)]
pub(crate) fn version() -> Option<String> {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the three numbers outlive the call.
    unsafe { sys::wiredtiger_version(&raw mut major, &raw mut minor, &raw mut patch) };
    Some(format!("{major}.{minor}.{patch}"))
}

/// A string for the library; our strings contain no zero byte.
pub(super) fn c_string(text: &str) -> Called<CString> {
    CString::new(text).map_err(|_| invalid())
}

/// A copy of a string of the library.
///
/// # Safety
/// `text` is null or ends in a zero byte.
pub(super) unsafe fn owned(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller promises the end.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

pub(super) fn invalid() -> Fault {
    Fault::of(sys::EINVAL)
}
