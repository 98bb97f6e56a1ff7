//! Tests of the protocol from outside: round trips, limits, and random damage.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod compression;
mod documents;
mod fuzz;
mod messages;

use bson::{Document, RawDocumentBuf};
use wire::{Decoder, Frame};

/// A document as raw BSON.
fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// The single frame in `bytes`.
fn frame(bytes: &[u8]) -> Frame {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let frame = decoder.frame().unwrap().expect("a whole frame");
    assert!(decoder.is_empty(), "nothing is left");
    frame
}
