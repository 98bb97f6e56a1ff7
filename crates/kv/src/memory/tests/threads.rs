//! Many threads on one engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stdx::{Rng, sync};

use super::*;

/// Run `body` in new transactions until one commits; returns the number of conflicts.
fn retry(engine: &dyn Engine, body: impl Fn(&mut dyn Transaction) -> Result<()>) -> u64 {
    let mut conflicts = 0;
    loop {
        let mut txn = engine.begin_write().unwrap();
        let result = body(&mut *txn).and_then(|()| txn.commit(Durability::None));
        match result {
            Ok(()) => return conflicts,
            Err(e) if e.kind() == ErrorKind::Conflict => conflicts += 1,
            Err(e) => panic!("{e}"),
        }
    }
}

fn number(bytes: Option<Vec<u8>>) -> u64 {
    bytes.map_or(0, |b| u64::from_be_bytes(b.try_into().unwrap()))
}

#[test]
fn counters_lose_no_increment() {
    let f = Arc::new(fixture());
    let threads: Vec<_> = (0..4)
        .map(|id| {
            let f = Arc::clone(&f);
            sync::spawn("counter", move || {
                let mut rng = Rng::new(id);
                let mut conflicts = 0;
                for _ in 0..1000 {
                    let key = [u8::try_from(rng.below(3)).unwrap()];
                    conflicts += retry(&*f.engine, |txn| {
                        let n = number(txn.get(f.tree, &key)?);
                        txn.put(f.tree, &key, &(n + 1).to_be_bytes())
                    });
                }
                conflicts
            })
            .unwrap()
        })
        .collect();
    let conflicts: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let reader = f.engine.begin_read().unwrap();
    let sum: u64 = (0..3)
        .map(|k| number(reader.get(f.tree, &[k]).unwrap()))
        .sum();
    assert_eq!(sum, 4000);
    assert_eq!(f.counter("conflicts"), conflicts);
    assert_eq!(f.counter("commits"), 4000);
    drop(reader);
    f.engine.settle(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!((f.counter("versions"), f.counter("snapshots")), (3, 0));
    f.engine.verify().unwrap();
}

/// Transactions move money between accounts and create and delete accounts; every walk must find
/// the same sum.
#[test]
fn cursors_see_whole_commits_while_others_commit() {
    const ACCOUNTS: u64 = 400;
    let f = Arc::new(fixture());
    let mut batch = Batch::new();
    for account in 0..ACCOUNTS {
        batch.put(f.tree, &account.to_be_bytes(), &1000_u64.to_be_bytes());
    }
    f.engine.write(&batch, Durability::None).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|seed| {
            let f = Arc::clone(&f);
            sync::spawn("payer", move || {
                let mut rng = Rng::new(seed);
                for _ in 0..3000 {
                    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
                    retry(&*f.engine, |txn| pay(txn, f.tree, from, to));
                }
            })
            .unwrap()
        })
        .collect();
    let readers: Vec<_> = [Direction::Forward, Direction::Backward]
        .map(|direction| {
            let (f, done) = (Arc::clone(&f), Arc::clone(&done));
            sync::spawn("auditor", move || {
                let mut audits = 0;
                while !done.load(Ordering::Relaxed) || audits == 0 {
                    let reader = f.engine.begin_read().unwrap();
                    for _ in 0..2 {
                        let mut cursor = reader.cursor(f.tree, KeyRange::ALL, direction).unwrap();
                        let mut sum = 0;
                        while cursor.advance().unwrap() {
                            sum += number(Some(cursor.value().to_vec()));
                        }
                        assert_eq!(sum, 1000 * ACCOUNTS);
                    }
                    audits += 1;
                }
            })
            .unwrap()
        })
        .into();
    for writer in writers {
        writer.join().unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    f.engine.verify().unwrap();
}

/// Move the whole amount of `from` to `to`; an account without money is deleted.
fn pay(txn: &mut dyn Transaction, tree: TreeId, from: u64, to: u64) -> Result<()> {
    let amount = number(txn.get(tree, &from.to_be_bytes())?);
    txn.delete(tree, &from.to_be_bytes())?;
    let has = number(txn.get(tree, &to.to_be_bytes())?);
    if has + amount == 0 {
        return Ok(());
    }
    txn.put(tree, &to.to_be_bytes(), &(has + amount).to_be_bytes())
}
