//! Points in an operation at which a test can pause it: index builds between their steps,
//! operations that meet them, and writes before their commit. Outside of tests this does nothing.

/// A pause point. Locks are held only where the point names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The catalog has the indexes of a build; no document was read yet.
    Begun,
    /// A portion of documents was read.
    Read,
    /// A portion of entries was inserted.
    Put,
    /// The stored catalog marks the indexes as ready, the catalog in memory does not: the latch of
    /// the collection, the turn and the lock of changes are held.
    Marked,
    /// The operation waits for another operation's build.
    Waits,
    /// A read has read the catalog, and opens its snapshot next.
    Looked,
    /// The oplog entries of a write are put, their times are reserved; it commits next.
    Reserved,
}

/// The operation on this thread has reached a point.
#[cfg(not(test))]
#[inline]
pub(crate) fn reach(_: Point) {}

#[cfg(test)]
pub(crate) use hook::{at_points, reach};

#[cfg(test)]
mod hook {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::Point;

    type Hook = Rc<dyn Fn(Point)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    pub(crate) fn reach(point: Point) {
        let hook = HOOK.with_borrow(Clone::clone);
        if let Some(hook) = hook {
            hook(point);
        }
    }

    /// Call `hook` at the points that this thread reaches while it runs `body`.
    pub(crate) fn at_points<R>(hook: impl Fn(Point) + 'static, body: impl FnOnce() -> R) -> R {
        /// Also when `body` unwinds.
        struct Unset;
        impl Drop for Unset {
            fn drop(&mut self) {
                HOOK.set(None);
            }
        }
        HOOK.set(Some(Rc::new(hook)));
        let _unset = Unset;
        body()
    }
}
