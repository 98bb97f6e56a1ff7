//! Merges on a disk that has room for one of them, or for none.

use std::mem;
use std::path::Path;
use std::sync::Arc;

use sim::{SimOptions, SimVfs};
use stdx::rng::Rng;
use vfs::Vfs;

use super::merge::MergeJob;
use super::pick::Zeal;
use super::room_tests::fill;
use crate::db::Core;
use crate::error::{ErrorKind, Result};
use crate::options::{Codec, Options};
use crate::space::{Margin, Purpose};
use crate::types::{Batch, Durability, Extent, TreeId, TreeOptions, UNIT};

/// Rows of a tree: a merge of them writes several pieces.
const ROWS: u32 = 24_000;
/// Bytes of a value.
const VALUE: usize = 100;

/// A store of two trees, each one bucket that is worth merging, on a disk that is full. Its merges
/// take several slices.
struct Town {
    core: Arc<Core>,
    trees: [TreeId; 2],
}

impl Town {
    fn new() -> Town {
        let disk = SimVfs::new(SimOptions::default());
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        let options = Options::default()
            .with_memory(64 << 20)
            .with_bucket(8 << 20)
            .with_codec(Codec::None)
            .with_delta_codec(Codec::None)
            .with_threads(0)
            .with_seed(1);
        let (core, _) = crate::db::open(&vfs, Path::new("/store"), &options).unwrap();
        let trees = ["a", "b"].map(|name| core.create_tree(name, TreeOptions::default()).unwrap());
        let town = Town {
            core: Arc::new(core),
            trees,
        };
        for part in 0..2 {
            for tree in trees {
                town.write(tree, (part..ROWS).step_by(2), VALUE);
            }
            town.core.flush().unwrap();
        }
        town.core.checkpoint().unwrap();
        let length = town.core.space.backed() + (16 << 20);
        town.core.runs.grow(length).unwrap();
        fill(&disk, "run.allocate");
        town
    }

    fn write(&self, tree: TreeId, numbers: impl Iterator<Item = u32>, bytes: usize) {
        let mut batch = Batch::new();
        for number in numbers {
            let mut value = vec![0; bytes];
            Rng::new(u64::from(number)).fill(&mut value);
            match bytes {
                0 => batch.delete(tree, &number.to_be_bytes()),
                _ => batch.put(tree, &number.to_be_bytes(), &value),
            }
        }
        self.core.write(&batch, Durability::None).unwrap();
    }

    /// About what a merge of one tree writes.
    fn one(&self) -> u64 {
        let buckets = self.core.buckets();
        let bytes = buckets.iter().map(|(_, bucket)| {
            let state = bucket.state();
            state.delta_bytes() + state.base_bytes()
        });
        bytes.max().unwrap()
    }

    /// Leave `left` bytes of room beside what is kept for flushes.
    fn leave(&self, left: u64) -> Vec<Extent> {
        self.core.release_excess();
        let mut taken = Vec::new();
        while let Ok(extent) = self.core.space.take(Purpose::Other, UNIT) {
            taken.push(extent);
        }
        let units = usize::try_from(left / UNIT).unwrap();
        assert!(units < taken.len(), "there is less room");
        let free = taken.split_off(taken.len() - units);
        self.core.space.give_back(Purpose::Other, &free);
        taken
    }

    fn merge(&self) -> Result<bool> {
        let merged = self.core.merge_slice(|| self.core.pick_merge(Zeal::Idle));
        self.core.or_free(merged)
    }

    /// A slice by a thread that holds `hand`, which other threads do not continue meanwhile.
    fn merge_with(&self, hand: &mut Vec<MergeJob>) -> Result<bool> {
        let paused = &self.core.merges.paused;
        let others = mem::replace(&mut *paused.lock(), mem::take(hand));
        let merged = self.merge();
        *hand = mem::replace(&mut *paused.lock(), others);
        merged
    }

    fn merges(&self) -> u64 {
        self.core.counters.merges.get()
    }

    fn written(&self) -> u64 {
        self.core.runs.traffic().merge_write.bytes()
    }
}

#[test]
fn of_two_merges_with_room_for_one_each_completes_in_its_turn() {
    let town = Town::new();
    let one = town.one();
    assert!(2 << 20 < one, "several pieces: {one} bytes");
    let taken = town.leave(one + one / 5);
    let mut hands = [Vec::new(), Vec::new()];
    for _ in 0..100 {
        for hand in &mut hands {
            town.merge_with(hand).unwrap();
        }
    }
    assert_eq!(town.merges(), 2);
    assert_eq!(town.core.merges.waiting_bytes(), 0, "all is merged");
    let written = town.written();
    assert!(written <= 2 * one + one / 5, "{written} bytes, {one} each");
    assert!(!town.core.space.is_claimed(), "no claim is left");
    town.core.space.give_back(Purpose::Other, &taken);
    town.core.verify().unwrap();
}

#[test]
fn two_merges_with_room_for_both_run_at_once() {
    let town = Town::new();
    let _taken = town.leave(2 * (town.one() + town.one() / 5));
    let mut hands = [Vec::new(), Vec::new()];
    for hand in &mut hands {
        assert!(town.merge_with(hand).unwrap());
    }
    assert!(hands.iter().all(|hand| hand.len() == 1), "both have begun");
}

#[test]
fn a_merge_that_found_too_little_room_does_not_write_it_full_again() {
    let town = Town::new();
    // Nothing is left of what is deleted, but for now this is in memory.
    let [first, _] = town.trees;
    town.write(first, (0..ROWS).filter(|number| number % 4 != 0), 0);
    let half = town.one() / 2;
    let mut taken = town.leave(half);
    let tries = || {
        for _ in 0..50 {
            let full = town.merge().map_err(|error| error.kind());
            assert!(matches!(full, Ok(_) | Err(ErrorKind::Full)), "{full:?}");
        }
        town.written()
    };
    let written = tries();
    assert!(0 < written && written <= 2 * half, "once each: {written}");
    assert_eq!(tries(), written, "nothing has changed");
    assert_eq!(town.merges(), 0);

    town.core.flush().unwrap();
    tries();
    assert!(1 <= town.merges(), "what was deleted is merged");
    town.core
        .space
        .give_back(Purpose::Other, &mem::take(&mut taken));
    tries();
    assert_eq!(town.core.merges.waiting_bytes(), 0, "there is room");
    town.core.verify().unwrap();
}

/// A commit that puts would else take the room on which a merge in progress counts.
#[test]
fn puts_leave_what_merges_have_claimed() {
    let town = Town::new();
    let _taken = town.leave(town.one() + town.one() / 5);
    let mut hand = Vec::new();
    assert!(town.merge_with(&mut hand).unwrap());
    let space = &town.core.space;
    let more = town.one() / 5;
    let kept = space.kept() + more;
    assert!(space.keep(kept, Margin::AndClaims(0), 0).is_err());
    assert!(space.take(Purpose::Other, more).is_err());
    while !hand.is_empty() {
        town.merge_with(&mut hand).unwrap();
    }
    assert_eq!(town.merges(), 1);
}
