//! The moment between two portions of an operation, or two attempts of a write, when it holds
//! neither a latch nor a view of the store. Tests change the catalog there.

#[cfg(test)]
pub(crate) use testing::{between_portions, next_time};

/// Called between two portions or attempts.
#[cfg(not(test))]
pub(crate) fn between_portions() {}

#[cfg(test)]
mod testing {
    use std::cell::RefCell;

    type Action = Box<dyn FnOnce()>;

    thread_local! {
        static NEXT: RefCell<Option<Action>> = const { RefCell::new(None) };
    }

    /// Run the action of this thread, once.
    pub(crate) fn between_portions() {
        let action = NEXT.with_borrow_mut(Option::take);
        if let Some(action) = action {
            action();
        }
    }

    /// What this thread's next operation does between its first two portions.
    pub(crate) fn next_time(action: impl FnOnce() + 'static) {
        NEXT.set(Some(Box::new(action)));
    }
}
