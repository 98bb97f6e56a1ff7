//! A queue: jobs are added at one end and taken from the other, each by one consumer.
//!
//! `cargo run -p betree --example queue`

use std::error::Error;
use std::path::Path;
use std::thread;

use betree::{Batch, Db, Durability, ErrorKind, Options, Tree, TreeOptions};

const JOBS: u64 = 300;
const CONSUMERS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let taken = run(directory.path())?;
    let counts: Vec<usize> = taken.iter().map(Vec::len).collect();
    println!("{JOBS} jobs were taken by {CONSUMERS} consumers: {counts:?}");
    Ok(())
}

/// Add jobs and let consumers take all of them. Returns the numbers that each consumer took.
pub(crate) fn run(directory: &Path) -> Result<Vec<Vec<u64>>, Box<dyn Error>> {
    let db = Db::open(directory, Options::default().with_memory(32 << 20))?;
    // A key is the number of the job, most significant byte first, so that key order is the order
    // of arrival.
    let ascending = TreeOptions {
        ascending: true,
        ..TreeOptions::default()
    };
    let queue = db.tree_with("queue", ascending)?;

    // A producer that starts again continues after the last job, which it finds from the end.
    let last = queue.iter()?.next_back().transpose()?;
    let first = last.map_or(Some(0), |(key, _)| number(&key).map(|last| last + 1));
    let first = first.ok_or("a key of the queue is not a number")?;
    let mut batch = Batch::new();
    for number in first..first + JOBS {
        batch.put(queue.id(), &number.to_be_bytes(), b"work");
    }
    db.write(&batch, Durability::Sync)?;

    let taken = thread::scope(|scope| {
        let consume = || -> betree::Result<Vec<u64>> {
            let mut taken = Vec::new();
            while let Some((key, _work)) = take(&db, &queue)? {
                taken.extend(number(&key));
            }
            Ok(taken)
        };
        let threads: Vec<_> = (0..CONSUMERS).map(|_| scope.spawn(consume)).collect();
        let ends = threads.into_iter().map(|t| t.join().expect("no panic"));
        ends.collect::<betree::Result<Vec<_>>>()
    })?;
    db.close()?;
    Ok(taken)
}

/// Take the oldest job; none when the queue is empty. Two consumers that chose the same job
/// conflict, and the second chooses again.
fn take(db: &Db, queue: &Tree) -> betree::Result<Option<(Vec<u8>, Vec<u8>)>> {
    loop {
        let mut transaction = db.begin()?;
        let Some((key, work)) = transaction.range(queue.id(), ..)?.next().transpose()? else {
            return Ok(None);
        };
        let deleted = transaction.delete(queue.id(), &key);
        match deleted.and_then(|_| transaction.commit(Durability::Interval)) {
            Ok(()) => return Ok(Some((key, work))),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
}

fn number(key: &[u8]) -> Option<u64> {
    <[u8; 8]>::try_from(key).ok().map(u64::from_be_bytes)
}
