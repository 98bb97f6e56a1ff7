//! The share of a user in the commands that access storage at once: the long queries of one user,
//! however many connections it has, leave places for those of others.
//!
//! - H1. All connections of a user take their places from one semaphore, as long as one of them
//!   exists.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use stdx::sync::Mutex;
use tokio::sync::Semaphore;

use crate::limits::SHARE;

/// The semaphores by user.
#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<String, Weak<Semaphore>>>);

impl Shares {
    /// The places of a user, for a connection that keeps them.
    pub(crate) fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut shares = self.0.lock();
        if let Some(share) = shares.get(user).and_then(Weak::upgrade) {
            return share;
        }
        // Users without a connection are removed whenever the number of users has doubled.
        if shares.len().is_power_of_two() {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(SHARE));
        shares.insert(user.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H1.
    #[test]
    fn connections_of_a_user_share_its_places_and_users_without_any_are_forgotten() {
        let shares = Shares::default();
        let (one, same) = (shares.of("db.a"), shares.of("db.a"));
        let other = shares.of("db.b");
        let _taken = one.try_acquire().unwrap();
        assert_eq!(same.available_permits(), SHARE - 1);
        assert_eq!(other.available_permits(), SHARE);
        for number in 0..1_000 {
            drop(shares.of(&number.to_string()));
        }
        assert!(shares.0.lock().len() < 10);
        assert_eq!(shares.of("db.a").available_permits(), SHARE - 1);
    }
}
