//! Primary keys in scattered order. Keys are made from row numbers by invertible steps, so that the
//! row of a key can be computed without a list. (The steps are those of SplitMix64; Steele, Lea and
//! Flood 2014.)

const FIRST: u64 = 0xBF58_476D_1CE4_E5B9;
const SECOND: u64 = 0x94D0_49BB_1331_11EB;

/// The key of row `id`.
pub(super) fn key(id: u64, seed: u64) -> u64 {
    let mut z = id ^ seed;
    z = (z ^ z >> 30).wrapping_mul(FIRST);
    z = (z ^ z >> 27).wrapping_mul(SECOND);
    z ^ z >> 31
}

/// The number of the row with `key`.
pub(super) fn id(key: u64, seed: u64) -> u64 {
    let mut z = key ^ key >> 31 ^ key >> 62;
    z = z.wrapping_mul(inverse(SECOND));
    z = z ^ z >> 27 ^ z >> 54;
    z = z.wrapping_mul(inverse(FIRST));
    (z ^ z >> 30 ^ z >> 60) ^ seed
}

/// The multiplicative inverse of an odd number: each round doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut round = 0;
    while round < 5 {
        x = x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_back_to_its_row_and_keys_do_not_ascend() {
        let mut up = 0;
        for row in (0..1000).chain([u64::MAX, 1 << 63]) {
            assert_eq!(id(key(row, 42), 42), row);
            up += u32::from(key(row, 42) < key(row.wrapping_add(1), 42));
        }
        assert!((400..600).contains(&up), "{up} of 1002 ascend");
    }
}
