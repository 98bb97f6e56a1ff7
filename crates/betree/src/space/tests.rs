//! Tests of the allocator against a map of units, and of its single rules.

use std::io;

use stdx::{Rng, Tape};

use super::{Epoch, Margin, Owner, Purpose, Space};
use crate::error::ErrorKind;
use crate::types::{Extent, RunId, UNIT};

const START: u64 = 4 * UNIT;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Free,
    Used,
    Pending(Epoch),
    Reserved,
}

/// The state of each unit from `START` on; the last is never free.
struct Model {
    units: Vec<Unit>,
    backed: usize,
    epoch: u64,
}

impl Model {
    fn fit(&self, len: usize) -> Option<usize> {
        let mut free = 0;
        let ends = self.units.iter().position(|unit| {
            free = if *unit == Unit::Free { free + 1 } else { 0 };
            free == len
        });
        ends.map(|last| last + 1 - len)
    }

    fn set(&mut self, at: usize, len: usize, unit: Unit) {
        let end = self.units.len().max(at + len);
        self.units.resize(end, Unit::Free);
        self.units[at..at + len].fill(unit);
        while self.units.last() == Some(&Unit::Free) {
            self.units.pop();
        }
    }

    fn allocate(&mut self, len: usize) -> Extent {
        let at = self.fit(len).unwrap_or(self.units.len());
        self.set(at, len, Unit::Used);
        extent(at, len)
    }

    fn reserve(&self) -> Option<(usize, usize)> {
        let at = self.units.iter().position(|u| *u == Unit::Reserved)?;
        let len = self.units.iter().filter(|u| **u == Unit::Reserved).count();
        Some((at, len))
    }

    fn allocate_reserved(&mut self, len: usize) -> Extent {
        let fit = self.fit(len).filter(|at| at + len <= self.backed);
        let end = self.units.len();
        let at = fit.or((end + len <= self.backed).then_some(end));
        let at = at.or_else(|| {
            let (at, reserve) = self.reserve()?;
            (len <= reserve).then_some(at)
        });
        let Some(at) = at else {
            return self.allocate(len);
        };
        self.set(at, len, Unit::Used);
        extent(at, len)
    }

    fn set_reserve(&mut self, len: usize) {
        let old = self.reserve();
        if let Some((at, old)) = old
            && len <= old
        {
            return self.set(at + len, old - len, Unit::Free);
        }
        if len == 0 {
            return;
        }
        if let Some((at, old)) = old {
            self.set(at, old, Unit::Free);
        }
        let fit = self.fit(len).filter(|at| at + len <= self.backed);
        let end = self.units.len();
        if fit.is_none() && self.backed < end + len {
            self.backed = end + len;
        }
        let at = self.fit(len).filter(|at| at + len <= self.backed);
        self.set(at.unwrap_or(end), len, Unit::Reserved);
    }

    fn durable(&mut self, epoch: Epoch) {
        for unit in &mut self.units {
            if matches!(unit, Unit::Pending(waits) if *waits <= epoch) {
                *unit = Unit::Free;
            }
        }
        self.set(0, 0, Unit::Free);
    }

    fn extents(&self, what: impl Fn(Unit) -> bool) -> Vec<Extent> {
        let mut found: Vec<Extent> = Vec::new();
        for (at, &unit) in self.units.iter().enumerate() {
            match found.last_mut() {
                Some(last) if what(unit) && last.end() == extent(at, 1).offset => last.len += UNIT,
                _ if what(unit) => found.push(extent(at, 1)),
                _ => {}
            }
        }
        found
    }
}

fn extent(at: usize, len: usize) -> Extent {
    Extent {
        offset: START + at as u64 * UNIT,
        len: len as u64 * UNIT,
    }
}

fn sum(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.len).sum()
}

/// A length in units; long only if the tape says so.
fn length(tape: &mut Tape, long: bool) -> usize {
    match (long, tape.below(8)) {
        (true, 0) => 1000 + tape.index(60),
        (true, 1) => 1 + tape.index(3000),
        _ => 1 + tape.index(9),
    }
}

struct Pair {
    space: Space,
    model: Model,
    held: Vec<Extent>,
    begun: Vec<Epoch>,
}

fn step(pair: &mut Pair, tape: &mut Tape, long: bool) {
    let Pair {
        space,
        model,
        held,
        begun,
    } = pair;
    let give_up = |held: &mut Vec<Extent>, tape: &mut Tape| {
        let all = held.swap_remove(tape.index(held.len()));
        let units = usize::try_from(all.len / UNIT).unwrap();
        let keep = if tape.chance(60) {
            tape.index(units)
        } else {
            0
        };
        let at = usize::try_from((all.offset - START) / UNIT).unwrap();
        if keep > 0 {
            held.push(extent(at, keep));
        }
        (at + keep, units - keep)
    };
    match tape.below(12) {
        0..=3 => {
            let len = length(tape, long);
            let given = space.allocate(len as u64 * UNIT - u64::from(tape.below(4096)));
            assert_eq!(given, model.allocate(len));
            held.push(given);
        }
        4 | 5 if !held.is_empty() => {
            let (at, len) = give_up(held, tape);
            space.release(&[extent(at, len)]);
            model.set(at, len, Unit::Pending(Epoch(model.epoch)));
        }
        6 | 7 if !held.is_empty() => {
            let (at, len) = give_up(held, tape);
            space.discard(&[extent(at, len)]);
            model.set(at, len, Unit::Free);
        }
        8 => {
            begun.push(space.begin_checkpoint());
            assert_eq!(begun.last(), Some(&Epoch(model.epoch)));
            model.epoch += 1;
        }
        9 if !begun.is_empty() => {
            // In order, as checkpoints are; some fail and are never declared durable.
            let epoch = begun.remove(tape.index(begun.len()));
            begun.retain(|other| epoch < *other);
            space.checkpoint_durable(epoch);
            model.durable(epoch);
        }
        10 => {
            let len = length(tape, long) * tape.index(3);
            let free = |_, _| Ok(());
            space.set_reserve(len as u64 * UNIT, free).unwrap();
            model.set_reserve(len);
        }
        11 => {
            let len = length(tape, long);
            let given = space.allocate_reserved(len as u64 * UNIT);
            assert_eq!(given, model.allocate_reserved(len));
            held.push(given);
        }
        _ => {}
    }
}

fn agree(space: &Space, model: &Model) {
    let free = model.extents(|unit| unit == Unit::Free);
    assert_eq!(space.free_list(), free);
    assert_eq!(space.free_bytes(), sum(&free));
    assert_eq!(space.end(), extent(model.units.len(), 0).offset);
    let pending = model.extents(|unit| matches!(unit, Unit::Pending(_)));
    assert_eq!(space.pending_bytes(), sum(&pending));
    let used = model.extents(|unit| unit == Unit::Used);
    assert_eq!(space.used_bytes(), sum(&used));
    let reserved = model.extents(|unit| unit == Unit::Reserved);
    assert_eq!(space.reserved_bytes(), sum(&reserved));
    let largest = free.iter().map(|extent| extent.len).max();
    assert_eq!(space.largest_free(), largest.unwrap_or(0));
    assert_eq!(space.backed(), extent(model.backed, 0).offset);
}

fn run(mut tape: Tape) {
    let long = tape.chance(64);
    let mut pair = Pair {
        space: Space::new(START),
        model: Model {
            units: Vec::new(),
            backed: 0,
            epoch: 1,
        },
        held: Vec::new(),
        begun: Vec::new(),
    };
    while !tape.is_empty() {
        step(&mut pair, &mut tape, long);
        agree(&pair.space, &pair.model);
    }
    // As a reopening does: what is pending or reserved is free, as no image names it.
    let used: Vec<_> = pair
        .held
        .iter()
        .map(|&extent| (extent, Owner::Image))
        .collect();
    let rebuilt = Space::rebuild(START, &used, pair.space.end()).unwrap();
    let Model { units, .. } = &mut pair.model;
    for unit in units.iter_mut().filter(|unit| **unit != Unit::Used) {
        *unit = Unit::Free;
    }
    pair.model.backed = units.len();
    pair.model.set(0, 0, Unit::Free);
    agree(&rebuilt, &pair.model);
}

#[test]
fn random_histories_agree_with_a_map_of_units() {
    for seed in 0..300_u16 {
        let length = 200 + 10 * usize::from(seed % 100);
        println!("seed {seed} length {length}");
        run(Tape::from_seed(seed.into(), length));
    }
}

#[test]
fn what_is_released_waits_for_a_checkpoint_that_began_later() {
    let space = Space::new(START);
    let [a, b, c] = [1, 2, 3].map(|_| space.allocate(UNIT));
    space.release(&[a]);
    let first = space.begin_checkpoint();
    space.release(&[b]);
    space.checkpoint_durable(first);
    assert_eq!((space.free_list(), space.pending_bytes()), (vec![a], UNIT));
    // The second one fails; the third frees for both.
    let _failed = space.begin_checkpoint();
    let third = space.begin_checkpoint();
    space.release(&[c]);
    space.checkpoint_durable(third);
    assert_eq!((space.free_bytes(), space.end()), (2 * UNIT, c.end()));
    assert_eq!(space.allocate(2 * UNIT).offset, a.offset);
}

#[test]
fn on_a_full_disk_only_a_checkpoint_gets_space() {
    let full = |_, _| Err(io::Error::from(io::ErrorKind::StorageFull));
    let space = Space::new(START);
    let data = space.allocate(10 * UNIT);
    space.back(data.end(), |_, _| Ok(())).unwrap();
    space
        .set_reserve(3 * UNIT, |offset, len| {
            assert_eq!((offset, len), (data.end(), 3 * UNIT));
            Ok(())
        })
        .unwrap();
    let error = space.set_reserve(4 * UNIT, full).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(space.reserved_bytes(), 3 * UNIT, "no shorter than it was");

    let beyond = space.allocate(UNIT);
    assert_eq!(beyond.offset, space.backed(), "not from the reserve");
    assert!(space.back(beyond.end(), full).is_err());
    space.discard(&[beyond]);
    let image = space.allocate_reserved(2 * UNIT);
    assert_eq!(image.offset, data.end());
    assert_eq!(space.reserved_bytes(), UNIT);

    space.release(&[Extent {
        len: 4 * UNIT,
        ..data
    }]);
    let epoch = space.begin_checkpoint();
    space.checkpoint_durable(epoch);
    space.set_reserve(4 * UNIT, full).unwrap();
    assert_eq!(space.reserved_bytes(), 4 * UNIT);
}

#[test]
fn what_is_kept_for_flushes_is_left_by_others() {
    // I6.
    let full = |_, _| Err(io::Error::from(io::ErrorKind::StorageFull));
    let space = Space::new(START);
    let all = START + 20 * UNIT;
    space.back(all, |_, _| Ok(())).unwrap();
    assert_eq!(
        space.keep(16 * UNIT, Margin::Bytes(5 * UNIT), 100),
        Err(all + UNIT)
    );
    assert_eq!(space.kept(), 0);
    space
        .keep(16 * UNIT - 100, Margin::Bytes(4 * UNIT), 100)
        .unwrap();
    assert_eq!(space.kept(), 16 * UNIT, "whole units");

    let other = |units| space.take(Purpose::Other, units * UNIT);
    assert_eq!(other(5), Err(all + UNIT), "one is missing");
    let merged = other(4).unwrap();
    assert_eq!(other(1), Err(all + UNIT));
    assert!(space.set_reserve(UNIT, full).is_err());
    let flushed = space.take(Purpose::Flush, 10 * UNIT).unwrap();
    assert_eq!(space.kept(), 6 * UNIT);
    space.give_back(Purpose::Flush, &[flushed]);
    assert_eq!(space.kept(), 16 * UNIT, "it is kept again");

    space.cut(0, |length| panic!("cut to {length}")).unwrap();
    space.keep_less(14 * UNIT);
    let mut length = 0;
    let mut cut = |to| {
        length = to;
        Ok(())
    };
    space.cut(0, &mut cut).unwrap();
    assert_eq!(length, merged.end() + 2 * UNIT);
}

#[test]
fn what_a_merge_claims_is_left_by_others() {
    // I1 of claims.
    let space = Space::new(START);
    space.back(START + 20 * UNIT, |_, _| Ok(())).unwrap();
    space.keep(4 * UNIT, Margin::Bytes(0), 100).unwrap();
    let first = space.claim(10 * UNIT).unwrap();
    assert_eq!(space.claim(7 * UNIT), Err(START + 21 * UNIT));
    assert_eq!(space.claim_rest(None), None, "another merge has a claim");
    let second = space.claim(5 * UNIT).unwrap();
    let take = |claim, units| space.take(Purpose::Merge(claim), units * UNIT);
    let other = space.take(Purpose::Other, UNIT).unwrap();
    assert!(space.take(Purpose::Other, UNIT).is_err(), "all is claimed");
    assert!(take(second, 6).is_err(), "one is not its own");
    let taken = take(first, 10).unwrap();
    assert!(take(first, 1).is_err());
    // What was not needed may be needed again.
    space.give_back(Purpose::Merge(first), &[taken]);
    assert!(take(second, 6).is_err());
    take(second, 5).unwrap();

    // What must be left beside it: what is taken counts as margin, claims count besides.
    space.discard(&[other]);
    let keep = |units, margin| space.keep(units * UNIT, margin, 100).is_ok();
    assert!(!keep(6, Margin::AndClaims(0)) && keep(5, Margin::AndClaims(0)));
    assert!(keep(15, Margin::Bytes(5 * UNIT)), "deletes may take claims");
    assert!(keep(4, Margin::Bytes(0)));
    assert!(space.keep_more(2 * UNIT).is_err(), "one is not claimed");
    space.keep_more(UNIT).unwrap();
    space.cut(0, |length| panic!("cut to {length}")).unwrap();
    space.end_claim(first);
    space.end_claim(second);
    assert!(!space.is_claimed());
    let (_, rest) = space.claim_rest(Some(9 * UNIT)).unwrap();
    assert_eq!(rest, 10 * UNIT);
}

#[test]
fn an_image_takes_claimed_room_before_its_reserve() {
    let space = Space::new(START);
    space.back(START + 8 * UNIT, |_, _| Ok(())).unwrap();
    space.set_reserve(UNIT, |_, _| Ok(())).unwrap();
    let claim = space.claim(6 * UNIT).unwrap();
    space.allocate_reserved(UNIT);
    space.allocate_reserved(UNIT);
    assert_eq!(space.reserved_bytes(), UNIT);
    assert!(space.take(Purpose::Merge(claim), 6 * UNIT).is_err());
    space.take(Purpose::Merge(claim), 5 * UNIT).unwrap();
}

/// On a full disk everything that is free for a moment is taken by others.
#[test]
fn images_of_changing_length_do_not_shorten_the_reserve() {
    let space = Space::new(START);
    space.back(START + 40 * UNIT, |_, _| Ok(())).unwrap();
    space.set_reserve(20 * UNIT, |_, _| Ok(())).unwrap();
    let mut last = space.allocate_reserved(3 * UNIT);
    let take_all = || while space.take(Purpose::Other, UNIT).is_ok() {};
    let mut rng = Rng::new(1);
    for _ in 0..1000 {
        take_all();
        let epoch = space.begin_checkpoint();
        let image = space.allocate_reserved((3 + rng.below(4)) * UNIT);
        assert!(image.end() <= space.backed(), "there is no room for it");
        take_all();
        space.finish_checkpoint(epoch, &[last], 20 * UNIT);
        last = image;
        assert_eq!(
            space.reserved_bytes(),
            (23 * UNIT - last.len).min(20 * UNIT)
        );
    }
}

#[test]
fn an_image_that_outgrows_its_reserve_lets_commits_ask_again() {
    let space = Space::new(START);
    space.back(START + 8 * UNIT, |_, _| Ok(())).unwrap();
    space.set_reserve(UNIT, |_, _| Ok(())).unwrap();
    space.keep(6 * UNIT, Margin::Bytes(UNIT), 100).unwrap();
    space.allocate_reserved(UNIT);
    assert_eq!(space.kept(), 6 * UNIT, "the rest goes first");
    assert_eq!(space.ceiling().get(), 100);
    space.allocate_reserved(3 * UNIT);
    assert!(space.kept() < 6 * UNIT);
    assert_eq!(space.ceiling().get(), 0, "it does not suffice any more");
}

#[test]
fn what_is_free_in_pieces_is_given_out_in_pieces() {
    let space = Space::new(START);
    space.back(START + 12 * UNIT, |_, _| Ok(())).unwrap();
    let all: Vec<Extent> = (0..4)
        .map(|_| space.take(Purpose::Other, 3 * UNIT).unwrap())
        .collect();
    assert_eq!(space.take_part(Purpose::Flush, UNIT), None);
    space.discard(&[all[0], all[2]]);
    space.keep(UNIT, Margin::Bytes(0), 100).unwrap();
    let long = space.take(Purpose::Other, 5 * UNIT);
    assert_eq!(long, Err(START + 17 * UNIT), "none is that long");
    let first = space.take_part(Purpose::Other, 5 * UNIT);
    assert_eq!(first, Some(all[0]));
    assert_eq!(
        space.take_part(Purpose::Other, 3 * UNIT),
        None,
        "one is kept"
    );
    let second = space.take_part(Purpose::Flush, 3 * UNIT);
    assert_eq!(second, Some(all[2]));
    assert_eq!(space.kept(), 0);
}

#[test]
fn the_file_is_cut_behind_the_last_extent_that_is_needed() {
    // I3.
    let space = Space::new(START);
    let [a, b] = [1, 2].map(|_| space.allocate(UNIT));
    space.back(START + 100 * UNIT, |_, _| Ok(())).unwrap();
    space.release(&[b]);
    let cut = |keep| {
        let mut cut_to = None;
        space
            .cut(keep, |length| {
                cut_to = Some(length);
                Ok(())
            })
            .unwrap();
        assert_eq!(cut_to.unwrap_or(space.backed()), space.backed());
        cut_to
    };
    assert_eq!(cut(10 * UNIT), Some(b.end() + 10 * UNIT));
    assert_eq!(cut(10 * UNIT), None, "nothing to cut");
    let epoch = space.begin_checkpoint();
    space.checkpoint_durable(epoch);
    assert_eq!(cut(0), Some(a.end()));
}

fn refused(used: &[(Extent, Owner)], file_len: u64) -> String {
    let error = Space::rebuild(START, used, file_len).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    error.to_string()
}

#[test]
fn a_rebuild_refuses_what_cannot_be_and_names_who_says_so() {
    let run = |id| Owner::Run(RunId(id));
    let two = [(extent(4, 4), run(7)), (extent(0, 5), Owner::Image)];
    let message = refused(&two, 1 << 20);
    assert!(message.contains("the image and run 7"), "{message}");
    assert!(message.contains("32768..36864"), "{message}");
    let message = refused(&[(extent(0, 3), run(5))], START + 2 * UNIT);
    assert!(message.contains("run 5 lies beyond the end"), "{message}");
    assert!(
        Space::rebuild(START, &two[..1], START + 8 * UNIT - 1).is_ok(),
        "a short last unit"
    );
    for (offset, len) in [
        (0, UNIT),
        (START + 1, UNIT),
        (START, 0),
        (START, 100),
        (u64::MAX - UNIT + 1, UNIT),
    ] {
        refused(&[(Extent { offset, len }, run(1))], u64::MAX);
    }
}

#[test]
#[should_panic(expected = "I2")]
fn discarding_twice_is_a_bug() {
    let space = Space::new(START);
    let extent = space.allocate(UNIT);
    let _behind = space.allocate(UNIT);
    space.discard(&[extent]);
    space.discard(&[extent]);
}

#[test]
#[should_panic(expected = "I2")]
fn releasing_part_of_what_is_pending_is_a_bug() {
    let space = Space::new(START);
    let extent = space.allocate(5 * UNIT);
    space.release(&[extent]);
    space.release(&[Extent {
        len: UNIT,
        ..extent
    }]);
}

#[test]
fn a_hundred_thousand_holes_are_no_burden() {
    let space = Space::new(START);
    let mut rng = Rng::new(1);
    let mut held = Vec::new();
    for _ in 0..200_000 {
        held.push(space.allocate((1 + rng.below(1024)) * UNIT));
    }
    for pair in held.chunks(2) {
        space.discard(&pair[..1]);
    }
    let holes = space.free_list().len();
    assert!(90_000 < holes, "{holes}");
    for _ in 0..200_000 {
        let extent = space.allocate((1 + rng.below(1024)) * UNIT);
        if rng.chance(0.5) {
            space.discard(&[extent]);
        }
    }
}
