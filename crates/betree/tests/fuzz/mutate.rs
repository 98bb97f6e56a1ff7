//! Mutations of bytes.

use stdx::rng::Rng;

/// Maximum length of an input.
const LONGEST: usize = 64 << 10;

/// Numbers at which decoders often change their behavior.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
];

/// A child of one or two of `parents`; three of four are repaired, so that decoding gets past the
/// checksums.
pub(crate) fn mutate(parents: &[Vec<u8>], repair: fn(&[u8]) -> Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = pick(parents, rng).to_vec();
    for _ in 0..=rng.below(4) {
        change(&mut bytes, parents, rng);
    }
    bytes.truncate(LONGEST);
    if rng.chance(0.75) {
        bytes = repair(&bytes);
    }
    bytes
}

fn pick<'a>(parents: &'a [Vec<u8>], rng: &mut Rng) -> &'a [u8] {
    parents
        .get(rng.index(parents.len()))
        .map_or(&[], Vec::as_slice)
}

fn change(bytes: &mut Vec<u8>, parents: &[Vec<u8>], rng: &mut Rng) {
    // Headers are short but important: half of the changes go there.
    let area = if rng.chance(0.5) {
        bytes.len().min(96)
    } else {
        bytes.len()
    };
    let at = rng.index(area);
    let end = (at + 1 + rng.index(32)).min(bytes.len());
    match rng.below(16) {
        0..=3 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        4 | 5 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.next_u64().to_le_bytes()[0];
            }
        }
        6..=10 => {
            let edge = EDGES[rng.index(EDGES.len())]
                .wrapping_add(rng.below(3))
                .wrapping_sub(1);
            let width = [1, 2, 4, 8][rng.index(4)];
            if let Some(field) = bytes.get_mut(at..at + width) {
                field.copy_from_slice(&edge.to_le_bytes()[..width]);
            }
        }
        11 => drop(bytes.drain(at..end)),
        12 | 13 => {
            let part = bytes.get(at..end).unwrap_or_default().to_vec();
            let to = rng.index(bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        14 => {
            let other = pick(parents, rng);
            let from = rng.index(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => bytes.truncate(at),
    }
}
