//! Batches: round trips, and decoding of invalid bytes.

use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;
use crate::error::ErrorKind;

const LIMITS: Limits = Limits {
    key_max: 1000,
    value_max: 2000,
};
const A: TreeId = TreeId(3);
const B: TreeId = TreeId(1 << 30);

fn range<'a>(start: Bound<&'a [u8]>, end: Bound<&'a [u8]>) -> KeyRange<'a> {
    KeyRange { start, end }
}

fn sample() -> Batch {
    let mut batch = Batch::new();
    batch.put(A, b"key", b"value");
    batch.put(A, b"", b"");
    batch.delete(B, &[7; 300]);
    batch.delete_range(B, range(Excluded(b"a"), Unbounded));
    batch.delete_range(A, range(Unbounded, Included(b"z")));
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
            range: range(Excluded(b"a"), Unbounded),
        },
        Change::DeleteRange {
            tree: A,
            range: range(Unbounded, Included(b"z")),
        },
    ];
    assert_eq!(batch.ops().collect::<Vec<_>>(), expected);
    let decoded = Batch::decode(batch.payload(), LIMITS).unwrap();
    assert_eq!(decoded.collect::<Vec<_>>(), expected);
    let counts = Counts {
        puts: 2,
        deletes: 1,
        range_deletes: 2,
    };
    assert_eq!((batch.counts(), batch.len()), (counts, 5));
    assert_eq!((batch.longest_key(), batch.longest_value()), (300, 5));
    assert_eq!(batch.byte_len(), 8 + 300 + 1 + 1);
}

#[test]
fn the_tree_is_written_once_for_neighbours() {
    let mut batch = Batch::new();
    batch.put(B, b"k", b"v");
    let alone = batch.payload().len();
    batch.put(B, b"k", b"v");
    assert_eq!(alone, 1 + 5 + 2 + 2);
    assert_eq!(batch.payload().len() - alone, 1 + 2 + 2);
}

#[test]
fn a_cleared_batch_is_like_a_new_one() {
    let mut batch = sample();
    batch.clear();
    assert!(batch.is_empty() && batch.ops().next().is_none());
    assert_eq!((batch.len(), batch.byte_len()), (0, 0));
    assert_eq!((batch.longest_key(), batch.longest_value()), (0, 0));
    batch.delete(A, b"x");
    let decoded = Batch::decode(batch.payload(), LIMITS).unwrap();
    assert_eq!(decoded.count(), 1);
}

#[test]
fn nothing_is_refused_before_it_is_written() {
    for (key, value, needle) in [(1001, 0, "key above the limit"), (0, 2001, "value above")] {
        let mut batch = Batch::new();
        batch.put(A, &vec![0; key], &vec![0; value]);
        assert_eq!(batch.ops().count(), 1);
        let error = Batch::decode(batch.payload(), LIMITS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(needle), "{error}");
    }
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
        let error = Batch::decode(bytes, LIMITS).unwrap_err().to_string();
        assert!(error.contains(needle), "{bytes:?}: {error}");
        assert!(error.contains("byte 0"), "{bytes:?}: {error}");
    }
}

/// Encode the changes of `ops` again.
fn copied(ops: Ops<'_>) -> Batch {
    let mut again = Batch::new();
    for change in ops {
        match change {
            Change::Put { tree, key, value } => again.put(tree, key, value),
            Change::Delete { tree, key } => again.delete(tree, key),
            Change::DeleteRange { tree, range } => again.delete_range(tree, range),
        }
    }
    again
}

// I2: whatever the bytes are, all of them decode or none is given out.
#[test]
fn no_bytes_make_decoding_fail_otherwise_than_by_an_error() {
    let good = sample().payload().to_vec();
    for len in 0..good.len() {
        if let Ok(ops) = Batch::decode(&good[..len], LIMITS) {
            assert!(ops.count() < 5, "{len}");
        }
    }
    for at in 0..good.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = good.clone();
            bytes[at] = byte;
            if let Ok(ops) = Batch::decode(&bytes, LIMITS) {
                assert!(copied(ops.clone()).ops().eq(ops), "byte {at} is {byte}");
            }
        }
    }
}
