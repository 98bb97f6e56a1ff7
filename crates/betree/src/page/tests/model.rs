//! Entries that own their bytes, and pages of random shapes drawn from a tape.

use stdx::tape::Tape;

use super::*;
use crate::types::{Entry, Op, Seq};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) key: Vec<u8>,
    pub(super) seq: u64,
    pub(super) op: Op,
    pub(super) value: Vec<u8>,
}

impl Owned {
    pub(super) fn put(key: &[u8], seq: u64, value: &[u8]) -> Owned {
        Owned {
            key: key.to_vec(),
            seq,
            op: Op::Put,
            value: value.to_vec(),
        }
    }

    pub(super) fn delete(key: &[u8], seq: u64) -> Owned {
        let op = Op::Delete;
        Owned {
            op,
            ..Owned::put(key, seq, b"")
        }
    }

    pub(super) fn borrow(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            seq: Seq(self.seq),
            op: self.op,
            value: &self.value,
        }
    }
}

/// Check that the page returns the entries, and finds them.
pub(super) fn same(page: &Page, entries: &[Owned]) {
    assert_eq!(page.len(), entries.len());
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!(page.entry(index), entry.borrow());
        assert_eq!(page.key(index), entry.key);
    }
    let step = entries.len() / 50 + 1;
    for entry in entries.iter().step_by(step) {
        let mut longer = entry.key.clone();
        longer.push(0);
        let shorter = &entry.key[..entry.key.len().saturating_sub(1)];
        let seq = entry.seq;
        let seqs = [
            0,
            seq.saturating_sub(1),
            seq,
            seq.saturating_add(1),
            u64::MAX,
        ];
        for key in [&entry.key[..], &longer, shorter, b"", &[0xFF; 40]] {
            for seq in seqs {
                let naive = entries
                    .iter()
                    .take_while(|e| e.key[..] < *key || (e.key[..] == *key && seq < e.seq))
                    .count();
                assert_eq!(page.lower_bound(key, Seq(seq)), naive, "{key:?} at {seq}");
            }
        }
    }
}

/// The sorted entries of a page whose shape is drawn from the tape.
pub(super) fn entries(tape: &mut Tape) -> Vec<Owned> {
    let count = 1 + [3, 20, 90, 700][tape.index(4)] * (1 + tape.index(8)) / 8;
    let width = [None, Some(8), Some(20), Some(1 + tape.index(40))][tape.index(4)];
    let value = [Some(0), Some(1 + tape.index(160)), None][tape.index(3)];
    let versions = [0, 40, 200][tape.index(3)];
    let deletes = [0, 30, 255][tape.index(3)];
    let seqs = [0, 20, 255][tape.index(3)];
    let alphabet = [1, 15, 255][tape.index(3)];
    let (common, alike) = (tape.chance(128), 1 + tape.index(20));
    let mut all: Vec<Owned> = Vec::new();
    let mut key = Vec::new();
    for _ in 0..count {
        if all.is_empty() || !tape.chance(versions) {
            let len = width.unwrap_or_else(|| tape.index(30));
            let keep = key.len().min(len).min(tape.index(len + 1));
            key.truncate(keep);
            key.resize_with(len, || tape.byte() & alphabet);
        }
        let seq = if tape.chance(seqs) {
            u64::from(tape.below(100_000))
        } else {
            0
        };
        if tape.chance(deletes) {
            all.push(Owned::delete(&key, seq));
        } else {
            let len = value.unwrap_or_else(|| tape.index(200));
            let constant = tape.byte();
            let bytes: Vec<u8> = (0..len)
                .map(|at| match at % alike {
                    0 => tape.byte(),
                    _ if common => b'=',
                    _ => constant,
                })
                .collect();
            all.push(Owned::put(&key, seq, &bytes));
        }
    }
    all.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
    all.dedup_by(|a, b| a.key == b.key && a.seq == b.seq);
    all
}
