//! Multi-document transactions.
//!
//! An engine transaction belongs to the thread that began it, so each open transaction has its own
//! thread, which receives the transaction's statements and ends with it. The thread aborts the
//! transaction when it exceeds the maximum age of the options, when it is idle for long while
//! others wait for the writer turn that it holds, or when its session has dropped it.
//!
//! - T1. A failing statement aborts its transaction.
//! - T2. Committing a committed transaction again succeeds, also after a restart: a commit stores
//!   its transaction number together with its writes. Committing or continuing an aborted
//!   transaction fails with `NoSuchTransaction`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bson::Timestamp;
use kv::Durability;
use query::{Code, Error, Result};
use stdx::sync::Mutex;
use stdx::sync::atomic::Ordering;

use super::registry::State;
use super::stored::{committed, key};
use super::too_old;
use crate::error;
use crate::oplog::{note_read, note_written, take_read, take_written};
use crate::patience::LOOK;
use crate::store::Store;
use crate::txn::{InTransaction, Op, Outrun, SeenCatalog, SessionId, SessionRef, Work};

/// Maximum number of open transactions: each has a thread and pins the data that the engine keeps
/// for its snapshot.
const OPEN_MAX: usize = 1000;

/// State of a session's transaction.
pub(crate) enum Phase {
    /// No transaction was started.
    None,
    /// Open: its thread accepts statements.
    Open(Sender<Task>),
    Committed,
    Aborted,
}

/// A unit of work for a transaction's thread.
pub(crate) type Task = Box<dyn FnOnce(&Own<'_>) + Send>;

/// A transaction's state, owned by its thread.
pub(crate) struct Own<'s> {
    work: RefCell<Option<Work<'s>>>,
    catalog: Rc<SeenCatalog>,
}

impl InTransaction for Own<'_> {
    fn with(&self, body: &mut dyn FnMut(&mut Work<'_>) -> Result<()>) -> Result<()> {
        match self.work.borrow_mut().as_mut() {
            Some(work) => body(work),
            None => Err(gone("has been aborted", None)),
        }
    }

    fn catalog(&self) -> &SeenCatalog {
        &self.catalog
    }
}

impl Store {
    /// Run a statement in the multi-document transaction that the operation's session names;
    /// `start` marks the first statement. `body` runs in the transaction's thread, with an
    /// operation that has [`Op::transaction`] set; an error of `body` aborts the transaction.
    ///
    /// # Errors
    /// `NoSuchTransaction`, `TransactionTooOld`, `TransactionCommitted`, `IllegalOperation` without
    /// a replica set; errors of `body`.
    pub fn in_transaction<R: Send + 'static>(
        self: &Arc<Store>,
        op: Op<'static>,
        start: bool,
        body: impl FnOnce(&Op<'_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (session, number) = named(&op)?;
        self.check_numbers_allowed()?;
        let session = self.sessions().get(self, session.id)?.check_out(&op)?;
        let sender = session.with(|state| {
            if start {
                self.start(state, number)
            } else {
                open(state, number)
            }
        })?;
        let (reply, result) = channel();
        let parts = op.into_parts();
        let task: Task = Box::new(move |own| {
            let op = parts.within(Some(own), None);
            // What this thread read before was for another statement.
            let _: Option<Timestamp> = take_read();
            let done = body(&op).map(|result| (result, take_read()));
            // The caller waits for this reply until it returns the session.
            drop(reply.send(done));
        });
        let done = run(&sender, task, &result, number).map(|(result, read)| {
            if let Some(time) = read {
                note_read(time);
            }
            result
        });
        if done.is_err() {
            give_up(&sender);
            session.with(|state| state.phase = Phase::Aborted);
        }
        done
    }

    /// Commit the transaction that the operation's session names.
    ///
    /// # Errors
    /// `NoSuchTransaction`, `TransactionTooOld`; `WriteConflict` and errors of the engine, which
    /// abort the transaction.
    pub fn commit_transaction(&self, op: &Op<'_>) -> Result<()> {
        let (session, number) = named(op)?;
        let id = session.id;
        let session = self.sessions().get(self, id)?.check_out(op)?;
        let sender = session.with(|state| match &state.phase {
            Phase::Committed if state.number == number => Ok(None),
            _ => open(state, number).map(Some),
        })?;
        let Some(sender) = sender else {
            return Ok(());
        };
        let (reply, result) = channel();
        let (durability, now, ends) = (op.durability, op.now, op.ends());
        let task: Task = Box::new(move |own| {
            let work = own.work.borrow_mut().take();
            let done = match work {
                Some(mut work) => {
                    work.set_ends(ends);
                    let done = commit(work, &id, number, now, durability);
                    done.map(|()| take_written())
                }
                None => Err(gone("has been aborted", None)),
            };
            drop(reply.send(done));
        });
        let done = run(&sender, task, &result, number);
        session.with(|state| {
            state.phase = match done {
                Ok(_) => Phase::Committed,
                Err(_) => Phase::Aborted,
            };
        });
        if let Some(time) = done? {
            note_written(time);
        }
        self.figures()
            .transactions_committed
            .fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Abort the transaction that the operation's session names.
    ///
    /// # Errors
    /// `NoSuchTransaction`, `TransactionCommitted`, `TransactionTooOld`.
    pub fn abort_transaction(&self, op: &Op<'_>) -> Result<()> {
        let (session, number) = named(op)?;
        let session = self.sessions().get(self, session.id)?.check_out(op)?;
        let sender = session.with(|state| {
            let sender = open(state, number)?;
            state.phase = Phase::Aborted;
            Ok::<_, Error>(sender)
        })?;
        give_up(&sender);
        Ok(())
    }

    /// The number of open transactions.
    #[must_use]
    pub fn open_transactions(&self) -> usize {
        self.sessions().open.slots.lock().taken.len()
    }

    /// The age of the oldest open transaction.
    #[must_use]
    pub fn oldest_transaction(&self) -> Option<Duration> {
        let slots = self.sessions().open.slots.lock();
        slots.taken.first().map(|(begun, _)| begun.elapsed())
    }

    fn start(self: &Arc<Store>, state: &mut State, number: i64) -> Result<Sender<Task>> {
        if number < state.number {
            return Err(too_old("Transaction with txnNumber", number, state.number));
        }
        let used = !matches!(state.phase, Phase::None) || !state.executed.is_empty();
        if number == state.number && used {
            return Err(Error::location(
                50911,
                format!(
                    "Cannot start a transaction at given transaction number {number} a \
                         transaction with the same number is in progress or has been used"
                ),
            ));
        }
        state.advance(number);
        let deadline = stdx::time::now() + self.tuning().transaction_lifetime();
        let (sender, tasks) = channel();
        let store = Arc::clone(self);
        let outrun = Arc::clone(&state.outrun);
        let slot = Slot::take(Arc::clone(self))?;
        let body = move || {
            let _slot = slot;
            serve(&store, &tasks, deadline, outrun);
        };
        stdx::sync::spawn("transaction", body).map_err(|e| {
            Error::new(
                Code::TEMPORARILY_UNAVAILABLE,
                format!("no thread can be had: {e}"),
            )
        })?;
        state.phase = Phase::Open(sender.clone());
        self.figures()
            .transactions_started
            .fetch_add(1, Ordering::Relaxed);
        Ok(sender)
    }
}

/// The open transactions of a store, at most [`OPEN_MAX`].
#[derive(Default)]
pub(super) struct Open {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// When each transaction began, with a number that distinguishes equal times.
    taken: BTreeSet<(Instant, u64)>,
    /// The number of the slot taken last.
    last: u64,
}

/// The slot of an open transaction.
struct Slot {
    store: Arc<Store>,
    key: (Instant, u64),
}

impl Slot {
    fn take(store: Arc<Store>) -> Result<Slot> {
        let mut slots = store.sessions().open.slots.lock();
        if OPEN_MAX <= slots.taken.len() {
            return Err(Error::new(
                Code::TEMPORARILY_UNAVAILABLE,
                format!("{OPEN_MAX} transactions are open"),
            ));
        }
        slots.last += 1;
        let key = (stdx::time::now(), slots.last);
        slots.taken.insert(key);
        drop(slots);
        Ok(Slot { store, key })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let was_taken = (self.store.sessions().open.slots.lock().taken).remove(&self.key);
        assert!(was_taken, "a transaction has one slot");
    }
}

/// Main loop of a transaction's thread.
fn serve(store: &Store, tasks: &Receiver<Task>, deadline: Instant, outrun: Arc<Outrun>) {
    let catalog = Rc::new(SeenCatalog::default());
    let work = Work::multi_document(store, Rc::clone(&catalog), outrun);
    let own = Own {
        work: RefCell::new(Some(work)),
        catalog,
    };
    // Work that is dropped at the end without a commit is rolled back.
    while let Some(task) = next(store, tasks, &own, deadline) {
        task(&own);
        if own.work.borrow().is_none() {
            return;
        }
    }
}

/// The next task. `None` when the transaction is too old, blocks others for too long, or was
/// dropped by its session.
fn next(store: &Store, tasks: &Receiver<Task>, own: &Own<'_>, deadline: Instant) -> Option<Task> {
    let has_turn = own.work.borrow().as_ref().is_some_and(Work::is_begun);
    let may_idle_until = stdx::time::now() + store.tuning().transaction_idle();
    loop {
        let now = stdx::time::now();
        let mut until = deadline;
        if has_turn && store.turns().are_one() {
            if may_idle_until <= now && store.turns().is_wished_for() {
                return None;
            }
            until = until.min(may_idle_until.max(now + LOOK));
        }
        match tasks.recv_timeout(until.saturating_duration_since(now)) {
            Ok(task) => return Some(task),
            Err(RecvTimeoutError::Timeout) if stdx::time::now() < deadline => {}
            Err(_) => return None,
        }
    }
}

/// Commit, and store in the same transaction that the number was committed: a client that did not
/// receive the reply asks again (T2).
fn commit(
    mut work: Work<'_>,
    id: &SessionId,
    number: i64,
    now: bson::DateTime,
    durability: Durability,
) -> Result<()> {
    if work.has_written() {
        work.log_session(id, number);
        let record = [(key(id), committed(number, now)?)];
        work.log_retry(id, false, &record)?;
        let tree = work.store.trees().sessions;
        let [(key, bytes)] = &record;
        let put = work.txn()?.put_blind(tree, key, bytes);
        put.map_err(error::engine)?;
    }
    work.commit(durability)
}

/// Roll a transaction back, and wait until its locks are released.
pub(super) fn give_up(sender: &Sender<Task>) {
    let (reply, result) = channel();
    let task: Task = Box::new(move |own| {
        drop(own.work.borrow_mut().take());
        // The caller waits for this reply, so the send cannot fail.
        let _: std::result::Result<(), _> = reply.send(());
    });
    // A failed send means that the transaction has already ended, which is fine.
    if sender.send(task).is_ok() {
        let _: std::result::Result<(), _> = result.recv();
    }
}

/// Send a task and wait for its result.
fn run<R>(
    sender: &Sender<Task>,
    task: Task,
    result: &Receiver<Result<R>>,
    number: i64,
) -> Result<R> {
    let aborted = || gone("has been aborted", Some(number));
    sender.send(task).map_err(|_| aborted())?;
    result.recv().map_err(|_| aborted())?
}

fn open(state: &mut State, number: i64) -> Result<Sender<Task>> {
    if number < state.number {
        return Err(too_old("Transaction with txnNumber", number, state.number));
    }
    if state.number < number {
        let message = format!(
            "Given transaction number {number} does not match any in-progress transactions. The \
             active transaction number is {}",
            state.number
        );
        return Err(Error::new(Code::NO_SUCH_TRANSACTION, message));
    }
    match &state.phase {
        Phase::Open(sender) => Ok(sender.clone()),
        Phase::Committed => Err(Error::new(
            Code::TRANSACTION_COMMITTED,
            format!("Transaction with {{ txnNumber: {number} }} has been committed."),
        )),
        Phase::Aborted => Err(gone("has been aborted", Some(number))),
        Phase::None => Err(gone("is not in progress", Some(number))),
    }
}

fn named<'o>(op: &'o Op<'_>) -> Result<(&'o SessionRef, i64)> {
    let session = op.session.as_ref();
    let number = session.and_then(|session| session.txn_number);
    session.zip(number).ok_or_else(|| {
        Error::new(
            Code::INVALID_OPTIONS,
            "a transaction is named by a session (lsid) and a txnNumber",
        )
    })
}

fn gone(what: &str, number: Option<i64>) -> Error {
    let name = number.map_or(String::new(), |number| {
        format!(" with {{ txnNumber: {number} }}")
    });
    Error::new(
        Code::NO_SUCH_TRANSACTION,
        format!("Transaction{name} {what}."),
    )
}
