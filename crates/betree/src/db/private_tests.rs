//! The memory of open transactions.

use std::path::Path;
use std::sync::Arc;

use sim::{Fault, FaultKind, Lasts, SimOptions, SimVfs};
use vfs::Vfs;

use super::core::Core;
use super::transaction::Transaction;
use crate::error::ErrorKind;
use crate::options::Options;
use crate::types::{Batch, Durability, TreeId, TreeOptions};

/// The memory of a write set grows by a chunk.
const CHUNK: usize = 64 << 10;

fn open(memory: u64) -> (SimVfs, Arc<Core>, TreeId) {
    let disk = SimVfs::new(SimOptions::default());
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let options = Options::default()
        .with_memory(memory)
        .with_bucket(64 << 10)
        .with_page(512)
        .with_threads(0);
    let core = Arc::new(
        super::open::open(&vfs, Path::new("/store"), &options)
            .unwrap()
            .0,
    );
    let tree = core.create_tree("t", TreeOptions::default()).unwrap();
    (disk, core, tree)
}

#[test]
fn many_open_transactions_keep_within_their_memory() {
    let (_, core, tree) = open(4 << 20);
    let key = |number: usize, write: usize| {
        let (number, write) = (
            u32::try_from(number).unwrap(),
            u32::try_from(write).unwrap(),
        );
        [number.to_be_bytes(), write.to_be_bytes()].concat()
    };
    let mut open: Vec<(Transaction, usize)> = Vec::new();
    for _ in 0..1000 {
        open.push((Transaction::new(&core).unwrap(), 0));
    }
    let most = core.memory.limit() / 2 + CHUNK;
    let (mut refused, mut written) = (0, 0);
    for _ in 0..60 {
        for (number, (transaction, writes)) in open.iter_mut().enumerate() {
            match transaction.put_blind(tree, &key(number, *writes), &[7; 100]) {
                Ok(()) => *writes += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    refused += 1;
                }
            }
            let held = core.memory.held_by_transactions();
            assert!(held <= most, "{held} of {most} bytes");
        }
    }
    assert!(0 < refused, "the test needs more than there is");
    // Accepted writes are present, in memory or spilled, and can be committed.
    for (number, (transaction, writes)) in open.into_iter().enumerate() {
        for write in 0..writes {
            let found = transaction.get(tree, &key(number, write)).unwrap();
            assert_eq!(found.as_deref(), Some(&[7; 100][..]));
        }
        if number % 2 == 0 {
            transaction.commit(Durability::Interval).unwrap();
            written += writes;
        }
    }
    assert_eq!(core.memory.held_by_transactions(), 0);
    assert!(written <= usize::try_from(core.counters.puts.get()).unwrap());
    // There is room again.
    let mut transaction = Transaction::new(&core).unwrap();
    transaction.put_blind(tree, b"more", b"").unwrap();
    transaction.commit(Durability::Interval).unwrap();
}

#[test]
fn transactions_spill_small_sets_when_there_are_many() {
    let (_, core, tree) = open(4 << 20);
    let mut open: Vec<Transaction> = Vec::new();
    for _ in 0..100 {
        open.push(Transaction::new(&core).unwrap());
    }
    // Together more than twice the maximum, but each less than would otherwise be spilled.
    for write in 0..200_u32 {
        for transaction in &mut open {
            let written = transaction.put_blind(tree, &write.to_be_bytes(), &[7; 100]);
            written.unwrap();
        }
    }
    assert!(core.memory.held_by_transactions() < core.memory.limit() / 2);
    for transaction in open {
        let found = transaction.get(tree, &0_u32.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&[7; 100][..]));
        transaction.commit(Durability::None).unwrap();
    }
}

#[test]
fn a_large_write_of_an_idle_transaction_does_not_keep_others_out() {
    let (_, core, tree) = open(1 << 20);
    let mut idle = Transaction::new(&core).unwrap();
    idle.put(tree, b"large", &vec![7; 2 << 20]).unwrap();
    let mut others: Vec<Transaction> = Vec::new();
    for number in 0..100_u32 {
        let mut other = Transaction::new(&core).unwrap();
        other.put(tree, &number.to_be_bytes(), b"small").unwrap();
        others.push(other);
    }
    for other in others {
        other.commit(Durability::Interval).unwrap();
    }
    assert_eq!(idle.get(tree, b"large").unwrap().unwrap().len(), 2 << 20);
    idle.commit(Durability::Interval).unwrap();
}

#[test]
fn a_large_transaction_is_refused_while_memory_is_full_and_cannot_be_flushed() {
    let (disk, core, tree) = open(1 << 20);
    disk.inject(Fault {
        lasts: Lasts::Sticky,
        ..Fault::once("flush.write", 1, FaultKind::Enospc)
    });
    let mut number = 0_u32;
    let refused = loop {
        let mut batch = Batch::new();
        for _ in 0..100 {
            number += 1;
            batch.put(tree, &number.to_be_bytes(), &[7; 60]);
        }
        if let Err(error) = core.write(&batch, Durability::None) {
            break error;
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    let before = core.memory.buffered();
    let large = || {
        let mut transaction = Transaction::new(&core).unwrap();
        for number in 0..4000_u32 {
            let key = (1 << 31 | number).to_be_bytes();
            transaction.put_blind(tree, &key, &[7; 60]).unwrap();
        }
        transaction.commit(Durability::None)
    };
    let refused = large().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    assert_eq!(core.memory.buffered(), before, "nothing of it was applied");
    disk.clear_faults();
    large().unwrap();
}
