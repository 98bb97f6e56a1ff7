//! Tests of pages against plain vectors: see the numbered invariants of the module.

mod damage;
mod model;
mod shapes;

use super::*;
use model::Owned;

const IDENT: PageIdent = PageIdent {
    tree: TreeId(7),
    run: RunId(1234),
    index: 56,
};

fn codecs() -> Vec<Codec> {
    let all = [
        Codec::None,
        Codec::Lz4,
        Codec::Snappy,
        Codec::Zlib(1),
        Codec::Zstd(1),
    ];
    all.into_iter().filter(|codec| codec.available()).collect()
}

fn encode(codec: Codec, entries: &[Owned]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = PageBuilder::new(codec);
    entries
        .iter()
        .for_each(|entry| builder.push(entry.borrow()));
    let len = builder.finish(IDENT, &mut out);
    assert_eq!(len as usize, out.len());
    out
}

/// Check that a page of `entries` decodes to the same entries, with every codec.
fn check(entries: &[Owned]) {
    let mut reused = Page::default();
    for codec in codecs() {
        let stored = encode(codec, entries);
        assert_eq!(stored_len(&stored[..HEADER_LEN]), Ok(stored.len()));
        let page = Page::decode(&stored, IDENT).unwrap();
        model::same(&page, entries);
        reused.decode_into(&stored, IDENT).unwrap();
        model::same(&reused, entries);
    }
}
