//! One plane: the bytes at one position of all rows, in the shortest of six forms.
//!
//! ```text
//! 0 Same    value                         all bytes are equal
//! 1 Step    first, step                   each is the one before plus a step (modulo 256)
//! 2 Runs    (value, length u16) ...       few changes
//! 3 Unary   first, bytes u32, bits        slow rise: per step d (modulo 256) d zeros, then a one
//! 4 Raw     bytes
//! 8+k Bits  least, 8 values in k bytes    a range below 2^k, 1 <= k <= 7
//! ```
//! In rows that are sorted the first planes rise slowly, also where a plane before them changes and
//! they start again from a low value: that is why steps count modulo 256.

#![expect(
    clippy::cast_possible_truncation,
    reason = "bytes of wider words and sums modulo 256 are what is meant"
)]

use super::PageError;
use super::bytes::{Reader, load};

const SAME: u8 = 0;
const STEP: u8 = 1;
const RUNS: u8 = 2;
const UNARY: u8 = 3;
const RAW: u8 = 4;
const BITS: u8 = 8;

/// The bytes of a run of equal values.
const RUN_LEN: usize = 3;

/// Append `plane`, which is not empty, to `out`.
pub(super) fn encode(plane: &[u8], out: &mut Vec<u8>) {
    let (Some(&first), Some(&last)) = (plane.first(), plane.last()) else {
        unreachable!("a plane has at least one row");
    };
    let step = plane.get(1).map_or(0, |second| second.wrapping_sub(first));
    if first == last || step != 0 {
        let steps = plane.iter().zip(plane.iter().skip(1));
        if steps.clone().all(|(a, b)| b.wrapping_sub(*a) == step) {
            match step {
                0 => out.extend([SAME, first]),
                _ => out.extend([STEP, first, step]),
            }
            return;
        }
    }
    let rises = Rises::of(plane);
    let (least, width) = range(plane);
    let raw = plane.len();
    let runs = RUN_LEN * (rises.changes + 1);
    let unary = 5 + (plane.len() - 1 + rises.sum).div_ceil(8);
    let bits = 1 + width * plane.len().div_ceil(8);
    let shortest = raw.min(runs).min(unary).min(bits);
    let begin = out.len();
    if shortest == raw {
        out.push(RAW);
        out.extend_from_slice(plane);
    } else if shortest == runs {
        out.push(RUNS);
        encode_runs(plane, out);
    } else if shortest == bits {
        out.extend([BITS + width as u8, least]);
        encode_bits(plane, least, width, out);
    } else {
        out.extend([UNARY, first]);
        encode_unary(plane, rises.sum, out);
    }
    debug_assert!(
        out.len() <= begin + 1 + raw.max(RUN_LEN),
        "a plane in its shortest form"
    );
}

/// Read the next plane, with one byte per row of `rows`: borrowed if it is stored as it is,
/// otherwise decoded into `space`, which has one byte per row.
pub(super) fn decode<'b: 's, 's>(
    reader: &mut Reader<'b>,
    space: &'s mut [u8],
) -> Result<&'s [u8], PageError> {
    let rows = space.len();
    match reader.u8()? {
        SAME => space.fill(reader.u8()?),
        STEP => {
            let (mut value, step) = (reader.u8()?, reader.u8()?);
            for byte in space.iter_mut() {
                *byte = value;
                value = value.wrapping_add(step);
            }
        }
        RUNS => decode_runs(reader, space)?,
        UNARY => decode_unary(reader, space)?,
        RAW => return reader.take(rows),
        mode @ 9..=15 => decode_bits(reader, usize::from(mode - BITS), space)?,
        _ => return Err(PageError::Content("a plane has an unknown form")),
    }
    Ok(space)
}

/// Statistics that determine the shortest form of a plane.
struct Rises {
    /// Number of bytes that differ from the previous one.
    changes: usize,
    /// The sum of the steps from byte to byte, each modulo 256.
    sum: usize,
}

impl Rises {
    fn of(plane: &[u8]) -> Rises {
        let mut all = Rises { changes: 0, sum: 0 };
        let next = plane.get(1..).unwrap_or_default();
        // In groups of 128, so that narrow counters suffice, which add 16 bytes per instruction.
        for (before, after) in plane.chunks(128).zip(next.chunks(128)) {
            let (mut changes, mut sum) = (0u8, 0u16);
            for (a, b) in before.iter().zip(after) {
                changes += u8::from(a != b);
                sum += u16::from(b.wrapping_sub(*a));
            }
            all.changes += usize::from(changes);
            all.sum += usize::from(sum);
        }
        all
    }
}

/// The smallest byte of `plane`, and the number of bits of the largest difference from it (at least
/// 1).
fn range(plane: &[u8]) -> (u8, usize) {
    let (mut least, mut most) = (u8::MAX, u8::MIN);
    for &byte in plane {
        least = least.min(byte);
        most = most.max(byte);
    }
    let width = (u8::BITS - (most - least).leading_zeros()).max(1);
    (least, width as usize)
}

fn encode_runs(plane: &[u8], out: &mut Vec<u8>) {
    for equal in plane.chunk_by(|a, b| a == b) {
        for run in equal.chunks(usize::from(u16::MAX)) {
            let [low, high] = (run.len() as u16).to_le_bytes();
            out.extend(
                run.first()
                    .map(|value| [*value, low, high])
                    .into_iter()
                    .flatten(),
            );
        }
    }
}

fn decode_runs(reader: &mut Reader<'_>, mut space: &mut [u8]) -> Result<(), PageError> {
    while !space.is_empty() {
        let value = reader.u8()?;
        let len = usize::from(reader.u16()?);
        let wrong = PageError::Content("a run in a plane has an impossible length");
        if len == 0 {
            return Err(wrong);
        }
        let (run, rest) = space.split_at_mut_checked(len).ok_or(wrong)?;
        run.fill(value);
        space = rest;
    }
    Ok(())
}

fn encode_unary(plane: &[u8], sum: usize, out: &mut Vec<u8>) {
    let len = (plane.len() - 1 + sum).div_ceil(8);
    out.extend((len as u32).to_le_bytes());
    let end = out.len() + len;
    // The word being filled, and the number of bits in it.
    let (mut word, mut filled) = (0u64, 0u32);
    for (before, after) in plane.iter().zip(plane.iter().skip(1)) {
        filled += u32::from(after.wrapping_sub(*before));
        while 64 <= filled {
            out.extend(word.to_le_bytes());
            (word, filled) = (0, filled - 64);
        }
        word |= 1 << filled;
        filled += 1;
    }
    if filled != 0 {
        out.extend(word.to_le_bytes());
    }
    debug_assert!(end <= out.len(), "as many bits as counted");
    out.resize(end, 0);
}

fn decode_unary(reader: &mut Reader<'_>, space: &mut [u8]) -> Result<(), PageError> {
    let wrong = PageError::Content("a plane of steps does not have a step per row");
    let first = reader.u8()?;
    let len = reader.u32()? as usize;
    let bits = reader.take(len)?;
    let mut rows = space.iter_mut();
    *rows.next().ok_or(wrong)? = first;
    // The value of the next row if its one bit is the lowest bit of the word.
    let mut value = first;
    for at in (0..len).step_by(8) {
        let mut word = load(bits, at);
        while word != 0 {
            let zeros = word.trailing_zeros() as u8;
            *rows.next().ok_or(wrong)? = value.wrapping_add(zeros);
            // The row's own bit is not a step.
            value = value.wrapping_sub(1);
            word &= word - 1;
        }
        value = value.wrapping_add(64);
    }
    if rows.next().is_some() {
        return Err(wrong);
    }
    Ok(())
}

const LANES: u64 = 0x0101_0101_0101_0101;

fn encode_bits(plane: &[u8], least: u8, width: usize, out: &mut Vec<u8>) {
    let base = LANES * u64::from(least);
    let squeeze = Squeeze::new(width);
    let blocks = plane.chunks_exact(8);
    let tail = blocks.remainder();
    for block in blocks {
        // No byte is below the base, so the bytes do not borrow from each other.
        let packed = squeeze.pack(load(block, 0) - base).to_le_bytes();
        out.extend(packed.iter().take(width));
    }
    if !tail.is_empty() {
        let mut block = [least; 8];
        block
            .iter_mut()
            .zip(tail)
            .for_each(|(to, from)| *to = *from);
        let packed = squeeze.pack(load(&block, 0) - base).to_le_bytes();
        out.extend(packed.iter().take(width));
    }
}

fn decode_bits(reader: &mut Reader<'_>, width: usize, space: &mut [u8]) -> Result<(), PageError> {
    let least = reader.u8()?;
    let bits = reader.take(width * space.len().div_ceil(8))?;
    let base = LANES * u64::from(least);
    let squeeze = Squeeze::new(width);
    for (block, at) in space.chunks_mut(8).zip((0..).step_by(width)) {
        let wide = squeeze.unpack(load(bits, at));
        // Damaged bytes may carry into their neighbors: the values are then wrong, but nothing
        // else.
        super::bytes::store(block, 0, wide.wrapping_add(base));
    }
    Ok(())
}

/// Eight values of `width` bits each, one per byte or without gaps, by halves.
struct Squeeze {
    shifts: [u32; 3],
    masks: [u64; 3],
}

impl Squeeze {
    fn new(width: usize) -> Squeeze {
        debug_assert!((1..=7).contains(&width), "eight bits are a plane as it is");
        let width = width as u32;
        let lanes = [LANES & 0x00FF_00FF_00FF_00FF, 0x0000_0001_0000_0001, 1];
        let shifts = [width, 2 * width, 4 * width];
        let mut masks = lanes;
        for (mask, shift) in masks.iter_mut().zip(shifts) {
            *mask *= (1 << shift) - 1;
        }
        Squeeze { shifts, masks }
    }

    /// From one value per byte to `8 * width` bits.
    #[inline(always)]
    fn pack(&self, wide: u64) -> u64 {
        let ([s1, s2, s4], [m1, m2, m4]) = (self.shifts, self.masks);
        let pairs = (wide & m1) | (wide >> 8 & m1) << s1;
        let fours = (pairs & m2) | (pairs >> 16 & m2) << s2;
        (fours & m4) | (fours >> 32 & m4) << s4
    }

    /// From `8 * width` bits (what is above does not count) to one value per byte.
    #[inline(always)]
    fn unpack(&self, packed: u64) -> u64 {
        let ([s1, s2, s4], [m1, m2, m4]) = (self.shifts, self.masks);
        let fours = (packed & m4) | (packed >> s4 & m4) << 32;
        let pairs = (fours & m2) | (fours >> s2 & m2) << 16;
        (pairs & m1) | (pairs >> s1 & m1) << 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plane: &[u8], most: usize) {
        let mut out = Vec::new();
        encode(plane, &mut out);
        assert!(out.len() <= most, "{} bytes for {plane:?}", out.len());
        let mut reader = Reader::new(&out);
        let mut space = vec![0xEE; plane.len()];
        assert_eq!(decode(&mut reader, &mut space).unwrap(), plane);
        assert!(reader.rest().is_empty());
    }

    #[test]
    fn each_form_is_chosen_where_it_is_short_and_comes_back() {
        check(&[7], 2);
        check(&[7; 1000], 2);
        let steps: Vec<u8> = (0..1000u32).map(|i| (i * 37 + 11) as u8).collect();
        check(&steps, 3);
        let runs: Vec<u8> = (0..1000u32).map(|i| (i / 300) as u8).collect();
        check(&runs, 1 + 4 * 3);
        let rising: Vec<u8> = (0..1000u32).map(|i| (i * i / 3000) as u8).collect();
        check(&rising, 7 + (1000 + 334) / 8);
        for width in 1..8 {
            let bits: Vec<u8> = (0..1003usize)
                .map(|i| 100 + (i.wrapping_mul(0x9E37_79B9) >> 7) as u8 % (1 << width))
                .collect();
            check(&bits, 2 + 126 * width);
        }
        let raw: Vec<u8> = (0..1003u32)
            .map(|i| (i.wrapping_mul(0x9E37_79B9) >> 23) as u8)
            .collect();
        check(&raw, 1004);
    }

    #[test]
    fn a_long_run_is_cut() {
        let mut plane = vec![1; 200_000];
        plane.push(2);
        check(&plane, 1 + 5 * 3);
    }

    #[test]
    fn wrong_steps_and_runs_are_errors() {
        for stored in [
            &[UNARY, 0, 1, 0, 0, 0, 0xFF][..],
            &[UNARY, 0, 1, 0, 0, 0, 0x01][..],
            &[UNARY, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x01][..],
            &[RUNS, 1, 0, 0][..],
            &[RUNS, 1, 5, 0][..],
            &[RUNS, 1, 2, 0][..],
            &[RAW, 1, 2][..],
            &[BITS][..],
            &[5, 1][..],
            &[][..],
        ] {
            let mut space = [0; 4];
            assert!(
                decode(&mut Reader::new(stored), &mut space).is_err(),
                "{stored:?}"
            );
        }
    }
}
