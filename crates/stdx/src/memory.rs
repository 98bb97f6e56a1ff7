//! Limits the free memory that the process's allocator keeps.
//!
//! An allocator keeps freed memory for later allocations. After a peak of use, it keeps as much
//! memory as the peak needed; where one limit covers heap and page cache, this reduces the page
//! cache.

/// Return free memory to the operating system. Has an effect with glibc's allocator only. Takes
/// about a millisecond for each hundred megabytes that were in use, and holds the allocator's locks
/// meanwhile.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `malloc_trim` has no precondition; it locks what it changes.
        unsafe { malloc_trim(0) };
    }
}

/// Maximum number of arenas of glibc's allocator.
const ARENAS_MAX: usize = 8;

/// Let the threads of this process share few arenas of the allocator: one per processor, at least
/// two and at most eight. Call it before threads are started. Has no effect if the user set
/// `MALLOC_ARENA_MAX`, or with other allocators.
///
/// By default, glibc uses up to eight arenas per processor. Memory that one thread allocates and
/// another frees, such as the blocks of a cache, then leaves holes in all arenas: in a measurement,
/// a block cache of 256 MiB took twice as much memory. See `docs/decisions/0024`.
pub fn few_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = i32::try_from(processors.clamp(2, ARENAS_MAX)).unwrap_or(2);
        // SAFETY: `mallopt` has no precondition; an unknown parameter is refused by its result.
        unsafe { mallopt(M_ARENA_MAX, arenas) };
    }
}

/// The parameter of `mallopt`, as in <malloc.h>.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_ARENA_MAX: i32 = -8;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
// SAFETY: the declarations of glibc's <malloc.h>.
unsafe extern "C" {
    /// Release free memory except `pad` bytes at the top of the heap; returns 1 if memory was
    /// released.
    fn malloc_trim(pad: usize) -> i32;
    /// Set a parameter; returns 1 on success.
    fn mallopt(parameter: i32, value: i32) -> i32;
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
