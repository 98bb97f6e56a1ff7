//! The guarantees of cursors, on trees of a few buckets.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::Arc;

use super::super::{At, Buckets, MergeCursor, View};
use super::town::Town;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Direction::{self, Backward, Forward};
use crate::types::{Op, Seq};

type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

const ALL: Range<'static> = (Unbounded, Unbounded);

/// The keys b, d, f, h, j, each its own value: in the buffer of one bucket, or deep in several.
fn letters(deep: bool) -> (Arc<Town>, Seq) {
    let town = Town::new();
    let mut now = Seq(0);
    for key in [b"d", b"b", b"j", b"h", b"f"] {
        now = town.commit(&[(Op::Put, key.to_vec(), key.to_vec())]);
        if deep {
            town.freeze(town.buckets() - 1);
            town.flush(town.buckets() - 1, now);
        }
    }
    if deep {
        town.merge(0, now, 3);
        for (index, at) in [b"d", b"e", b"i"].iter().enumerate() {
            town.split(index, *at);
        }
    }
    (town, now)
}

fn cursor(
    town: &(Arc<Town>, Seq),
    (start, end): Range<'_>,
    way: Direction,
) -> MergeCursor<'static> {
    let buckets: Arc<Town> = Arc::clone(&town.0);
    MergeCursor::new(buckets, None, town.1, start, end, way)
}

fn rest(cursor: &mut MergeCursor<'_>) -> String {
    let mut keys = String::new();
    while cursor.advance().unwrap() {
        assert_eq!(cursor.key(), cursor.value());
        keys += str::from_utf8(cursor.key()).unwrap();
    }
    keys
}

fn check(range: Range<'_>, forward: &str) {
    for deep in [false, true] {
        let town = letters(deep);
        assert_eq!(
            rest(&mut cursor(&town, range, Forward)),
            forward,
            "{range:?} {deep}"
        );
        let backward: String = forward.chars().rev().collect();
        assert_eq!(
            rest(&mut cursor(&town, range, Backward)),
            backward,
            "{range:?} {deep}"
        );
    }
}

#[test]
fn every_kind_of_bound() {
    check(ALL, "bdfhj");
    check((Included(b"d"), Included(b"h")), "dfh");
    check((Included(b"d"), Excluded(b"h")), "df");
    check((Excluded(b"d"), Included(b"h")), "fh");
    check((Excluded(b"d"), Excluded(b"h")), "f");
    check((Unbounded, Included(b"d")), "bd");
    check((Unbounded, Excluded(b"d")), "b");
    check((Included(b"e"), Unbounded), "fhj");
    check((Excluded(b"f"), Unbounded), "hj");
    check((Included(b"A"), Included(b"z")), "bdfhj");
    check((Included(b"f"), Included(b"f")), "f");
    check((Included(b""), Unbounded), "bdfhj");
    check((Excluded(b""), Unbounded), "bdfhj");
}

#[test]
fn empty_and_crossed_ranges_hold_nothing() {
    for range in [
        (Included(&b"d"[..]), Excluded(&b"d"[..])),
        (Excluded(b"d"), Included(b"d")),
        (Excluded(b"d"), Excluded(b"d")),
        (Included(b"h"), Included(b"d")),
        (Excluded(b"h"), Excluded(b"d")),
        (Excluded(b"d"), Excluded(b"f")),
        (Included(b"k"), Unbounded),
        (Unbounded, Excluded(b"")),
        (Unbounded, Included(b"")),
        (Unbounded, Included(b"a")),
    ] {
        check(range, "");
        for way in [Forward, Backward] {
            let mut cursor = cursor(&letters(true), range, way);
            for key in [b"a", b"d", b"e", b"f", b"z"] {
                assert!(!cursor.seek(key).unwrap(), "{way:?} {range:?} {key:?}");
            }
        }
    }
}

#[test]
fn nothing_is_current_before_the_first_entry_and_after_the_last() {
    for way in [Forward, Backward] {
        let mut cursor = cursor(&letters(true), ALL, way);
        assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
        assert_eq!(rest(&mut cursor).len(), 5);
        for _ in 0..3 {
            assert!(!cursor.advance().unwrap());
            assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
        }
        assert!(cursor.seek(b"f").unwrap());
        assert_eq!(cursor.key(), b"f");
        assert_eq!(rest(&mut cursor).len(), 2);
    }
}

/// Check the target of a seek, and the entries that follow.
fn check_seek(range: Range<'_>, way: Direction, key: &[u8], expected: &str) {
    for deep in [false, true] {
        let mut cursor = cursor(&letters(deep), range, way);
        let mut found = String::new();
        if cursor.seek(key).unwrap() {
            found += str::from_utf8(cursor.key()).unwrap();
            found += &rest(&mut cursor);
        } else {
            assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
            assert!(!cursor.advance().unwrap());
        }
        assert_eq!(found, expected, "{way:?} to {key:?} in {range:?} {deep}");
    }
}

#[test]
fn seeks_land_at_or_beyond_the_key() {
    check_seek(ALL, Forward, b"f", "fhj");
    check_seek(ALL, Forward, b"e", "fhj");
    check_seek(ALL, Forward, b"a", "bdfhj");
    check_seek(ALL, Forward, b"", "bdfhj");
    check_seek(ALL, Forward, b"z", "");
    check_seek(ALL, Backward, b"f", "fdb");
    check_seek(ALL, Backward, b"g", "fdb");
    check_seek(ALL, Backward, b"z", "jhfdb");
    check_seek(ALL, Backward, b"a", "");
    check_seek(ALL, Backward, b"", "");
}

#[test]
fn seeks_stay_in_the_range() {
    check_seek((Included(b"d"), Included(b"h")), Forward, b"a", "dfh");
    check_seek((Excluded(b"d"), Included(b"h")), Forward, b"d", "fh");
    check_seek((Included(b"d"), Excluded(b"h")), Forward, b"h", "");
    check_seek((Included(b"d"), Included(b"h")), Backward, b"z", "hfd");
    check_seek((Included(b"d"), Excluded(b"h")), Backward, b"h", "fd");
    check_seek((Excluded(b"d"), Included(b"h")), Backward, b"d", "");
}

#[test]
fn seeks_go_back_as_well() {
    for (way, far, near) in [(Forward, b"h", b"b"), (Backward, b"d", b"j")] {
        for deep in [false, true] {
            let mut cursor = cursor(&letters(deep), ALL, way);
            for key in [far, near, near] {
                assert!(cursor.seek(key).unwrap());
                assert_eq!(cursor.key(), key);
            }
            assert_eq!(rest(&mut cursor).len(), 4);
        }
    }
}

#[test]
fn a_key_has_what_the_newest_sequence_says() {
    let town = Town::new();
    let put = |value: &[u8]| [(Op::Put, b"k".to_vec(), value.to_vec())];
    for value in [b"base", b"old.", b"mid.", b"new."] {
        let now = town.commit(&put(value));
        town.freeze(0);
        town.flush(0, Seq(0));
        if value == b"base" {
            town.merge(0, Seq(0), 1);
        }
        let view = town.view(At::First).unwrap().unwrap();
        for (seq, expected) in (1..=now.0).zip([b"base", b"old.", b"mid.", b"new."]) {
            let mut read = b"left over".to_vec();
            assert!(super::super::get(&view, b"k", Seq(seq), &mut read).unwrap());
            assert_eq!(read, expected);
            let mut cursor = cursor(&(Arc::clone(&town), Seq(seq)), ALL, Backward);
            assert!(cursor.advance().unwrap());
            assert_eq!((cursor.key(), cursor.value()), (&b"k"[..], &expected[..]));
            assert!(!cursor.advance().unwrap());
        }
    }
}

/// Buckets whose access fails.
struct Broken;

impl Buckets for Broken {
    fn view(&self, _: At<'_>) -> Result<Option<View>> {
        Err(Error::new(ErrorKind::Conflict, "as it happens"))
    }
}

#[test]
fn an_error_is_not_taken_for_the_end() {
    let mut cursor = MergeCursor::new(Arc::new(Broken), None, Seq(1), ALL.0, ALL.1, Forward);
    for _ in 0..3 {
        assert_eq!(cursor.advance().unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(cursor.key(), b"");
    }
    assert_eq!(cursor.seek(b"a").unwrap_err().kind(), ErrorKind::Conflict);
}
