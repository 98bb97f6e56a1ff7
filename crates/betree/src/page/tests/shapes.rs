//! I1, I2 and I4: what was pushed comes back.

use stdx::tape::Tape;

use super::*;

#[test]
fn pages_of_all_shapes_come_back() {
    for seed in 0..400 {
        let mut tape = Tape::from_seed(seed, 200_000);
        let entries = model::entries(&mut tape);
        println!("seed {seed}: {} entries", entries.len());
        check(&entries);
    }
}

#[test]
fn the_smallest_pages_come_back() {
    check(&[Owned::put(b"", 0, b"")]);
    check(&[Owned::put(b"", u64::MAX, b"")]);
    check(&[Owned::delete(b"", 0)]);
    check(&[Owned::delete(b"key", 5)]);
    check(&[Owned::put(b"", 0, b""), Owned::put(b"\0", 0, b"")]);
}

#[test]
fn many_versions_of_one_key_come_back() {
    for key in [&b""[..], b"k", &[7; 300]] {
        let versions: Vec<Owned> = (0..1000)
            .rev()
            .map(|seq| match seq % 7 {
                0 => Owned::delete(key, seq),
                _ => Owned::put(key, seq, &seq.to_be_bytes()),
            })
            .collect();
        check(&versions);
    }
}

#[test]
fn one_huge_entry_comes_back() {
    let key = [0xAB; (32 << 10) - 1];
    let mut value = vec![0x5A; 64 << 20];
    check(&[Owned::put(&key, 9, &value)]);
    let mut rng = stdx::rng::Rng::new(3);
    rng.fill(&mut value);
    check(&[Owned::put(b"a", 0, b"small"), Owned::put(&key, 9, &value)]);
}

#[test]
fn a_page_that_shrinks_to_nothing_is_filled_up_and_comes_back() {
    let versions: Vec<Owned> = (0..100_000)
        .rev()
        .map(|seq| Owned::put(b"k", seq, b""))
        .collect();
    check(&versions);
    let keys: Vec<Owned> = (0..30_000u32)
        .map(|n| Owned::put(&[&[3; 252][..], &n.to_be_bytes()].concat(), 0, &[0; 300]))
        .collect();
    check(&keys);
}

#[test]
fn the_bytes_depend_on_the_entries_alone() {
    for codec in codecs() {
        let mut one = PageBuilder::new(codec);
        let mut all = Vec::new();
        for seed in 0..40 {
            let entries = model::entries(&mut Tape::from_seed(seed, 50_000));
            entries.iter().for_each(|entry| one.push(entry.borrow()));
            assert_eq!(one.len(), entries.len());
            assert_eq!(one.first_key(), entries[0].key);
            assert_eq!(one.last_key(), entries[entries.len() - 1].key);
            let begin = all.len();
            one.finish(IDENT, &mut all);
            assert!(one.is_empty());
            assert_eq!(one.raw_len(), 0);
            let alone = encode(codec, &entries);
            assert_eq!(all[begin..], alone, "{codec}, seed {seed}");
        }
    }
}

#[test]
fn a_page_after_a_huge_one_has_the_bytes_it_always_has() {
    let small: Vec<Owned> = (0..300u32)
        .map(|n| {
            Owned::put(
                &n.to_be_bytes(),
                0,
                format!("value {} of {n}", n % 7).as_bytes(),
            )
        })
        .collect();
    for codec in codecs() {
        let mut builder = PageBuilder::new(codec);
        let value: Vec<u8> = (0..6_000_000u32)
            .map(|n| (n / 3).to_le_bytes()[0])
            .collect();
        builder.push(Owned::put(b"huge", 1, &value).borrow());
        builder.finish(IDENT, &mut Vec::new());
        let mut out = Vec::new();
        small.iter().for_each(|entry| builder.push(entry.borrow()));
        builder.finish(IDENT, &mut out);
        assert_eq!(out, encode(codec, &small), "{codec}");
    }
}

#[test]
fn what_values_have_in_common_is_stored_once() {
    for width in [8, 9, 100, 1000] {
        for varying in [0..0, 0..1, 3..4, width - 1..width, 2..width / 2] {
            let rows: Vec<Owned> = (0..200u32)
                .map(|n| {
                    let mut value = vec![0xA5; width];
                    let noise = n.wrapping_mul(0x9E37_79B9).to_le_bytes();
                    value[varying.clone()].fill(noise[3]);
                    Owned::put(&n.to_be_bytes(), 0, &value)
                })
                .collect();
            check(&rows);
            let stored = encode(Codec::None, &rows);
            let most = 200 * (varying.len() + 3) + 200;
            assert!(
                stored.len() <= most,
                "{} of {width}: {}",
                varying.len(),
                stored.len()
            );
        }
    }
}

#[test]
fn random_keys_take_little_more_than_their_entropy() {
    let mut rng = stdx::rng::Rng::new(1);
    let gap = 1.0 / 10e6;
    let entries: Vec<Owned> = (0..800u64)
        .map(|n| {
            let lead = 0.6 + n as f64 * gap + rng.unit() * gap;
            let customer = u32::try_from(rng.below(100_000)).unwrap().to_be_bytes();
            let row = rng.below(10_000_000).to_be_bytes();
            Owned::put(&[&lead.to_be_bytes()[..], &customer, &row].concat(), 0, b"")
        })
        .collect();
    let stored = encode(Codec::Lz4, &entries);
    assert!(stored.len() <= 10 * entries.len(), "{} bytes", stored.len());
}
