//! Batches: what goes in comes out, and foreign bytes cannot do harm.

use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;
use crate::error::ErrorKind;
use stdx::Rng;

const A: TreeId = TreeId(3);
const B: TreeId = TreeId(1 << 30);

fn sample() -> Batch {
    let mut batch = Batch::new();
    batch.put(A, b"key", b"value");
    batch.put(A, b"", b"");
    batch.delete(B, &[7; 300]);
    batch.delete_range(B, Excluded(b"a"), Unbounded);
    batch.delete_range(A, Unbounded, Included(b"z"));
    batch
}

#[test]
fn a_batch_gives_back_what_it_was_given_in_order() {
    let batch = sample();
    let long = [7; 300];
    let expected = [
        Change::Put {
            tree: A,
            key: b"key",
            value: b"value",
        },
        Change::Put {
            tree: A,
            key: b"",
            value: b"",
        },
        Change::Delete {
            tree: B,
            key: &long,
        },
        Change::DeleteRange {
            tree: B,
            start: Excluded(b"a"),
            end: Unbounded,
        },
        Change::DeleteRange {
            tree: A,
            start: Unbounded,
            end: Included(b"z"),
        },
    ];
    assert_eq!(batch.ops().collect::<Vec<_>>(), expected);
    let decoded = Batch::decode(batch.payload()).unwrap();
    assert_eq!(decoded.collect::<Vec<_>>(), expected);
    let counts = Counts {
        puts: 2,
        deletes: 1,
        range_deletes: 2,
    };
    assert_eq!((batch.counts(), batch.len()), (counts, 5));
    assert_eq!((batch.longest_key(), batch.longest_value()), (300, 5));
}

#[test]
fn the_tree_is_written_once_for_neighbours() {
    let mut batch = Batch::new();
    batch.put(B, b"k", b"v");
    let alone = batch.byte_len();
    batch.put(B, b"k", b"v");
    assert_eq!(alone, 1 + 5 + 2 + 2);
    assert_eq!(batch.byte_len() - alone, 1 + 2 + 2);
}

#[test]
fn a_cleared_batch_is_like_a_new_one() {
    let mut batch = sample();
    batch.clear();
    assert!(batch.is_empty() && batch.ops().next().is_none());
    assert_eq!((batch.len(), batch.longest_key()), (0, 0));
    batch.delete(A, b"x");
    let decoded = Batch::decode(batch.payload()).unwrap();
    assert_eq!(decoded.count(), 1);
}

#[test]
fn nothing_is_refused_before_it_is_written() {
    let mut batch = Batch::new();
    batch.put(A, &vec![0; KEY_MAX + 1], b"");
    assert_eq!(batch.ops().count(), 1);
    let error = Batch::decode(batch.payload()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("key above the limit"), "{error}");
}

#[test]
fn damage_is_named() {
    for (bytes, needle) in [
        (&[SAME_TREE, 0, 0][..], "names no tree"),
        (&[3, 0][..], "unknown kind of change"),
        (&[UNUSED][..], "unused bit"),
        (&[PUT | 1 << START, 0, 0, 0][..], "unknown kind of change"),
        (&[DELETE_RANGE | 3 << START, 0, 0][..], "kind of bound"),
        (&[DELETE, 0, 5, 1, 2][..], "cut off"),
        (&[DELETE, 0x80, 0][..], "byte too many"),
        (&[DELETE, 0xff, 0xff, 0xff, 0xff, 0x7f][..], "32 bits"),
        (&[DELETE, 0xff, 0xff, 0xff, 0xff, 0xff][..], "32 bits"),
    ] {
        let error = Batch::decode(bytes).unwrap_err().to_string();
        assert!(error.contains(needle), "{bytes:?}: {error}");
        assert!(error.contains("byte 0"), "{bytes:?}: {error}");
    }
}

#[test]
fn no_bytes_make_decoding_fail_otherwise_than_by_an_error() {
    let good = sample().payload().to_vec();
    for len in 0..good.len() {
        if let Ok(ops) = Batch::decode(&good[..len]) {
            assert!(ops.count() < 5, "{len}");
        }
    }
    let mut rng = Rng::new(7);
    for round in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=round % 4 {
            let at = rng.index(bytes.len());
            rng.fill(&mut bytes[at..=at]);
        }
        if let Ok(ops) = Batch::decode(&bytes) {
            let mut again = Batch::new();
            for change in ops.clone() {
                match change {
                    Change::Put { tree, key, value } => again.put(tree, key, value),
                    Change::Delete { tree, key } => again.delete(tree, key),
                    Change::DeleteRange { tree, start, end } => {
                        again.delete_range(tree, start, end);
                    }
                }
            }
            assert!(again.ops().eq(ops), "round {round}");
        }
    }
}
