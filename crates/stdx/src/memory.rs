//! What the process's allocator holds and nobody uses.
//!
//! An allocator keeps freed memory for the next to ask for it. After a load that is what the load
//! took at its height, and where a limit covers heap and page cache together it is taken from the
//! page cache.

/// Give memory that is free back to the operating system, as far as the allocator can: glibc's
/// can, of others nothing is asked. Takes about a millisecond for each hundred megabytes that were
/// in use, and takes the allocator's locks meanwhile.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `malloc_trim` has no precondition; it locks what it changes.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
// SAFETY: the declaration of glibc's <malloc.h>.
unsafe extern "C" {
    /// Release free memory but for `pad` bytes at the top of the heap; 1 if there was any.
    fn malloc_trim(pad: usize) -> i32;
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
        // Pieces small enough to come from the heap, and one after them that keeps its end in use.
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
