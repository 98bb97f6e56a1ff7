//! Transactions on lists while the server is killed, judged by the list-append checker.
//!
//! Clients append numbers to lists and read lists, in transactions over two collections. A commit
//! without an answer is sent again to the restarted server, which must know whether it happened.
//! The whole history, including kills, must satisfy snapshot isolation and real time; at the end
//! every list is read again, so that a lost acknowledged append is found.

use std::collections::BTreeSet;
use std::fmt;
use std::thread;
use std::time::Duration;

use bson::{Bson, Document, doc};
use sim::checker::append::{self as checker, Level, Op, Outcome, Txn};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::{Rng, time};

use super::cycle::{Config, Lie, empty};
use super::link::{Link, Lost, code, has_label, is_ok};
use super::process::Process;
use super::report::Failure;

const DATABASE: &str = "torture";

/// Number of lists in use at a time. After the same number of transactions, a new list replaces the
/// oldest, so that lists stay short.
const LISTS: u64 = 8;
const TRANSACTIONS_PER_LIST: u64 = 30;

/// The error code for a transaction that the server does not know.
const NO_SUCH_TRANSACTION: i32 = 251;

/// Minimum and maximum time between kills, in milliseconds.
const LIFE_MS: (u64, u64) = (300, 3_000);

/// The result of a run with lists.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// The server's storage engine.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// Transactions that the checker judged.
    pub transactions: usize,
    /// Committed transactions among them.
    pub committed: usize,
    /// Rolled back transactions among them.
    pub aborted: usize,
    /// Dependencies between transactions.
    pub edges: usize,
    /// Kills during the run.
    pub kills: u64,
    /// Commits without an answer whose outcome the restarted server reported.
    pub resolved_later: u64,
    /// Write skews, which snapshot isolation allows.
    pub skews: usize,
    /// Time taken.
    pub elapsed: Duration,
}

impl fmt::Display for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "torture lists on {}: seed {}, {} transactions ({} committed, {} rolled back, {} \
             resolved by the next server), {} dependencies, {} kills, no anomaly that snapshot \
             isolation forbids ({} write skews); {:.1} s",
            self.engine,
            self.seed,
            self.transactions,
            self.committed,
            self.aborted,
            self.resolved_later,
            self.edges,
            self.kills,
            self.skews,
            self.elapsed.as_secs_f64()
        )
    }
}

/// State shared by all clients.
struct Shared {
    /// The logical clock: each reading is greater than the previous one.
    clock: AtomicU64,
    begun: AtomicU64,
    value: AtomicU64,
    wanted: u64,
    history: Mutex<Vec<Txn>>,
    keys: Mutex<BTreeSet<u64>>,
}

/// A client that runs transactions on lists.
struct Client {
    number: u64,
    rng: Rng,
    lsid: Document,
    txn_number: i64,
    /// The commit command without an answer, and its transaction.
    open: Option<(Document, Txn)>,
    lie: Option<Lie>,
}

/// Execute at least `wanted` transactions, and check their history.
///
/// # Errors
/// An anomaly, or the reason why the run could not start.
pub fn run(config: &Config, wanted: u64, note: &mut dyn FnMut(&str)) -> Result<Lists, Failure> {
    let fail = |broken: bool, story: String| Failure {
        broken,
        story,
        directory: config.directory.clone(),
    };
    empty(&config.directory).map_err(|e| fail(false, e))?;
    let begun = time::now();
    let shared = Shared {
        clock: AtomicU64::new(1),
        begun: AtomicU64::new(0),
        value: AtomicU64::new(1),
        wanted,
        history: Mutex::new(Vec::new()),
        keys: Mutex::new(BTreeSet::new()),
    };
    let mut lists = Lists {
        engine: config.engine.clone(),
        seed: config.seed,
        ..Lists::default()
    };
    let failed = |what: String| {
        let (engine, seed) = (&config.engine, config.seed);
        fail(
            true,
            format!(
                "{what}\n  again (the times of kills will differ): torture --server --lists \
                 {wanted} --engine {engine} --seed {seed}"
            ),
        )
    };
    lives(config, &shared, &mut lists, note).map_err(failed)?;
    judge(&shared, &mut lists).map_err(failed)?;
    lists.elapsed = begun.elapsed();
    Ok(lists)
}

/// Run one server after the other, until enough transactions were executed; on the last one, read
/// every list.
fn lives(
    config: &Config,
    shared: &Shared,
    lists: &mut Lists,
    note: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut rng = Rng::new(config.seed);
    let mut clients: Vec<Client> = (0..u64::from(config.clients.max(1)))
        .map(|number| Client::new(number, config))
        .collect();
    loop {
        let mut server = Process::start(&config.program, &config.engine, &config.directory, &[])?;
        let port = server.port()?;
        if lists.kills == 0 {
            create(port)?;
        }
        for client in &mut clients {
            lists.resolved_later += client.resolve(port, shared)?;
        }
        let done = shared.begun.load(Ordering::Relaxed);
        note(&format!("{done} transactions, {} kills", lists.kills));
        if shared.wanted <= done {
            last_reads(port, shared)?;
            return server.stop();
        }
        let (least, most) = LIFE_MS;
        let life = Duration::from_millis(least + rng.below(most - least));
        let end = time::now() + life;
        let stop = &AtomicBool::new(false);
        thread::scope(|scope| {
            let running: Vec<_> = clients
                .iter_mut()
                .map(|client| scope.spawn(move || client.operate(port, shared, stop)))
                .collect();
            while time::now() < end && running.iter().any(|r| !r.is_finished()) {
                time::sleep(Duration::from_millis(10));
            }
            let died = server.ended();
            server.kill();
            stop.store(true, Ordering::Relaxed);
            for client in running {
                client
                    .join()
                    .map_err(|_| "a client panicked".to_owned())??;
            }
            died.map_or(Ok(()), |s| Err(format!("the server ended by itself: {s}")))
        })?;
        lists.kills += 1;
    }
}

/// Make the collections of the lists.
fn create(port: u16) -> Result<(), String> {
    let mut link = Link::to(port).map_err(|_| "the server does not answer".to_owned())?;
    for name in [collection(0), collection(1)] {
        let command = doc! { "create": name };
        match link.command(DATABASE, &command) {
            Ok(reply) if is_ok(&reply) => {}
            other => return Err(format!("{command} was answered {other:?}")),
        }
    }
    Ok(())
}

/// Read every list that was used, each in a transaction of its own.
fn last_reads(port: u16, shared: &Shared) -> Result<(), String> {
    let mut link = Link::to(port).map_err(|_| "the server does not answer".to_owned())?;
    let keys = shared.keys.lock().clone();
    for key in keys {
        let start = shared.tick();
        let found = link.all(DATABASE, &read_of(key));
        let found = found.map_err(|e| format!("the last read of list {key}: {e:?}"))?;
        shared.history.lock().push(Txn {
            session: u64::MAX,
            start,
            end: shared.tick(),
            outcome: Outcome::Committed,
            ops: vec![Op::Read(key, values(found.first()))],
        });
    }
    Ok(())
}

fn judge(shared: &Shared, lists: &mut Lists) -> Result<(), String> {
    let mut history = shared.history.lock().clone();
    history.sort_by_key(|txn| txn.start);
    let verdict = checker::check(&history);
    let level = Level::SnapshotIsolation;
    let (allowed, forbidden): (Vec<_>, Vec<_>) = verdict
        .anomalies
        .iter()
        .partition(|anomaly| anomaly.kind.is_allowed_at(level));
    let of = |outcome| history.iter().filter(|txn| txn.outcome == outcome).count();
    lists.transactions = verdict.transactions;
    lists.edges = verdict.edges;
    lists.committed = of(Outcome::Committed);
    lists.aborted = of(Outcome::Aborted);
    lists.skews = allowed.len();
    match forbidden.first() {
        None => Ok(()),
        Some(worst) => {
            let involved: Vec<_> = worst
                .transactions
                .iter()
                .filter_map(|index| history.get(*index))
                .take(6)
                .collect();
            Err(format!(
                "{} anomalies that snapshot isolation forbids, such as {worst:?}\n  {involved:?}",
                forbidden.len()
            ))
        }
    }
}

impl Shared {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

fn collection(key: u64) -> &'static str {
    if key.is_multiple_of(2) { "even" } else { "odd" }
}

fn id(key: u64) -> i64 {
    i64::try_from(key).unwrap_or(i64::MAX)
}

fn read_of(key: u64) -> Document {
    doc! { "find": collection(key), "filter": { "_id": id(key) } }
}

/// The numbers in a list's document; empty without a document.
fn values(document: Option<&Document>) -> Vec<u64> {
    let list = document.and_then(|d| d.get_array("list").ok());
    let numbers = list.into_iter().flatten().filter_map(Bson::as_i64);
    numbers.filter_map(|n| u64::try_from(n).ok()).collect()
}

/// The result of a transaction.
enum End {
    Committed,
    Aborted,
    /// The commit command was sent, but has no answer.
    Open(Document),
    /// The server ended before the commit was sent.
    CutShort,
}

impl Client {
    fn new(number: u64, config: &Config) -> Client {
        let mut rng = Rng::new(config.seed ^ (number + 1) << 40);
        let mut bytes = vec![0; 16];
        rng.fill(&mut bytes);
        let subtype = bson::spec::BinarySubtype::Uuid;
        Client {
            number,
            rng,
            lsid: doc! { "id": bson::Binary { subtype, bytes } },
            txn_number: 0,
            open: None,
            lie: config.lie,
        }
    }

    fn operate(&mut self, port: u16, shared: &Shared, stop: &AtomicBool) -> Result<(), String> {
        let Ok(mut link) = Link::to(port) else {
            return Ok(());
        };
        while !stop.load(Ordering::Relaxed) {
            let begun = shared.begun.fetch_add(1, Ordering::Relaxed);
            if shared.wanted <= begun {
                return Ok(());
            }
            self.txn_number += 1;
            let mut txn = Txn {
                session: self.number,
                start: shared.tick(),
                end: 0,
                outcome: Outcome::Aborted,
                ops: Vec::new(),
            };
            let end = self.transaction(&mut link, shared, begun, &mut txn)?;
            match end {
                End::Committed => txn.outcome = Outcome::Committed,
                End::Aborted | End::CutShort => {
                    // The reads of a transaction that did not commit are not judged.
                    txn.ops.retain(|op| matches!(op, Op::Append(..)));
                }
                End::Open(commit) => {
                    self.open = Some((commit, txn));
                    return Ok(());
                }
            }
            txn.end = shared.tick();
            shared.history.lock().push(txn);
            if matches!(end, End::CutShort) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Add the fields of the open transaction to a command.
    fn part(&self, mut command: Document, first: bool) -> Document {
        command.insert("lsid", self.lsid.clone());
        command.insert("txnNumber", self.txn_number);
        command.insert("autocommit", false);
        if first {
            command.insert("startTransaction", true);
            command.insert("readConcern", doc! { "level": "snapshot" });
        }
        command
    }

    fn transaction(
        &mut self,
        link: &mut Link,
        shared: &Shared,
        begun: u64,
        txn: &mut Txn,
    ) -> Result<End, String> {
        let oldest = begun / TRANSACTIONS_PER_LIST;
        for index in 0..=self.rng.below(4) {
            let key = oldest + self.rng.below(LISTS);
            shared.keys.lock().insert(key);
            let append = self.rng.chance(0.5);
            let value = shared.value.fetch_add(1, Ordering::Relaxed);
            let command = if append {
                let update = doc! { "$push": { "list": id(value) } };
                let updates = vec![doc! { "q": { "_id": id(key) }, "u": update, "upsert": true }];
                doc! { "update": collection(key), "updates": updates }
            } else {
                read_of(key)
            };
            let command = self.part(command, index == 0);
            let reply = match link.command(DATABASE, &command) {
                Ok(reply) => reply,
                Err(Lost::Gone) => return Ok(End::CutShort),
                Err(Lost::Nonsense(what)) => return Err(what),
            };
            if !is_ok(&reply) {
                return refused(&command, &reply);
            }
            txn.ops.push(match append {
                true => Op::Append(key, value),
                false => Op::Read(key, values(first_of(&reply))),
            });
        }
        let concern = doc! { "w": 1, "j": true };
        let commit = doc! { "commitTransaction": 1, "writeConcern": concern };
        let commit = self.part(commit, false);
        if self.lie == Some(Lie::Skip) && self.rng.chance(0.02) {
            return Ok(End::Committed);
        }
        match link.command("admin", &commit) {
            Ok(reply) if is_ok(&reply) => Ok(End::Committed),
            Ok(reply) => refused(&commit, &reply),
            Err(Lost::Gone) => Ok(End::Open(commit)),
            Err(Lost::Nonsense(what)) => Err(what),
        }
    }

    /// Send the open commit to the restarted server, which reports its outcome. Returns 1 if there
    /// was an open commit, else 0.
    fn resolve(&mut self, port: u16, shared: &Shared) -> Result<u64, String> {
        let Some((commit, mut txn)) = self.open.take() else {
            return Ok(0);
        };
        let gone = |_| "the server listens and does not answer".to_owned();
        let reply = Link::to(port).and_then(|mut link| link.command("admin", &commit));
        let reply = reply.map_err(gone)?;
        if is_ok(&reply) {
            txn.outcome = Outcome::Committed;
        } else if code(&reply) == NO_SUCH_TRANSACTION {
            txn.ops.retain(|op| matches!(op, Op::Append(..)));
        } else {
            return Err(format!("sent again, {commit} was answered {reply}"));
        }
        txn.end = shared.tick();
        shared.history.lock().push(txn);
        Ok(1)
    }
}

fn first_of(reply: &Document) -> Option<&Document> {
    let batch = reply
        .get_document("cursor")
        .ok()?
        .get_array("firstBatch")
        .ok()?;
    batch.first()?.as_document()
}

/// Accept an error that requires only a retry; any other error is a violation.
fn refused(command: &Document, reply: &Document) -> Result<End, String> {
    match has_label(reply, "TransientTransactionError") {
        true => Ok(End::Aborted),
        false => Err(format!("{command} was answered {reply}")),
    }
}
