//! Are merge debt and runs per bucket bounded whatever the size of the commits, and how long does
//! the longest commit take? Rows with random keys of 8 and values of 112 bytes, in batches of 1,
//! 100, 1,000, 50,000 and 1,000,000 rows and in a transaction of 50,000, each in a new store, while
//! another client commits single rows.
//!
//! `cargo bench -p betree --bench pace -- SECONDS MEMORY_MIB THREADS [DIRECTORY]` (default: 12
//! seconds each, 32 MiB, 1 thread, a new temporary directory). A load ends with the commit that is
//! under way when the time is over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use betree::{Batch, Db, Durability, Options, Result, TreeId, TreeOptions};
use stdx::rng::Rng;
use stdx::{sync, time};

/// Keys of single rows start here, above those of the load.
const SINGLE: u64 = 1 << 63;

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let number = |at: usize, or: u64| words.get(at).and_then(|n| n.parse().ok()).unwrap_or(or);
    let seconds = Duration::from_secs(number(0, 12));
    let memory = number(1, 32) << 20;
    let threads = u32::try_from(number(2, 1)).unwrap_or(u32::MAX);
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = words
        .get(3)
        .map_or(temporary.path().to_owned(), PathBuf::from);
    let options = Options::balanced()
        .with_memory(memory)
        .with_threads(threads);
    println!(
        "{:>9} {:<11} {:>9} {:>5} {:>6} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "rows",
        "by",
        "rows/s",
        "runs",
        "mean",
        "debt",
        "balance",
        "median",
        "99 %",
        "longest",
        "single"
    );
    for rows in [1, 100, 1_000, 50_000, 1_000_000] {
        measure(&directory, &options, rows, false, seconds).expect("the load");
    }
    measure(&directory, &options, 50_000, true, seconds).expect("the load");
}

/// Measurements during a load.
#[derive(Default)]
struct Seen {
    /// The maximum number of runs that a scan reads in a bucket, including the base.
    runs: usize,
    /// The mean number of runs per bucket, summed over all samples.
    means: f64,
    looks: u32,
    debt: u64,
    balance: i64,
    /// The longest commit of a single row.
    single: Duration,
}

fn measure(
    directory: &Path,
    options: &Options,
    rows: u64,
    transaction: bool,
    seconds: Duration,
) -> Result<()> {
    let by = if transaction { "transaction" } else { "batch" };
    let directory = directory.join(format!("{by}-{rows}"));
    let db = Arc::new(Db::open(&directory, options.clone())?);
    let tree = db.create_tree("rows", TreeOptions::default())?;
    let done = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (db, done) = (Arc::clone(&db), Arc::clone(&done));
        sync::spawn("watcher", move || watch(&db, tree, &done)).expect("a thread")
    };
    let (mut rng, mut waits, mut written) = (Rng::new(1), Vec::new(), 0);
    let start = time::now();
    while start.elapsed() < seconds {
        waits.push(commit(&db, tree, rows, transaction, &mut rng)?);
        written += rows;
    }
    let took = start.elapsed();
    done.store(true, Ordering::Release);
    let seen = watcher.join().expect("the watcher");
    waits.sort_unstable();
    let at = |percent: usize| {
        let wait = waits.get((waits.len() - 1) * percent / 100);
        wait.copied().unwrap_or_default()
    };
    println!(
        "{rows:>9} {by:<11} {:>9.0} {:>5} {:>6.1} {:>8} MiB {:>5} MiB {:>9.1?} {:>9.1?} {:>9.1?} \
         {:>9.1?}",
        written as f64 / took.as_secs_f64(),
        seen.runs,
        seen.means / f64::from(seen.looks.max(1)),
        seen.debt >> 20,
        seen.balance >> 20,
        at(50),
        at(99),
        at(100),
        seen.single,
    );
    Ok(())
}

/// Commit rows with random keys; returns how long the commit took.
fn commit(db: &Db, tree: TreeId, rows: u64, transaction: bool, rng: &mut Rng) -> Result<Duration> {
    let mut value = [b'x'; 112];
    let mut row = || {
        rng.fill(&mut value[..56]);
        ((rng.next_u64() % SINGLE).to_be_bytes(), value)
    };
    if transaction {
        let mut transaction = db.begin()?;
        for _ in 0..rows {
            let (key, value) = row();
            transaction.put_blind(tree, &key, &value)?;
        }
        let start = time::now();
        transaction.commit(Durability::Interval)?;
        return Ok(start.elapsed());
    }
    let mut batch = Batch::new();
    for _ in 0..rows {
        let (key, value) = row();
        batch.put(tree, &key, &value);
    }
    let start = time::now();
    db.write(&batch, Durability::Interval)?;
    Ok(start.elapsed())
}

/// Commit one row and sample the statistics, twenty times a second.
fn watch(db: &Db, tree: TreeId, done: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut batch = Batch::new();
    let mut number = SINGLE;
    while !done.load(Ordering::Acquire) {
        number += 1;
        batch.clear();
        batch.put(tree, &number.to_be_bytes(), b"single");
        let start = time::now();
        db.write(&batch, Durability::Interval).expect("write");
        seen.single = seen.single.max(start.elapsed());
        let stats = db.stats().expect("stats");
        let met = stats.runs_per_bucket.iter().rposition(|&count| 0 < count);
        seen.runs = seen.runs.max(met.unwrap_or(0));
        seen.means += stats.mean_runs();
        seen.looks += 1;
        seen.debt = seen.debt.max(stats.debt_bytes);
        seen.balance = seen.balance.max(stats.rho_balance);
        time::sleep(Duration::from_millis(50));
    }
    seen
}
