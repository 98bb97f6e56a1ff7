//! The blocks of a file that occupy space on the disk: written or reserved ones.
//!
//! - I1: ranges are not empty, do not touch and do not overlap; `total` is the sum of lengths.

use std::collections::BTreeMap;

const BLOCK: u64 = 4096;

/// A set of whole blocks, as ranges.
#[derive(Clone, Default)]
pub(crate) struct Owned {
    ranges: BTreeMap<u64, u64>,
    total: u64,
}

impl Owned {
    /// Bytes owned.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Number of bytes that `offset..offset + length` would occupy in addition.
    pub(crate) fn cost(&self, offset: u64, length: u64) -> u64 {
        let mut wider = self.clone();
        wider.add(offset, length);
        wider.total - self.total
    }

    /// Add the blocks of `offset..offset + length`.
    pub(crate) fn add(&mut self, offset: u64, length: u64) {
        if length == 0 {
            return;
        }
        let mut start = offset / BLOCK * BLOCK;
        let mut end = offset.saturating_add(length).next_multiple_of(BLOCK);
        while let Some((&from, &to)) = self.ranges.range(..=end).next_back()
            && start <= to
        {
            self.ranges.remove(&from);
            self.total -= to - from;
            start = start.min(from);
            end = end.max(to);
        }
        self.ranges.insert(start, end);
        self.total += end - start;
        debug_assert_eq!(self.total, self.sum(), "I1: the total is the sum");
    }

    /// Remove all blocks beyond a length.
    pub(crate) fn cut(&mut self, length: u64) {
        let limit = length.next_multiple_of(BLOCK);
        while let Some((&from, &to)) = self.ranges.last_key_value()
            && limit < to
        {
            self.ranges.remove(&from);
            self.total -= to - from;
            if from < limit {
                self.ranges.insert(from, limit);
                self.total += limit - from;
            }
        }
        debug_assert_eq!(self.total, self.sum(), "I1: the total is the sum");
    }

    fn sum(&self) -> u64 {
        self.ranges.iter().map(|(from, to)| to - from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use stdx::Rng;

    #[test]
    fn ranges_are_what_a_set_of_blocks_would_be() {
        let mut rng = Rng::new(9);
        let (mut owned, mut model) = (Owned::default(), BTreeSet::new());
        for _ in 0..2000 {
            let (at, n) = (rng.below(400_000), rng.below(30_000));
            if rng.chance(0.1) {
                owned.cut(at);
                model.retain(|&block: &u64| block * BLOCK < at);
            } else {
                let before = owned.total();
                let cost = owned.cost(at, n);
                owned.add(at, n);
                assert_eq!(owned.total(), before + cost);
                if n > 0 {
                    model.extend(at / BLOCK..(at + n).div_ceil(BLOCK));
                }
            }
            assert_eq!(owned.total(), model.len() as u64 * BLOCK);
        }
    }
}
