//! Tests that valid images decode to themselves, and that invalid ones are refused.

use std::fmt::Write as _;

use stdx::{Tape, hash};

use super::{BucketImage, HASH_LEN, Image, TreeFlags, TreeImage};
use crate::error::ErrorKind;
use crate::run::RunMeta;
use crate::types::{Extent, RunId, Seq, TreeId, UNIT};

fn key(tape: &mut Tape, after: &[u8]) -> Box<[u8]> {
    let mut key = after.to_vec();
    for _ in 0..=tape.index(5) {
        key.push(tape.byte());
    }
    key.into()
}

fn wide(tape: &mut Tape, least: u64) -> u64 {
    let bits = tape.below(33);
    least + (u64::from(tape.below(u32::MAX)) << 32 >> (bits + 20))
}

/// A run of `tree` whose keys start at `min`.
fn run(tape: &mut Tape, id: u64, tree: TreeId, min: Box<[u8]>, last_seq: u64) -> RunMeta {
    let extents: Vec<Extent> = (0..=tape.below(4))
        .map(|_| Extent {
            offset: u64::from(tape.below(1 << 30)) * UNIT,
            len: u64::from(1 + tape.below(1024)) * UNIT,
        })
        .collect();
    let room: u64 = extents.iter().map(|extent| extent.len).sum();
    let bytes = room - u64::from(tape.below(4000));
    let fence_len = 1 + tape.below(50);
    let filter_len = tape.below(40) * tape.below(2);
    let filter_offset = bytes - u64::from(filter_len);
    let pages = 1 + tape.below(1000);
    let entries = u64::from(pages) + wide(tape, 0);
    RunMeta {
        id: RunId(id),
        tree,
        extents,
        bytes,
        raw_bytes: wide(tape, 0),
        entries,
        tombstones: u64::from(tape.below(pages)),
        pages,
        max_key: key(tape, &min),
        min_key: min,
        max_seq: Seq(u64::from(tape.below(u32::MAX)) % (last_seq + 1)),
        fence_offset: filter_offset - u64::from(fence_len),
        fence_len,
        filter_offset,
        filter_len,
        seal: None,
    }
}

/// A valid image drawn from a tape.
pub(in crate::checkpoint) fn image(tape: &mut Tape) -> Image {
    let mut image = Image {
        number: 1 + u64::from(tape.below(1 << 20)),
        last_seq: Seq(wide(tape, 0)),
        log_from: Seq(0),
        next_run: RunId(1),
        next_tree: 1,
        runs: Vec::new(),
        trees: Vec::new(),
    };
    let last = image.last_seq.0;
    image.log_from = Seq(wide(tape, 0) % (last + 2));
    for number in 0..tape.below(4) {
        let id = TreeId(image.next_tree + tape.below(3));
        image.next_tree = id.0 + 1;
        let mut tree = TreeImage {
            id,
            name: format!("tree-{number}-\u{e9}"),
            flags: TreeFlags {
                ascending: tape.chance(128),
                point_lookups: tape.chance(128),
            },
            buckets: Vec::new(),
        };
        let mut lo: Box<[u8]> = Box::default();
        let mut shared: Option<RunId> = None;
        for _ in 0..=tape.below(4) {
            let mut bucket = BucketImage {
                lo: lo.clone(),
                flushed: Seq(wide(tape, 0) % (last + 1)),
                deltas: shared.into_iter().collect(),
                base: Vec::new(),
            };
            let mut min = lo.clone();
            for index in 0..tape.below(5) {
                let run_id = image.next_run.0 + u64::from(tape.below(3));
                image.next_run = RunId(run_id + 1);
                let made = run(tape, run_id, id, min.clone(), last);
                min = key(tape, &made.max_key);
                if index % 2 == 0 {
                    bucket.base.push(made.id);
                } else {
                    bucket.deltas.push(made.id);
                }
                image.runs.push(made);
            }
            shared = bucket.deltas.last().copied().filter(|_| tape.chance(100));
            lo = key(tape, &min);
            tree.buckets.push(bucket);
        }
        image.trees.push(tree);
    }
    // Drawn last, and from a tape that has ended: none.
    if tape.chance(80) {
        for run in &mut image.runs {
            let mut salt = [0; 16];
            salt.fill_with(|| tape.byte());
            let key = crypt::KeyId(1 + tape.below(3));
            run.seal = Some(crypt::Seal { key, salt });
        }
    }
    image
}

/// The bytes with a corrected hash.
fn rehashed(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() - HASH_LEN;
    let hash = hash::hash64(&bytes[..at]);
    bytes[at..].copy_from_slice(&hash.to_le_bytes());
    bytes
}

fn refused(bytes: &[u8]) -> String {
    let error = Image::decode(bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error.to_string()
}

#[test]
fn random_images_come_back() {
    for seed in 0..500_u16 {
        println!("seed {seed}");
        let length = 40 * usize::from(seed % 40);
        let image = image(&mut Tape::from_seed(seed.into(), length));
        let bytes = image.encode();
        assert_eq!(Image::decode(&bytes).unwrap(), image);
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    for seed in [3, 7, 31] {
        let bytes = image(&mut Tape::from_seed(seed, 700)).encode();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            refused(&bad);
            refused(&bytes[..at]);
        }
    }
}

#[test]
fn wrong_bytes_under_a_right_hash_are_errors_or_images_and_never_panic() {
    let mut accepted = 0;
    for seed in 0..150 {
        println!("seed {seed}");
        let bytes = image(&mut Tape::from_seed(seed, 600)).encode();
        let mut tape = Tape::from_seed(1000 + seed, 4000);
        while !tape.is_empty() {
            let mut bad = bytes.clone();
            for _ in 0..=tape.below(3) {
                let at = tape.index(bad.len() - HASH_LEN);
                bad[at] = [0, 1, 0x7f, 0xff, tape.byte()][tape.index(5)];
            }
            if tape.chance(40) {
                bad.truncate((HASH_LEN + 1).max(tape.index(bad.len())));
            }
            if let Ok(image) = Image::decode(&rehashed(bad)) {
                // An accepted image satisfies the invariants, which encoding asserts.
                let again = image.encode();
                assert_eq!(Image::decode(&again).unwrap(), image);
                accepted += 1;
            }
        }
    }
    assert!(
        accepted > 100,
        "{accepted}: most counters may have any value"
    );
}

#[test]
fn a_count_beyond_the_input_is_refused_before_memory_is_taken() {
    let image = image(&mut Tape::from_seed(5, 600));
    let bytes = image.encode();
    // The counts of trees, of runs, and of the first run's extents.
    for at in [12, 52, 56 + 80] {
        let mut bad = bytes.clone();
        bad[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let message = refused(&rehashed(bad));
        assert!(message.contains("counts more than it holds"), "{message}");
    }
}

#[test]
fn an_image_of_encrypted_and_other_runs_is_refused() {
    let seal = crypt::Seal {
        key: crypt::KeyId(1),
        salt: [3; 16],
    };
    let mut image = small();
    for run in &mut image.runs {
        run.seal = Some(seal);
    }
    assert_eq!(Image::decode(&image.encode()).unwrap(), image);
    image.runs[1].seal = None;
    let wrong = image.validate().unwrap_err();
    assert!(wrong.contains("(I5)"), "I5: {wrong}");
}

#[test]
fn a_newer_image_is_refused_by_version() {
    let mut bytes = image(&mut Tape::from_seed(5, 100)).encode();
    bytes[8] = 3;
    let error = Image::decode(&rehashed(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("version 3"), "{error}");
}

/// Two buckets that share run 1, and a base of runs 2 and 3 in the second.
pub(in crate::checkpoint) fn small() -> Image {
    let run = |id: u64, min: &[u8], max: &[u8]| RunMeta {
        id: RunId(id),
        tree: TreeId(1),
        extents: vec![Extent {
            offset: (9 + id) * UNIT,
            len: UNIT,
        }],
        bytes: 4000,
        raw_bytes: 5000,
        entries: 60,
        tombstones: 7,
        pages: 2,
        min_key: min.into(),
        max_key: max.into(),
        max_seq: Seq(80),
        fence_offset: 3800,
        fence_len: 100,
        filter_offset: 3900,
        filter_len: 100,
        seal: None,
    };
    let bucket = |lo: &[u8], deltas: &[u64], base: &[u64]| BucketImage {
        lo: lo.into(),
        flushed: Seq(90),
        deltas: deltas.iter().copied().map(RunId).collect(),
        base: base.iter().copied().map(RunId).collect(),
    };
    Image {
        number: 6,
        last_seq: Seq(100),
        log_from: Seq(91),
        next_run: RunId(4),
        next_tree: 2,
        runs: vec![run(1, b"a", b"z"), run(2, b"m", b"n"), run(3, b"o", b"z")],
        trees: vec![TreeImage {
            id: TreeId(1),
            name: "t".to_owned(),
            flags: TreeFlags {
                ascending: false,
                point_lookups: true,
            },
            buckets: vec![bucket(b"", &[1], &[]), bucket(b"m", &[1], &[2, 3])],
        }],
    }
}

fn breaks(what: &str, change: impl FnOnce(&mut Image)) {
    let mut image = small();
    assert_eq!(image.validate(), Ok(()));
    change(&mut image);
    let message = image.validate().unwrap_err();
    assert!(message.contains(what), "{message:?} should say {what:?}");
}

#[test]
fn every_rule_is_checked() {
    breaks("begin of the log", |i| i.log_from = Seq(102));
    breaks("runs out of order", |i| i.runs.swap(0, 1));
    breaks("trees out of order", |i| i.trees.push(i.trees[0].clone()));
    breaks("two trees of one name", |i| {
        i.next_tree = 3;
        i.runs.clear();
        i.trees[0].buckets = vec![small().trees[0].buckets[0].clone()];
        i.trees[0].buckets[0].deltas.clear();
        i.trees.push(i.trees[0].clone());
        i.trees[1].id = TreeId(2);
    });
    breaks("run 3, which has a number never", |i| i.next_run = RunId(3));
    breaks("newer than the image", |i| i.runs[1].max_seq = Seq(101));
    breaks("largest key is below", |i| {
        i.runs[0].max_key = b"A".as_slice().into()
    });
    breaks("too long a key", |i| {
        i.runs[0].max_key = vec![255; 1 << 15].into()
    });
    breaks("more tombstones", |i| i.runs[0].tombstones = 61);
    breaks("is empty", |i| i.runs[0].pages = 0);
    breaks("whole units", |i| i.runs[0].extents[0].len = 0);
    breaks("whole units", |i| i.runs[0].extents[0].offset += 1);
    breaks("whole units", |i| {
        i.runs[0].extents[0].offset = u64::MAX - UNIT + 1
    });
    breaks("do not end where", |i| i.runs[0].bytes = UNIT + 1);
    breaks("do not hold its bytes", |i| {
        i.runs[0].extents[0].len += UNIT
    });
    breaks("do not follow", |i| i.runs[0].fence_offset = 3801);
    breaks("do not follow", |i| i.runs[0].filter_offset = u64::MAX);
    breaks("too long a name", |i| i.trees[0].name = "n".repeat(256));
    breaks("tree 1, which has a number never", |i| i.next_tree = 1);
    breaks("cover its keys", |i| i.trees[0].buckets.clear());
    breaks("cover its keys", |i| i.trees[0].buckets.swap(0, 1));
    breaks("cover its keys", |i| {
        i.trees[0].buckets[0].lo = b"b".as_slice().into()
    });
    breaks("impossible bucket", |i| {
        i.trees[0].buckets[0].flushed = Seq(101)
    });
    breaks("names run 9", |i| i.trees[0].buckets[0].base.push(RunId(9)));
    breaks("run 1 twice", |i| i.trees[0].buckets[0].base.push(RunId(1)));
    breaks("out of order in a base", |i| {
        i.trees[0].buckets[1].base.swap(0, 1)
    });
    breaks("run 2, which no bucket", |i| {
        i.trees[0].buckets[1].base.truncate(0)
    });
    breaks("of another tree", |i| i.runs[1].tree = TreeId(2));
}

/// As in docs/format.md. When this changes, so does the version.
#[test]
fn the_bytes_of_a_small_image_are_these() {
    let mut text = String::new();
    for line in small().encode().chunks(32) {
        for byte in line {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    assert_eq!(text, include_str!("../testdata/image.hex"), "\n{text}");
}
