//! The finite byte tape that drives every random test.
//!
//! A generator of test data reads its choices from the tape, not from a random number generator. A
//! tape is a plain byte string: a seed fills it, a fuzzer mutates it, a failure is shrunk by
//! cutting and zeroing bytes, and the hexadecimal string replays it. An exhausted tape returns 0
//! for every choice. So choice 0 should be the simplest one, and a generator that loops must stop
//! when [`Tape::is_empty`] returns true.

use crate::rng::Rng;

/// A finite string of choices; see the module documentation.
#[derive(Clone, Debug)]
pub struct Tape {
    bytes: Vec<u8>,
    position: usize,
}

impl Tape {
    /// A tape of exactly these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Tape {
        Tape { bytes, position: 0 }
    }

    /// A tape of `length` bytes drawn from `seed`.
    #[must_use]
    pub fn from_seed(seed: u64, length: usize) -> Tape {
        let mut bytes = vec![0; length];
        Rng::new(seed).fill(&mut bytes);
        Tape::new(bytes)
    }

    /// A tape written as hexadecimal digits, as failures print it.
    ///
    /// # Errors
    /// The first part that is not a pair of hexadecimal digits.
    pub fn from_hex(hex: &str) -> Result<Tape, String> {
        let hex = hex.trim();
        let mut bytes = Vec::with_capacity(hex.len() / 2);
        for pair in hex.as_bytes().chunks(2) {
            let text = String::from_utf8_lossy(pair);
            match u8::from_str_radix(&text, 16) {
                Ok(byte) if pair.len() == 2 => bytes.push(byte),
                _ => return Err(format!("not a pair of hexadecimal digits: {text:?}")),
            }
        }
        Ok(Tape::new(bytes))
    }

    /// The whole tape as hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The bytes of the whole tape.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether every byte has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.position >= self.bytes.len()
    }

    /// The next byte, 0 when exhausted.
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.position).copied().unwrap_or(0);
        self.position = self.position.saturating_add(1);
        byte
    }

    /// A number in `0..limit` (0 when `limit` is 0). Reads one, two or four bytes, depending on
    /// `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        let wide = match limit {
            0 | 1 => return 0,
            2..=0x100 => u32::from(self.byte()),
            0x101..=0x1_0000 => u32::from(self.byte()) << 8 | u32::from(self.byte()),
            _ => (0..4).fold(0, |n, _| n << 8 | u32::from(self.byte())),
        };
        wide % limit
    }

    /// An index into something of `length` elements (0 when it is empty).
    pub fn index(&mut self, length: usize) -> usize {
        self.below(u32::try_from(length).unwrap_or(u32::MAX)) as usize
    }

    /// True with probability `numerator / 256`.
    pub fn chance(&mut self, numerator: u8) -> bool {
        // Large bytes give true, so that an exhausted tape, which returns 0, gives false.
        self.byte() > 255 - numerator
    }

    /// Shrink a failing tape: cuts and zeroes smaller and smaller parts, and returns the smallest
    /// tape found for which `fails` is true. Calls `fails` at most `budget` times.
    #[must_use]
    pub fn shrink(&self, budget: usize, mut fails: impl FnMut(Tape) -> bool) -> Tape {
        let mut best = self.bytes.clone();
        let mut calls = 0;
        let mut try_one = |candidate: &[u8]| {
            calls += 1;
            (calls <= budget).then(|| fails(Tape::new(candidate.to_vec())))
        };
        let mut size = best.len().div_ceil(2);
        while size > 0 {
            let mut start = 0;
            while start < best.len() {
                let end = (start + size).min(best.len());
                let mut cut = best.clone();
                cut.drain(start..end);
                match try_one(&cut) {
                    None => return Tape::new(best),
                    Some(true) => {
                        best = cut;
                        continue;
                    }
                    Some(false) => {}
                }
                let mut zeroed = best.clone();
                if let Some(part) = zeroed.get_mut(start..end) {
                    part.fill(0);
                }
                if zeroed != best {
                    match try_one(&zeroed) {
                        None => return Tape::new(best),
                        Some(true) => best = zeroed,
                        Some(false) => {}
                    }
                }
                start = end;
            }
            size /= 2;
        }
        Tape::new(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_tape_answers_zero() {
        let mut tape = Tape::new(vec![7]);
        assert_eq!(tape.below(10), 7);
        assert!(tape.is_empty());
        assert_eq!(tape.below(1_000_000), 0);
        assert!(!tape.chance(255));
    }

    #[test]
    fn hexadecimal_round_trips_and_bad_digits_are_named() {
        let tape = Tape::from_seed(5, 33);
        assert_eq!(
            Tape::from_hex(&tape.to_hex()).unwrap().bytes(),
            tape.bytes()
        );
        assert!(Tape::from_hex("0g").unwrap_err().contains("0g"));
        assert!(Tape::from_hex("012").is_err());
    }

    #[test]
    fn shrinking_finds_the_one_byte_that_matters() {
        let mut bytes = vec![9; 200];
        bytes[117] = 77;
        let small = Tape::new(bytes).shrink(10_000, |t| t.bytes().contains(&77));
        assert_eq!(small.bytes(), [77]);
    }
}
