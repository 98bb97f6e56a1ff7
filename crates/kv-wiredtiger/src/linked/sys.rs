//! The generated bindings of `wiredtiger.h`, and the one macro that calls through its tables of
//! function pointers.

#![expect(
    dead_code,
    unreachable_pub,
    non_camel_case_types,
    non_upper_case_globals,
    reason = "generated from a C header"
)]

include!(concat!(env!("OUT_DIR"), "/wiredtiger.rs"));

/// Call a method of a WiredTiger handle: `call!(session, commit_transaction, config)`. It must be
/// used in an `unsafe` block; the handle must be live and not in use by another thread.
macro_rules! call {
    ($handle:expr, $method:ident $(, $argument:expr)*) => {{
        let handle = $handle;
        let method = (*handle)
            .$method
            .expect("the library fills every method of a handle it gives out");
        method(handle $(, $argument)*)
    }};
}
pub(super) use call;
