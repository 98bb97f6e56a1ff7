//! The allocator of a program, and the free memory that it keeps.
//!
//! An allocator keeps freed memory for later allocations. After a peak of use, it keeps as much
//! memory as the peak needed; where one limit covers heap and page cache, this reduces the page
//! cache.
//!
//! The programs use jemalloc where the feature `jemalloc` and the system allow it, and else the C
//! library's allocator: see `docs/decisions/0050`. A library does not choose: it works with any.

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
mod jemalloc;
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
use jemalloc as chosen;
#[cfg(all(not(feature = "jemalloc"), target_os = "linux", target_env = "gnu"))]
mod glibc;
#[cfg(all(not(feature = "jemalloc"), target_os = "linux", target_env = "gnu"))]
use glibc as chosen;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod other;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
use other as chosen;

pub use chosen::Allocator;

/// The global allocator for a program:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: stdx::memory::Allocator = stdx::memory::ALLOCATOR;
/// ```
pub const ALLOCATOR: Allocator = chosen::ALLOCATOR;

/// The allocator's name, for reports.
pub const NAME: &str = chosen::NAME;

/// Return free memory to the operating system. Takes about a millisecond for each hundred megabytes
/// that were in use, and holds the allocator's locks meanwhile. Has no effect with allocators that
/// are neither jemalloc nor glibc's.
pub fn release() {
    chosen::release();
}

/// Let the allocator keep little free memory. A program calls it before it starts threads.
///
/// - jemalloc: a thread of its own returns free memory after one second; ten are the default.
/// - glibc: the threads share few arenas: one per processor, at least two and at most eight. By
///   default, there are up to eight per processor, and memory that one thread allocates and another
///   frees, such as the blocks of a cache, leaves holes in all: in a measurement, a block cache of
///   256 MiB took twice as much memory. Has no effect if the user set `MALLOC_ARENA_MAX`.
pub fn keep_little() {
    chosen::keep_little();
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn what_was_freed_goes_back() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages = text.split(' ').nth(1).unwrap().parse::<usize>().unwrap();
            pages * 4096
        };
        // Pieces small enough for the heap, and one allocated last, which keeps the end of the heap
        // in use.
        let pieces: Vec<Vec<u8>> = (0..2000).map(|_| black_box(vec![1; 32 << 10])).collect();
        let last = black_box(vec![1; 32 << 10]);
        let held = resident();
        drop(pieces);
        super::release();
        let left = resident();
        assert!(left + (32 << 20) < held, "{held} then {left}");
        drop(last);
    }
}
