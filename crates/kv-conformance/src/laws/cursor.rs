//! Cursors: before the first entry, after the last one, several at once, and during writes.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, QUICK, create, delete, fill_keys, fill_numbered, numbered, put, rest, texts,
};
use kv::{Batch, KeyRange};

pub(crate) fn nothing_is_current_before_the_first_advance(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let now = db.begin_read().unwrap();
    for direction in [Forward, Backward] {
        let cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
    }
}

pub(crate) fn end_stays_the_end(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let now = db.begin_read().unwrap();
    for direction in [Forward, Backward] {
        let mut cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        assert_eq!(rest(&mut *cursor).len(), 2);
        for _ in 0..3 {
            assert!(!cursor.advance().unwrap(), "{direction:?} after the end");
        }
    }
}

pub(crate) fn nothing_is_current_after_the_end(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let now = db.begin_read().unwrap();
    for direction in [Forward, Backward] {
        let mut cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        while cursor.advance().unwrap() {}
        assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
    }
}

pub(crate) fn key_and_value_stay_until_the_next_step(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let now = db.begin_read().unwrap();
    let mut cursor = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    assert!(cursor.advance().unwrap());
    put(&*db, t, b"a", b"changed");
    assert_eq!(now.get(t, b"b").unwrap().as_deref(), Some(&b"b"[..]));
    assert_eq!((cursor.key(), cursor.value()), (&b"a"[..], &b"a"[..]));
}

pub(crate) fn cursor_does_not_see_later_puts(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "d", "f"]);
    let before = db.begin_read().unwrap();
    let mut forward = before.cursor(t, KeyRange::ALL, Forward).unwrap();
    let mut backward = before.cursor(t, KeyRange::ALL, Backward).unwrap();
    assert!(forward.advance().unwrap() && backward.advance().unwrap());
    for key in [&b"a"[..], b"c", b"d", b"e", b"g"] {
        put(&*db, t, key, b"later");
    }
    let (up, down) = (rest(&mut *forward), rest(&mut *backward));
    assert_eq!(
        (texts(&up).join(""), texts(&down).join("")),
        ("df".into(), "db".into())
    );
    assert!(up.iter().chain(&down).all(|(key, value)| key == value));
}

pub(crate) fn cursor_does_not_see_later_deletes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c", "d"]);
    let before = db.begin_read().unwrap();
    let mut cursor = before.cursor(t, KeyRange::ALL, Forward).unwrap();
    assert!(cursor.advance().unwrap());
    for key in [&b"a"[..], b"b", b"c", b"d"] {
        assert!(delete(&*db, t, key));
    }
    assert_eq!(texts(&rest(&mut *cursor)), ["b", "c", "d"]);
}

pub(crate) fn cursor_made_after_a_write_sees_its_snapshot(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "c"]);
    let before = db.begin_read().unwrap();
    put(&*db, t, b"b", b"later");
    let mut cursor = before.cursor(t, KeyRange::ALL, Forward).unwrap();
    assert_eq!(texts(&rest(&mut *cursor)), ["a", "c"]);
    assert!(cursor.seek(b"b").unwrap());
    assert_eq!(cursor.key(), b"c");
}

pub(crate) fn cursor_of_a_large_tree_is_stable_under_heavy_writes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 2000, &[b'o'; 60]);
    let before = db.begin_read().unwrap();
    let mut cursor = before.cursor(t, KeyRange::ALL, Forward).unwrap();
    for n in 0..2000u32 {
        if n % 100 == 0 {
            let mut batch = Batch::new();
            for m in (n % 7..2000).step_by(7) {
                batch.put(t, &numbered(m), b"new");
                batch.delete(t, &numbered(m + 1));
            }
            db.write(&batch, QUICK).unwrap();
        }
        assert!(cursor.advance().unwrap(), "entry {n}");
        assert_eq!(cursor.key(), numbered(n));
        assert_eq!(cursor.value(), [b'o'; 60]);
    }
    assert!(!cursor.advance().unwrap());
}

pub(crate) fn several_cursors_of_one_snapshot_are_independent(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    let now = db.begin_read().unwrap();
    let mut one = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    let mut two = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    let mut three = now.cursor(t, KeyRange::ALL, Backward).unwrap();
    assert!(one.advance().unwrap());
    assert!(one.advance().unwrap());
    assert!(two.advance().unwrap());
    assert!(three.advance().unwrap());
    assert_eq!(
        (one.key(), two.key(), three.key()),
        (&b"b"[..], &b"a"[..], &b"c"[..])
    );
    drop(one);
    assert_eq!(texts(&rest(&mut *two)), ["b", "c"]);
    assert_eq!(texts(&rest(&mut *three)), ["b", "a"]);
}

pub(crate) fn cursors_of_several_trees_at_once(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_keys(&*db, t, &["a", "c"]);
    fill_keys(&*db, u, &["b", "d"]);
    let now = db.begin_read().unwrap();
    let mut in_t = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    let mut in_u = now.cursor(u, KeyRange::ALL, Forward).unwrap();
    let mut merged = Vec::new();
    while in_t.advance().unwrap() && in_u.advance().unwrap() {
        merged.push(in_t.key().to_vec());
        merged.push(in_u.key().to_vec());
    }
    assert_eq!(merged, [b"a", b"b", b"c", b"d"]);
}

pub(crate) fn point_reads_do_not_move_a_cursor(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    let now = db.begin_read().unwrap();
    let mut cursor = now.cursor(t, KeyRange::ALL, Forward).unwrap();
    assert!(cursor.advance().unwrap());
    assert_eq!(now.get(t, b"c").unwrap().as_deref(), Some(&b"c"[..]));
    assert_eq!(now.get(t, b"x").unwrap(), None);
    assert_eq!(cursor.key(), b"a");
    assert!(cursor.advance().unwrap());
    assert_eq!(cursor.key(), b"b");
}

pub(crate) fn bounds_are_copied_into_the_cursor(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c", "d"]);
    let now = db.begin_read().unwrap();
    let mut start = b"b".to_vec();
    let mut end = b"d".to_vec();
    let mut cursor = now
        .cursor(t, KeyRange::half_open(&start, &end), Forward)
        .unwrap();
    // The cursor must have copied its bounds.
    start.fill(b'z');
    end.fill(b'a');
    assert_eq!(texts(&rest(&mut *cursor)), ["b", "c"]);
}
