//! Errors of calls whose arguments are constants.
//!
//! Such a call is evaluated when it is parsed. If that fails, the call stays and fails when it is
//! evaluated, if it ever is. MongoDB refuses the whole pipeline instead, whether the call would be
//! reached or not. [`refuse_failing`] is the latter behaviour for what is parsed inside of it, on
//! the same thread.

use std::cell::RefCell;

use crate::{Error, Result};

#[derive(Default)]
struct State {
    /// Whether errors are recorded.
    on: bool,
    /// Calls around the current one of which some arguments are never evaluated.
    lazy: u32,
    /// The first error.
    first: Option<Error>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Run `parse`, and reject its result if a call with constant arguments in it fails.
///
/// # Errors
/// Errors of `parse`; otherwise the error of the first failing call with constant arguments, worded
/// as an error of the optimizer.
pub fn refuse_failing<T>(parse: impl FnOnce() -> Result<T>) -> Result<T> {
    let state = State {
        on: true,
        ..State::default()
    };
    let outer = STATE.replace(state);
    let parsed = parse();
    let inner = STATE.replace(outer);
    match (parsed, inner.first) {
        (Ok(_), Some(error)) => Err(error.within("Failed to optimize pipeline")),
        (parsed, _) => parsed,
    }
}

/// Record the error of a call of constants.
pub(super) fn failed(error: Error) {
    STATE.with_borrow_mut(|state| {
        if state.on && state.lazy == 0 && state.first.is_none() {
            state.first = Some(error);
        }
    });
}

/// Parse a call whose arguments may never be evaluated, also by MongoDB's optimizer.
pub(super) fn lazily<T>(parse: impl FnOnce() -> T) -> T {
    STATE.with_borrow_mut(|state| state.lazy += 1);
    let parsed = parse();
    STATE.with_borrow_mut(|state| state.lazy -= 1);
    parsed
}
