//! The open cursors by id: ownership, expiry and statistics.
//!
//! R1: a cursor is idle, or leased to exactly one operation, or reserved for the operation that
//!     waits for its data. The registry owns it unless it is leased.
//! R2: a leased cursor that is killed ends with its operation: the operation finds the lease's end
//!     set, and the cursor is dropped when it returns it. The wait for a reserved cursor ends.
//! R3: no cursor is dropped while the lock is held, since a cursor may own files.

use std::any::Any;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bson::{Document, Timestamp};
use query::{Code, Error, Namespace, Result};
use stdx::Rng;
use stdx::sync::Mutex;

use crate::writes::End;

/// The owner of a cursor: only the owner may continue it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    /// The logical session's id, in bytes.
    pub session: Option<Vec<u8>>,
    /// The number of the transaction that opened it.
    pub transaction: Option<i64>,
    /// The authenticated user.
    pub user: Option<String>,
}

/// The command that opened a cursor, for `$currentOp`.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The command in the form that may be shown.
    pub command: Document,
    /// Its plan, in the form of [`crate::Examined::plans`].
    pub plan: Option<String>,
    /// Whether each batch is answered only when a majority has what it was read from. Stored for
    /// the layer above.
    pub committed: bool,
    /// Privileges that the user needs for each further batch. Stored for the layer above, which
    /// checks them; the store does not read them.
    pub needs: Option<Arc<dyn Any + Send + Sync>>,
}

impl PartialEq for Origin {
    /// Compares only the fields that are shown.
    fn eq(&self, other: &Origin) -> bool {
        self.command == other.command && self.plan == other.plan
    }
}

/// Registration data of a cursor.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    /// The namespace that `getMore` must name.
    pub namespace: Namespace,
    /// Its owner.
    pub owner: Owner,
    /// The time of the held snapshot that it reads.
    pub at: Option<Timestamp>,
    /// Whether it never times out.
    pub no_timeout: bool,
    /// Time left for its operations.
    pub left: Option<Duration>,
    /// The command that opened it, once set.
    pub origin: Option<Arc<Origin>>,
}

enum Slot<T> {
    Idle(T),
    Leased,
    Reserved(T),
}

struct Entry<T> {
    registration: Registration,
    used: Instant,
    killed: Arc<End>,
    slot: Slot<T>,
}

struct State<T> {
    entries: HashMap<i64, Entry<T>>,
    rng: Rng,
}

/// Reply of `killCursors`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Killed {
    /// Cursors that were closed.
    pub killed: Vec<i64>,
    /// Ids without an open cursor.
    pub not_found: Vec<i64>,
    /// Cursors of other users, which stay open.
    pub alive: Vec<i64>,
}

/// A cursor that no operation uses now, for `$currentOp`.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleCursor {
    /// Its id.
    pub id: i64,
    /// The namespace that `getMore` must name.
    pub namespace: Namespace,
    /// Its owner.
    pub owner: Owner,
    /// Whether it never times out.
    pub no_timeout: bool,
    /// How long it has been idle.
    pub unused: Duration,
    /// The command that opened it.
    pub origin: Option<Arc<Origin>>,
}

/// Cursor statistics for `serverStatus`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Open cursors.
    pub open: u64,
    /// Open cursors in use by an operation.
    pub pinned: u64,
    /// Open cursors that never time out.
    pub no_timeout: u64,
    /// Cursors that timed out since the store was opened.
    pub timed_out: u64,
    /// Cursors opened since the store was opened.
    pub opened: u64,
}

/// All open cursors.
pub(crate) struct Registry<T> {
    state: Mutex<State<T>>,
    timed_out: AtomicU64,
    opened: AtomicU64,
}

/// A cursor leased to one operation. Dropping the lease closes the cursor.
pub(crate) struct Lease<'a, T> {
    registry: &'a Registry<T>,
    id: i64,
    cursor: Option<T>,
    killed: Arc<End>,
}

impl<T> Registry<T> {
    /// An empty registry; ids are drawn from `seed`.
    pub(crate) fn new(seed: u64) -> Registry<T> {
        Registry {
            state: Mutex::new(State {
                entries: HashMap::new(),
                rng: Rng::new(seed),
            }),
            timed_out: AtomicU64::new(0),
            opened: AtomicU64::new(0),
        }
    }

    /// Register an idle cursor and give it an id.
    pub(crate) fn insert(&self, registration: Registration, cursor: T, now: Instant) -> i64 {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let id = loop {
            let id = (state.rng.next_u64() >> 1).cast_signed();
            if id != 0 && !state.entries.contains_key(&id) {
                break id;
            }
        };
        let entry = Entry {
            registration,
            used: now,
            killed: Arc::default(),
            slot: Slot::Idle(cursor),
        };
        state.entries.insert(id, entry);
        id
    }

    /// Lease a cursor for `getMore`; `waited` by the operation that it is reserved for.
    ///
    /// # Errors
    /// `CursorNotFound`; `CursorKilled` if it was killed while it was reserved; `Unauthorized` for
    /// another namespace or user; MongoDB's error codes for another session or transaction; 12051
    /// while the cursor is in use.
    pub(crate) fn lease(
        &self,
        id: i64,
        namespace: &Namespace,
        owner: &Owner,
        waited: bool,
    ) -> Result<Lease<'_, T>> {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&id) else {
            return Err(match waited {
                true => killed(id),
                false => not_found(id),
            });
        };
        check_owner(id, &entry.registration, namespace, owner)?;
        let cursor = match mem::replace(&mut entry.slot, Slot::Leased) {
            Slot::Idle(cursor) => cursor,
            Slot::Reserved(cursor) if waited => cursor,
            taken => {
                entry.slot = taken;
                let message = format!("cursor id {id} is already in use");
                return Err(Error::new(Code(12051), message));
            }
        };
        Ok(Lease {
            registry: self,
            id,
            cursor: Some(cursor),
            killed: Arc::clone(&entry.killed),
        })
    }

    /// Make a cursor idle that is still reserved, as its operation has ended.
    pub(crate) fn release(&self, id: i64, now: Instant) {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&id) else {
            return;
        };
        entry.slot = match mem::replace(&mut entry.slot, Slot::Leased) {
            Slot::Reserved(cursor) => {
                entry.used = now;
                Slot::Idle(cursor)
            }
            other => other,
        };
    }

    /// The time of the held snapshot that a cursor reads.
    pub(crate) fn time(&self, id: i64) -> Option<Timestamp> {
        self.state.lock().entries.get(&id)?.registration.at
    }

    /// Time left for a cursor's operations.
    pub(crate) fn left(&self, id: i64) -> Option<Duration> {
        self.state.lock().entries.get(&id)?.registration.left
    }

    /// Set the command that opened a cursor.
    pub(crate) fn set_origin(&self, id: i64, origin: Arc<Origin>) {
        if let Some(entry) = self.state.lock().entries.get_mut(&id) {
            entry.registration.origin = Some(origin);
        }
    }

    /// The command that opened a cursor, if the cursor belongs to `owner`.
    pub(crate) fn origin(&self, id: i64, owner: &Owner) -> Option<Arc<Origin>> {
        let state = self.state.lock();
        let registration = &state.entries.get(&id)?.registration;
        registration
            .origin
            .clone()
            .filter(|_| registration.owner == *owner)
    }

    /// Privileges that the user of a cursor needs; `None` until they are set.
    pub(crate) fn needs(&self, id: i64) -> Option<Arc<dyn Any + Send + Sync>> {
        let state = self.state.lock();
        let origin = state.entries.get(&id)?.registration.origin.as_ref()?;
        origin.needs.clone()
    }

    /// The namespace and the owner of a cursor.
    pub(crate) fn owner(&self, id: i64) -> Option<(Namespace, Owner)> {
        let state = self.state.lock();
        let registration = &state.entries.get(&id)?.registration;
        Some((registration.namespace.clone(), registration.owner.clone()))
    }

    /// Close the cursors of `ids` for which `may` returns true.
    pub(crate) fn kill(&self, ids: &[i64], may: &dyn Fn(&Namespace, &Owner) -> bool) -> Killed {
        let mut answer = Killed::default();
        let mut ended = Vec::new();
        let mut state = self.state.lock();
        for &id in ids {
            match state.entries.get(&id) {
                Some(Entry { registration, .. })
                    if may(&registration.namespace, &registration.owner) =>
                {
                    ended.extend(remove(&mut state, id));
                    answer.killed.push(id);
                }
                Some(_) => answer.alive.push(id),
                None => answer.not_found.push(id),
            }
        }
        drop(state);
        drop(ended);
        answer
    }

    /// Close every cursor for whose registration `chosen` returns true; returns their number.
    pub(crate) fn kill_where(&self, chosen: &mut dyn FnMut(&Registration) -> bool) -> usize {
        self.close_where(&mut |entry| chosen(&entry.registration))
    }

    /// Close every cursor for which `chosen` returns true; returns their number. Cursors are
    /// dropped after the lock is released.
    fn close_where(&self, chosen: &mut dyn FnMut(&Entry<T>) -> bool) -> usize {
        let mut state = self.state.lock();
        let ids: Vec<i64> = state
            .entries
            .iter()
            .filter(|(_, entry)| chosen(entry))
            .map(|(&id, _)| id)
            .collect();
        let ended: Vec<Entry<T>> = ids
            .iter()
            .filter_map(|&id| remove(&mut state, id))
            .collect();
        drop(state);
        ended.len()
    }

    /// Close the cursors idle for longer than `limit`; returns their number.
    pub(crate) fn reap(&self, now: Instant, limit: Duration) -> usize {
        let count = self.close_where(&mut |entry| {
            matches!(entry.slot, Slot::Idle(_))
                && !entry.registration.no_timeout
                && limit <= now.saturating_duration_since(entry.used)
        });
        self.timed_out
            .fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        count
    }

    /// The cursors that no operation uses.
    pub(crate) fn idle(&self, now: Instant) -> Vec<IdleCursor> {
        let state = self.state.lock();
        let idle = state.entries.iter();
        let idle = idle.filter(|(_, entry)| matches!(entry.slot, Slot::Idle(_)));
        idle.map(|(&id, entry)| IdleCursor {
            id,
            namespace: entry.registration.namespace.clone(),
            owner: entry.registration.owner.clone(),
            no_timeout: entry.registration.no_timeout,
            unused: now.saturating_duration_since(entry.used),
            origin: entry.registration.origin.clone(),
        })
        .collect()
    }

    /// Current statistics.
    pub(crate) fn figures(&self) -> Figures {
        let state = self.state.lock();
        let count = |keep: &dyn Fn(&Entry<T>) -> bool| {
            let n = state.entries.values().filter(|entry| keep(entry)).count();
            u64::try_from(n).unwrap_or(u64::MAX)
        };
        Figures {
            open: count(&|_| true),
            pinned: count(&|entry| !matches!(entry.slot, Slot::Idle(_))),
            no_timeout: count(&|entry| entry.registration.no_timeout),
            timed_out: self.timed_out.load(Ordering::Relaxed),
            opened: self.opened.load(Ordering::Relaxed),
        }
    }
}

/// Remove an entry; an operation that uses its cursor, or waits for it, is notified (R2).
fn remove<T>(state: &mut State<T>, id: i64) -> Option<Entry<T>> {
    let entry = state.entries.remove(&id)?;
    entry.killed.end();
    Some(entry)
}

impl<T> Lease<'_, T> {
    /// The leased cursor.
    pub(crate) fn cursor(&mut self) -> &mut T {
        self.cursor
            .as_mut()
            .expect("a lease holds its cursor until it is given back")
    }

    /// What ends when the cursor is killed, during the lease or later.
    pub(crate) fn killed(&self) -> &Arc<End> {
        &self.killed
    }

    /// Return the cursor to the registry, idle from `now` on, unless it was killed; `left` is the
    /// time left for its operations.
    pub(crate) fn give_back(self, now: Instant, left: Option<Duration>) {
        self.put(Slot::Idle, now, left);
    }

    /// As [`Lease::give_back`], but the cursor stays in use by this operation, which waits for its
    /// data: a lease of one that waited must follow, or [`Registry::release`].
    pub(crate) fn reserve(self, now: Instant, left: Option<Duration>) {
        self.put(Slot::Reserved, now, left);
    }

    fn put(mut self, slot: fn(T) -> Slot<T>, now: Instant, left: Option<Duration>) {
        let Some(cursor) = self.cursor.take() else {
            return;
        };
        let mut state = self.registry.state.lock();
        if let Some(entry) = state.entries.get_mut(&self.id) {
            entry.slot = slot(cursor);
            entry.used = now;
            entry.registration.left = left;
        } else {
            // R3.
            drop(state);
            drop(cursor);
        }
    }
}

impl<T> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            let mut state = self.registry.state.lock();
            let entry = state.entries.remove(&self.id);
            drop(state);
            drop(entry);
        }
    }
}

fn not_found(id: i64) -> Error {
    Error::new(Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"))
}

/// The error of an operation whose cursor was killed.
pub(super) fn killed(id: i64) -> Error {
    Error::new(Code::CURSOR_KILLED, format!("cursor id {id} was killed"))
}

fn check_owner(id: i64, of: &Registration, namespace: &Namespace, by: &Owner) -> Result<()> {
    if of.namespace != *namespace {
        return Err(Error::new(
            Code::UNAUTHORIZED,
            format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different \
                 namespace {}",
                of.namespace
            ),
        ));
    }
    if of.owner.user != by.user {
        return Err(Error::new(
            Code::UNAUTHORIZED,
            format!("cursor id {id} was not created by the authenticated user"),
        ));
    }
    let refused = match (&of.owner.session, &by.session) {
        (None, Some(_)) => Some((50736, "which was not created in a session, in a session")),
        (Some(_), None) => Some((50737, "which was created in a session, without an lsid")),
        (Some(a), Some(b)) if a != b => {
            Some((50738, "which was created in a session, in another session"))
        }
        _ => match (of.owner.transaction, by.transaction) {
            (None, Some(_)) => Some((
                50739,
                "which was not created in a transaction, in a transaction",
            )),
            (Some(_), None) => Some((
                50740,
                "which was created in a transaction, without a txnNumber",
            )),
            (Some(a), Some(b)) if a != b => Some((
                50741,
                "which was created in a transaction, in another transaction",
            )),
            _ => None,
        },
    };
    match refused {
        None => Ok(()),
        Some((code, why)) => Err(Error::location(
            code,
            format!("Cannot run getMore on cursor {id}, {why}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::IDLE_LIMIT;

    fn registration(owner: Owner) -> Registration {
        Registration {
            namespace: Namespace::parse("db.c").unwrap(),
            owner,
            at: None,
            no_timeout: false,
            left: None,
            origin: None,
        }
    }

    fn setup() -> (Registry<Arc<()>>, Arc<()>, i64, Instant) {
        let registry = Registry::new(1);
        let token = Arc::new(());
        let now = stdx::time::now();
        let id = registry.insert(registration(Owner::default()), Arc::clone(&token), now);
        (registry, token, id, now)
    }

    /// R1.
    #[test]
    fn a_lease_returns_or_ends_the_cursor() {
        let (registry, token, id, now) = setup();
        let ns = Namespace::parse("db.c").unwrap();
        let owner = Owner::default();
        let mut lease = registry.lease(id, &ns, &owner, false).unwrap();
        assert!(Arc::ptr_eq(lease.cursor(), &token));
        let busy = registry.lease(id, &ns, &owner, false).err().unwrap();
        assert_eq!(busy.code, Code(12051));
        assert_eq!(registry.figures().pinned, 1);
        lease.give_back(now, None);
        assert_eq!(registry.figures().pinned, 0);
        drop(registry.lease(id, &ns, &owner, false).unwrap());
        assert_eq!(Arc::strong_count(&token), 1);
        let gone = registry.lease(id, &ns, &owner, false).err().unwrap();
        assert_eq!(gone.code, Code::CURSOR_NOT_FOUND);
    }

    /// R1.
    #[test]
    fn a_reserved_cursor_is_in_use_until_its_operation_has_waited() {
        let (registry, token, id, now) = setup();
        let ns = Namespace::parse("db.c").unwrap();
        let owner = Owner::default();
        let lease = |waited| registry.lease(id, &ns, &owner, waited);
        lease(false).unwrap().reserve(now, None);
        assert_eq!(registry.figures().pinned, 1);
        assert_eq!(registry.idle(now), []);
        assert_eq!(registry.reap(now + IDLE_LIMIT, IDLE_LIMIT), 0);
        assert_eq!(lease(false).err().unwrap().code, Code(12051));
        lease(true).unwrap().give_back(now, None);
        assert_eq!(registry.idle(now).len(), 1);
        lease(false).unwrap().reserve(now, None);
        registry.release(id, now);
        assert_eq!(registry.idle(now).len(), 1);
        lease(false).unwrap().reserve(now, None);
        assert_eq!(registry.kill(&[id], &|_, _| true).killed, [id]);
        assert_eq!(Arc::strong_count(&token), 1);
        assert_eq!(lease(true).err().unwrap().code, Code::CURSOR_KILLED);
    }

    /// A cursor that uses its registry when it is dropped.
    struct Nosy(std::sync::Weak<Registry<Nosy>>, Arc<AtomicU64>);

    impl Drop for Nosy {
        fn drop(&mut self) {
            if let Some(registry) = self.0.upgrade() {
                assert!(registry.state.try_lock().is_some(), "R3: the lock is free");
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// R3.
    #[test]
    fn no_cursor_is_dropped_under_the_lock() {
        let registry = Arc::new(Registry::new(1));
        let dropped = Arc::new(AtomicU64::new(0));
        let now = stdx::time::now();
        let owner = Owner::default();
        let ns = Namespace::parse("db.c").unwrap();
        let open = || {
            let cursor = Nosy(Arc::downgrade(&registry), Arc::clone(&dropped));
            registry.insert(registration(Owner::default()), cursor, now)
        };
        let kill = |id: i64| assert_eq!(registry.kill(&[id], &|_, _| true).killed, [id]);
        // Idle, leased, returned after it was killed, and idle for long.
        kill(open());
        drop(registry.lease(open(), &ns, &owner, false).unwrap());
        let id = open();
        let lease = registry.lease(id, &ns, &owner, false).unwrap();
        kill(id);
        lease.give_back(now, None);
        open();
        let hour = Duration::from_secs(3_600);
        assert_eq!(registry.reap(now + hour, hour / 2), 1);
        assert_eq!(dropped.load(Ordering::Relaxed), 4);
    }

    /// R2.
    #[test]
    fn killing_reaches_leased_cursors() {
        let (registry, token, id, now) = setup();
        let ns = Namespace::parse("db.c").unwrap();
        let lease = registry.lease(id, &ns, &Owner::default(), false).unwrap();
        assert_eq!(registry.owner(id), Some((ns.clone(), Owner::default())));
        assert_eq!(registry.owner(5), None);
        assert_eq!(registry.kill(&[id], &|_, _| false).alive, [id]);
        let killed = registry.kill(&[id, 5], &|of, _| *of == ns);
        assert_eq!((killed.killed, killed.not_found), (vec![id], vec![5]));
        assert!(lease.killed().is_ended());
        lease.give_back(now, None);
        assert_eq!(Arc::strong_count(&token), 1);
    }

    #[test]
    fn only_the_owner_goes_on() {
        let registry: Registry<()> = Registry::new(1);
        let owner = Owner {
            session: Some(vec![1]),
            transaction: Some(4),
            user: None,
        };
        let id = registry.insert(registration(owner.clone()), (), stdx::time::now());
        let refused = |namespace: &str, owner: Owner| {
            let namespace = Namespace::parse(namespace).unwrap();
            registry
                .lease(id, &namespace, &owner, false)
                .err()
                .map(|e| e.code.0)
        };
        let with = |session: Option<u8>, transaction, user: Option<&str>| Owner {
            session: session.map(|byte| vec![byte]),
            transaction,
            user: user.map(str::to_owned),
        };
        assert_eq!(refused("db.x", owner.clone()), Some(13));
        assert_eq!(refused("db.c", with(Some(1), Some(4), Some("u"))), Some(13));
        assert_eq!(refused("db.c", with(Some(2), Some(4), None)), Some(50738));
        assert_eq!(refused("db.c", with(None, None, None)), Some(50737));
        assert_eq!(refused("db.c", with(Some(1), None, None)), Some(50740));
        assert_eq!(refused("db.c", with(Some(1), Some(5), None)), Some(50741));
        assert_eq!(refused("db.c", owner), None);
    }

    #[test]
    fn what_opened_a_cursor_is_told_to_its_owner() {
        let (registry, _token, id, now) = setup();
        let owner = Owner::default();
        assert_eq!(registry.origin(id, &owner), None);
        let origin = Arc::new(Origin {
            command: bson::doc! { "find": "c" },
            committed: false,
            plan: None,
            needs: None,
        });
        registry.set_origin(id, Arc::clone(&origin));
        assert_eq!(registry.idle(now)[0].origin.as_ref(), Some(&origin));
        assert_eq!(registry.origin(id, &owner), Some(origin));
        let other = Owner {
            user: Some("eve".to_owned()),
            ..Owner::default()
        };
        assert_eq!(registry.origin(id, &other), None);
        assert_eq!(registry.origin(id + 1, &owner), None);
    }

    #[test]
    fn idle_cursors_time_out() {
        let (registry, _token, id, now) = setup();
        let mut lasting = registration(Owner::default());
        lasting.no_timeout = true;
        let lasting = registry.insert(lasting, Arc::new(()), now);
        assert_eq!(
            registry.reap(now + IDLE_LIMIT - Duration::from_secs(1), IDLE_LIMIT),
            0
        );
        assert_eq!(registry.reap(now + IDLE_LIMIT, IDLE_LIMIT), 1);
        let ns = Namespace::parse("db.c").unwrap();
        assert!(registry.lease(id, &ns, &Owner::default(), false).is_err());
        assert!(
            registry
                .lease(lasting, &ns, &Owner::default(), false)
                .is_ok()
        );
        assert_eq!(registry.figures().timed_out, 1);
    }

    #[test]
    fn sessions_end_their_cursors() {
        let (registry, token, _, _) = setup();
        assert_eq!(registry.kill_where(&mut |r| r.owner.session.is_some()), 0);
        assert_eq!(registry.kill_where(&mut |r| r.owner.session.is_none()), 1);
        assert_eq!(Arc::strong_count(&token), 1);
    }
}
