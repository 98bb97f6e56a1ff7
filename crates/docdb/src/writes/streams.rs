//! The waits of change streams: a commit ends those whose streams follow what it touched.
//!
//! ```text
//! followed   "db.c" a collection    "db." a database    "" the deployment
//! touched    the collection db.c    ends "db.c", "db." and ""
//!            the database db        ends all that begin with "db.", and ""
//! ```
//!
//! - N1. No wake-up is lost. A wait is registered before its stream reads. A commit takes the
//!   visible time and marks the waits under one hold of their lock. What it touched at later times
//!   is kept, and the commit that makes those visible marks the waits for it.
//! - N2. A wait whose stream follows nothing of what was touched is not woken.
//! - N3. A wait that is given up leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bson::Timestamp;
use stdx::sync::Mutex;

/// What a transaction changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Collections with changed documents, by their full names.
    collections: BTreeSet<String>,
    /// Databases whose catalog changes.
    databases: BTreeSet<String>,
}

impl Touched {
    /// Add a collection by its full name.
    pub(crate) fn collection(&mut self, ns: &str) {
        if !self.collections.contains(ns) {
            self.collections.insert(ns.to_owned());
        }
    }

    /// Add a database.
    pub(crate) fn database(&mut self, name: &str) {
        self.databases.insert(name.to_owned());
    }

    fn is_empty(&self) -> bool {
        self.collections.is_empty() && self.databases.is_empty()
    }
}

/// The waits of all streams.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last wait.
    number: u64,
    /// By what their streams follow.
    waits: BTreeMap<String, BTreeMap<u64, Registered>>,
    /// What was touched at times that are not visible yet.
    hidden: BTreeMap<Timestamp, Arc<Touched>>,
}

#[derive(Debug, Default)]
struct Registered {
    ended: bool,
    waker: Option<Waker>,
}

/// The wait of a stream. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Wait {
    streams: Arc<Streams>,
    followed: String,
    number: u64,
}

impl Streams {
    /// A wait, registered now.
    pub(super) fn register(self: &Arc<Streams>, followed: &str) -> Wait {
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        let same = state.waits.entry(followed.to_owned()).or_default();
        same.insert(number, Registered::default());
        Wait {
            streams: Arc::clone(self),
            followed: followed.to_owned(),
            number,
        }
    }

    /// Entries with these times were put or given up. `visible` returns the visible time; it is
    /// called under the lock of the waits (N1).
    pub(crate) fn ended(
        &self,
        times: &[Timestamp],
        touched: Touched,
        visible: impl FnOnce() -> Timestamp,
    ) {
        let mut woken = Vec::new();
        let mut state = self.state.lock();
        if !touched.is_empty() {
            let touched = Arc::new(touched);
            let touched = times.iter().map(|time| (*time, Arc::clone(&touched)));
            state.hidden.extend(touched);
        }
        let visible = visible();
        while let Some(first) = state.hidden.first_entry()
            && *first.key() <= visible
        {
            let touched = first.remove();
            state.mark(&touched, &mut woken);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// End the waits of streams that follow what was touched.
    fn mark(&mut self, touched: &Touched, woken: &mut Vec<Waker>) {
        for ns in &touched.collections {
            let database = ns.find('.').map_or(ns.as_str(), |dot| &ns[..=dot]);
            for followed in [ns, database] {
                end(self.waits.get_mut(followed), woken);
            }
        }
        for name in &touched.databases {
            let prefix = format!("{name}.");
            let range = (Bound::Included(prefix.as_str()), Bound::Unbounded);
            let behind = self.waits.range_mut::<str, _>(range);
            for (_, waits) in behind.take_while(|(followed, _)| followed.starts_with(&prefix)) {
                end(Some(waits), woken);
            }
        }
        end(self.waits.get_mut(""), woken);
    }
}

fn end(waits: Option<&mut BTreeMap<u64, Registered>>, woken: &mut Vec<Waker>) {
    for wait in waits.into_iter().flat_map(BTreeMap::values_mut) {
        wait.ended = true;
        woken.extend(wait.waker.take());
    }
}

impl Wait {
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.streams.state.lock();
        let same = state.waits.get_mut(&self.followed);
        match same.and_then(|same| same.get_mut(&self.number)) {
            Some(wait) if !wait.ended => {
                wait.waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut state = self.streams.state.lock();
        if let Some(same) = state.waits.get_mut(&self.followed) {
            same.remove(&self.number);
            if same.is_empty() {
                state.waits.remove(&self.followed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(increment: u32) -> Timestamp {
        Timestamp { time: 1, increment }
    }

    fn is_ended(wait: &Wait) -> bool {
        wait.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    fn touched(collections: &[&str], databases: &[&str]) -> Touched {
        let mut touched = Touched::default();
        collections.iter().for_each(|ns| touched.collection(ns));
        databases.iter().for_each(|name| touched.database(name));
        touched
    }

    /// N2, N3.
    #[test]
    fn a_commit_ends_the_waits_of_what_it_touched_and_no_others() {
        let all = ["", "db.", "db.a", "db.a.b", "db.c", "dc.", "dc.a", "d.a"];
        let cases: [(Touched, &[&str]); 5] = [
            (touched(&["db.a"], &[]), &["", "db.", "db.a"]),
            (touched(&["db.a.b"], &[]), &["", "db.", "db.a.b"]),
            (
                touched(&[], &["db"]),
                &["", "db.", "db.a", "db.a.b", "db.c"],
            ),
            (touched(&["dc.x"], &["d"]), &["", "dc.", "d.a"]),
            (touched(&[], &[]), &[]),
        ];
        for (touched, ends) in cases {
            let shown = format!("{touched:?}");
            let streams = Arc::new(Streams::default());
            let waits = all.map(|followed| (followed, streams.register(followed)));
            streams.ended(&[at(1)], touched, || at(1));
            for (followed, wait) in &waits {
                assert_eq!(
                    is_ended(wait),
                    ends.contains(followed),
                    "{shown}: {followed}"
                );
            }
            drop(waits);
            let state = streams.state.lock();
            assert!(state.waits.is_empty() && state.hidden.is_empty(), "N3");
        }
    }

    /// N1: who reads between the end of a slot and the moment at which its time is visible finds
    /// nothing, and must be woken by whose end makes it visible.
    #[test]
    fn what_is_not_visible_yet_ends_the_waits_when_it_is() {
        let streams = Arc::new(Streams::default());
        let before = streams.register("db.a");
        streams.ended(&[at(2), at(4)], touched(&["db.a"], &[]), || at(0));
        let between = streams.register("db.a");
        assert!(!is_ended(&before) && !is_ended(&between));
        streams.ended(&[at(1)], touched(&["db.b"], &[]), || at(2));
        assert!(is_ended(&before) && is_ended(&between));
        let later = streams.register("db.a");
        assert!(!is_ended(&later));
        streams.ended(&[at(3)], Touched::default(), || at(4));
        assert!(is_ended(&later), "the last time of a slot");
        assert!(!is_ended(&streams.register("db.a")), "what was read");
    }
}
