//! Every set of versions of a key, of open snapshots and every `now` in a small world: what each
//! reader sees must not change, and no version may be kept that no reader needs.

use super::*;

/// Sequence numbers of the small world are below this.
const WORLD: u64 = 6;

/// The versions of one key, newest first, by the bits of `seqs`; deletes by those of `deletes`.
fn versions(seqs: u64, deletes: u64) -> Vec<Version> {
    let present = (0..WORLD).rev().filter(|seq| seqs >> seq & 1 == 1);
    present
        .map(|seq| Version {
            key: b"key".to_vec(),
            seq: Seq(seq),
            op: [Op::Put, Op::Delete][usize::from(deletes >> seq & 1 == 1)],
            value: vec![u8::try_from(seq).unwrap()],
        })
        .collect()
}

/// What a reader sees: the value of the newest version at or below its snapshot, if that is a put.
/// The second result states whether it would read on below, at a tombstone or without a version.
fn seen(versions: &[Version], reader: Seq) -> Option<&Version> {
    versions.iter().find(|version| version.seq <= reader)
}

fn judged(list: &[Version], snapshots: &[Seq], now: Seq, bottom: bool) -> Vec<Version> {
    let mut retention = Retention::new(snapshots.to_vec(), now, bottom);
    let kept = list.iter().filter_map(|version| {
        let seq = retention.keep(version.entry())?;
        Some(Version {
            seq,
            ..version.clone()
        })
    });
    kept.collect()
}

fn check(list: &[Version], snapshots: &[Seq], now: Seq, bottom: bool) {
    let kept = judged(list, snapshots, now, bottom);
    let context = || format!("{list:?} {snapshots:?} now {now} bottom {bottom}: {kept:?}");
    let falls = |a: &Version, b: &Version| b.seq < a.seq;
    assert!(kept.is_sorted_by(falls), "{}", context());
    // All readers that exist or can exist later.
    let later = (now.0..WORLD + 2).map(Seq);
    let readers: Vec<Seq> = snapshots.iter().copied().chain(later).collect();
    for &reader in &readers {
        let (before, after) = (seen(list, reader), seen(&kept, reader));
        let same = match (before, after) {
            (Some(before), Some(after)) => before.value == after.value && before.op == after.op,
            // A tombstone at the bottom hides nothing.
            (Some(before), None) => bottom && before.op == Op::Delete,
            (None, None) => true,
            (None, Some(_)) => false,
        };
        assert!(same, "reader {reader}: {}", context());
    }
    let oldest = snapshots.iter().copied().chain([now]).min().unwrap();
    for version in &kept {
        let original = list
            .iter()
            .find(|other| other.value == version.value)
            .unwrap();
        let ancient = original.seq <= oldest;
        let expected = if ancient { Seq::ANCIENT } else { original.seq };
        assert_eq!(version.seq, expected, "I3: {}", context());
        let mut needed = readers.iter().filter_map(|&reader| seen(list, reader));
        let needed = now < original.seq || needed.any(|other| other.seq == original.seq);
        assert!(needed, "I2: {}", context());
        let idle = bottom && ancient && version.op == Op::Delete;
        assert!(!idle, "I4: {}", context());
    }
    for version in list.iter().filter(|version| now < version.seq) {
        assert!(kept.contains(version), "I1: {}", context());
    }
}

#[test]
fn every_small_world_keeps_what_its_readers_see_and_nothing_else() {
    let worlds = 1 << WORLD;
    for seqs in 0..worlds {
        for deletes in (0..worlds).filter(|deletes| deletes & !seqs == 0) {
            let list = versions(seqs, deletes);
            for live in 0..worlds {
                let snapshots: Vec<Seq> = (0..WORLD)
                    .filter(|seq| live >> seq & 1 == 1)
                    .map(Seq)
                    .collect();
                for now in (0..WORLD).map(Seq) {
                    check(&list, &snapshots, now, false);
                    check(&list, &snapshots, now, true);
                }
            }
        }
    }
}

#[test]
fn judging_again_changes_nothing_more() {
    for seqs in 0..1 << WORLD {
        let list = versions(seqs, 0);
        let (snapshots, now) = ([Seq(2), Seq(4)], Seq(5));
        let once = judged(&list, &snapshots, now, false);
        assert_eq!(judged(&once, &snapshots, now, false), once);
    }
}

#[test]
fn keys_are_judged_apart() {
    let mut retention = Retention::new(vec![], Seq(9), true);
    let mut verdict = |key: &[u8], seq, op| {
        retention.keep(Entry {
            key,
            seq: Seq(seq),
            op,
            value: &[],
        })
    };
    assert_eq!(verdict(b"", 4, Op::Put), Some(Seq(0)));
    assert_eq!(verdict(b"", 3, Op::Put), None);
    assert_eq!(verdict(b"a", 5, Op::Delete), None);
    assert_eq!(verdict(b"a", 4, Op::Put), None);
    assert_eq!(verdict(b"b", 10, Op::Put), Some(Seq(10)));
    assert_eq!(verdict(b"b", 4, Op::Put), Some(Seq(0)));
}
