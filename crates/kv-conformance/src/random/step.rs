//! The steps of a random run, drawn from a tape.

use std::fmt;
use std::ops::Bound;
use std::slice::Chunks;

use kv::{Capabilities, Direction, Durability, KeyRange};
use stdx::Tape;

/// Size of a frame of the tape in bytes. A step that needs more bytes reads zeros.
pub(super) const FRAME: usize = 32;

/// Number of kinds of steps; their weights have this order on the tape.
const KINDS: usize = 22;

/// Keys that are drawn frequently; some of them are neighbours or prefixes of others.
const HOT: [&[u8]; 12] = [
    b"k",
    b"ka",
    b"kb",
    b"k\0",
    b"k\xff",
    b"a",
    b"b",
    b"c",
    b"\0",
    b"\xff",
    b"\xff\xff",
    b"kab",
];

/// Common prefixes of other keys.
const PREFIXES: [&[u8]; 3] = [b"cold/", b"k", b"\xff"];

/// Bytes of these keys after the prefix.
const LETTERS: [u8; 6] = [b'a', b'b', 0, 0xff, b'm', b'/'];

/// Length of a long key in bytes, if the engine accepts keys of this length.
const LONG_KEY: usize = 250;

/// A key; printed as text, truncated when long.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(pub(super) Vec<u8>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..24) {
            Some(head) => write!(f, "\"{}..\"({} bytes)", head.escape_ascii(), self.0.len()),
            None => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

/// A value: its length, and the number from which its bytes are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) length: usize,
    pub(super) stamp: u32,
}

impl Value {
    pub(super) fn bytes(self) -> Vec<u8> {
        let stamp = self.stamp.to_be_bytes();
        stamp
            .iter()
            .rev()
            .copied()
            .cycle()
            .take(self.length)
            .collect()
    }
}

/// A range of keys.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) start: Bound<Key>,
    pub(super) end: Bound<Key>,
}

impl Range {
    pub(super) fn borrow(&self) -> KeyRange<'_> {
        KeyRange {
            start: self.start.as_ref().map(|key| key.0.as_slice()),
            end: self.end.as_ref().map(|key| key.0.as_slice()),
        }
    }
}

/// One change of a key or a range.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Key, Value),
    Insert(Key, Value),
    Delete(Key),
    PutBlind(Key, Value),
    DeleteBlind(Key),
    DeleteRange(Range),
}

/// One move of a cursor.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Advance(u32),
    Seek(Key),
}

/// One step. The number in a `pick` is reduced to an existing object when the step is executed.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Change {
        pick: usize,
        tree: usize,
        change: Change,
        level: Durability,
    },
    Get {
        pick: usize,
        tree: usize,
        key: Key,
    },
    GetMany {
        pick: usize,
        tree: usize,
        keys: Vec<Key>,
    },
    Scan {
        pick: usize,
        tree: usize,
        range: Range,
        direction: Direction,
        moves: Vec<Move>,
    },
    Begin,
    Commit {
        pick: usize,
        level: Durability,
    },
    Rollback {
        pick: usize,
    },
    OpenSnapshot,
    CloseSnapshot {
        pick: usize,
    },
    Batch {
        changes: Vec<(usize, Change)>,
        level: Durability,
    },
    Checkpoint,
    SyncLog,
    Settle,
    Compact {
        tree: usize,
        range: Range,
    },
    Count {
        tree: usize,
    },
    Reopen {
        drop: bool,
    },
    CreateTree {
        name: usize,
    },
    DropTree {
        tree: usize,
    },
}

/// Draws steps.
pub(super) struct Script<'t> {
    frames: Chunks<'t, u8>,
    /// The frame of the current step.
    tape: Tape,
    weights: [u32; KINDS],
    /// Number of hot keys that are drawn in this run: the fewer they are, the more steps use the
    /// same key.
    hot: usize,
    key_max: usize,
    empty_keys: bool,
    levels: usize,
    stamp: u32,
}

impl<'t> Script<'t> {
    /// Read the weights from the first frame of `bytes`.
    pub(super) fn new(bytes: &'t [u8], capabilities: &Capabilities, log: bool) -> Script<'t> {
        let mut frames = bytes.chunks(FRAME);
        let mut tape = Tape::new(frames.next().unwrap_or_default().to_vec());
        let mut weights = [0; KINDS];
        for weight in &mut weights {
            // Off in a quarter of all runs, rare in half of them, frequent in a quarter.
            *weight = [0, 1, 2, 8][tape.index(4)];
        }
        if weights.iter().sum::<u32>() == 0 {
            weights[0] = 1;
        }
        let hot = [HOT.len(), 6, 3, 2][tape.index(4)];
        Script {
            frames,
            tape,
            weights,
            hot,
            key_max: capabilities.limits.key_max,
            empty_keys: capabilities.empty_keys,
            levels: if log { Durability::ALL.len() } else { 1 },
            stamp: 0,
        }
    }

    fn kind(&mut self) -> usize {
        let mut at = self.tape.below(self.weights.iter().sum());
        for (kind, &weight) in self.weights.iter().enumerate() {
            if at < weight {
                return kind;
            }
            at -= weight;
        }
        0
    }

    fn key(&mut self) -> Key {
        let key = match self.tape.below(16) {
            0..=10 => HOT[self.tape.index(self.hot)].to_vec(),
            11 => Vec::new(),
            12 => {
                let mut key = vec![b'L'; LONG_KEY.min(self.key_max) - 1];
                key.push(self.tape.byte());
                key
            }
            _ => {
                let mut key = PREFIXES[self.tape.index(PREFIXES.len())].to_vec();
                for _ in 0..self.tape.below(35) {
                    key.push(LETTERS[self.tape.index(LETTERS.len())]);
                }
                key
            }
        };
        Key(if key.is_empty() && !self.empty_keys {
            b"e".to_vec()
        } else {
            key
        })
    }

    fn value(&mut self) -> Value {
        self.stamp += 1;
        let length = match self.tape.below(16) {
            0..=9 => 4,
            10..=11 => 0,
            12..=14 => 50 + self.tape.below(256) as usize * 5,
            _ => 4000 + self.tape.below(256) as usize * 64,
        };
        let stamp = self.stamp;
        Value { length, stamp }
    }

    fn bound(&mut self) -> Bound<Key> {
        match self.tape.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    fn range(&mut self) -> Range {
        let (start, end) = (self.bound(), self.bound());
        let key = |bound: &Bound<Key>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.0.clone()),
            Bound::Unbounded => None,
        };
        let crossed = key(&start).zip(key(&end)).is_some_and(|(s, e)| e < s);
        // A range whose end is before its start is empty: one in eight is enough.
        if crossed && !self.tape.chance(32) {
            return Range {
                start: end,
                end: start,
            };
        }
        Range { start, end }
    }

    fn level(&mut self) -> Durability {
        // Mostly the cheapest level: syncs are slow and do not change results.
        match self.tape.below(16) {
            0..=13 => Durability::None,
            _ => Durability::ALL[self.tape.index(self.levels)],
        }
    }

    fn pick(&mut self) -> usize {
        self.tape.byte().into()
    }

    fn change(&mut self, kind: usize) -> Change {
        match kind {
            0 => Change::Put(self.key(), self.value()),
            1 => Change::Insert(self.key(), self.value()),
            2 => Change::Delete(self.key()),
            3 => Change::PutBlind(self.key(), self.value()),
            4 => Change::DeleteBlind(self.key()),
            _ => Change::DeleteRange(self.range()),
        }
    }

    fn batch(&mut self) -> Vec<(usize, Change)> {
        let count = self.tape.below(12);
        let kinds = [0, 0, 0, 2, 2, 5];
        (0..count)
            .map(|_| {
                let kind = kinds[self.tape.index(kinds.len())];
                (self.pick(), self.change(kind))
            })
            .collect()
    }

    fn scan(&mut self) -> Step {
        let direction = match self.tape.below(2) {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let moves = (0..self.tape.below(5)).map(|_| match self.tape.below(2) {
            0 => Move::Advance(1 + self.tape.below(6)),
            _ => Move::Seek(self.key()),
        });
        let moves = moves.collect();
        Step::Scan {
            pick: self.pick(),
            tree: self.pick(),
            range: self.range(),
            direction,
            moves,
        }
    }

    /// The next step; `None` at the end of the tape.
    pub(super) fn next(&mut self) -> Option<Step> {
        self.tape = Tape::new(self.frames.next()?.to_vec());
        Some(match self.kind() {
            kind @ 0..=5 => Step::Change {
                pick: self.pick(),
                tree: self.pick(),
                change: self.change(kind),
                level: self.level(),
            },
            6 => Step::Get {
                pick: self.pick(),
                tree: self.pick(),
                key: self.key(),
            },
            7 => Step::GetMany {
                pick: self.pick(),
                tree: self.pick(),
                keys: (0..self.tape.below(7)).map(|_| self.key()).collect(),
            },
            8 | 9 => self.scan(),
            10 => Step::Begin,
            11 => Step::Commit {
                pick: self.pick(),
                level: self.level(),
            },
            12 => Step::Rollback { pick: self.pick() },
            13 => Step::OpenSnapshot,
            14 => Step::CloseSnapshot { pick: self.pick() },
            15 => Step::Batch {
                changes: self.batch(),
                level: self.level(),
            },
            other => self.upkeep(other),
        })
    }

    fn upkeep(&mut self, kind: usize) -> Step {
        match kind {
            16 => match self.tape.below(3) {
                0 => Step::Checkpoint,
                1 => Step::SyncLog,
                _ => Step::Settle,
            },
            17 => Step::Compact {
                tree: self.pick(),
                range: self.range(),
            },
            18 => Step::Count { tree: self.pick() },
            // Opening is slow, so only some of these steps are executed.
            19 if self.tape.chance(64) => Step::Reopen {
                drop: self.tape.chance(128),
            },
            19 => Step::Checkpoint,
            20 => Step::CreateTree { name: self.pick() },
            _ => Step::DropTree { tree: self.pick() },
        }
    }
}
