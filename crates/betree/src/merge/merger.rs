//! Many sorted sources as one: a tree of losers over the heads of their current keys.
//!
//! Every inner node of the tree remembers the source that lost there, so a step replays only the
//! matches on the path of the source that was taken: `log2(sources)` comparisons, nearly all of
//! them of two numbers, the first 8 bytes of the keys.
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
use crate::types::{Entry, head};

/// The merged sequence. An error of a source is returned; do not continue after it.
#[derive(Debug)]
pub(crate) struct Merger<S> {
    sources: Vec<S>,
    /// `nodes[n]` is the loser of the match at inner node `n`, `nodes[0]` the winner of all. Leaves
    /// are not stored: the parent of source `s` is node `(s + sources) / 2`.
    nodes: Vec<Player>,
    /// The key of the entry just passed, if another source may contain it too.
    passed: Vec<u8>,
}

/// A source in the tournament: its number in the low 16 bits, above it the head of its key or, at
/// its end, more than every head. So players compare as numbers, but for equal heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Player(u128);

impl Player {
    #[inline]
    fn new<S: Source>(number: usize, source: &S) -> Player {
        let rank = match source.current() {
            Some(entry) => u128::from(head(entry.key)),
            None => END,
        };
        Player(rank << 16 | number as u128)
    }

    #[inline]
    fn rank(self) -> u128 {
        self.0 >> 16
    }

    #[inline]
    fn number(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }
}

/// The rank of a source at its end.
const END: u128 = 1 << 64;

impl<S: Source> Merger<S> {
    /// Merge `sources`, newest first (I1).
    pub(crate) fn new(sources: Vec<S>) -> Merger<S> {
        assert!(sources.len() < 1 << 16, "{} sources", sources.len());
        let mut merger = Merger {
            nodes: vec![Player(END << 16); sources.len()],
            sources,
            passed: Vec::new(),
        };
        merger.play_all();
        merger
    }

    /// Play the whole tournament.
    fn play_all(&mut self) {
        let n = self.sources.len();
        let leaves = self.sources.iter().enumerate();
        let leaves: Vec<Player> = leaves.map(|(i, s)| Player::new(i, s)).collect();
        // The winners of all nodes: those from `n` on are leaves, 1 is the root.
        let mut winners = vec![Player(END << 16); n];
        winners.extend(leaves);
        for node in (1..n).rev() {
            let pair = winners.get(2 * node..2 * node + 2);
            let &[left, right] = pair.unwrap_or_default() else {
                unreachable!("a tree of {n} leaves has 2 children at node {node}");
            };
            let right_wins = self.beats(right, left);
            let (winner, loser) = if right_wins {
                (right, left)
            } else {
                (left, right)
            };
            set(&mut winners, node, winner);
            set(&mut self.nodes, node, loser);
        }
        if let Some(&champion) = winners.get(1) {
            set(&mut self.nodes, 0, champion);
        }
        let first = self.nodes.iter().min();
        assert_eq!(
            first.map(|player| player.rank()),
            first.map(|_| self.winner().rank()),
            "the winner has the lowest rank"
        );
    }

    /// Whether player `a` comes before player `b` (I2).
    #[inline]
    fn beats(&self, a: Player, b: Player) -> bool {
        if a.rank() == b.rank() {
            self.beats_by_key(a, b)
        } else {
            a < b
        }
    }

    fn beats_by_key(&self, a: Player, b: Player) -> bool {
        let key = |player| self.entry(player).map(|entry| entry.key);
        let order = key(a).cmp(&key(b));
        order.then(a.number().cmp(&b.number())).is_lt()
    }

    fn entry(&self, player: Player) -> Option<Entry<'_>> {
        self.sources.get(player.number())?.current()
    }

    #[inline]
    fn winner(&self) -> Player {
        self.nodes.first().copied().unwrap_or(Player(END << 16))
    }

    /// Whether another source may have the key of the winner: if one does, so does one that lost
    /// directly to the winner.
    #[inline]
    fn is_tied(&self, winner: Player) -> bool {
        let mut tied = false;
        let mut node = (winner.number() + self.sources.len()) / 2;
        while 0 < node {
            let loser = self.nodes.get(node);
            tied |= loser.is_some_and(|loser| loser.rank() == winner.rank());
            node /= 2;
        }
        tied
    }

    /// Advance the winner, and replay its matches.
    #[inline]
    fn step(&mut self, winner: Player) -> Result<()> {
        let number = winner.number();
        let Some(source) = self.sources.get_mut(number) else {
            return Ok(());
        };
        source.advance()?;
        let passed = winner;
        let mut winner = Player::new(number, source);
        debug_assert!(passed.rank() <= winner.rank(), "source {number} is sorted");
        let mut node = (number + self.sources.len()) / 2;
        while 0 < node {
            let loser = self.nodes.get(node).copied();
            let loser = loser.expect("the parent of a node of the tree");
            // Written so that it compiles to moves, not to branches: who wins cannot be predicted.
            let changes = self.beats(loser, winner);
            let (first, second) = if changes {
                (loser, winner)
            } else {
                (winner, loser)
            };
            set(&mut self.nodes, node, second);
            winner = first;
            node /= 2;
        }
        set(&mut self.nodes, 0, winner);
        Ok(())
    }

    /// Skip the winner and the entries that I3 drops: older sources with its key whose sequence
    /// numbers are not lower.
    fn step_tied(&mut self, winner: Player) -> Result<()> {
        let Some(entry) = self.sources.get(winner.number()).and_then(S::current) else {
            return Ok(());
        };
        let seq = entry.seq;
        assert_ne!(winner.rank(), END, "it stands at an entry");
        self.passed.clear();
        self.passed.extend_from_slice(entry.key);
        let mut winner = winner;
        loop {
            self.step(winner)?;
            winner = self.winner();
            match self.entry(winner) {
                Some(next) if next.key == self.passed && seq <= next.seq => {}
                _ => return Ok(()),
            }
        }
    }
}

impl<S: Source> Source for Merger<S> {
    #[inline]
    fn current(&self) -> Option<Entry<'_>> {
        self.entry(self.winner())
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let winner = self.winner();
        if winner.rank() == END {
            return Ok(());
        }
        if self.is_tied(winner) {
            self.step_tied(winner)
        } else {
            self.step(winner)
        }
    }
}

#[inline]
fn set(list: &mut [Player], index: usize, value: Player) {
    *list.get_mut(index).expect("a node of the tree") = value;
}
