//! Receives the library's messages, which it would otherwise print.
//!
//! WiredTiger prints errors to standard error unless it has a handler. This handler keeps the last
//! message of each thread, for the error that the current call returns, and the message of a panic
//! (which any thread of the library may raise) for all later errors. Other messages are dropped:
//! they concern the library's own progress.
//!
//! The callbacks run on any thread, inside the library, and take only the lock of the panic
//! message.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use stdx::sync::Mutex;

use super::sys;

/// The library's messages on one thread since they were last taken.
#[derive(Default)]
pub(super) struct Heard {
    /// The last message, with the code of its error.
    last: Option<(c_int, String)>,
    /// The first message about damaged bytes. The library panics after it, with a less specific
    /// message.
    damage: Option<String>,
}

thread_local! {
    static HEARD: RefCell<Heard> = const { RefCell::new(Heard { last: None, damage: None }) };
}

/// The table of callbacks and their state. The library holds a pointer to it until the connection
/// is closed, so the connection owns it in a box.
#[repr(C)]
pub(super) struct Handler {
    /// Must stay first: the library passes its address to the callbacks.
    table: sys::WT_EVENT_HANDLER,
    /// True as soon as `panic` has a message; every write checks it.
    panicked: AtomicBool,
    panic: Mutex<Option<String>>,
}

impl Handler {
    /// A handler without messages.
    pub(super) fn new() -> Box<Handler> {
        Box::new(Handler {
            table: sys::WT_EVENT_HANDLER {
                handle_error: Some(on_error),
                handle_message: Some(on_message),
                handle_progress: None,
                handle_close: None,
            },
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
        })
    }

    /// The pointer for the library. The callbacks only read through it, and change only what the
    /// lock guards.
    pub(super) fn as_ptr(&self) -> *mut sys::WT_EVENT_HANDLER {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Whether the library has panicked.
    #[inline]
    pub(super) fn panicked(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    /// The library's message about its panic, if it has panicked.
    pub(super) fn panic(&self) -> Option<String> {
        self.panic.lock().clone()
    }
}

/// Take the messages of this thread, leaving none.
pub(super) fn take() -> Heard {
    HEARD.take()
}

impl Heard {
    /// The last message, if it is about `code`.
    pub(super) fn about(self, code: c_int) -> Option<String> {
        self.last
            .filter(|(about, _)| *about == code)
            .map(|(_, text)| text)
    }

    /// Take the message about damaged bytes.
    pub(super) fn damage(&mut self) -> Option<String> {
        self.damage.take()
    }
}

unsafe extern "C" fn on_error(
    handler: *mut sys::WT_EVENT_HANDLER,
    _session: *mut sys::WT_SESSION,
    code: c_int,
    message: *const c_char,
) -> c_int {
    if message.is_null() {
        return 0;
    }
    // SAFETY: the library passes a text that ends in a zero byte and lives during the call.
    let text = unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned();
    if code == sys::WT_PANIC && !handler.is_null() {
        // SAFETY: `handler` is from `Handler::as_ptr`, and the connection that owns the box is
        // still open, because it makes this call.
        let handler = unsafe { &*handler.cast::<Handler>() };
        handler.panic.lock().get_or_insert_with(|| text.clone());
        handler.panicked.store(true, Ordering::Release);
    }
    // A thread that is ending has no thread-local storage any more; then the message is dropped.
    let _ = HEARD.try_with(|heard| {
        let mut heard = heard.borrow_mut();
        if text.contains("checksum error") || text.contains("fatal read error") {
            heard.damage.get_or_insert_with(|| text.clone());
        }
        heard.last = Some((code, text));
    });
    0
}

unsafe extern "C" fn on_message(
    _handler: *mut sys::WT_EVENT_HANDLER,
    _session: *mut sys::WT_SESSION,
    _message: *const c_char,
) -> c_int {
    0
}
