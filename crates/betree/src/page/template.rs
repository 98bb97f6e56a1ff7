//! Values of one length that share bytes at many positions: equal bytes are stored once.
//!
//! ```text
//! segments u16 | (skip u16, length u16) ... | the constant bytes, as a plane
//! ```
//! A segment is a range of places in which values differ; `skip` is how many constant bytes are
//! between it and the one before. The packed part has the segments of each value, back to back.
//! Rows with a wide constant part or with small numbers in wide fields lose these bytes at the cost
//! of a few copies per value, which is several times cheaper than LZ4, and leaves it less to do.

use super::PageError;
use super::bytes::Reader;
use super::plane;

/// Minimum number of values for a template.
const LEAST_ROWS: usize = 8;

/// Fewer consecutive constant bytes than this are stored as if they differed, which saves one copy
/// per value.
const LEAST_SKIP: usize = 4;

/// Maximum number of segments: each costs one copy per value.
const MOST_SEGMENTS: usize = 32;

/// After this many values the search is given up if they have little in common.
const SAMPLE: usize = 16;

/// The positions at which values differ.
#[derive(Default)]
pub(super) struct Template {
    /// Nonzero at positions where a value differs from the first one.
    differ: Vec<u8>,
    segments: Vec<Segment>,
    constants: Vec<u8>,
}

/// A range of positions at which values differ, and the number of constant bytes before it.
#[derive(Clone, Copy)]
struct Segment {
    skip: u16,
    len: u16,
}

impl Template {
    /// If it saves at least an eighth, append the template of `rows` to `out` and their segments to
    /// `packed`. Otherwise append nothing.
    pub(super) fn encode(
        &mut self,
        rows: &[u8],
        width: usize,
        out: &mut Vec<u8>,
        packed: &mut Vec<u8>,
    ) -> bool {
        if usize::from(u16::MAX) < width || rows.len() < LEAST_ROWS * width.max(1) {
            return false;
        }
        if !self.find(rows, width) {
            return false;
        }
        let count = u16::try_from(self.segments.len()).expect("at most 32 segments");
        out.extend(count.to_le_bytes());
        for segment in &self.segments {
            out.extend(segment.skip.to_le_bytes());
            out.extend(segment.len.to_le_bytes());
        }
        plane::encode(&self.constants, out);
        for mut row in rows.chunks_exact(width) {
            for segment in &self.segments {
                let from = usize::from(segment.skip);
                let (segment, rest) = row
                    .get(from..)
                    .and_then(|row| row.split_at_checked(usize::from(segment.len)))
                    .expect("segments lie within the width");
                packed.extend_from_slice(segment);
                row = rest;
            }
        }
        true
    }

    /// Find segments and constant bytes; returns false if there are too few constant bytes.
    fn find(&mut self, rows: &[u8], width: usize) -> bool {
        let (first, rest) = rows.split_at(width);
        self.differ.clear();
        self.differ.resize(width, 0);
        for (row, number) in rest.chunks_exact(width).zip(1..) {
            for ((differ, a), b) in self.differ.iter_mut().zip(first).zip(row) {
                *differ |= a ^ b;
            }
            let constant = || self.differ.iter().filter(|differ| **differ == 0).count();
            if number == SAMPLE && constant() < width.div_ceil(8) {
                return false;
            }
        }
        self.segments.clear();
        self.constants.clear();
        let (mut at, mut skip, mut varying) = (0, 0, 0);
        for places in self.differ.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
            let bytes = first.get(at..at + places.len()).unwrap_or_default();
            at += places.len();
            if places.first() == Some(&0) && LEAST_SKIP <= places.len() {
                self.constants.extend_from_slice(bytes);
                skip = places.len();
                continue;
            }
            varying += places.len();
            let fits = "at most the width, which fits 16 bits";
            let len = u16::try_from(places.len()).expect(fits);
            match self.segments.last_mut() {
                Some(before) if skip == 0 => before.len += len,
                _ => self.segments.push(Segment {
                    skip: u16::try_from(skip).expect(fits),
                    len,
                }),
            }
            skip = 0;
        }
        debug_assert_eq!(
            varying + self.constants.len(),
            width,
            "each place is in one part"
        );
        width.div_ceil(8) <= self.constants.len() && self.segments.len() <= MOST_SEGMENTS
    }

    /// Read a template for values of `width` bytes; returns it with the number of differing bytes
    /// per value.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        width: usize,
    ) -> Result<(Template, usize), PageError> {
        let wrong = PageError::Content("the segments of its values do not fit");
        let count = usize::from(reader.u16()?);
        if MOST_SEGMENTS < count {
            return Err(wrong);
        }
        let mut template = Template::default();
        template.segments.reserve_exact(count);
        let (mut at, mut varying) = (0, 0);
        for _ in 0..count {
            let segment = Segment {
                skip: reader.u16()?,
                len: reader.u16()?,
            };
            at += usize::from(segment.skip) + usize::from(segment.len);
            varying += usize::from(segment.len);
            template.segments.push(segment);
        }
        if width < at || varying == width {
            return Err(wrong);
        }
        template.constants.resize(width - varying, 0);
        let mut space = vec![0; width - varying];
        template
            .constants
            .copy_from_slice(plane::decode(reader, &mut space)?);
        Ok((template, varying))
    }

    /// Rebuild values of `width` bytes in `rows` from the segments in `packed`.
    pub(super) fn fill(&mut self, mut packed: &[u8], width: usize, rows: &mut [u8]) {
        debug_assert!(
            self.constants.len() <= width,
            "constants are some of the bytes"
        );
        let first = &mut self.differ;
        first.clear();
        let mut constants = &self.constants[..];
        for segment in &self.segments {
            let (skipped, rest) =
                constants.split_at(usize::from(segment.skip).min(constants.len()));
            first.extend_from_slice(skipped);
            first.resize(first.len() + usize::from(segment.len), 0);
            constants = rest;
        }
        first.extend_from_slice(constants);
        for row in rows.chunks_exact_mut(width) {
            row.copy_from_slice(first);
            let mut rest = row;
            for segment in &self.segments {
                let (skip, len) = (usize::from(segment.skip), usize::from(segment.len));
                let within = "the lengths of segments were checked against the width";
                let (from, after) = packed.split_at_checked(len).expect(within);
                let (to, beyond) = rest
                    .get_mut(skip..)
                    .and_then(|rest| rest.split_at_mut_checked(len))
                    .expect(within);
                to.copy_from_slice(from);
                (packed, rest) = (after, beyond);
            }
        }
    }
}
