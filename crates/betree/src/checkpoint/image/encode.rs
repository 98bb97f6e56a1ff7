//! Encoding an image.

use crypt::Seal;
use stdx::hash;

use super::{
    ASCENDING, BUCKET_LEN, BucketImage, HASH_LEN, HEADER_LEN, Image, MAGIC, POINT_LOOKUPS, RUN_LEN,
    SEALED_VERSION, TREE_LEN, TreeImage, VERSION,
};
use crate::checkpoint::bytes::{put_u16, put_u32, put_u64};
use crate::run::RunMeta;

impl Image {
    /// Encode the image; see the module documentation.
    ///
    /// # Panics
    /// When an invariant of the image does not hold: better no checkpoint than one that cannot be
    /// read back.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let valid = self.validate();
        assert_eq!(valid, Ok(()), "the image of checkpoint {}", self.number);
        let runs: usize = self.runs.iter().map(run_len).sum();
        let trees: usize = self.trees.iter().map(tree_len).sum();
        let length = HEADER_LEN + runs + trees + HASH_LEN;
        let mut out = Vec::with_capacity(length);
        out.extend(MAGIC);
        let sealed = self.runs.iter().any(|run| run.seal.is_some());
        put_u32(&mut out, if sealed { SEALED_VERSION } else { VERSION });
        put_count(&mut out, self.trees.len());
        put_u64(&mut out, self.number);
        put_u64(&mut out, self.last_seq.0);
        put_u64(&mut out, self.log_from.0);
        put_u64(&mut out, self.next_run.0);
        put_u32(&mut out, self.next_tree);
        put_count(&mut out, self.runs.len());
        assert_eq!(out.len(), HEADER_LEN, "the header is as long as it says");
        for run in &self.runs {
            put_run(&mut out, run);
        }
        for tree in &self.trees {
            put_tree(&mut out, tree);
        }
        let hash = hash::hash64(&out);
        put_u64(&mut out, hash);
        assert_eq!(out.len(), length, "the parts are as long as they say");
        debug_assert!(
            Image::decode(&out).is_ok_and(|image| image == *self),
            "what is encoded decodes"
        );
        out
    }
}

fn put_run(out: &mut Vec<u8>, run: &RunMeta) {
    let before = out.len();
    put_u64(out, run.id.0);
    put_u32(out, run.tree.0);
    put_u32(out, run.pages);
    put_u64(out, run.bytes);
    put_u64(out, run.raw_bytes);
    put_u64(out, run.entries);
    put_u64(out, run.tombstones);
    put_u64(out, run.max_seq.0);
    put_u64(out, run.fence_offset);
    put_u64(out, run.filter_offset);
    put_u32(out, run.fence_len);
    put_u32(out, run.filter_len);
    put_count(out, run.extents.len());
    put_short(out, run.min_key.len());
    put_short(out, run.max_key.len());
    if let Some(seal) = &run.seal {
        out.extend(seal.encode());
    }
    for extent in &run.extents {
        put_u64(out, extent.offset);
        put_u64(out, extent.len);
    }
    out.extend(&run.min_key);
    out.extend(&run.max_key);
    assert_eq!(
        out.len() - before,
        run_len(run),
        "a run is as long as it says"
    );
}

fn put_tree(out: &mut Vec<u8>, tree: &TreeImage) {
    let before = out.len();
    let ascending = if tree.flags.ascending { ASCENDING } else { 0 };
    let point_lookups = if tree.flags.point_lookups {
        POINT_LOOKUPS
    } else {
        0
    };
    put_u32(out, tree.id.0);
    out.extend([ascending | point_lookups, 0]);
    put_short(out, tree.name.len());
    put_count(out, tree.buckets.len());
    out.extend(tree.name.as_bytes());
    for bucket in &tree.buckets {
        put_bucket(out, bucket);
    }
    assert_eq!(
        out.len() - before,
        tree_len(tree),
        "a tree is as long as it says"
    );
}

fn put_bucket(out: &mut Vec<u8>, bucket: &BucketImage) {
    put_u64(out, bucket.flushed.0);
    put_count(out, bucket.deltas.len());
    put_count(out, bucket.base.len());
    put_short(out, bucket.lo.len());
    out.extend(&bucket.lo);
    for id in bucket.deltas.iter().chain(&bucket.base) {
        put_u64(out, id.0);
    }
}

fn run_len(run: &RunMeta) -> usize {
    let seal = run.seal.map_or(0, |_| Seal::LEN);
    RUN_LEN + seal + 16 * run.extents.len() + run.min_key.len() + run.max_key.len()
}

fn tree_len(tree: &TreeImage) -> usize {
    let bucket = |b: &BucketImage| BUCKET_LEN + b.lo.len() + 8 * (b.deltas.len() + b.base.len());
    TREE_LEN + tree.name.len() + tree.buckets.iter().map(bucket).sum::<usize>()
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_u32(
        out,
        u32::try_from(count).expect("4 billion of anything do not fit in memory"),
    );
}

fn put_short(out: &mut Vec<u8>, len: usize) {
    put_u16(
        out,
        u16::try_from(len).expect("keys and names have less than 64 KiB: validated"),
    );
}
