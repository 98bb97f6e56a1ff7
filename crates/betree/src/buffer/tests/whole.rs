//! Single properties.

use super::*;

#[test]
fn an_empty_buffer_holds_no_memory() {
    let buffer = Buffer::new(3);
    assert_eq!(buffer.bytes(), 0);
    assert_eq!((buffer.first_seq(), buffer.last_seq()), (None, None));
    assert!(size_of::<Buffer>() <= 256, "{}", size_of::<Buffer>());
    buffer.freeze();
    buffer.freeze();
    assert_eq!(drain(buffer.sorted()), []);
    assert_eq!(buffer.get(b"key", Seq::MAX, &mut Vec::new()), None);
}

#[test]
fn memory_per_small_key_is_about_its_bytes_and_16() {
    let buffer = Buffer::new(0);
    let count = 100_000_u64;
    for n in 0..count {
        let mut key = [0; 24];
        key[..8].copy_from_slice(&stdx::rng::mix64(n).to_be_bytes());
        buffer.push(Seq(n / 100), Op::Put, &key, &[]);
    }
    assert_eq!(buffer.entries() as u64, count);
    assert_eq!(buffer.first_seq(), Some(Seq(0)));
    assert_eq!(buffer.last_seq(), Some(Seq(count / 100 - 1)));
    let each = buffer.bytes() as f64 / count as f64;
    assert!((36.0..44.0).contains(&each), "{each} bytes");
    let before = buffer.bytes();
    assert_eq!(buffer.get(&[9; 24], Seq::MAX, &mut Vec::new()), None);
    buffer.freeze();
    let _ = buffer.sorted();
    assert_eq!(
        buffer.bytes(),
        before,
        "I5: reads and a freeze change no bytes"
    );
}

#[test]
fn entries_of_all_sizes_come_back_whole() {
    let buffer = Buffer::new(0);
    let mut expected = Vec::new();
    for (n, len) in [0, 1, 255, 256, 24 << 10, 25 << 10, 65_535, 65_536, 3 << 20]
        .into_iter()
        .enumerate()
    {
        for key_len in [2, 31, 32, 5_000, 32_767] {
            let mut key = vec![3; key_len];
            key[0] = u8::try_from(n).unwrap();
            let version = Version {
                key,
                seq: Seq(9 + n as u64),
                op: Op::Put,
                value: vec![u8::try_from(n).unwrap(); len],
            };
            buffer.push(version.seq, version.op, &version.key, &version.value);
            expected.push(version);
        }
    }
    let payload: usize = expected.iter().map(|v| v.key.len() + v.value.len()).sum();
    assert!(payload <= buffer.bytes());
    assert!(buffer.bytes() < payload * 3 / 2);
    for version in &expected {
        let mut value = Vec::new();
        let found = buffer.get(&version.key, Seq::MAX, &mut value);
        assert_eq!(found, Some((version.seq, Op::Put)));
        assert!(value == version.value);
    }
    buffer.freeze();
    assert!(drain(buffer.sorted()) == expected);
}

#[test]
fn windows_of_large_values_stop_early_but_hold_an_entry() {
    let buffer = Buffer::new(0);
    for n in 0..5_u8 {
        buffer.push(Seq(1), Op::Put, &[n], &vec![n; 1 << 20]);
    }
    let mut window = Window::default();
    let all = Bound::Unbounded;
    buffer.window(Direction::Forward, all, all, Seq::MAX, 100, &mut window);
    assert_eq!(window.len(), 1);
    assert!(!window.exhausted());
}

#[test]
fn crossed_bounds_hold_nothing() {
    let buffer = Buffer::new(0);
    buffer.push(Seq(1), Op::Put, b"b", b"");
    let mut window = Window::default();
    let mut len = |direction, from: &[u8], to: &[u8]| {
        let (from, to) = (Bound::Included(from), Bound::Included(to));
        buffer.window(direction, from, to, Seq::MAX, 9, &mut window);
        assert!(window.exhausted());
        window.len()
    };
    assert_eq!(len(Direction::Forward, b"a", b"c"), 1);
    assert_eq!(len(Direction::Forward, b"c", b"a"), 0);
    assert_eq!(len(Direction::Backward, b"c", b"a"), 1);
    assert_eq!(len(Direction::Backward, b"a", b"c"), 0);
}

#[test]
fn many_versions_of_long_equal_keys_sort_without_deep_recursion() {
    let buffer = Buffer::new(0);
    for n in 0..500_u64 {
        let len = 32_000 - usize::try_from(n % 3).unwrap();
        buffer.push(Seq(n), Op::Put, &vec![0; len], &n.to_be_bytes());
    }
    buffer.freeze();
    let sorted = drain(buffer.sorted());
    assert_eq!(sorted.len(), 500);
    let ordered = |a: &Version, b: &Version| a.key < b.key || (a.key == b.key && a.seq > b.seq);
    assert!(sorted.is_sorted_by(ordered));
}

#[test]
#[should_panic(expected = "I3")]
fn a_frozen_buffer_takes_no_writes() {
    let buffer = Buffer::new(0);
    buffer.freeze();
    buffer.push(Seq(1), Op::Put, b"a", b"");
}

#[test]
#[should_panic(expected = "I1")]
fn seqs_do_not_fall() {
    let buffer = Buffer::new(0);
    buffer.push(Seq(2), Op::Put, b"a", b"");
    buffer.push(Seq(1), Op::Put, b"b", b"");
}
