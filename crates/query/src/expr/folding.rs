//! Errors of calls whose arguments are constants.
//!
//! Such a call is evaluated when it is parsed. If this fails, the call stays in the expression, and
//! fails only if it is evaluated later. MongoDB instead refuses the whole pipeline, even if the
//! call would never be evaluated. [`refuse_failing`] does the same for everything that its closure
//! parses on the current thread.

use std::cell::RefCell;

use crate::{Error, Result};

#[derive(Default)]
struct State {
    /// Whether errors are recorded: [`refuse_failing`] is running.
    on: bool,
    /// Number of enclosing calls that may skip the evaluation of their arguments.
    lazy: u32,
    /// The first error.
    first: Option<Error>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs `parse`, and returns an error if a call with constant arguments in it fails.
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

/// Records the error of a call with constant arguments.
pub(super) fn failed(error: Error) {
    STATE.with_borrow_mut(|state| {
        if state.on && state.lazy == 0 && state.first.is_none() {
            state.first = Some(error);
        }
    });
}

/// Runs `parse` for a call that may skip its arguments, also in MongoDB's optimizer: errors of
/// calls in them are not recorded.
pub(super) fn lazily<T>(parse: impl FnOnce() -> T) -> T {
    STATE.with_borrow_mut(|state| state.lazy += 1);
    let parsed = parse();
    STATE.with_borrow_mut(|state| state.lazy -= 1);
    parsed
}
