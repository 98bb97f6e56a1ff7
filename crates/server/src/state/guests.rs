//! Guests: connections that have not authenticated, where authentication is required. Limits how
//! many there may be and how much memory they may hold together.
//!
//! - G1. The first [`GUEST_UNCHARGED`] bytes of a guest do not count, so that greetings and logins
//!   are answered however much memory other guests hold.
//! - G2. When there are too many guests, the oldest one of the address with most of them is closed:
//!   an attacker at one address closes its own connections. Monitoring connections of drivers never
//!   authenticate, and live as long as there is room.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stdx::sync::Mutex;
use tokio::sync::Notify;

use super::Client;
use crate::limits::{GUEST_BUDGET, GUEST_UNCHARGED};
use crate::metrics::Counter;

pub(crate) struct Guests {
    /// Maximum number of guests.
    limit: usize,
    /// Bytes charged to all guests together.
    bytes: AtomicUsize,
    /// Guests closed because memory or places ran out.
    pub(crate) closed: Counter,
    present: Mutex<Present>,
}

/// The guests by address. `by_count` has one entry for each address, with its number of guests.
#[derive(Default)]
struct Present {
    count: usize,
    by_source: HashMap<IpAddr, BTreeMap<i64, Arc<Notify>>>,
    by_count: BTreeSet<(usize, IpAddr)>,
}

/// A place among the guests; dropping it frees the place and its memory.
pub(crate) struct Guest {
    all: Arc<Guests>,
    source: IpAddr,
    id: i64,
    charged: usize,
    /// Notified when the connection must end.
    ended: Arc<Notify>,
}

impl Guests {
    /// Room for `limit` guests.
    pub(crate) fn new(limit: usize) -> Guests {
        Guests {
            limit,
            bytes: AtomicUsize::new(0),
            closed: Counter::default(),
            present: Mutex::default(),
        }
    }

    /// Admit a guest. If that exceeds the limit, close another one (G2).
    pub(crate) fn admit(self: &Arc<Guests>, client: &Client) -> Guest {
        let guest = Guest {
            all: Arc::clone(self),
            source: client.source(),
            id: client.id,
            charged: 0,
            ended: Arc::new(Notify::new()),
        };
        let mut present = self.present.lock();
        present.add(guest.source, guest.id, Arc::clone(&guest.ended));
        if self.limit < present.count
            && let Some(ended) = present.take_one()
        {
            self.closed.one();
            ended.notify_one();
        }
        drop(present);
        guest
    }

    /// The number of guests.
    pub(crate) fn count(&self) -> usize {
        self.present.lock().count
    }

    /// Bytes charged to all guests together; at most [`GUEST_BUDGET`].
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Guest {
    /// Charge the memory the guest holds now, in place of the earlier charge. Returns whether the
    /// budget allows it; if not, nothing changes and the connection should close.
    #[must_use]
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(GUEST_UNCHARGED);
        let before = self.charged;
        let (load, order) = (&self.all.bytes, Ordering::Relaxed);
        let changed = load.fetch_update(order, order, |all| {
            let others = all.saturating_sub(before);
            let after = others.saturating_add(wanted);
            (after <= GUEST_BUDGET || wanted <= before).then_some(after)
        });
        match changed {
            Ok(_) => self.charged = wanted,
            Err(_) => self.all.closed.one(),
        }
        changed.is_ok()
    }

    /// Notified when the connection must close.
    pub(crate) fn ending(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Wait until the connection must close.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.charged, Ordering::Relaxed);
        self.all.present.lock().remove(self.source, self.id);
    }
}

impl Present {
    fn add(&mut self, source: IpAddr, id: i64, ended: Arc<Notify>) {
        let guests = self.by_source.entry(source).or_default();
        let before = guests.len();
        if guests.insert(id, ended).is_some() {
            return;
        }
        self.count += 1;
        self.recount(source, before);
    }

    /// The guest may have been closed before, in favor of others.
    fn remove(&mut self, source: IpAddr, id: i64) -> Option<Arc<Notify>> {
        let guests = self.by_source.get_mut(&source)?;
        let before = guests.len();
        let removed = guests.remove(&id)?;
        self.count -= 1;
        self.recount(source, before);
        Some(removed)
    }

    fn recount(&mut self, source: IpAddr, before: usize) {
        self.by_count.remove(&(before, source));
        let now = self.by_source.get(&source).map_or(0, BTreeMap::len);
        if 0 < now {
            self.by_count.insert((now, source));
        } else {
            self.by_source.remove(&source);
        }
    }

    /// Remove the oldest guest of the address with most guests.
    fn take_one(&mut self) -> Option<Arc<Notify>> {
        let (_, source) = *self.by_count.last()?;
        let (&id, _) = self.by_source.get(&source)?.first_key_value()?;
        self.remove(source, id)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::state::peer::Peer;

    fn client(id: i64, address: &str) -> Client {
        let peer: IpAddr = address.parse().unwrap();
        Client::new(id, Peer::Network(SocketAddr::new(peer, 1)), None)
    }

    /// Whether it must close. The notification is kept for the first call.
    fn has_ended(guest: &Guest) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let ended = std::pin::pin!(guest.ended());
        std::future::Future::poll(ended, &mut context).is_ready()
    }

    /// G2: the address with most guests loses its oldest one.
    #[test]
    fn the_address_with_most_guests_loses_its_oldest() {
        let guests = Arc::new(Guests::new(4));
        let victim = guests.admit(&client(1, "10.0.0.1"));
        let mut attackers: Vec<Guest> = (2..10)
            .map(|id| guests.admit(&client(id, "10.0.0.2")))
            .collect();
        assert_eq!(guests.count(), 4);
        assert!(!has_ended(&victim));
        let ended: Vec<bool> = attackers.iter().map(has_ended).collect();
        assert_eq!(ended, [true, true, true, true, true, false, false, false]);
        assert_eq!(guests.closed.get(), 5);
        // An IPv6 address counts as its 64-bit network, which belongs to one customer.
        let net = |host: i64| client(100 + host, &format!("2001:db8::{host}"));
        let six: Vec<Guest> = (0..4).map(|host| guests.admit(&net(host))).collect();
        assert!(!has_ended(&victim));
        assert_eq!(six.iter().filter(|guest| has_ended(guest)).count(), 3);
        attackers.clear();
        drop((victim, six));
        assert_eq!(guests.count(), 0);
        let present = guests.present.lock();
        assert!(present.by_source.is_empty() && present.by_count.is_empty());
    }

    /// G1: small guests are not charged.
    #[test]
    fn guests_share_a_budget_and_small_ones_need_none() {
        let guests = Arc::new(Guests::new(10));
        let mut one = guests.admit(&client(1, "10.0.0.1"));
        let mut two = guests.admit(&client(2, "10.0.0.1"));
        assert!(one.hold(GUEST_BUDGET + GUEST_UNCHARGED));
        assert_eq!(guests.bytes(), GUEST_BUDGET);
        assert!(two.hold(GUEST_UNCHARGED), "G1");
        assert!(!two.hold(GUEST_UNCHARGED + 1));
        assert!(one.hold(GUEST_BUDGET));
        assert!(two.hold(2 * GUEST_UNCHARGED));
        assert!(!two.hold(2 * GUEST_UNCHARGED + 1));
        assert_eq!(guests.closed.get(), 2);
        drop(one);
        assert_eq!(guests.bytes(), GUEST_UNCHARGED);
        drop(two);
        assert_eq!(guests.bytes(), 0);
    }
}
