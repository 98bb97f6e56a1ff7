//! Values of fields: the version with which a value was written, then characters that follow from
//! record, field and version.

use stdx::rng::mix64;

/// Length of the version at the start of a value, in hexadecimal digits.
const VERSION: usize = 8;

/// The value of a field, of `bytes` bytes.
pub(super) fn value(seed: u64, key: &str, field: usize, version: u32, bytes: u32) -> Vec<u8> {
    let bytes = bytes as usize;
    let mut value = format!("{version:08x}").into_bytes();
    value.reserve(bytes);
    let record = key
        .bytes()
        .fold(seed, |of, byte| mix64(of ^ u64::from(byte)));
    let mut state = mix64(record ^ (field as u64) << 32 ^ u64::from(version));
    while value.len() < bytes {
        state = mix64(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
        // Printable characters, 6 bits each, as in the original.
        value.extend(state.to_le_bytes().map(|byte| b' ' + (byte & 63)));
    }
    value.truncate(bytes);
    value
}

/// The version of a value; `None` if it is none.
pub(super) fn version(value: &[u8]) -> Option<u32> {
    let digits = str::from_utf8(value.get(..VERSION)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printable_and_differ_by_all_that_they_are_of() {
        let one = value(1, "user7", 0, 0xabcd, 100);
        assert_eq!((one.len(), version(&one)), (100, Some(0xabcd)));
        assert!(one.iter().all(|byte| (b' '..=b'~').contains(byte)));
        let others = [
            value(2, "user7", 0, 0xabcd, 100),
            value(1, "user8", 0, 0xabcd, 100),
            value(1, "user7", 1, 0xabcd, 100),
            value(1, "user7", 0, 0xabce, 100),
        ];
        assert!(others.iter().all(|other| other[8..] != one[8..]));
        assert_eq!(version(b"1234567"), None);
        assert_eq!(version(b"1234567x"), None);
    }
}
