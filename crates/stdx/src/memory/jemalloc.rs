//! jemalloc, for Rust code and, because it defines `malloc`, for C and C++ code too.
//!
//! Its settings are named in its manual, section MALLCTL NAMESPACE.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use tikv_jemallocator::Jemalloc;

/// jemalloc.
pub type Allocator = Jemalloc;

pub(super) const ALLOCATOR: Allocator = Jemalloc;

pub(super) const NAME: &str = "jemalloc";

/// How long free memory is kept, in milliseconds.
const KEPT: isize = 1000;

pub(super) fn release() {
    // Free memory that the calling thread holds back for itself, then that of all arenas: 4096
    // names all of them.
    call(c"thread.tcache.flush");
    call(c"arena.4096.purge");
}

pub(super) fn keep_little() {
    // The first is for arenas that are made from now on, the others for the two that exist.
    for name in [
        c"arenas.dirty_decay_ms",
        c"arena.0.dirty_decay_ms",
        c"arenas.muzzy_decay_ms",
        c"arena.0.muzzy_decay_ms",
    ] {
        write(name, KEPT);
    }
    write(c"background_thread", true);
}

/// Do what a name without a value stands for.
fn call(name: &CStr) {
    // SAFETY: the name ends with a zero byte; a control without a value reads and writes none.
    let code = unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), null(), 0) };
    debug_assert_eq!(code, 0, "{name:?}");
}

/// Set a value. The type must be that of the manual: jemalloc refuses one of another size.
fn write<T>(name: &CStr, value: T) {
    let new = (&raw const value).cast();
    // SAFETY: the name ends with a zero byte; `new` points to a value of the given size, which is
    // read before the call returns.
    let code = unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), new, size_of::<T>()) };
    debug_assert_eq!(code, 0, "{name:?}");
}

// SAFETY: the declaration of jemalloc's <jemalloc.h>. The dependency is built without a prefix for
// the names of its functions.
unsafe extern "C" {
    /// Read and write a setting, or do something; returns 0, or an error number.
    fn mallctl(
        name: *const c_char,
        old: *mut c_void,
        old_size: *mut usize,
        new: *const c_void,
        new_size: usize,
    ) -> c_int;
}

#[cfg(test)]
mod tests {
    /// The names and the sizes of the values are right: both functions check the results.
    #[test]
    fn settings_have_these_names() {
        super::keep_little();
        super::release();
    }
}
