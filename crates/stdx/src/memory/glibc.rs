//! The allocator of glibc.

use std::alloc::System;

/// The C library's allocator.
pub type Allocator = System;

pub(super) const ALLOCATOR: Allocator = System;

pub(super) const NAME: &str = "glibc";

pub(super) fn release() {
    // SAFETY: `malloc_trim` has no precondition; it locks what it changes.
    unsafe { malloc_trim(0) };
}

/// Maximum number of arenas.
const ARENAS_MAX: usize = 8;

pub(super) fn keep_little() {
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = i32::try_from(processors.clamp(2, ARENAS_MAX)).unwrap_or(2);
        // SAFETY: `mallopt` has no precondition; an unknown parameter is refused by its result.
        unsafe { mallopt(M_ARENA_MAX, arenas) };
    }
}

/// The parameter of `mallopt`, as in <malloc.h>.
const M_ARENA_MAX: i32 = -8;

// SAFETY: the declarations of glibc's <malloc.h>.
unsafe extern "C" {
    /// Release free memory except `pad` bytes at the top of the heap; returns 1 if memory was
    /// released.
    fn malloc_trim(pad: usize) -> i32;
    /// Set a parameter; returns 1 on success.
    fn mallopt(parameter: i32, value: i32) -> i32;
}
