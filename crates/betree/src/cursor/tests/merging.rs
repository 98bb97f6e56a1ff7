//! The merge of sources in memory, compared with a map.

use std::collections::BTreeMap;
use std::ops::Bound;

use stdx::rng::Rng;

use super::super::bounds;
use super::super::merge::Merge;
use super::super::testing::{Memory, Version};
use crate::types::Direction::{self, Backward, Forward};
use crate::types::Op;

type Model = BTreeMap<Vec<u8>, Version>;

/// Up to 12 sources of keys that share `prefix`, and their combined content.
fn sources(rng: &mut Rng, prefix: &[u8], direction: Direction) -> (Vec<Memory>, Model) {
    let mut together = Model::new();
    let mut sources = Vec::new();
    for number in 0..rng.below(13) {
        let mut own = Model::new();
        for _ in 0..rng.below(40) {
            let mut key = prefix.to_vec();
            // Short keys from few letters, including zeros: many ties, of heads and of keys.
            key.extend((0..rng.below(12)).map(|_| [0, 1, b'a', 255][rng.index(4)]));
            let op = if rng.chance(0.3) { Op::Delete } else { Op::Put };
            own.insert(
                key.clone(),
                Version::new(&key, 100 - number, op, &number.to_be_bytes()),
            );
        }
        for (key, version) in &own {
            together
                .entry(key.clone())
                .or_insert_with(|| version.clone());
        }
        sources.push(Memory::new(own.into_values().collect(), direction));
    }
    together.retain(|_, version| version.op == Op::Put);
    (sources, together)
}

fn some_key(rng: &mut Rng, model: &Model) -> Vec<u8> {
    match model.keys().nth(rng.index(model.len() + 1)) {
        Some(key) => key.clone(),
        None => rng.below(1 << 16).to_be_bytes()[6..].to_vec(),
    }
}

#[test]
fn the_newest_source_says_what_a_key_is() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let direction = if rng.chance(0.5) { Forward } else { Backward };
        let prefix = &b"shared prefix"[..rng.index(14)];
        let (sources, mut model) = sources(&mut rng, prefix, direction);
        let mut range = [some_key(&mut rng, &model), some_key(&mut rng, &model)];
        range.sort();
        let [low, high] = &range;
        let (lower, upper) = match rng.below(3) {
            0 => (Bound::Unbounded, Bound::Unbounded),
            1 => (Bound::Included(&**low), Bound::Included(&**high)),
            _ => (Bound::Included(&**low), Bound::Excluded(&**high)),
        };
        model.retain(|key, _| bounds::after(key, lower) && bounds::before(key, upper));
        let mut merge = Merge::new(
            sources,
            direction,
            &bounds::own(lower),
            &bounds::own(upper),
            true,
        );
        for round in 0..3 {
            let mut from = if direction == Forward { lower } else { upper };
            let key = some_key(&mut rng, &model);
            if 0 < round && bounds::after(&key, lower) && bounds::before(&key, upper) {
                from = Bound::Included(&key);
            }
            merge.seek(from).unwrap();
            assert!(merge.entry().is_none());
            let mut found = Vec::new();
            while merge.next().unwrap() {
                let entry = merge.entry().unwrap();
                found.push(Version::new(entry.key, entry.seq.0, entry.op, entry.value));
            }
            assert!(!merge.next().unwrap());
            let mut expected: Vec<Version> = model.values().cloned().collect();
            if direction == Backward {
                expected.reverse();
                expected.retain(|version| bounds::before(&version.key, from));
            } else {
                expected.retain(|version| bounds::after(&version.key, from));
            }
            assert_eq!(found, expected, "seed {seed} round {round} {direction:?}");
        }
    }
}
