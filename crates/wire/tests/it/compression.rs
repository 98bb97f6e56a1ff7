//! Compressed messages.

use bson::doc;
use wire::compress::{claimed, compress, expand, expand_within};
use wire::{Compressor, Error, Limits, Message, Parts, encode};

use crate::{frame, raw};

const EVERY: [Compressor; 4] = [
    Compressor::Noop,
    Compressor::Snappy,
    Compressor::Zlib,
    Compressor::Zstd,
];

fn plain() -> Vec<u8> {
    let parts = Parts {
        request_id: 4,
        ..Parts::default()
    };
    encode(parts, &raw(&doc! {"text": "again and ".repeat(500)}), &[])
}

#[test]
fn every_compressor_round_trips() {
    for compressor in EVERY {
        let squeezed = compress(&plain(), compressor).unwrap();
        if compressor != Compressor::Noop {
            assert!(squeezed.len() < plain().len() / 4, "{compressor:?}");
        }
        let (expanded, used) = expand(frame(&squeezed)).unwrap();
        assert_eq!(used, Some(compressor));
        assert_eq!(expanded.bytes, plain());
        let message = Message::decode(expanded).unwrap();
        assert_eq!(message.header.request_id, 4);
    }
    assert_eq!(expand(frame(&plain())).unwrap().1, None);
}

#[test]
fn a_wrong_size_is_refused() {
    // W2.
    for compressor in EVERY {
        let squeezed = compress(&plain(), compressor).unwrap();
        for size in [0, 1, 5_000, 40_000_000, 48_000_000, i32::MAX, -1] {
            let mut changed = squeezed.clone();
            changed[20..24].copy_from_slice(&i32::to_le_bytes(size));
            let error = expand(frame(&changed)).unwrap_err();
            assert!(
                matches!(error, Error::Compression(_)),
                "{compressor:?} {size}: {error}"
            );
        }
    }
}

#[test]
fn a_lower_limit_and_a_disabled_compressor_refuse_before_expanding() {
    let length = plain().len();
    for compressor in EVERY {
        let squeezed = compress(&plain(), compressor).unwrap();
        assert_eq!(claimed(&frame(&squeezed)) + 16, length);
        let exact = Limits {
            message: length,
            ..Limits::PROTOCOL
        };
        expand_within(frame(&squeezed), &exact).unwrap();
        let short = Limits {
            message: length - 1,
            ..Limits::PROTOCOL
        };
        let none = Limits {
            compressors: &[],
            ..Limits::PROTOCOL
        };
        // The payload is missing: a decoder that read the payload would report another error.
        let mut headed = squeezed[..25].to_vec();
        headed[0..4].copy_from_slice(&25_i32.to_le_bytes());
        let headed = frame(&headed);
        let refused = |limits| {
            expand_within(headed.clone(), limits)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&short).ends_with("the size does not fit"));
        if compressor != Compressor::Noop {
            let name = compressor.name();
            assert!(refused(&none).ends_with(&format!("{name} is not enabled")));
        }
    }
    assert_eq!(claimed(&frame(&plain())), 0);
}

#[test]
fn unknown_and_nested_compression_is_refused() {
    let mut squeezed = compress(&plain(), Compressor::Snappy).unwrap();
    squeezed[24] = 9;
    assert!(expand(frame(&squeezed)).is_err());
    let twice = compress(
        &compress(&plain(), Compressor::Zstd).unwrap(),
        Compressor::Zstd,
    );
    let error = expand(frame(&twice.unwrap())).unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
}

#[test]
fn names_are_those_of_the_handshake() {
    for compressor in Compressor::ALL {
        assert_eq!(Compressor::of_name(compressor.name()), Some(compressor));
    }
    assert_eq!(Compressor::of_name("lz4"), None);
}
