//! Entry points for fuzzing: one for each decoder of bytes from the disk.
//!
//! Whatever the bytes, a decoder answers with an error or a value; it does not panic, hang or take
//! memory out of proportion. What it accepts can be read, and means the same after being encoded
//! again.

mod block;
mod checkpoint;
mod log;

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits::LIMITS;
use crate::page::{Codec, Page, PageBuilder, PageIdent, stored_len};
use crate::types::{Batch, Change, Entry, KeyRange, Op, RunId, Seq, TreeId};

/// A decoder to be fuzzed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Decode an input. Returns a hash that distinguishes kinds of outcomes: an input with a new
    /// kind is worth keeping.
    pub decode: fn(&[u8]) -> u64,
    /// Correct checksums and lengths, so that decoding reaches what they protect.
    pub repair: fn(&[u8]) -> Vec<u8>,
    /// Valid inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All decoders.
pub const TARGETS: &[Target] = &[
    Target {
        name: "page",
        decode: page,
        repair: repair_page,
        seeds: page_seeds,
    },
    Target {
        name: "batch",
        decode: batch,
        repair: <[u8]>::to_vec,
        seeds: batch_seeds,
    },
    Target {
        name: "fence",
        decode: block::fence,
        repair: block::repair_fence,
        seeds: block::fence_seeds,
    },
    Target {
        name: "filter",
        decode: block::filter,
        repair: block::repair_filter,
        seeds: block::filter_seeds,
    },
    Target {
        name: "superblock",
        decode: checkpoint::superblock,
        repair: checkpoint::repair_superblock,
        seeds: checkpoint::superblock_seeds,
    },
    Target {
        name: "image",
        decode: checkpoint::image,
        repair: checkpoint::repair_image,
        seeds: checkpoint::image_seeds,
    },
    Target {
        name: "log",
        decode: log::group,
        repair: log::repair_group,
        seeds: log::group_seeds,
    },
];

/// The kind of an outcome.
fn kind_of(outcome: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    outcome.hash(&mut hasher);
    hasher.finish()
}

/// The kind of an error: its message without numbers.
fn kind_of_error(error: &impl std::fmt::Debug) -> u64 {
    let text = format!("{error:?}");
    kind_of(&text.replace(|c: char| c.is_ascii_digit(), ""))
}

const IDENT: PageIdent = PageIdent {
    tree: TreeId(3),
    run: RunId(7),
    index: 2,
};

fn page(bytes: &[u8]) -> u64 {
    let claimed = stored_len(bytes).is_ok();
    let page = match Page::decode(bytes, IDENT) {
        Err(error) => return kind_of_error(&(claimed, error)),
        Ok(page) => page,
    };
    assert!(claimed, "a page that decodes has a known length");
    let most = 64 * bytes.len() + (1 << 20);
    assert!(page.memory() <= most, "{} bytes held", page.memory());
    let mut last: Option<(Vec<u8>, Seq)> = None;
    let mut ordered = true;
    for index in 0..page.len() {
        let entry = page.entry(index);
        assert_eq!(entry.key, page.key(index), "a key is the entry's");
        if let Some((key, seq)) = &last {
            ordered &= (key.as_slice(), std::cmp::Reverse(*seq))
                < (entry.key, std::cmp::Reverse(entry.seq));
        }
        last = Some((entry.key.to_vec(), entry.seq));
    }
    for index in (0..page.len()).step_by(7) {
        let entry = page.entry(index);
        let found = page.lower_bound(entry.key, entry.seq);
        assert!(found <= page.len(), "a place in the page");
        if ordered {
            assert_eq!(found, index, "an ordered page finds each of its entries");
        }
    }
    kind_of(&(ordered, page.len().checked_ilog2(), bytes.get(5..7)))
}

fn repair_page(bytes: &[u8]) -> Vec<u8> {
    let mut page = bytes.to_vec();
    page.resize(bytes.len().max(40), 0);
    let length = u32::try_from(page.len()).unwrap_or(u32::MAX);
    if let Some(field) = page.get_mut(28..32) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    page.truncate(page.len() - 8);
    let sum = IDENT.checksum(&page);
    page.extend_from_slice(&sum.to_le_bytes());
    page
}

fn page_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for codec in [Codec::None, Codec::Lz4, Codec::Snappy, Codec::Zlib(1)] {
        for shape in 0..8_u32 {
            let mut builder = PageBuilder::new(codec);
            for number in 0..60_u32 {
                let mut key = (number * 37).to_be_bytes().to_vec();
                if shape & 1 != 0 {
                    key.extend(std::iter::repeat_n(b'k', number as usize % 5));
                }
                let value = match shape & 2 {
                    0 => vec![7; 12],
                    _ => vec![u8::try_from(number).unwrap_or(0); number as usize % 30],
                };
                let versioned = shape & 4 != 0;
                let delete = versioned && number % 3 == 0;
                builder.push(Entry {
                    key: &key,
                    seq: Seq(if versioned { u64::from(number) } else { 0 }),
                    op: if delete { Op::Delete } else { Op::Put },
                    value: if delete { &[] } else { &value },
                });
            }
            let mut stored = Vec::new();
            builder.finish(IDENT, &mut stored);
            seeds.push(stored);
        }
    }
    seeds
}

fn batch(bytes: &[u8]) -> u64 {
    let changes: Vec<Change<'_>> = match Batch::decode(bytes, LIMITS) {
        Err(error) => return kind_of_error(&error),
        Ok(changes) => changes.collect(),
    };
    let mut again = Batch::new();
    for change in &changes {
        match *change {
            Change::Put { tree, key, value } => again.put(tree, key, value),
            Change::Delete { tree, key } => again.delete(tree, key),
            Change::DeleteRange { tree, range } => again.delete_range(tree, range),
        }
    }
    let twice = Batch::decode(again.payload(), LIMITS).expect("what was encoded decodes");
    assert!(twice.eq(changes.iter().cloned()), "the same changes");
    kind_of(&changes.len().min(20))
}

fn batch_seeds() -> Vec<Vec<u8>> {
    use std::ops::Bound;
    let mut batch = Batch::new();
    batch.put(TreeId(1), b"key", b"value");
    batch.put(TreeId(1), &[9; 300], &[8; 200]);
    batch.delete(TreeId(400), b"gone");
    batch.delete_range(TreeId(2), KeyRange::half_open(b"a", b"b"));
    batch.delete_range(
        TreeId(2),
        KeyRange {
            start: Bound::Unbounded,
            end: Bound::Included(b"z"),
        },
    );
    vec![batch.payload().to_vec()]
}
