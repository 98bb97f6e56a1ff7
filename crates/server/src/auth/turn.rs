//! The turn of the commands that change users and roles: one at a time.
//!
//! - T1. Such a command computes what it writes from what it has read (the roles that a user has,
//!   the privileges of a role). While it has the turn no other such command writes, so that none
//!   restores what another has revoked.
//!
//! The turn is taken before any latch of storage, and held until the command has written.

use std::time::Duration;

use docdb::Op;
use query::Result;
use stdx::sync::{Condvar, Mutex};

/// Interval at which a command that waits checks whether it must end.
const LOOK: Duration = Duration::from_millis(20);

/// The turn.
#[derive(Default)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    returned: Condvar,
}

/// The turn as held by one command. Dropping it returns the turn.
#[must_use]
pub(crate) struct Held<'t>(&'t Turn);

impl Turn {
    /// Wait for the turn.
    ///
    /// # Errors
    /// When the operation is killed or reaches its time limit.
    pub(crate) fn take(&self, op: &Op<'_>) -> Result<Held<'_>> {
        let mut taken = self.taken.lock();
        while *taken {
            op.check()?;
            self.returned.wait_for(&mut taken, LOOK);
        }
        *taken = true;
        Ok(Held(self))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock() = false;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kv::Durability;
    use query::Code;
    use stdx::sync::atomic::AtomicI32;

    use super::*;

    /// T1.
    #[test]
    fn one_command_at_a_time_has_the_turn() {
        let turn = Turn::default();
        let op = Op::new(Durability::None);
        let held = turn.take(&op).unwrap();
        let mut killed = Op::new(Durability::None);
        killed.killed = Arc::new(AtomicI32::new(Code::INTERRUPTED.0));
        let refused = turn.take(&killed).err().map(|error| error.code);
        assert_eq!(refused, Some(Code::INTERRUPTED), "T1");
        drop(held);
        drop(turn.take(&op).unwrap());
        drop(turn.take(&op).unwrap());
    }
}
