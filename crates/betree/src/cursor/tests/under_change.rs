//! Cursors that stay open while the tree changes below them.

use std::ops::Bound;
use std::sync::Arc;
use std::thread;

use stdx::rng::Rng;

use super::super::{At, Buckets, MergeCursor, get};
use super::town::{Change, Town, within};
use crate::buffer::WriteSet;
use crate::cursor::Own;
use crate::types::Direction::{self, Backward, Forward};
use crate::types::{Op, Seq};

/// A cursor, and the entries that it must return.
struct Walker<'a> {
    cursor: MergeCursor<'a>,
    snapshot: Seq,
    direction: Direction,
    expected: Vec<(Vec<u8>, Vec<u8>)>,
    /// Index of the next entry in `expected`.
    next: usize,
    stands: bool,
}

/// A key of random shape; keys repeat often.
fn some_key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => format!("{:04}", rng.below(300)).into_bytes(),
        1 => format!("shared/prefix/{:03}", rng.below(200)).into_bytes(),
        2 => [rng.below(256).to_be_bytes()[7]; 3][rng.index(3)..].to_vec(),
        _ => rng.below(1 << 12).to_be_bytes().to_vec(),
    }
}

fn some_bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(4) {
        0 => Bound::Included(some_key(rng)),
        1 => Bound::Excluded(some_key(rng)),
        _ => Bound::Unbounded,
    }
}

/// Changes of distinct keys.
fn some_changes(rng: &mut Rng, most: u64) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for _ in 0..rng.below(most + 1) {
        let key = some_key(rng);
        if changes.iter().any(|change| change.1 == key) {
            continue;
        }
        let mut value = vec![0; rng.index(20)];
        rng.fill(&mut value);
        match rng.chance(0.3) {
            true => changes.push((Op::Delete, key, Vec::new())),
            false => changes.push((Op::Put, key, value)),
        }
    }
    changes
}

fn write_set(changes: &[Change]) -> WriteSet {
    let mut own = WriteSet::new();
    for (op, key, value) in changes {
        own.push(*op, key, value, true);
    }
    own
}

impl<'a> Walker<'a> {
    fn new(
        rng: &mut Rng,
        town: &Arc<Town>,
        snapshot: Seq,
        (own, changes): &'a (WriteSet, Vec<Change>),
    ) -> Walker<'a> {
        let direction = if rng.chance(0.5) { Forward } else { Backward };
        let (start, end) = (some_bound(rng), some_bound(rng));
        let (low, high) = (
            start.as_ref().map(Vec::as_slice),
            end.as_ref().map(Vec::as_slice),
        );
        let own = rng.chance(0.5).then_some(own);
        let seen = if own.is_some() {
            changes.as_slice()
        } else {
            &[]
        };
        let mut expected = within(&town.contents(snapshot, seen), low, high);
        if direction == Backward {
            expected.reverse();
        }
        let buckets: Arc<Town> = Arc::clone(town);
        Walker {
            cursor: MergeCursor::new(buckets, own.map(Own::from), snapshot, low, high, direction),
            snapshot,
            direction,
            expected,
            next: 0,
            stands: false,
        }
    }

    /// walk: I4, what it stands on has not changed while it rested.
    fn rests(&self) {
        let on = self.next.checked_sub(1).filter(|_| self.stands);
        let on = on.and_then(|on| self.expected.get(on));
        let (key, value) = on.map_or((&[][..], &[][..]), |(key, value)| (key, value));
        assert_eq!((self.cursor.key(), self.cursor.value()), (key, value));
    }

    fn advance(&mut self) {
        let found = self.cursor.advance().unwrap();
        self.check(found);
    }

    fn seek(&mut self, rng: &mut Rng) {
        let key = some_key(rng);
        let passed = |(found, _): &&(Vec<u8>, Vec<u8>)| match self.direction {
            Forward => **found < *key,
            Backward => *key < **found,
        };
        self.next = self.expected.iter().take_while(passed).count();
        let found = self.cursor.seek(&key).unwrap();
        self.check(found);
    }

    fn check(&mut self, found: bool) {
        let (key, value) = (self.cursor.key(), self.cursor.value());
        self.stands = found;
        let Some(expected) = self.expected.get(self.next) else {
            assert!(!found, "{:?} beyond the end", key.escape_ascii());
            assert_eq!((key, value), (&b""[..], &b""[..]));
            return;
        };
        assert!(found, "at the end before {expected:?}");
        assert_eq!(
            (key, value),
            (&*expected.0, &*expected.1),
            "{:?} at {}",
            self.direction,
            self.snapshot
        );
        self.next += 1;
    }
}

/// One random change of the tree while cursors are open.
fn change(rng: &mut Rng, town: &Town, oldest: Seq) {
    let bucket = rng.index(town.buckets());
    match rng.below(12) {
        0..4 => drop(town.commit(&some_changes(rng, 60))),
        4..6 => town.freeze(bucket),
        6..9 => town.flush(bucket, oldest),
        9..11 => town.merge(bucket, oldest, 1 + rng.index(4)),
        _ if town.buckets() < 12 => {
            let mut key = some_key(rng);
            if rng.chance(0.3) {
                key.extend_from_slice(&[0, 255][..rng.index(3)]);
            }
            (0..town.buckets()).for_each(|bucket| town.split(bucket, &key));
        }
        _ => {}
    }
}

fn check_gets(rng: &mut Rng, town: &Town, snapshot: Seq) {
    let contents = town.contents(snapshot, &[]);
    let mut value = Vec::new();
    for _ in 0..10 {
        let key = some_key(rng);
        let view = town.view(At::Key(&key)).unwrap().unwrap();
        let found = get(&view, &key, snapshot, &mut value).unwrap();
        assert_eq!(
            found.then_some(&value),
            contents.get(&key),
            "{:?}",
            key.escape_ascii()
        );
        assert!(found || value.is_empty());
    }
}

fn run(seed: u64, rounds: usize) {
    let mut rng = Rng::new(seed);
    let town = Town::new();
    let owns: Vec<(WriteSet, Vec<Change>)> = (0..4)
        .map(|n| {
            let changes = some_changes(&mut rng, n * 30);
            (write_set(&changes), changes)
        })
        .collect();
    let mut walkers: Vec<Walker<'_>> = Vec::new();
    let mut now = Seq(0);
    for _ in 0..rounds {
        let oldest = walkers
            .iter()
            .map(|walker| walker.snapshot)
            .min()
            .unwrap_or(now);
        change(&mut rng, &town, oldest);
        now = town.now();
        match rng.below(6) {
            0 if walkers.len() < 5 => {
                let own = &owns[rng.index(owns.len())];
                walkers.push(Walker::new(&mut rng, &town, now, own));
            }
            1 if !walkers.is_empty() => drop(walkers.swap_remove(rng.index(walkers.len()))),
            _ => {}
        }
        for walker in &mut walkers {
            walker.rests();
            let steps = [0, 1, 3, 40, 1000][rng.index(5)];
            (0..steps).for_each(|_| walker.advance());
            if rng.chance(0.1) {
                walker.seek(&mut rng);
            }
        }
        check_gets(&mut rng, &town, now);
    }
}

#[test]
fn cursors_see_their_snapshot_whatever_happens() {
    for seed in 0..60 {
        println!("seed {seed}");
        run(seed, 120);
    }
}

#[test]
fn cursors_on_other_threads_see_their_snapshot() {
    let town = Town::new();
    let owns = [(WriteSet::new(), Vec::new())];
    thread::scope(|scope| {
        for reader in 0..2 {
            let (town, owns) = (&town, &owns);
            scope.spawn(move || {
                let mut rng = Rng::new(1000 + reader);
                for _ in 0..60 {
                    let mut walker = Walker::new(&mut rng, town, town.now(), &owns[0]);
                    (0..=walker.expected.len()).for_each(|_| walker.advance());
                    walker.seek(&mut rng);
                }
            });
        }
        let mut rng = Rng::new(7);
        // No version is dropped: readers take their snapshots at any time.
        (0..400).for_each(|_| change(&mut rng, &town, Seq::ANCIENT));
    });
}
