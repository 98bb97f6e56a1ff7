//! Transposes eight rows of eight bytes in registers.

/// Two squares of eight by eight bytes, which one 128-bit instruction processes together.
pub(super) type Pair = [u64; 2];

/// Exchange rows and columns in both squares: byte `j` of word `i` (counted from the lowest)
/// becomes byte `i` of word `j`. Three rounds exchange blocks of 4x4, 2x2 and single bytes
/// (Hacker's Delight, 7-3).
#[inline(always)]
pub(super) fn transpose(words: [Pair; 8]) -> [Pair; 8] {
    const M4: u64 = 0x0000_0000_FFFF_FFFF;
    const M2: u64 = 0x0000_FFFF_0000_FFFF;
    const M1: u64 = 0x00FF_00FF_00FF_00FF;
    let [a, b, c, d, e, f, g, h] = words;
    let (a, e) = exchange::<32, M4>(a, e);
    let (b, f) = exchange::<32, M4>(b, f);
    let (c, g) = exchange::<32, M4>(c, g);
    let (d, h) = exchange::<32, M4>(d, h);
    let (a, c) = exchange::<16, M2>(a, c);
    let (b, d) = exchange::<16, M2>(b, d);
    let (e, g) = exchange::<16, M2>(e, g);
    let (f, h) = exchange::<16, M2>(f, h);
    let (a, b) = exchange::<8, M1>(a, b);
    let (c, d) = exchange::<8, M1>(c, d);
    let (e, f) = exchange::<8, M1>(e, f);
    let (g, h) = exchange::<8, M1>(g, h);
    [a, b, c, d, e, f, g, h]
}

/// Exchange the high parts of `a` with the low parts of `b`.
#[inline(always)]
fn exchange<const SHIFT: u32, const LOW: u64>(a: Pair, b: Pair) -> (Pair, Pair) {
    let ([a0, a1], [b0, b1]) = (a, b);
    let first = |a: u64, b: u64| (a & LOW) | (b & LOW) << SHIFT;
    let second = |a: u64, b: u64| (a >> SHIFT & LOW) | (b & !LOW);
    (
        [first(a0, b0), first(a1, b1)],
        [second(a0, b0), second(a1, b1)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let byte = |square, i, j| u8::try_from(64 * square + 8 * i + j).unwrap();
        let rows: [Pair; 8] = std::array::from_fn(|i| {
            [0, 1].map(|square| u64::from_le_bytes(std::array::from_fn(|j| byte(square, i, j))))
        });
        for (j, column) in transpose(rows).into_iter().enumerate() {
            for (square, word) in column.into_iter().enumerate() {
                for (i, found) in word.to_le_bytes().into_iter().enumerate() {
                    assert_eq!(found, byte(square, i, j));
                }
            }
        }
    }
}
