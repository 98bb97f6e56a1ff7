//! A cell that is set once and shared after that: `std::sync::OnceLock` on top of a lock that the
//! thread sanitizer understands.
//!
//! - I1: `value` is written by the only call that `once` executes, before `once` is done; after
//!   that it does not change while the cell is shared.

use std::cell::UnsafeCell;
use std::fmt;

use parking_lot::{Once, OnceState};

/// A cell that is set once.
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: I1: the value moves from the thread that sets it to threads that read it, which needs
// both `Send` and `Sync`; after that it is shared and does not change.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// An empty cell.
    #[must_use]
    pub const fn new() -> OnceLock<T> {
        OnceLock {
            once: Once::new(),
            value: UnsafeCell::new(None),
        }
    }

    /// The value, if it was set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.once.state() != OnceState::Done {
            return None;
        }
        // SAFETY: I1: `once` is done, so no thread writes any more, and this thread sees the value.
        unsafe { &*self.value.get() }.as_ref()
    }

    /// Set the value, unless it was set before.
    ///
    /// # Errors
    /// Returns `value` if the cell was set before.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.init(|| value.take().expect("called once"));
        value.map_or(Ok(()), Err)
    }

    /// The value. If it was not set, `make` makes it; other callers wait meanwhile.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.once.state() != OnceState::Done {
            self.init(make);
        }
        self.get().expect("it was set above, or before")
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) {
        self.once.call_once(|| {
            let value = make();
            // SAFETY: I1: `once` executes one call only, and no thread reads before it is done.
            unsafe { *self.value.get() = Some(value) };
        });
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceLock").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_first_value_stays() {
        let cell = OnceLock::new();
        assert_eq!(cell.get(), None);
        assert_eq!(cell.set(1), Ok(()));
        assert_eq!(cell.set(2), Err(2));
        assert_eq!(cell.get_or_init(|| 3), &1);
    }

    #[test]
    fn one_of_many_makes_the_value() {
        // I1.
        let cell = Arc::new(OnceLock::new());
        let race = |n: u32| {
            let cell = Arc::clone(&cell);
            let body = move || *cell.get_or_init(|| vec![n; 10]).first().unwrap();
            super::super::spawn("once", body).unwrap()
        };
        let threads: Vec<_> = (0..8).map(race).collect();
        let seen: Vec<u32> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(
            seen.iter()
                .all(|&n| Some(&n) == cell.get().unwrap().first())
        );
    }
}
