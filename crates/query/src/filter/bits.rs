//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet` and `$bitsAnyClear`.

use bson::{Bson, RawBsonRef};

use super::argument::shown;
use crate::number::Number;
use crate::{Error, Result};

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
    /// The positions, ascending.
    pub positions: Vec<u32>,
}

impl Bits {
    /// Parses the argument: a bit mask as a number or binary data, or an array of positions.
    pub(super) fn parse(name: &str, kind: BitsKind, value: RawBsonRef<'_>) -> Result<Bits> {
        let mut positions = match value {
            RawBsonRef::Array(list) => {
                let mut positions = Vec::new();
                for item in list {
                    positions.push(position(item?)?);
                }
                positions
            }
            RawBsonRef::Binary(binary) => set_in_bytes(binary.bytes)?,
            _ => {
                let mask = mask(name, value)?;
                (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
            }
        };
        positions.sort_unstable();
        positions.dedup();
        Ok(Bits { kind, positions })
    }

    pub(super) fn matches(&self, value: RawBsonRef<'_>) -> bool {
        if let RawBsonRef::Binary(binary) = value {
            return self.judge(|position| bit_in_bytes(binary.bytes, position));
        }
        let number = Number::from_raw(value).and_then(Number::to_i64_exact);
        // Positions beyond 64 bits have the bit of the sign.
        let bit = |number: i64, position: u32| number >> position.min(63) & 1 == 1;
        number.is_some_and(|number| self.judge(|position| bit(number, position)))
    }

    fn judge(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut bits = self.positions.iter().map(|position| is_set(*position));
        match self.kind {
            BitsKind::AllSet => bits.all(|set| set),
            BitsKind::AllClear => bits.all(|set| !set),
            BitsKind::AnySet => bits.any(|set| set),
            BitsKind::AnyClear => bits.any(|set| !set),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            BitsKind::AllSet => "$bitsAllSet",
            BitsKind::AllClear => "$bitsAllClear",
            BitsKind::AnySet => "$bitsAnySet",
            BitsKind::AnyClear => "$bitsAnyClear",
        }
    }

    pub(super) fn to_bson(&self) -> Bson {
        let position = |position: &u32| Bson::Int64(i64::from(*position));
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

fn set_in_bytes(bytes: &[u8]) -> Result<Vec<u32>> {
    let bits = bytes
        .len()
        .checked_mul(8)
        .and_then(|bits| u32::try_from(bits).ok())
        .ok_or_else(|| Error::bad_value("a bit mask is too long"))?;
    Ok((0..bits).filter(|bit| bit_in_bytes(bytes, *bit)).collect())
}
