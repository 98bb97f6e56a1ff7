//! Reading untrusted bytes, and eight bytes at a time.

#![expect(
    clippy::cast_possible_truncation,
    reason = "the halves of a double word are what is meant"
)]

use super::PageError;

/// The bytes left to read. Every read is checked.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], PageError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(PageError::Content("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, PageError> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, PageError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, PageError> {
        self.array().map(u32::from_le_bytes)
    }

    /// The bytes left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], PageError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(PageError::Content("it ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// The eight bytes from `at` on, the first in the lowest bits; bytes beyond the end are 0.
#[inline(always)]
pub(super) fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => load_tail(bytes, at),
    }
}

#[cold]
#[inline(never)]
fn load_tail(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// The sixteen bytes from `at` on, in the form of [`load`].
#[inline(always)]
pub(super) fn load_pair(bytes: &[u8], at: usize) -> [u64; 2] {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        Some(chunk) => {
            let both = u128::from_le_bytes(*chunk);
            [both as u64, (both >> 64) as u64]
        }
        None => [load_tail(bytes, at), load_tail(bytes, at + 8)],
    }
}

/// Store eight bytes from `at` on; bytes beyond the end are dropped.
#[inline(always)]
pub(super) fn store(bytes: &mut [u8], at: usize, word: u64) {
    match bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<8>())
    {
        Some(chunk) => *chunk = word.to_le_bytes(),
        None => store_tail(bytes, at, word),
    }
}

#[cold]
#[inline(never)]
fn store_tail(bytes: &mut [u8], at: usize, word: u64) {
    for (to, from) in bytes.iter_mut().skip(at).zip(word.to_le_bytes()) {
        *to = from;
    }
}

/// Store sixteen bytes from `at` on, as [`store`] does.
#[inline(always)]
pub(super) fn store_pair(bytes: &mut [u8], at: usize, [low, high]: [u64; 2]) {
    match bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<16>())
    {
        Some(chunk) => *chunk = (u128::from(high) << 64 | u128::from(low)).to_le_bytes(),
        None => {
            store_tail(bytes, at, low);
            store_tail(bytes, at + 8, high);
        }
    }
}
