//! The decoders of a run's fence block and filter block.

use super::kind_of;
use crate::block::{self, BlockIdent, BlockKind, Fence, FenceBuilder, Filter, key_hash};
use crate::types::{RunId, TreeId};

fn ident(kind: BlockKind) -> BlockIdent {
    BlockIdent {
        tree: TreeId(3),
        run: RunId(7),
        kind,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Decode an input: the end of the pages (8 bytes), then a block.
pub(super) fn fence(bytes: &[u8]) -> u64 {
    let Some((end, stored)) = bytes.split_first_chunk::<8>() else {
        return 0;
    };
    let pages = word(stored, 8);
    let ident = ident(BlockKind::Fence);
    let fence = match Fence::decode(ident, stored, pages, u64::from_le_bytes(*end)) {
        Err(error) => return kind_of(&error),
        Ok(fence) => fence,
    };
    assert_eq!(fence.pages(), pages, "the pages that were asked for");
    let most = 64 * bytes.len() + (1 << 20);
    assert!(fence.memory() <= most, "{} bytes held", fence.memory());
    let mut reached = 0;
    for page in 0..pages {
        let span = fence.span(page).expect("each page has a place");
        assert_eq!(span.start, reached, "pages lie back to back");
        assert!(span.start < span.end, "a page has bytes");
        reached = span.end;
        if let Some((key, _)) = fence.separator(page) {
            let (first, last) = (fence.first_page(&key), fence.last_page(&key));
            assert!(first <= last && last < pages, "pages of the run");
            fence.continues(page, &key);
        }
    }
    kind_of(&pages.checked_ilog2())
}

pub(super) fn repair_fence(bytes: &[u8]) -> Vec<u8> {
    let mut repaired = bytes.to_vec();
    repaired.resize(bytes.len().max(8), 0);
    let stored = repaired.split_off(8);
    repaired.extend(repair(BlockKind::Fence, &stored));
    repaired
}

pub(super) fn fence_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for step in [1, 300, 70_000_u32] {
        let mut builder = FenceBuilder::default();
        let mut end: u64 = 0;
        let mut last: Option<Vec<u8>> = None;
        for page in 0..20 {
            let first = format!("key {:08}", page * step).into_bytes();
            builder.begin(last.as_deref(), &first);
            // Every fourth page ends with the first key of the next page.
            let more = if page % 4 == 3 { step } else { step / 2 };
            last = Some(format!("key {:08}", page * step + more).into_bytes());
            builder.end(4_000 + page);
            end += u64::from(4_000 + page);
        }
        let mut seed = end.to_le_bytes().to_vec();
        builder.finish(ident(BlockKind::Fence), &mut seed);
        seeds.push(seed);
    }
    seeds
}

pub(super) fn filter(bytes: &[u8]) -> u64 {
    let filter = match Filter::decode(ident(BlockKind::Filter), bytes) {
        Err(error) => return kind_of(&error),
        Ok(filter) => filter,
    };
    let mut stored = Vec::new();
    filter.encode(ident(BlockKind::Filter), &mut stored);
    let again = Filter::decode(ident(BlockKind::Filter), &stored).expect("encoded by us");
    for number in 0..50_u64 {
        let hash = key_hash(&number.to_be_bytes());
        assert_eq!(filter.may_hold(hash), again.may_hold(hash), "the same bits");
    }
    kind_of(&filter.memory())
}

pub(super) fn repair_filter(bytes: &[u8]) -> Vec<u8> {
    repair(BlockKind::Filter, bytes)
}

pub(super) fn filter_seeds() -> Vec<Vec<u8>> {
    let hashes: Vec<u64> = (0..100_u64).map(|n| key_hash(&n.to_be_bytes())).collect();
    let seed = |bits| {
        let mut stored = Vec::new();
        Filter::new(&hashes, bits).encode(ident(BlockKind::Filter), &mut stored);
        stored
    };
    [4, 10, 24].map(seed).into()
}

/// A block with the same parameter, count and body, and with valid length and checksum.
fn repair(kind: BlockKind, stored: &[u8]) -> Vec<u8> {
    let parameter = stored.get(5).copied().unwrap_or(0);
    let body = stored.get(block::HEADER_LEN..).unwrap_or_default();
    let mut repaired = Vec::new();
    block::encode(ident(kind), parameter, word(stored, 8), body, &mut repaired);
    repaired
}
