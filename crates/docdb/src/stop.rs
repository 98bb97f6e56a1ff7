//! Points that an operation passes, at which a test can hold it up: index builds between their
//! steps, and what meets them. Outside of tests there is nothing here.

/// A point. Locks are held only where the point names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The catalog has the indexes of a build; nothing was read.
    Begun,
    /// A portion of documents was read.
    Read,
    /// A portion of entries was put.
    Put,
    /// The store says that the indexes are ready, the catalog does not: the latch of the
    /// collection, the turn and the lock of changes are held.
    Marked,
    /// The operation waits for a build that another one has begun.
    Waits,
    /// A read has looked at the catalog, and opens its snapshot next.
    Looked,
}

/// The operation on this thread has come to a point.
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

    /// Call `hook` at the points that this thread comes to while it does `body`.
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
