//! Keys: a tree, a class and a number, and their stored bytes.
//!
//! The first eight bytes are the number in big-endian order, so the order of keys is the order of
//! numbers; a tail that depends only on the number makes them differ in length. I1: the bytes of a
//! key decode to this key; other bytes decode to no key.

use std::fmt;

use serde::{Deserialize, Serialize};
use stdx::rng::mix64;

/// The names of the trees, by number. Tree 0 is the ledger.
pub const TREES: [&str; 4] = ["ledger", "plain", "ascending", "lookups"];

/// The tree that holds, for each writer, the counter of its last commit.
pub const LEDGER: u8 = 0;

/// Maximum number of writers; writers are numbered from 0.
pub const WRITERS_MAX: u32 = 8;

/// Number of hot keys of a tree: few, so that writers conflict.
pub const HOT_KEYS: u64 = 24;

/// Number of random keys of a tree: enough for some pages, few enough to scan at every restart.
pub const RANDOM_KEYS: u64 = 6_000;

/// Maximum number of changes of a commit; the numbers of ascending keys have room for them.
pub const CHANGES_MAX: u64 = 512;

const NUMBER_BYTES: usize = 8;

/// Maximum length of the tail. With the number, a key is far below every engine's limit.
const TAIL_MAX: u64 = 40;

const CLASS_SHIFT: u32 = 56;
const WRITER_SHIFT: u32 = 48;

/// The class of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A writer's entry in the ledger.
    Ledger = 1,
    /// Few keys, which all writers write.
    Hot = 2,
    /// Keys that one writer writes once, in ascending order, and removes from the front.
    Ascending = 3,
    /// Many keys, which all writers write.
    Random = 4,
}

/// A key of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The tree, an index of [`TREES`].
    pub tree: u8,
    /// Class and number.
    pub id: u64,
}

impl Key {
    fn new(tree: u8, class: Class, number: u64) -> Key {
        debug_assert!(
            number < 1 << CLASS_SHIFT,
            "I1: a number fits below its class"
        );
        Key {
            tree,
            id: (class as u64) << CLASS_SHIFT | number,
        }
    }

    /// The key under which `writer` stores its last commit.
    #[must_use]
    pub fn ledger(writer: u32) -> Key {
        Key::new(LEDGER, Class::Ledger, u64::from(writer))
    }

    /// The hot key `number`.
    #[must_use]
    pub fn hot(tree: u8, number: u64) -> Key {
        Key::new(tree, Class::Hot, number)
    }

    /// The random key `number`.
    #[must_use]
    pub fn random(tree: u8, number: u64) -> Key {
        Key::new(tree, Class::Random, number)
    }

    /// The ascending key for change number `index` of the commit `counter` of `writer`.
    #[must_use]
    pub fn ascending(tree: u8, writer: u32, counter: u64, index: u64) -> Key {
        debug_assert!(index < CHANGES_MAX, "I1: a change fits below its commit");
        let number = u64::from(writer) << WRITER_SHIFT | (counter * CHANGES_MAX + index);
        Key::new(tree, Class::Ascending, number)
    }

    /// The key's bytes in the store.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = self.id.to_be_bytes().to_vec();
        let seed = mix64(self.id);
        let tail = if self.tree == LEDGER {
            0
        } else {
            seed % TAIL_MAX
        };
        bytes.extend((0..tail).map(|i| mix64(seed ^ i).to_le_bytes()[0]));
        bytes
    }

    /// The key of `tree` that `bytes` encode; `None` if they encode no key.
    #[must_use]
    pub fn read(tree: u8, bytes: &[u8]) -> Option<Key> {
        let (number, _) = bytes.split_first_chunk::<NUMBER_BYTES>()?;
        let key = Key {
            tree,
            id: u64::from_be_bytes(*number),
        };
        (key.bytes() == bytes).then_some(key)
    }

    fn number(self) -> u64 {
        self.id & ((1 << CLASS_SHIFT) - 1)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = TREES.get(usize::from(self.tree)).unwrap_or(&"?");
        let number = self.number();
        match self.id >> CLASS_SHIFT {
            1 => write!(f, "{tree}/writer {number}"),
            2 => write!(f, "{tree}/hot {number}"),
            3 => {
                let writer = number >> WRITER_SHIFT;
                let place = number & ((1 << WRITER_SHIFT) - 1);
                let (counter, index) = (place / CHANGES_MAX, place % CHANGES_MAX);
                write!(f, "{tree}/ascending {writer}:{counter}.{index}")
            }
            4 => write!(f, "{tree}/random {number}"),
            _ => write!(f, "{tree}/{:#x}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decode_to_their_key_and_keep_the_order() {
        let keys = [
            Key::hot(1, 3),
            Key::hot(1, 4),
            Key::ascending(1, 2, 7, 0),
            Key::ascending(1, 2, 7, 511),
            Key::ascending(1, 2, 8, 0),
            Key::random(1, 5_999),
        ];
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1], "{} < {}", pair[0], pair[1]);
            assert!(pair[0].bytes() < pair[1].bytes());
        }
        for key in keys {
            assert_eq!(Key::read(1, &key.bytes()), Some(key));
            let mut wrong = key.bytes();
            *wrong.last_mut().unwrap() ^= 1;
            assert_ne!(Key::read(1, &wrong), Some(key));
        }
        assert_eq!(Key::read(1, b"short"), None);
    }

    #[test]
    fn a_key_reads_as_what_it_is_for() {
        assert_eq!(Key::ledger(3).to_string(), "ledger/writer 3");
        let key = Key::ascending(2, 1, 77, 5);
        assert_eq!(key.to_string(), "ascending/ascending 1:77.5");
    }
}
