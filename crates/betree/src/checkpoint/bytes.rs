//! Little-endian numbers, written and read with bounds.

/// Append a number.
pub(super) fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend(number.to_le_bytes());
}

/// Append a number.
pub(super) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

/// Append a number.
pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

/// The result of decoding: the value, or what is wrong.
pub(super) type Decoded<T> = Result<T, &'static str>;

/// Reads from the front of a byte slice.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Decoded<&'a [u8]> {
        let (front, rest) = self.rest.split_at_checked(len).ok_or("is cut short")?;
        self.rest = rest;
        Ok(front)
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let (front, rest) = self.rest.split_first_chunk().ok_or("is cut short")?;
        self.rest = rest;
        Ok(*front)
    }

    pub(super) fn u8(&mut self) -> Decoded<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Decoded<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn u128(&mut self) -> Decoded<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// Four bytes reserved for later versions, which must be zero.
    pub(super) fn zero_u32(&mut self) -> Decoded<()> {
        match self.u32()? {
            0 => Ok(()),
            _ => Err("has bytes set that must be zero"),
        }
    }

    /// A count of things of which each takes at least `least` bytes: no more than could follow, so
    /// that memory reserved for them is bounded by the input's length.
    pub(super) fn count(&mut self, least: usize) -> Decoded<usize> {
        let count = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        self.fits(count, least)
    }

    /// `count`, if that number of items of at least `least` bytes can follow.
    pub(super) fn fits(&self, count: usize, least: usize) -> Decoded<usize> {
        if count > self.left() / least {
            return Err("counts more than it holds");
        }
        Ok(count)
    }
}
