//! Front coding: of each key only the part that differs from the previous key is stored.
//!
//! How many bytes a key shares and how long its suffix is are rows of four bytes (two big-endian
//! u16) that are stored as planes; the suffixes go to the packed part of the page, back to back.

use super::PageError;
use super::header::MAX_KEY;

/// The bytes of a row of lengths.
pub(super) const ROW: usize = 4;

/// Append the lengths of `key` after `before` to `rows`, and its suffix to `suffixes`.
pub(super) fn encode(before: &[u8], key: &[u8], rows: &mut Vec<u8>, suffixes: &mut Vec<u8>) {
    debug_assert!(key.len() <= MAX_KEY, "both lengths fit 16 bits");
    let shared = shared(before, key);
    let suffix = key.get(shared..).unwrap_or_default();
    for len in [shared, suffix.len()] {
        rows.extend(
            u16::try_from(len)
                .expect("a key is below 32 KiB")
                .to_be_bytes(),
        );
    }
    suffixes.extend_from_slice(suffix);
}

/// Rebuild the keys: their bytes go to `keys`; if their lengths differ, `starts` gets the start of
/// each key and the end of the last.
pub(super) fn decode(
    rows: &[u8],
    mut suffixes: &[u8],
    key_bytes: usize,
    width: Option<usize>,
    keys: &mut Vec<u8>,
    starts: &mut Vec<u32>,
) -> Result<(), PageError> {
    let wrong = PageError::Content("the lengths of its keys do not fit");
    let mut before = 0;
    for row in rows.chunks_exact(ROW) {
        let [a, b, c, d] = *row.first_chunk().ok_or(wrong)?;
        let shared = usize::from(u16::from_be_bytes([a, b]));
        let len = usize::from(u16::from_be_bytes([c, d]));
        let start = keys.len();
        let fits = width.is_none_or(|width| shared + len == width)
            && start + shared + len <= key_bytes
            && shared + len <= MAX_KEY
            && shared <= start - before;
        let (suffix, rest) = suffixes.split_at_checked(len).ok_or(wrong)?;
        if !fits {
            return Err(wrong);
        }
        keys.extend_from_within(before..before + shared);
        keys.extend_from_slice(suffix);
        if width.is_none() {
            starts.push(u32::try_from(start).map_err(|_| wrong)?);
        }
        (suffixes, before) = (rest, start);
    }
    if keys.len() != key_bytes || !suffixes.is_empty() {
        return Err(wrong);
    }
    if width.is_none() {
        starts.push(u32::try_from(key_bytes).map_err(|_| wrong)?);
    }
    Ok(())
}

/// Length of the common prefix of `a` and `b`.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let eights = a.chunks_exact(8).zip(b.chunks_exact(8));
    let equal = 8 * eights.take_while(|(a, b)| a == b).count();
    let rest = a.iter().skip(equal).zip(b.iter().skip(equal));
    equal + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_counts_across_the_borders_of_words() {
        let a: Vec<u8> = (0..40).collect();
        for len in 0..=40 {
            let mut b = a[..len].to_vec();
            b.push(0xFF);
            assert_eq!(shared(&a, &b), len);
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_errors() {
        let check = |rows: &[u8], suffixes: &[u8], key_bytes, width| {
            decode(
                rows,
                suffixes,
                key_bytes,
                width,
                &mut Vec::new(),
                &mut Vec::new(),
            )
        };
        assert!(check(&[0, 0, 0, 2, 0, 1, 0, 1], b"abc", 4, None).is_ok());
        assert!(check(&[0, 0, 0, 2, 0, 1, 0, 1], b"abc", 4, Some(2)).is_ok());
        assert!(check(&[0, 0, 0, 2, 0, 1, 0, 1], b"abc", 5, None).is_err());
        assert!(check(&[0, 0, 0, 2, 0, 3, 0, 1], b"abc", 6, None).is_err());
        assert!(check(&[0, 1, 0, 2, 0, 1, 0, 1], b"abc", 5, None).is_err());
        assert!(check(&[0, 0, 0, 2, 0, 1, 0, 1], b"abcd", 4, None).is_err());
        assert!(check(&[0, 0, 0, 2, 0, 1, 0, 2], b"abc", 5, None).is_err());
        assert!(check(&[0, 0, 0, 2, 0, 1, 0, 1], b"abc", 4, Some(3)).is_err());
    }
}
