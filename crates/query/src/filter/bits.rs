//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet` and `$bitsAnyClear`.

use bson::{Bson, RawBsonRef};

use super::argument::shown;
use crate::number::Number;
use crate::{Error, Result, meter};

/// The condition on the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitsKind {
    /// All are 1.
    AllSet,
    /// All are 0.
    AllClear,
    /// At least one is 1.
    AnySet,
    /// At least one is 0.
    AnyClear,
}

/// Positions of bits, counted from the lowest bit, and the condition on these bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    /// The condition on the bits.
    pub kind: BitsKind,
    positions: Positions,
}

/// Positions of bits, counted from the lowest bit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Positions {
    /// Ascending.
    Listed(Vec<u32>),
    /// The bits that are set. A list of them would take up to 32 times as many bytes.
    Mask(Vec<u8>),
}

impl Positions {
    /// The positions, ascending.
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (listed, mask) = match self {
            Positions::Listed(positions) => (positions.as_slice(), [].as_slice()),
            Positions::Mask(bytes) => ([].as_slice(), bytes.as_slice()),
        };
        // The length was checked: each bit has a position.
        let bits = 0..u32::try_from(mask.len() * 8).unwrap_or(u32::MAX);
        let set = bits.filter(|position| bit_in_bytes(mask, *position));
        listed.iter().copied().chain(set)
    }

    /// Bytes that a test of all positions reads.
    fn bytes(&self) -> usize {
        match self {
            Positions::Listed(positions) => size_of_val(positions.as_slice()),
            // Each bit is looked at.
            Positions::Mask(bytes) => bytes.len() * 8 * size_of::<u32>(),
        }
    }
}

impl Bits {
    /// Parses the argument: a bit mask as a number or binary data, or an array of positions.
    pub(super) fn parse(name: &str, kind: BitsKind, value: RawBsonRef<'_>) -> Result<Bits> {
        let positions = match value {
            RawBsonRef::Array(list) => {
                let mut positions = Vec::new();
                for item in list {
                    positions.push(position(item?)?);
                }
                positions.sort_unstable();
                positions.dedup();
                Positions::Listed(positions)
            }
            RawBsonRef::Binary(binary) => Positions::Mask(mask_of(binary.bytes)?),
            _ => Positions::Mask(mask(name, value)?.to_le_bytes().to_vec()),
        };
        Ok(Bits { kind, positions })
    }

    /// Whether the value has the bits.
    ///
    /// # Errors
    /// The operation must end.
    pub(super) fn matches(&self, value: RawBsonRef<'_>) -> Result<bool> {
        if let RawBsonRef::Binary(binary) = value {
            return self.judge(|position| bit_in_bytes(binary.bytes, position));
        }
        let number = Number::from_raw(value).and_then(Number::to_i64_exact);
        // Positions beyond 64 bits have the bit of the sign.
        let bit = |number: i64, position: u32| number >> position.min(63) & 1 == 1;
        match number {
            Some(number) => self.judge(|position| bit(number, position)),
            None => Ok(false),
        }
    }

    fn judge(&self, is_set: impl Fn(u32) -> bool) -> Result<bool> {
        meter::read(self.positions.bytes())?;
        let mut bits = self.positions.iter().map(is_set);
        Ok(match self.kind {
            BitsKind::AllSet => bits.all(|set| set),
            BitsKind::AllClear => bits.all(|set| !set),
            BitsKind::AnySet => bits.any(|set| set),
            BitsKind::AnyClear => bits.any(|set| !set),
        })
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            BitsKind::AllSet => "$bitsAllSet",
            BitsKind::AllClear => "$bitsAllClear",
            BitsKind::AnySet => "$bitsAnySet",
            BitsKind::AnyClear => "$bitsAnyClear",
        }
    }

    /// Number of positions.
    pub(super) fn count(&self) -> usize {
        self.positions.iter().count()
    }

    pub(super) fn to_bson(&self) -> Bson {
        let position = |position: u32| Bson::Int64(i64::from(position));
        Bson::Array(self.positions.iter().map(position).collect())
    }
}

fn position(value: RawBsonRef<'_>) -> Result<u32> {
    let number = Number::from_raw(value).ok_or_else(|| {
        Error::bad_value(format!("bit position must be an integer: {}", shown(value)))
    })?;
    match number.to_i32_exact() {
        Some(position) => u32::try_from(position)
            .map_err(|_| Error::bad_value(format!("bit position must be >= 0: {}", shown(value)))),
        None => Err(Error::bad_value(format!(
            "bit position cannot be represented as a 32-bit signed integer: {}",
            shown(value)
        ))),
    }
}

fn mask(name: &str, value: RawBsonRef<'_>) -> Result<u64> {
    let number = Number::from_raw(value).ok_or_else(|| {
        Error::bad_value(format!(
            "{name} takes an Array, a number, or a BinData but received: {}",
            shown(value)
        ))
    })?;
    let mask = number
        .to_i64_exact()
        .ok_or_else(|| Error::parse(format!("Expected an integer: {name}: {}", shown(value))))?;
    u64::try_from(mask).map_err(|_| {
        Error::parse(format!(
            "Expected a non-negative number in: {name}: {}",
            shown(value)
        ))
    })
}

fn bit_in_bytes(bytes: &[u8], position: u32) -> bool {
    let byte = usize::try_from(position / 8)
        .ok()
        .and_then(|at| bytes.get(at));
    byte.is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}

fn mask_of(bytes: &[u8]) -> Result<Vec<u8>> {
    let bits = bytes.len().checked_mul(8);
    match bits.and_then(|bits| u32::try_from(bits).ok()) {
        Some(_) => Ok(bytes.to_vec()),
        None => Err(Error::bad_value("a bit mask is too long")),
    }
}
