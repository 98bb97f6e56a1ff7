//! Rows as bytes: keys whose byte order is the order of their values, and values.
//!
//! - An integer in a key is its sign and length in one byte (128 + bytes for a non-negative one,
//!   127 - bytes for a negative one), then its bytes big-endian, without redundant leading bytes.
//! - A double is its bits, big-endian: all flipped if it is negative, else the sign alone.
//! - Texts and bytes end with `00 00`, and `00` within them is written `00 FF`, so that a prefix
//!   sorts before longer values.
//! - A column that may be null has a byte before its value, 0 for null and 1 for a value.
//!
//! In values, integers are zigzag varints, doubles are 8 bytes, texts and bytes are prefixed with
//! their length, and every column that may be null has a byte before it: 0 for null, 1 for a value.

use lab_report::error::{Error, Result};

use crate::workload::table::{Column, Kind, Value, at, nth};

/// Error message for invalid bytes.
pub(super) const DAMAGED: &str = "a row cannot be read: it is damaged";

/// Append a value to a key.
pub(super) fn put_key(column: &Column, value: &Value, key: &mut Vec<u8>) -> Result<()> {
    if column.nullable {
        key.push(u8::from(*value != Value::Null));
        if *value == Value::Null {
            return Ok(());
        }
    }
    match (column.kind, value) {
        (Kind::Int, Value::Int(n)) => put_int(*n, key),
        (Kind::Float, Value::Float(x)) => put_float(*x, key),
        (Kind::Text, Value::Text(text)) => put_escaped(text.as_bytes(), key),
        (Kind::Bytes, Value::Bytes(bytes)) => put_escaped(bytes, key),
        _ => return Err(mismatch(column, value)),
    }
    Ok(())
}

fn mismatch(column: &Column, value: &Value) -> Error {
    Error::target(format!("column {} cannot hold {value:?}", column.name))
}

fn put_int(n: i64, key: &mut Vec<u8>) {
    let magnitude = if n < 0 { !n } else { n }.cast_unsigned();
    let length = 8 - (magnitude.leading_zeros() / 8);
    let sign_and_length = if n < 0 { 127 - length } else { 128 + length };
    key.push(u8::try_from(sign_and_length).expect("127 - 8 to 128 + 8"));
    let bytes = n.to_be_bytes();
    let skip = 8usize.saturating_sub(length as usize);
    key.extend_from_slice(bytes.get(skip..).unwrap_or_default());
}

fn put_float(x: f64, key: &mut Vec<u8>) {
    // `-0.0` is encoded as `0.0`.
    let bits = (x + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits ^ (1 << 63)
    };
    key.extend_from_slice(&ordered.to_be_bytes());
}

fn put_escaped(bytes: &[u8], key: &mut Vec<u8>) {
    for &byte in bytes {
        key.push(byte);
        if byte == 0 {
            key.push(0xFF);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

/// Decode a column's value from the front of a key.
pub(super) fn take_key(column: &Column, key: &mut &[u8]) -> Option<Value> {
    if column.nullable && byte(key)? == 0 {
        return Some(Value::Null);
    }
    Some(match column.kind {
        Kind::Int => Value::Int(take_int(key)?),
        Kind::Float => Value::Float(take_float(key)?),
        Kind::Text => Value::Text(String::from_utf8(take_escaped(key)?).ok()?),
        Kind::Bytes => Value::Bytes(take_escaped(key)?),
    })
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = from.split_first()?;
    *from = rest;
    Some(first)
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

fn take_int(key: &mut &[u8]) -> Option<i64> {
    let first = byte(key)?;
    let (negative, length) = match first {
        128..=136 => (false, first - 128),
        119..=127 => (true, 127 - first),
        _ => return None,
    };
    let mut bytes = [if negative { 0xFF } else { 0 }; 8];
    let length = usize::from(length);
    let low = bytes.get_mut(8usize.checked_sub(length)?..)?;
    low.copy_from_slice(take(key, length)?);
    Some(i64::from_be_bytes(bytes))
}

fn take_float(key: &mut &[u8]) -> Option<f64> {
    let ordered = u64::from_be_bytes(take(key, 8)?.try_into().ok()?);
    let bits = if ordered >> 63 == 1 {
        ordered ^ (1 << 63)
    } else {
        !ordered
    };
    Some(f64::from_bits(bits))
}

fn take_escaped(key: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        match byte(key)? {
            0 => match byte(key)? {
                0 => return Some(bytes),
                0xFF => bytes.push(0),
                _ => return None,
            },
            other => bytes.push(other),
        }
    }
}

/// Append to a value the columns at `positions` of a row.
pub(super) fn put_value(
    columns: &[Column],
    positions: &[usize],
    row: &[Value],
    value: &mut Vec<u8>,
) -> Result<()> {
    for &position in positions {
        let column = nth(columns, position, "column")?;
        let one = at(row, position);
        if column.nullable {
            value.push(u8::from(*one != Value::Null));
            if *one == Value::Null {
                continue;
            }
        }
        match (column.kind, one) {
            (Kind::Int, Value::Int(n)) => put_varint(zigzag(*n), value),
            (Kind::Float, Value::Float(x)) => value.extend_from_slice(&x.to_bits().to_be_bytes()),
            (Kind::Text, Value::Text(text)) => put_bytes(text.as_bytes(), value),
            (Kind::Bytes, Value::Bytes(bytes)) => put_bytes(bytes, value),
            _ => return Err(mismatch(column, one)),
        }
    }
    Ok(())
}

fn put_bytes(bytes: &[u8], value: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, value);
    value.extend_from_slice(bytes);
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

fn put_varint(mut n: u64, value: &mut Vec<u8>) {
    while n >= 0x80 {
        value.push(u8::try_from(n & 0x7F).expect("7 bits") | 0x80);
        n >>= 7;
    }
    value.push(u8::try_from(n).expect("7 bits"));
}

fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let next = byte(from)?;
        n |= u64::from(next & 0x7F) << shift;
        if next < 0x80 {
            return Some(n);
        }
    }
    None
}

/// Decode the columns at `positions` from a value into `row`.
pub(super) fn take_value(
    columns: &[Column],
    positions: &[usize],
    mut value: &[u8],
    row: &mut [Value],
) -> Option<()> {
    let from = &mut value;
    for &position in positions {
        let column = columns.get(position)?;
        let place = row.get_mut(position)?;
        if column.nullable && byte(from)? == 0 {
            *place = Value::Null;
            continue;
        }
        match column.kind {
            Kind::Int => {
                let n = take_varint(from)?;
                *place = Value::Int((n >> 1).cast_signed() ^ -((n & 1).cast_signed()));
            }
            Kind::Float => {
                let bits = u64::from_be_bytes(take(from, 8)?.try_into().ok()?);
                *place = Value::Float(f64::from_bits(bits));
            }
            Kind::Text => {
                let text = std::str::from_utf8(take_bytes(from)?).ok()?;
                // Reuse the memory of the previous row's value.
                match place {
                    Value::Text(old) => {
                        old.clear();
                        old.push_str(text);
                    }
                    _ => *place = Value::Text(text.to_owned()),
                }
            }
            Kind::Bytes => *place = Value::Bytes(take_bytes(from)?.to_vec()),
        }
    }
    from.is_empty().then_some(())
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(from)?).ok()?;
    take(from, length)
}

#[cfg(test)]
mod tests {
    use stdx::Rng;

    use super::*;

    fn key(column: &Column, value: &Value) -> Vec<u8> {
        let mut key = Vec::new();
        put_key(column, value, &mut key).unwrap();
        key
    }

    fn ascend(column: &Column, values: &[Value]) {
        let keys: Vec<Vec<u8>> = values.iter().map(|v| key(column, v)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "T2: {values:?}");
        for (value, key) in values.iter().zip(&keys) {
            let rest = &mut key.as_slice();
            assert_eq!(take_key(column, rest).unwrap(), *value);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn keys_are_ordered_as_their_values() {
        let edges = [
            i64::MIN,
            -(1 << 40),
            -65_537,
            -65_536,
            -257,
            -256,
            -1,
            0,
            1,
            255,
            256,
            65_535,
            1 << 40,
            i64::MAX,
        ];
        ascend(&Column::int("n"), &edges.map(Value::Int));
        let floats = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 1.0, f64::MAX];
        ascend(&Column::float("x"), &floats.map(Value::Float));
        let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "ab", "b"].map(Value::from);
        ascend(&Column::text("t", 9), &texts);
        let nullable = [Value::Null, Value::Int(-5), Value::Int(0)];
        ascend(&Column::int("n").or_null(), &nullable);
    }

    #[test]
    fn random_integers_keep_their_order() {
        let column = Column::int("n");
        let mut rng = Rng::new(7);
        for _ in 0..20_000 {
            let (a, b) = (rng.next_u64().cast_signed(), rng.next_u64().cast_signed());
            let (a, b) = (a >> rng.below(64), b >> rng.below(64));
            let order = key(&column, &Value::Int(a)).cmp(&key(&column, &Value::Int(b)));
            assert_eq!(order, a.cmp(&b), "seed 7: {a} {b}");
        }
    }

    #[test]
    fn values_come_back_and_damage_is_reported() {
        let columns = [
            Column::int("n"),
            Column::float("x"),
            Column::text("t", 9).or_null(),
            Column::bytes("b", 9),
        ];
        let positions = [0, 1, 2, 3];
        let row = vec![
            Value::Int(-300),
            Value::Float(-0.1),
            Value::Null,
            Value::Bytes(vec![0, 255]),
        ];
        let mut bytes = Vec::new();
        put_value(&columns, &positions, &row, &mut bytes).unwrap();
        let mut back = vec![Value::Null; 4];
        take_value(&columns, &positions, &bytes, &mut back).unwrap();
        assert_eq!(back, row, "G6: as they were written");
        for cut in 0..bytes.len() {
            let short = bytes.get(..cut).unwrap();
            assert_eq!(take_value(&columns, &positions, short, &mut back), None);
        }
        bytes.push(1);
        assert_eq!(take_value(&columns, &positions, &bytes, &mut back), None);
        let wrong = put_value(&columns, &[0], &[Value::Null], &mut bytes);
        assert!(wrong.unwrap_err().message.contains('n'), "T1: null");
    }
}
