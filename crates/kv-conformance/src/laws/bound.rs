//! The bounds of a scan: every kind of bound, in both directions.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, at, create, fill, fill_keys, fill_numbered, keys, open, past, range, scan,
};
use kv::KeyRange;

const LETTERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Scan the range `wanted` of the keys a to e in both directions; `expected` are the keys in
/// ascending order.
fn check(lab: &mut Bench<'_>, wanted: KeyRange<'_>, expected: &[&str]) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    let now = db.begin_read().unwrap();
    assert_eq!(
        keys(&*now, t, wanted, Forward),
        expected,
        "forward {wanted:?}"
    );
    let reversed: Vec<&str> = expected.iter().rev().copied().collect();
    assert_eq!(
        keys(&*now, t, wanted, Backward),
        reversed,
        "backward {wanted:?}"
    );
}

pub(crate) fn included_to_included(lab: &mut Bench<'_>) {
    check(lab, range(at("b"), at("d")), &["b", "c", "d"]);
}

pub(crate) fn included_to_excluded(lab: &mut Bench<'_>) {
    check(lab, range(at("b"), past("d")), &["b", "c"]);
}

pub(crate) fn excluded_to_included(lab: &mut Bench<'_>) {
    check(lab, range(past("b"), at("d")), &["c", "d"]);
}

pub(crate) fn excluded_to_excluded(lab: &mut Bench<'_>) {
    check(lab, range(past("b"), past("d")), &["c"]);
}

pub(crate) fn unbounded_to_included(lab: &mut Bench<'_>) {
    check(lab, range(open(), at("c")), &["a", "b", "c"]);
}

pub(crate) fn unbounded_to_excluded(lab: &mut Bench<'_>) {
    check(lab, range(open(), past("c")), &["a", "b"]);
}

pub(crate) fn included_to_unbounded(lab: &mut Bench<'_>) {
    check(lab, range(at("c"), open()), &["c", "d", "e"]);
}

pub(crate) fn excluded_to_unbounded(lab: &mut Bench<'_>) {
    check(lab, range(past("c"), open()), &["d", "e"]);
}

pub(crate) fn bounds_between_keys(lab: &mut Bench<'_>) {
    check(lab, range(at("aa"), at("dd")), &["b", "c", "d"]);
}

pub(crate) fn bounds_outside_all_keys(lab: &mut Bench<'_>) {
    check(lab, range(at("A"), at("z")), &LETTERS);
}

pub(crate) fn range_before_and_after_all_keys_is_empty(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    let now = db.begin_read().unwrap();
    for nothing in [range(at("A"), at("Z")), range(at("f"), at("z"))] {
        for direction in [Forward, Backward] {
            let found = keys(&*now, t, nothing, direction);
            assert!(found.is_empty(), "{direction:?} {nothing:?}: {found:?}");
        }
    }
}

pub(crate) fn single_key_range(lab: &mut Bench<'_>) {
    check(lab, range(at("c"), at("c")), &["c"]);
}

pub(crate) fn empty_and_crossed_ranges_hold_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    let now = db.begin_read().unwrap();
    for nothing in [
        range(at("c"), past("c")),
        range(past("c"), at("c")),
        range(past("c"), past("c")),
        range(at("d"), at("b")),
        range(past("d"), past("b")),
        range(past("b"), past("c")),
    ] {
        for direction in [Forward, Backward] {
            let found = keys(&*now, t, nothing, direction);
            assert!(found.is_empty(), "{direction:?} {nothing:?}: {found:?}");
        }
    }
}

pub(crate) fn prefix_of_a_key_as_bound(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["k", "ka", "kb", "l"]);
    let now = db.begin_read().unwrap();
    let beyond = range(past("k"), past("l"));
    assert_eq!(keys(&*now, t, beyond, Forward), ["ka", "kb"]);
    assert_eq!(keys(&*now, t, beyond, Backward), ["kb", "ka"]);
    let up_to = range(open(), at("ka"));
    assert_eq!(keys(&*now, t, up_to, Forward), ["k", "ka"]);
    assert_eq!(keys(&*now, t, up_to, Backward), ["ka", "k"]);
}

pub(crate) fn bounds_of_the_highest_bytes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let high: [&[u8]; 4] = [b"\xfe", b"\xff", b"\xff\x00", b"\xff\xff"];
    fill(&*db, t, &high.map(|k| (k, k)));
    let now = db.begin_read().unwrap();
    let wanted = KeyRange {
        start: std::ops::Bound::Excluded(b"\xff"),
        end: std::ops::Bound::Included(b"\xff\xff"),
    };
    assert_eq!(keys(&*now, t, wanted, Forward), [r"\xff\x00", r"\xff\xff"]);
    assert_eq!(keys(&*now, t, wanted, Backward), [r"\xff\xff", r"\xff\x00"]);
}

pub(crate) fn empty_bound_is_before_every_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    let now = db.begin_read().unwrap();
    for direction in [Forward, Backward] {
        assert_eq!(keys(&*now, t, range(at(""), open()), direction).len(), 5);
        assert_eq!(keys(&*now, t, range(past(""), open()), direction).len(), 5);
        assert!(keys(&*now, t, range(open(), at("")), direction).is_empty());
        assert!(keys(&*now, t, range(open(), past("")), direction).is_empty());
    }
}

pub(crate) fn bound_beyond_the_key_limit_is_only_a_bound(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    let mut long = vec![b'c'];
    long.resize(lab.limits().key_max + 1, b'x');
    let now = db.begin_read().unwrap();
    let after = KeyRange::from(&long);
    assert_eq!(keys(&*now, t, after, Forward), ["d", "e"]);
    assert_eq!(keys(&*now, t, after, Backward), ["e", "d"]);
    let before = range(open(), std::ops::Bound::Included(long.as_slice()));
    assert_eq!(keys(&*now, t, before, Forward), ["a", "b", "c"]);
    assert_eq!(keys(&*now, t, before, Backward), ["c", "b", "a"]);
}

pub(crate) fn every_window_of_a_large_tree(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 3000, &[b'v'; 40]);
    let now = db.begin_read().unwrap();
    for start in (0..3000u32).step_by(271) {
        for length in [0u32, 1, 2, 63, 700] {
            let end = (start + length).min(3000);
            let (from, to) = (format!("{start:08}"), format!("{end:08}"));
            let window = range(at(&from), past(&to));
            let forward = scan(&*now, t, window, Forward);
            assert_eq!(forward.len(), (end - start) as usize, "{from}..{to}");
            let mut backward = scan(&*now, t, window, Backward);
            backward.reverse();
            assert!(forward == backward, "{from}..{to} differs by direction");
        }
    }
}
