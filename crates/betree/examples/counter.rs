//! Counters that several threads add to: transactions that conflict are retried.
//!
//! `cargo run -p betree --example counter`

use std::error::Error;
use std::path::Path;
use std::thread;

use betree::{Db, Durability, ErrorKind, Options, Tree};

const THREADS: u64 = 4;
const VISITS: u64 = 250;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let total = run(directory.path())?;
    println!("{total} visits were counted by {THREADS} threads");
    Ok(())
}

/// Count visits of one page by several threads. Returns the number counted.
pub(crate) fn run(directory: &Path) -> Result<u64, Box<dyn Error>> {
    let db = Db::open(directory, Options::default().with_memory(32 << 20))?;
    let counters = db.tree("counters")?;

    thread::scope(|scope| {
        let count = || -> betree::Result<()> {
            for _ in 0..VISITS {
                add(&db, &counters, b"visits", 1)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
        let ends = threads.into_iter().map(|t| t.join().expect("no panic"));
        ends.collect::<betree::Result<()>>()
    })?;
    db.sync_log()?;

    let total = read(counters.get("visits")?);
    db.close()?;
    Ok(total)
}

/// Add `amount` to the counter `name` and return the sum. Of two transactions that write the same
/// key the first to commit wins; the other gets `Conflict` and is retried on a new snapshot.
fn add(db: &Db, counters: &Tree, name: &[u8], amount: u64) -> betree::Result<u64> {
    loop {
        let mut transaction = db.begin()?;
        let sum = read(transaction.get(counters.id(), name)?) + amount;
        let written = transaction.put(counters.id(), name, &sum.to_be_bytes());
        match written.and_then(|()| transaction.commit(Durability::Interval)) {
            Ok(()) => return Ok(sum),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
}

/// A counter's value; one that was never added to is 0.
fn read(value: Option<Vec<u8>>) -> u64 {
    let bytes = value.and_then(|value| <[u8; 8]>::try_from(value).ok());
    bytes.map_or(0, u64::from_be_bytes)
}
