//! Random damage to valid streams: every decoder returns an error or documents that can be iterated
//! without an error, and never panics. `ROMANESCO_SEED` sets the seed of the damage; `WIRE_RUNS`
//! sets the number of runs.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bson::{Document, doc};
use stdx::rng::Rng;
use stdx::tape::Tape;
use wire::compress::{compress, expand};
use wire::message::Flags;
use wire::{Compressor, Decoder, Frame, Message, OpCode, Parts, Query, encode};

use crate::raw;

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn seeds() -> Vec<Vec<u8>> {
    let body = raw(&doc! {"insert": "c", "a": {"b": [1, "x", null, 2.5]}, "$db": "t"});
    let one = raw(&doc! {"_id": 1, "s": "text"});
    let parts = |flags| Parts {
        request_id: 1,
        response_to: 0,
        flags,
    };
    let message = encode(parts(0), &body, &[("documents", &[&one, &one])]);
    let mut query = message.clone();
    query[12..16].copy_from_slice(&2004_i32.to_le_bytes());
    let summed = encode(parts(Flags::CHECKSUM), &body, &[]);
    let mut seeds = vec![message.clone(), query, summed];
    for compressor in Compressor::ALL {
        seeds.push(compress(&message, compressor).unwrap());
    }
    seeds
}

fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.index(3) {
        if bytes.len() < 20 {
            return;
        }
        let at = rng.index(bytes.len());
        match rng.below(5) {
            0 => bytes[at] = u8::try_from(rng.below(256)).unwrap(),
            1 => bytes[at] ^= 1 << rng.below(8),
            2 => bytes.truncate(at),
            3 => {
                let byte = bytes[at];
                bytes.insert(at, byte);
            }
            _ => {
                bytes.remove(at);
            }
        }
    }
    // The length is mostly corrected, so that the decoder reaches the bytes after it.
    if rng.chance(0.9) && bytes.len() >= 16 {
        let length = i32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Decode a stream as the server does. Returns the number of documents.
fn follow(bytes: &[u8]) -> usize {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let mut seen = 0;
    while let Ok(Some(frame)) = decoder.frame() {
        let Ok((frame, _)) = expand(frame) else { break };
        seen += documents(frame);
    }
    seen
}

fn documents(frame: Frame) -> usize {
    let message = match frame.header.op_code {
        OpCode::Query => Query::decode(frame).map(|query| query.message),
        _ => Message::decode(frame),
    };
    let Ok(message) = message else { return 0 };
    Document::try_from(message.body()).unwrap();
    let mut seen = 1;
    for name in message.sequence_names() {
        for document in message.sequence(name).unwrap() {
            Document::try_from(document).unwrap();
            seen += 1;
        }
    }
    seen
}

#[test]
fn damaged_streams_are_refused_or_readable() {
    let seed = number("ROMANESCO_SEED", 1);
    let runs = number("WIRE_RUNS", 20_000);
    let mut rng = Rng::new(seed);
    let seeds = seeds();
    let mut sound = 0;
    for _ in 0..runs {
        let mut input = seeds[rng.index(seeds.len())].clone();
        damage(&mut input, &mut rng);
        let seen = catch_unwind(AssertUnwindSafe(|| follow(&input)));
        let hex = || Tape::new(input.clone()).to_hex();
        sound += seen.unwrap_or_else(|_| panic!("seed {seed}, input {}", hex()));
    }
    assert!(sound > 0, "seed {seed}: some damage is harmless");
}
