//! The entry whose command the thread applies: a change of the catalog that it commits moves the
//! mark of what is applied, in place of an entry of its own.
//!
//! A change of the catalog commits on the thread that runs it, several functions below the one that
//! applies the entry, so the thread keeps the position.

use std::cell::Cell;

use super::entry::OpTime;

thread_local! {
    static AT: Cell<Option<OpTime>> = const { Cell::new(None) };
}

/// The thread applies the command of an entry, until this is dropped.
#[must_use = "the entry is applied while this exists"]
pub(crate) struct Replayed(());

impl Replayed {
    /// Begin to apply the entry at this position.
    pub(crate) fn begin(at: OpTime) -> Replayed {
        AT.set(Some(at));
        Replayed(())
    }
}

impl Drop for Replayed {
    fn drop(&mut self) {
        AT.set(None);
    }
}

/// The position of the entry that the thread applies, if it does.
pub(crate) fn replayed() -> Option<OpTime> {
    AT.get()
}
