//! Many sorted sources as one: a tree of losers over the heads of their current keys.
//!
//! Every inner node of the tree remembers the source that lost there, so a step replays only the
//! matches on the path of the source that was taken: `log2(sources)` comparisons, nearly all of them
//! of two numbers, the first 8 bytes of the keys.
//!
//! Invariants:
//! - I1: sources are given newest first, and every version of a key in a source is newer than every
//!   version of it in later ones - but for versions that are in both, by a replay of the log.
//! - I2: for one key, the versions of a newer source come before those of an older one, whatever
//!   their seqs: a flush rewrites the seq of what is older than all snapshots to 0, so the seq 0 of
//!   a newer source may stand above the seq 5 of an older one.
//! - I3: the output is sorted: keys ascend, for one key seqs fall strictly. A version that would
//!   break this is dropped: it is a duplicate, or older than one that all snapshots see.
//!
//! It runs on one thread, under no lock.

use crate::error::Result;
use crate::merge::Source;
use crate::types::{Entry, Seq};

/// The merged sequence. An error of a source is passed on; go no further after it.
#[derive(Debug)]
pub(crate) struct Merger<S> {
    sources: Vec<S>,
    /// For each source: its head, or more than every head at its end.
    ranks: Vec<u128>,
    /// `losers[n]` lost at inner node `n`; `losers[0]` is the winner. Leaves are not stored: source
    /// `s` is the child of node `(s + sources) / 2`.
    losers: Vec<usize>,
    /// The entry last passed, to recognise duplicates.
    key: Vec<u8>,
    seq: Seq,
}

/// The rank of a source at its end.
const END: u128 = 1 << 64;

impl<S: Source> Merger<S> {
    /// Merge `sources`, newest first (I1).
    pub(crate) fn new(sources: Vec<S>) -> Merger<S> {
        let ranks = sources.iter().map(rank).collect();
        let losers = vec![0; sources.len()];
        let mut merger = Merger {
            sources,
            ranks,
            losers,
            key: Vec::new(),
            seq: Seq::MAX,
        };
        merger.play_all();
        merger
    }

    /// Play the whole tournament.
    fn play_all(&mut self) {
        let n = self.sources.len();
        // Winners of all nodes from the leaves up; node 1 is the root, leaf `s` is node `s + n`.
        let mut winners: Vec<usize> = (0..2 * n).map(|node| node.saturating_sub(n)).collect();
        for node in (1..n).rev() {
            let left = winners.get(2 * node).copied().unwrap_or_default();
            let right = winners.get(2 * node + 1).copied().unwrap_or_default();
            let (winner, loser) = if self.beats(left, right) {
                (left, right)
            } else {
                (right, left)
            };
            set(&mut winners, node, winner);
            set(&mut self.losers, node, loser);
        }
        if 1 < n {
            let champion = winners.get(1).copied().unwrap_or_default();
            set(&mut self.losers, 0, champion);
        }
    }

    /// Replay the matches of `source`, which has moved.
    fn replay(&mut self, source: usize) {
        let mut winner = source;
        let mut node = (source + self.sources.len()) / 2;
        while 0 < node {
            let loser = self.losers.get(node).copied().unwrap_or_default();
            if self.beats(loser, winner) {
                set(&mut self.losers, node, winner);
                winner = loser;
            }
            node /= 2;
        }
        set(&mut self.losers, 0, winner);
    }

    /// Whether source `a` comes before source `b` (I2).
    #[inline]
    fn beats(&self, a: usize, b: usize) -> bool {
        let rank = |source: usize| self.ranks.get(source).copied().unwrap_or(END);
        let (left, right) = (rank(a), rank(b));
        if left != right || left == END {
            return left < right;
        }
        let key = |source: usize| self.entry(source).map(|entry| entry.key);
        let (left, right) = (key(a), key(b));
        left < right || (left == right && a < b)
    }

    fn entry(&self, source: usize) -> Option<Entry<'_>> {
        self.sources.get(source)?.current()
    }

    fn winner(&self) -> usize {
        self.losers.first().copied().unwrap_or_default()
    }

    /// Move the winner on, and find the next.
    fn step(&mut self) -> Result<()> {
        let winner = self.winner();
        let Some(source) = self.sources.get_mut(winner) else {
            return Ok(());
        };
        source.advance()?;
        let rank = rank(source);
        if let Some(place) = self.ranks.get_mut(winner) {
            *place = rank;
        }
        self.replay(winner);
        Ok(())
    }
}

impl<S: Source> Source for Merger<S> {
    #[inline]
    fn current(&self) -> Option<Entry<'_>> {
        self.entry(self.winner())
    }

    fn advance(&mut self) -> Result<()> {
        if let [only] = self.sources.as_mut_slice() {
            return only.advance();
        }
        let Some(passed) = self.sources.get(self.winner()).and_then(Source::current) else {
            return Ok(());
        };
        self.key.clear();
        self.key.extend_from_slice(passed.key);
        self.seq = passed.seq;
        loop {
            self.step()?;
            match self.current() {
                Some(next) if next.key == self.key && self.seq <= next.seq => {} // I3
                _ => return Ok(()),
            }
        }
    }
}

#[inline]
fn rank<S: Source>(source: &S) -> u128 {
    match source.current() {
        Some(entry) => u128::from(head(entry.key)),
        None => END,
    }
}

/// The first 8 bytes as a number, filled up with zeros.
#[inline]
fn head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(bytes)
        }
    }
}

fn set(list: &mut [usize], index: usize, value: usize) {
    *list.get_mut(index).expect("a node of the tree") = value;
}
