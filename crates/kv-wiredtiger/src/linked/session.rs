//! A WiredTiger session: the unit that runs one transaction at a time.

use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::connection::{Connection, c_string, invalid};
use super::cursor::Cursor;
use super::error::{Called, check};
use super::sys::{self, call};

/// Where the log record of a commit is when the commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogSync {
    /// In the log's buffer in this process.
    Buffered,
    /// Synced to the device.
    Synced,
}

/// A session. One thread at a time uses it (`Send`, not `Sync`).
pub(super) struct Session {
    raw: NonNull<sys::WT_SESSION>,
    /// Keeps the connection open.
    _connection: Arc<Connection>,
}

// SAFETY: a WiredTiger session may move between threads as long as one uses it at a time (manual,
// "Multithreading"); it is not `Sync`, so that holds.
unsafe impl Send for Session {}

impl Session {
    /// Take over a session.
    ///
    /// # Safety
    /// `raw` is an open session of `connection` that no other code uses.
    pub(super) unsafe fn new(
        raw: NonNull<sys::WT_SESSION>,
        connection: Arc<Connection>,
    ) -> Session {
        Session {
            raw,
            _connection: connection,
        }
    }

    fn ptr(&self) -> *mut sys::WT_SESSION {
        self.raw.as_ptr()
    }

    /// Begin a transaction at snapshot isolation; the snapshot is taken here.
    pub(super) fn begin(&self) -> Called<()> {
        let config = c"isolation=snapshot";
        // SAFETY: the session is open and used by this thread only.
        check(unsafe { call!(self.ptr(), begin_transaction, config.as_ptr()) })
    }

    /// Commit the transaction; on an error it is rolled back. Cursors are reset.
    pub(super) fn commit(&self, sync: Option<LogSync>) -> Called<()> {
        let config: &CStr = match sync {
            // Without a log the option `sync` is not allowed.
            None => c"",
            Some(LogSync::Buffered) => c"sync=off",
            Some(LogSync::Synced) => c"sync=on",
        };
        // SAFETY: as in `begin`.
        check(unsafe { call!(self.ptr(), commit_transaction, config.as_ptr()) })
    }

    /// Roll the transaction back. Cursors are reset.
    pub(super) fn rollback(&self) -> Called<()> {
        // SAFETY: as in `begin`.
        check(unsafe { call!(self.ptr(), rollback_transaction, ptr::null()) })
    }

    /// Write the log's buffer to the operating system and, if `sync`, sync it to the device.
    pub(super) fn log_flush(&self, sync: bool) -> Called<()> {
        let config = if sync { c"sync=on" } else { c"sync=off" };
        // SAFETY: as in `begin`.
        check(unsafe { call!(self.ptr(), log_flush, config.as_ptr()) })
    }

    /// Take a checkpoint of all tables.
    pub(super) fn checkpoint(&self) -> Called<()> {
        // SAFETY: as in `begin`; a null configuration is the default.
        check(unsafe { call!(self.ptr(), checkpoint, ptr::null()) })
    }

    /// Create a table.
    pub(super) fn create(&self, uri: &CStr, config: &str) -> Called<()> {
        let config = c_string(config)?;
        // SAFETY: as in `begin`; both texts live during the call, here and below.
        check(unsafe { call!(self.ptr(), create, uri.as_ptr(), config.as_ptr()) })
    }

    /// Drop a table. The error is "busy" while a cursor is open on it.
    pub(super) fn drop_table(&self, uri: &CStr) -> Called<()> {
        // SAFETY: as in `begin`.
        check(unsafe { call!(self.ptr(), drop, uri.as_ptr(), ptr::null()) })
    }

    /// Compact a table for at most about `seconds`.
    pub(super) fn compact(&self, uri: &CStr, seconds: u64) -> Called<()> {
        let config = c_string(&format!("timeout={seconds}"))?;
        // SAFETY: as in `begin`.
        check(unsafe { call!(self.ptr(), compact, uri.as_ptr(), config.as_ptr()) })
    }

    /// Check a table. The error is "busy" while a cursor is open on it.
    pub(super) fn verify(&self, uri: &CStr) -> Called<()> {
        // SAFETY: as in `begin`.
        check(unsafe { call!(self.ptr(), verify, uri.as_ptr(), ptr::null()) })
    }

    /// Open a cursor.
    ///
    /// # Safety
    /// The cursor must be dropped before the session and used only by the thread that uses the
    /// session at that time.
    pub(super) unsafe fn open_cursor(&self, uri: &CStr, config: &CStr) -> Called<Cursor> {
        let mut raw = ptr::null_mut();
        // SAFETY: as in `begin`; no cursor is duplicated.
        let code = unsafe {
            let duplicate = ptr::null_mut();
            call!(
                self.ptr(),
                open_cursor,
                uri.as_ptr(),
                duplicate,
                config.as_ptr(),
                &raw mut raw
            )
        };
        check(code)?;
        let raw = NonNull::new(raw).ok_or_else(invalid)?;
        // SAFETY: the cursor is new; the caller keeps it within the session's life and thread.
        Ok(unsafe { Cursor::new(raw) })
    }

    /// Open a cursor, and close it when `body` returns.
    pub(super) fn with_cursor<T>(
        &self,
        uri: &CStr,
        config: &CStr,
        body: impl FnOnce(&mut Cursor) -> Called<T>,
    ) -> Called<T> {
        // SAFETY: the cursor ends with this call, on this thread, and `self` lives longer.
        let mut cursor = unsafe { self.open_cursor(uri, config)? };
        body(&mut cursor)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the session is open, its cursors are gone (the promise of `open_cursor`), and it
        // is never used again. Closing rolls back an open transaction; an error needs no handling,
        // because closing the connection reports it.
        let _ = unsafe { call!(self.ptr(), close, ptr::null()) };
    }
}
