//! The decoders of superblocks and images.

use stdx::hash;

use super::{kind_of, kind_of_error};
use crate::checkpoint::{
    BucketImage, Image, ImagePlace, SLOT_LEN, Superblock, TreeFlags, TreeImage,
};
use crate::run::RunMeta;
use crate::types::{Extent, RunId, Seq, TreeId, UNIT};

pub(super) fn superblock(bytes: &[u8]) -> u64 {
    let found = match Superblock::decode(bytes) {
        Err(bad) => return kind_of_error(&bad),
        Ok(found) => found,
    };
    let again = Superblock::decode(&found.encode()).expect("encoded by us");
    assert_eq!(found, again, "the same superblock");
    kind_of(&found.image.is_some())
}

pub(super) fn repair_superblock(bytes: &[u8]) -> Vec<u8> {
    let mut slot = bytes.to_vec();
    slot.resize(SLOT_LEN, 0);
    seal(slot)
}

pub(super) fn superblock_seeds() -> Vec<Vec<u8>> {
    let first = Superblock::first(77);
    let image = ImagePlace {
        offset: 16 * UNIT,
        length: 5000,
        hash: 99,
    };
    let later = Superblock {
        number: 12,
        image: Some(image),
        ..first.clone()
    };
    vec![first.encode(), later.encode()]
}

pub(super) fn image(bytes: &[u8]) -> u64 {
    let found = match Image::decode(bytes) {
        Err(error) => return kind_of_error(&error),
        Ok(found) => found,
    };
    let again = Image::decode(&found.encode()).expect("encoded by us");
    assert_eq!(found, again, "the same image");
    kind_of(&(found.trees.len().min(9), found.runs.len().min(9)))
}

pub(super) fn repair_image(bytes: &[u8]) -> Vec<u8> {
    let mut image = bytes.to_vec();
    image.resize(bytes.len().max(8), 0);
    seal(image)
}

/// A run of a sample image.
fn run(id: u64, min: &[u8], max: &[u8]) -> RunMeta {
    RunMeta {
        id: RunId(id),
        tree: TreeId(1),
        extents: vec![Extent {
            offset: (100 + 10 * id) * UNIT,
            len: 2 * UNIT,
        }],
        bytes: UNIT + 100,
        raw_bytes: 9000,
        entries: 90,
        tombstones: 3,
        pages: 2,
        min_key: min.into(),
        max_key: max.into(),
        max_seq: Seq(5),
        fence_offset: UNIT,
        fence_len: 60,
        filter_offset: UNIT + 60,
        filter_len: 40,
        seal: None,
    }
}

pub(super) fn image_seeds() -> Vec<Vec<u8>> {
    let bucket = |lo: &[u8], deltas: &[u64], base: &[u64]| BucketImage {
        lo: lo.into(),
        flushed: Seq(6),
        deltas: deltas.iter().copied().map(RunId).collect(),
        base: base.iter().copied().map(RunId).collect(),
    };
    let tree = |id: u32, name: &str, buckets| TreeImage {
        id: TreeId(id),
        name: name.to_owned(),
        flags: TreeFlags {
            ascending: id == 2,
            point_lookups: id == 1,
        },
        buckets,
    };
    let empty = Image {
        number: 1,
        last_seq: Seq(9),
        log_from: Seq(3),
        next_run: RunId(9),
        next_tree: 4,
        runs: Vec::new(),
        trees: Vec::new(),
    };
    let full = Image {
        runs: vec![
            run(1, b"a", b"f"),
            run(2, b"g", b"k"),
            run(3, b"m", b"z"),
            run(4, b"b", b"y"),
        ],
        trees: vec![
            tree(
                1,
                "one",
                vec![bucket(b"", &[4], &[1, 2]), bucket(b"m", &[4], &[3])],
            ),
            tree(2, "two", vec![bucket(b"", &[], &[])]),
        ],
        ..empty.clone()
    };
    vec![empty.encode(), full.encode()]
}

/// Write the hash of the preceding bytes to the last 8 bytes.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 8);
    let hash = hash::hash64(&bytes);
    bytes.extend(hash.to_le_bytes());
    bytes
}
