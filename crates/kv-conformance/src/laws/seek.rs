//! Seeking within a scan.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, at, create, fill_keys, fill_numbered, numbered, past, range, rest, texts,
};
use kv::{Direction, Engine, KeyRange, TreeId};

const LETTERS: [&str; 5] = ["b", "d", "f", "h", "j"];

fn letters(lab: &mut Bench<'_>) -> (Box<dyn Engine>, TreeId) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    (db, t)
}

/// The entry to which a new cursor over `wanted` seeks for `key`, and the entries after it.
fn after_seek(
    lab: &mut Bench<'_>,
    wanted: KeyRange<'_>,
    direction: Direction,
    key: &[u8],
) -> Vec<String> {
    let (db, t) = letters(lab);
    let now = db.begin_read().unwrap();
    let mut cursor = now.cursor(t, wanted, direction).unwrap();
    if !cursor.seek(key).unwrap() {
        assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
        return Vec::new();
    }
    let first = (cursor.key().to_vec(), cursor.value().to_vec());
    assert_eq!(first.0, first.1, "the value goes with the key");
    let mut found = vec![first];
    found.extend(rest(&mut *cursor));
    texts(&found)
}

pub(crate) fn forward_to_a_key(lab: &mut Bench<'_>) {
    assert_eq!(
        after_seek(lab, KeyRange::ALL, Forward, b"f"),
        ["f", "h", "j"]
    );
}

pub(crate) fn forward_between_keys(lab: &mut Bench<'_>) {
    assert_eq!(
        after_seek(lab, KeyRange::ALL, Forward, b"e"),
        ["f", "h", "j"]
    );
}

pub(crate) fn forward_before_the_first(lab: &mut Bench<'_>) {
    assert_eq!(after_seek(lab, KeyRange::ALL, Forward, b"a"), LETTERS);
}

pub(crate) fn forward_beyond_the_last(lab: &mut Bench<'_>) {
    assert!(after_seek(lab, KeyRange::ALL, Forward, b"z").is_empty());
}

pub(crate) fn backward_to_a_key(lab: &mut Bench<'_>) {
    assert_eq!(
        after_seek(lab, KeyRange::ALL, Backward, b"f"),
        ["f", "d", "b"]
    );
}

pub(crate) fn backward_between_keys(lab: &mut Bench<'_>) {
    assert_eq!(
        after_seek(lab, KeyRange::ALL, Backward, b"g"),
        ["f", "d", "b"]
    );
}

pub(crate) fn backward_beyond_the_last(lab: &mut Bench<'_>) {
    let found = after_seek(lab, KeyRange::ALL, Backward, b"z");
    assert_eq!(found, ["j", "h", "f", "d", "b"]);
}

pub(crate) fn backward_before_the_first(lab: &mut Bench<'_>) {
    assert!(after_seek(lab, KeyRange::ALL, Backward, b"a").is_empty());
}

pub(crate) fn forward_before_the_range_goes_to_its_start(lab: &mut Bench<'_>) {
    let included = range(at("d"), at("h"));
    assert_eq!(after_seek(lab, included, Forward, b"a"), ["d", "f", "h"]);
}

pub(crate) fn forward_before_an_excluded_start(lab: &mut Bench<'_>) {
    let excluded = range(past("d"), at("h"));
    assert_eq!(after_seek(lab, excluded, Forward, b"d"), ["f", "h"]);
}

pub(crate) fn forward_beyond_the_range_finds_nothing(lab: &mut Bench<'_>) {
    assert!(after_seek(lab, range(at("d"), past("h")), Forward, b"h").is_empty());
}

pub(crate) fn backward_beyond_the_range_goes_to_its_end(lab: &mut Bench<'_>) {
    let included = range(at("d"), at("h"));
    assert_eq!(after_seek(lab, included, Backward, b"z"), ["h", "f", "d"]);
}

pub(crate) fn backward_beyond_an_excluded_end(lab: &mut Bench<'_>) {
    let excluded = range(at("d"), past("h"));
    assert_eq!(after_seek(lab, excluded, Backward, b"h"), ["f", "d"]);
}

pub(crate) fn backward_before_the_range_finds_nothing(lab: &mut Bench<'_>) {
    assert!(after_seek(lab, range(past("d"), at("h")), Backward, b"d").is_empty());
}

pub(crate) fn seek_goes_back_as_well(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let now = db.begin_read().unwrap();
    for (direction, far, near) in [(Forward, b"h", b"b"), (Backward, b"d", b"j")] {
        let mut cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        assert!(cursor.seek(far).unwrap());
        assert_eq!(cursor.key(), far);
        assert!(cursor.seek(near).unwrap(), "{direction:?} back to {near:?}");
        assert_eq!(cursor.key(), near);
        assert_eq!(rest(&mut *cursor).len(), 4);
    }
}

pub(crate) fn seek_revives_an_ended_cursor(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let now = db.begin_read().unwrap();
    for direction in [Forward, Backward] {
        let mut cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        assert_eq!(rest(&mut *cursor).len(), 5);
        assert!(cursor.seek(b"f").unwrap(), "{direction:?}");
        assert_eq!(cursor.key(), b"f");
        assert_eq!(rest(&mut *cursor).len(), 2);
    }
}

pub(crate) fn failed_seek_leaves_the_cursor_at_the_end(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let now = db.begin_read().unwrap();
    for (direction, nowhere) in [(Forward, b"z"), (Backward, b"a")] {
        let mut cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        assert!(cursor.advance().unwrap());
        assert!(!cursor.seek(nowhere).unwrap());
        assert_eq!(cursor.key(), b"");
        assert!(
            !cursor.advance().unwrap(),
            "{direction:?} after a failed seek"
        );
    }
}

pub(crate) fn seek_in_an_empty_range_finds_nothing(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let now = db.begin_read().unwrap();
    for wanted in [range(at("h"), at("d")), range(past("d"), past("f"))] {
        for direction in [Forward, Backward] {
            let mut cursor = now.cursor(t, wanted, direction).unwrap();
            for key in [b"a", b"d", b"e", b"f", b"z"] {
                assert!(
                    !cursor.seek(key).unwrap(),
                    "{direction:?} {wanted:?} {key:?}"
                );
            }
        }
    }
}

pub(crate) fn seek_twice_to_one_key_stays_there(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let now = db.begin_read().unwrap();
    let mut cursor = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    for _ in 0..3 {
        assert!(cursor.seek(b"d").unwrap());
        assert_eq!(cursor.key(), b"d");
    }
    assert!(cursor.advance().unwrap());
    assert_eq!(cursor.key(), b"f");
}

pub(crate) fn seeks_hop_through_a_large_tree(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 4000, &[b'v'; 30]);
    let now = db.begin_read().unwrap();
    let mut forward = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    let mut backward = now.cursor(t, KeyRange::ALL, Backward).unwrap();
    // 1777 is coprime to 4000: the seeks go far in both directions.
    for n in (0..4000u32).step_by(7).map(|n| n * 1777 % 4000) {
        assert!(forward.seek(&numbered(n)).unwrap());
        assert!(backward.seek(&numbered(n)).unwrap());
        assert_eq!(
            (forward.key(), backward.key()),
            (&*numbered(n), &*numbered(n))
        );
        assert_eq!(forward.advance().unwrap(), n < 3999);
        assert_eq!(backward.advance().unwrap(), 0 < n);
    }
}
