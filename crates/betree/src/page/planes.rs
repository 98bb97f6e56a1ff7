//! Rows of one length as planes: first the bytes at place 0 of all rows, then those at place 1, ...
//!
//! Rows are converted in groups of eight planes, sixteen rows at a time (`transpose.rs`). If the
//! length is not a multiple of eight, the first group has fewer planes. Its rows are stored eight
//! bytes at a time, too; the extra bytes are overwritten by the next group or row.

use super::PageError;
use super::bytes::{Reader, load, load_pair, store, store_pair};
use super::plane;
use super::transpose::transpose;

/// Number of planes that are transposed together.
const GROUP: usize = 8;

/// Number of rows that are transposed together: two squares of eight by eight bytes.
const BLOCK: usize = 16;

/// Append to `out` the planes of `rows`, which are contiguous rows of `width` bytes.
pub(super) fn encode(rows: &[u8], width: usize, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    assert!(width != 0, "rows of no bytes have no planes");
    assert!(rows.len().is_multiple_of(width), "whole rows");
    let count = rows.len() / width;
    let stride = count.next_multiple_of(BLOCK);
    if scratch.len() < GROUP * stride {
        scratch.resize(GROUP * stride, 0);
    }
    for (at, planes) in groups(width) {
        take_apart(rows, width, at, stride, scratch);
        for plane in scratch.chunks_exact(stride).take(planes) {
            plane::encode(plane.get(..count).unwrap_or(plane), out);
        }
    }
}

/// Rebuild the rows that [`encode`] encoded; `rows` has room for all of them.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    width: usize,
    scratch: &mut Vec<u8>,
    rows: &mut [u8],
) -> Result<(), PageError> {
    debug_assert!(width != 0, "rows of no bytes have no planes");
    let count = rows.len() / width;
    if scratch.len() < GROUP * count {
        scratch.resize(GROUP * count, 0);
    }
    for (at, planes) in groups(width) {
        let mut group: [&[u8]; GROUP] = [&[]; GROUP];
        let spaces = scratch.chunks_exact_mut(count).take(planes);
        for (plane, space) in group.iter_mut().zip(spaces) {
            *plane = plane::decode(reader, space)?;
        }
        put_together(&group, count, width, at, rows);
    }
    Ok(())
}

/// The groups of planes for rows of `width` bytes: the position of the first plane of each group,
/// and the number of planes.
fn groups(width: usize) -> impl Iterator<Item = (usize, usize)> {
    let odd = width % GROUP;
    let first = (odd != 0).then_some((0, odd));
    first
        .into_iter()
        .chain((odd..width).step_by(GROUP).map(|at| (at, GROUP)))
}

/// Write the eight planes from position `at` on to `planes`, `stride` bytes each.
fn take_apart(rows: &[u8], width: usize, at: usize, stride: usize, planes: &mut [u8]) {
    let mut columns = planes.chunks_exact_mut(stride);
    let mut columns: [&mut [u8]; GROUP] =
        std::array::from_fn(|_| columns.next().unwrap_or_default());
    for block in (0..stride).step_by(BLOCK) {
        let rows = rows.get(block * width + at..).unwrap_or_default();
        let words =
            std::array::from_fn(|row| [load(rows, row * width), load(rows, (row + 8) * width)]);
        for (column, pair) in columns.iter_mut().zip(transpose(words)) {
            store_pair(column, block, pair);
        }
    }
}

/// Write the eight bytes from position `at` on of every row.
fn put_together(planes: &[&[u8]; GROUP], count: usize, width: usize, at: usize, rows: &mut [u8]) {
    for block in (0..count).step_by(BLOCK) {
        let pairs = transpose(planes.map(|plane| load_pair(plane, block)));
        let rows = rows.get_mut(block * width + at..).unwrap_or_default();
        // In the order of the rows, so that each row overwrites the bytes that the previous one
        // wrote beyond its end. Bytes beyond the last row are dropped.
        for (row, [word, _]) in pairs.into_iter().enumerate() {
            store(rows, row * width, word);
        }
        for (row, [_, word]) in pairs.into_iter().enumerate() {
            store(rows, (row + 8) * width, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stdx::rng::Rng;

    #[test]
    fn rows_of_all_widths_and_counts_come_back() {
        let mut rng = Rng::new(1);
        let (mut scratch, mut other) = (Vec::new(), Vec::new());
        for width in 1..36 {
            for count in [1, 2, 7, 8, 9, 63, 64, 100] {
                let mut rows = vec![0; width * count];
                rng.fill(&mut rows);
                let mut out = Vec::new();
                encode(&rows, width, &mut scratch, &mut out);
                let mut back = vec![0; rows.len()];
                let mut reader = Reader::new(&out);
                decode(&mut reader, width, &mut other, &mut back).unwrap();
                assert_eq!(back, rows, "{count} rows of {width}");
                assert!(reader.rest().is_empty());
            }
        }
    }
}
