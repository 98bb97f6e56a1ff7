//! Failed logins by address: each failure increases the delay of the next attempt.
//!
//! - L1. An attempt waits before it is checked, so that a client learns nothing by not waiting.
//! - L2. Only attempts from addresses with failures wait, for at most [`LONGEST`]. The wait holds
//!   no thread.
//! - L3. Failures are forgotten with time, and at most [`SOURCES`] addresses are remembered: when
//!   there are more, the one whose last failure is the oldest is forgotten.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use stdx::sync::Mutex;

use crate::metrics::Counter;

/// Number of failures without a delay: users mistype.
const FREE: u32 = 3;

/// The first delay; each further failure doubles it.
const FIRST: Duration = Duration::from_millis(10);

/// The maximum delay. A pool of connections with the right password still opens at once, and an
/// attacker can try one password per second and connection.
const LONGEST: Duration = Duration::from_secs(1);

/// The time after which one failure is forgotten.
const FORGET: Duration = Duration::from_secs(10);

/// Maximum number of failures counted, so that an address is delayed no longer than some minutes.
const MOST: u32 = 20;

/// Maximum number of addresses: about a megabyte.
const SOURCES: usize = 10_000;

/// The failures of one address.
#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// Addresses with failures. `by_age` has one entry for each.
#[derive(Default)]
struct Table {
    failures: HashMap<IpAddr, Failures>,
    by_age: BTreeSet<(Instant, IpAddr)>,
}

/// Failed logins.
#[derive(Default)]
pub(crate) struct Logins {
    table: Mutex<Table>,
    /// Logins that failed.
    pub(crate) failed: Counter,
    /// Attempts that had to wait.
    pub(crate) delayed: Counter,
}

impl Failures {
    /// Failures that are not yet forgotten.
    fn remembered(self, now: Instant) -> u32 {
        let past = now.saturating_duration_since(self.last).as_secs() / FORGET.as_secs();
        self.count
            .saturating_sub(u32::try_from(past).unwrap_or(u32::MAX))
    }
}

impl Logins {
    /// Record a failed login from an address.
    pub(crate) fn fail(&self, source: IpAddr, now: Instant) {
        self.failed.one();
        let mut table = self.table.lock();
        let before = table.failures.get(&source).copied();
        let count = before.map_or(0, |before| before.remembered(now));
        if let Some(before) = before {
            table.by_age.remove(&(before.last, source));
        }
        let count = count.saturating_add(1).min(MOST);
        table.failures.insert(source, Failures { count, last: now });
        table.by_age.insert((now, source));
        if SOURCES < table.failures.len()
            && let Some((_, oldest)) = table.by_age.pop_first()
        {
            table.failures.remove(&oldest);
        }
    }

    /// The delay of the next attempt from an address.
    pub(crate) fn delay(&self, source: IpAddr, now: Instant) -> Duration {
        let failures = self.table.lock().failures.get(&source).copied();
        let count = failures.map_or(0, |failures| failures.remembered(now));
        match count.checked_sub(FREE) {
            None | Some(0) => Duration::ZERO,
            Some(over) => {
                let factor = 2_u32.saturating_pow(over.saturating_sub(1));
                FIRST.saturating_mul(factor).min(LONGEST)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn failures_slow_their_address_down_and_no_other() {
        let (logins, now) = (Logins::default(), stdx::time::now());
        let (attacker, other) = (address(1), address(2));
        let mut delays = Vec::new();
        for _ in 0..40 {
            delays.push(logins.delay(attacker, now).as_millis());
            logins.fail(attacker, now);
            assert_eq!(logins.delay(other, now), Duration::ZERO);
        }
        assert_eq!(delays[..9], [0, 0, 0, 0, 10, 20, 40, 80, 160]);
        assert_eq!(delays[30..], [1_000; 10], "L2");
        assert_eq!(logins.failed.get(), 40);
    }

    #[test]
    fn failures_are_forgotten() {
        let (logins, now) = (Logins::default(), stdx::time::now());
        for _ in 0..100 {
            logins.fail(address(1), now);
        }
        let at = |seconds| logins.delay(address(1), now + Duration::from_secs(seconds));
        assert_eq!(at(0), LONGEST);
        assert_eq!(at(159).as_millis(), 20);
        assert_eq!(at(170), Duration::ZERO);
        // A new failure adds to the earlier failures that are not yet forgotten.
        logins.fail(address(1), now + Duration::from_secs(159));
        assert_eq!(at(159).as_millis(), 40);
    }

    #[test]
    fn the_oldest_of_too_many_addresses_is_forgotten() {
        let (logins, start) = (Logins::default(), stdx::time::now());
        let many = u32::try_from(SOURCES).unwrap() + 100;
        for n in 0..many {
            let now = start + Duration::from_micros(u64::from(n));
            for _ in 0..5 {
                logins.fail(address(n), now);
            }
        }
        let table = logins.table.lock();
        assert_eq!(table.failures.len(), SOURCES, "L3");
        assert_eq!(table.by_age.len(), SOURCES);
        drop(table);
        let end = start + Duration::from_secs(1);
        assert_eq!(logins.delay(address(99), end), Duration::ZERO);
        assert_ne!(logins.delay(address(100), end), Duration::ZERO);
    }
}
