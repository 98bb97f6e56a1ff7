//! The gate that separates batches from commits.
//!
//! RocksDB validates an optimistic transaction under mutexes of its keys and then writes it;
//! batches are written directly into the database without these mutexes. If a batch wrote between
//! the validation and the write of a transaction, its changes would be overwritten without a
//! conflict. So writers pass a gate in phases:
//!
//! - G1. At any time the writers inside are all commits, or all batches, or one exclusive writer: a
//!   batch that must know the last key of a tree while it writes, or the drop of a tree.
//! - G2. Within a phase all writers run concurrently, so commits share their syncs with commits,
//!   and batches with batches.
//! - G3. No writer starves: as soon as a writer of another kind waits, newcomers wait too; the end
//!   of a phase admits all waiting writers of the next kind.
//!
//! A workload with only one kind of writer pays two short locks per write.

use stdx::sync::{Condvar, Mutex};

/// A kind of writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A transaction that commits.
    Commit,
    /// A batch.
    Batch,
    /// A batch or a drop of a tree that must be exclusive.
    Exclusive,
}

impl Kind {
    const COUNT: usize = 3;

    fn index(self) -> usize {
        match self {
            Kind::Commit => 0,
            Kind::Batch => 1,
            Kind::Exclusive => 2,
        }
    }

    fn next(self) -> Kind {
        match self {
            Kind::Commit => Kind::Batch,
            Kind::Batch => Kind::Exclusive,
            Kind::Exclusive => Kind::Commit,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Queue {
    waiting: u64,
    /// Number of writers admitted after waiting. A waiting writer is admitted when this count
    /// reaches its ticket.
    admitted: u64,
}

struct State {
    kind: Kind,
    inside: u64,
    queues: [Queue; Kind::COUNT],
}

impl State {
    fn queue(&mut self, kind: Kind) -> &mut Queue {
        self.queues
            .get_mut(kind.index())
            .expect("an index of a kind is below the count of kinds")
    }

    fn nobody_waits(&self) -> bool {
        self.queues.iter().all(|queue| queue.waiting == 0)
    }
}

pub(super) struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

/// The right to write, until dropped.
#[must_use]
pub(super) struct Pass<'g>(&'g Gate);

impl Gate {
    pub(super) fn new() -> Gate {
        Gate {
            state: Mutex::new(State {
                kind: Kind::Commit,
                inside: 0,
                queues: [Queue::default(); Kind::COUNT],
            }),
            opened: Condvar::new(),
        }
    }

    /// Wait until a writer of `kind` is admitted.
    pub(super) fn enter(&self, kind: Kind) -> Pass<'_> {
        let mut state = self.state.lock();
        let shares = state.kind == kind && kind != Kind::Exclusive && state.nobody_waits();
        if state.inside == 0 || shares {
            state.kind = kind;
            state.inside += 1;
            return Pass(self);
        }
        let queue = state.queue(kind);
        queue.waiting += 1;
        let ticket = queue.admitted + queue.waiting;
        while state.queue(kind).admitted < ticket {
            self.opened.wait(&mut state);
        }
        debug_assert!(state.kind == kind, "G1: the phase is ours");
        Pass(self)
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        state.inside -= 1;
        if 0 < state.inside {
            return;
        }
        let mut kind = state.kind;
        for _ in 0..Kind::COUNT {
            kind = kind.next();
            let queue = state.queue(kind);
            let let_in = match kind {
                Kind::Exclusive => queue.waiting.min(1),
                Kind::Commit | Kind::Batch => queue.waiting,
            };
            if let_in == 0 {
                continue;
            }
            queue.waiting -= let_in;
            queue.admitted += let_in;
            state.kind = kind;
            state.inside = let_in;
            self.opened.notify_all();
            return;
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn kinds_never_mix_and_everybody_gets_through() {
        let gate = Arc::new(Gate::new());
        let inside: Arc<[AtomicI64; Kind::COUNT]> = Arc::default();
        let threads: Vec<_> = (0..6)
            .map(|n| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                let kind = [Kind::Commit, Kind::Batch, Kind::Exclusive][n % Kind::COUNT];
                let body = move || {
                    for _ in 0..2_000 {
                        let pass = gate.enter(kind);
                        let own = inside[kind.index()].fetch_add(1, Ordering::SeqCst) + 1;
                        // Each count is read separately, because writers of the same kind enter and
                        // leave meanwhile.
                        let others = inside
                            .iter()
                            .enumerate()
                            .filter(|(i, _)| *i != kind.index());
                        let other: i64 = others.map(|(_, n)| n.load(Ordering::SeqCst)).sum();
                        assert!(other == 0, "G1: {kind:?} with {other} of another kind");
                        assert!(kind != Kind::Exclusive || own == 1, "G1");
                        inside[kind.index()].fetch_sub(1, Ordering::SeqCst);
                        drop(pass);
                    }
                };
                stdx::sync::spawn("gate", body).unwrap()
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(gate.state.lock().inside, 0);
    }

    #[test]
    fn writers_of_one_kind_are_inside_together() {
        let gate = Gate::new();
        for kind in [Kind::Commit, Kind::Batch] {
            let _first = gate.enter(kind);
            let _second = gate.enter(kind);
            assert_eq!(gate.state.lock().inside, 2, "G2: {kind:?}");
        }
    }

    #[test]
    fn newcomers_wait_behind_a_writer_of_another_kind() {
        let gate = Gate::new();
        let inside = gate.enter(Kind::Commit);
        let waits = |kind: Kind| {
            while gate.state.lock().queue(kind).waiting == 0 {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| drop(gate.enter(Kind::Batch)));
            waits(Kind::Batch);
            // Alone it would share the phase of the first commit.
            scope.spawn(|| drop(gate.enter(Kind::Commit)));
            waits(Kind::Commit);
            assert_eq!(gate.state.lock().inside, 1, "G3: the newcomer waits");
            drop(inside);
        });
        assert_eq!(gate.state.lock().inside, 0, "G3: all got through");
    }
}
