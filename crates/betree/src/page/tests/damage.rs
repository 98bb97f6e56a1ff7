//! I3 and I4: bytes that are not this page are errors, and nothing panics.

use stdx::tape::Tape;

use super::*;
use crate::types::Seq;

/// Pages of several shapes, small enough to damage each byte in turn.
fn samples() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for seed in 0..12 {
        let entries = model::entries(&mut Tape::from_seed(seed, 20_000));
        let few = &entries[..entries.len().min(60)];
        all.extend(codecs().into_iter().map(|codec| encode(codec, few)));
    }
    all
}

/// Decode a page and read all of its entries.
fn visit(stored: &[u8]) -> Result<(), PageError> {
    let page = Page::decode(stored, IDENT)?;
    assert!(
        page.memory() <= 64 * stored.len() + (1 << 20),
        "I3: memory is bounded"
    );
    for index in 0..page.len() {
        let entry = page.entry(index);
        page.lower_bound(entry.key, entry.seq);
    }
    page.lower_bound(b"k", Seq::MAX);
    Ok(())
}

fn seal(stored: &mut [u8]) {
    let at = stored.len() - 8;
    let checksum = IDENT.checksum(&stored[..at]);
    stored[at..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn a_change_of_any_byte_is_an_error() {
    for mut stored in samples() {
        for at in 0..stored.len() {
            for change in [1, 0x80, 0xFF] {
                stored[at] ^= change;
                visit(&stored).unwrap_err();
                stored[at] ^= change;
            }
        }
        visit(&stored).unwrap();
    }
}

#[test]
fn another_length_is_an_error() {
    for mut stored in samples() {
        for len in 0..stored.len() {
            visit(&stored[..len]).unwrap_err();
        }
        stored.push(0);
        visit(&stored).unwrap_err();
    }
}

#[test]
fn another_identity_is_an_error() {
    for stored in samples() {
        for other in [
            PageIdent {
                tree: TreeId(8),
                ..IDENT
            },
            PageIdent {
                run: RunId(1235),
                ..IDENT
            },
            PageIdent { index: 57, ..IDENT },
        ] {
            let error = Page::decode(&stored, other).err().unwrap();
            assert!(matches!(error, PageError::Checksum { .. }), "{error}");
        }
    }
}

#[test]
fn forged_pages_are_errors_or_pages_but_never_panics() {
    let (mut pages, mut errors) = (0, 0);
    for (number, sample) in samples().into_iter().enumerate() {
        for seed in 0..1500 {
            let mut tape = Tape::from_seed(seed << 16 | number as u64, 64);
            let mut stored = sample.clone();
            for _ in 0..=tape.below(3) {
                let near = if tape.chance(128) { 32 } else { stored.len() };
                let at = tape.index(near);
                stored[at] = match tape.below(4) {
                    0 => tape.byte(),
                    1 => 0xFF,
                    2 => stored[at].wrapping_add(1),
                    _ => stored[at] ^ 1 << tape.below(8),
                };
            }
            if tape.chance(60) {
                let len = HEADER_LEN + 8 + tape.index(stored.len() - HEADER_LEN - 8);
                stored.truncate(len);
            }
            let len = u32::try_from(stored.len()).unwrap();
            stored[28..32].copy_from_slice(&len.to_le_bytes());
            seal(&mut stored);
            match visit(&stored) {
                Ok(()) => pages += 1,
                Err(_) => errors += 1,
            }
        }
    }
    println!("{pages} pages, {errors} errors");
    assert!(1000 < pages.min(errors), "{pages} pages, {errors} errors");
}

#[test]
fn garbage_behind_a_good_header_never_panics() {
    for seed in 0..20_000 {
        let mut tape = Tape::from_seed(seed, 400);
        let len = 40 + tape.index(300);
        let mut stored: Vec<u8> = (0..len).map(|_| tape.byte()).collect();
        // The forms of planes are small numbers, so damage small numbers, too.
        stored
            .iter_mut()
            .skip(32)
            .filter(|b| **b < 128)
            .for_each(|b| *b %= 17);
        stored[..4].copy_from_slice(b"bpg1");
        let numbers = [
            u32::from_le_bytes([1, tape.byte() % 4, tape.byte() % 64, 0]),
            1 + tape.below(40),
            tape.below(400),
            tape.below(400),
            tape.below(500),
            tape.below(300),
            u32::try_from(len).unwrap(),
        ];
        for (to, from) in stored[4..32].chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        seal(&mut stored);
        let _ = visit(&stored);
    }
}

#[test]
fn lengths_that_would_take_too_much_memory_are_errors() {
    let value = [7; 100];
    let stored = encode(Codec::Lz4, &[Owned::put(b"key", 3, &value)]);
    for at in (8..28).step_by(4) {
        for number in [1 << 20, 90 << 20, u32::MAX] {
            let mut forged = stored.clone();
            forged[at..at + 4].copy_from_slice(&number.to_le_bytes());
            seal(&mut forged);
            let error = visit(&forged).unwrap_err();
            assert!(matches!(error, PageError::Header(_)), "{error}");
        }
    }
}

#[test]
fn a_page_after_an_error_is_empty_and_usable() {
    let stored = encode(Codec::Lz4, &[Owned::put(b"key", 3, b"value")]);
    let mut page = Page::decode(&stored, IDENT).unwrap();
    let mut wrong = stored.clone();
    wrong[20] ^= 1;
    page.decode_into(&wrong, IDENT).unwrap_err();
    assert_eq!(page.len(), 0);
    assert_eq!(page.lower_bound(b"key", Seq::MAX), 0);
    page.decode_into(&stored, IDENT).unwrap();
    assert_eq!(page.len(), 1);
}

#[cfg(not(feature = "zstd"))]
#[test]
fn zstd_is_named_where_it_lacks() {
    let value = [7; 100];
    let mut stored = encode(Codec::Lz4, &[Owned::put(b"key", 3, &value)]);
    stored[5] = 2;
    seal(&mut stored);
    assert_eq!(visit(&stored), Err(PageError::NoZstd));
    assert!("zstd:3".parse::<Codec>().unwrap_err().contains("feature"));
}

#[test]
fn codecs_have_names() {
    for name in [
        "none", "lz4", "snappy", "zlib:1", "zlib:9", "zstd:1", "zstd:9",
    ] {
        match name.parse::<Codec>() {
            Ok(codec) => assert_eq!(codec.to_string(), name),
            Err(error) => assert!(error.contains("feature zstd"), "{error}"),
        }
    }
    for name in [
        "", "zstd", "zstd:0", "zstd:10", "zlib", "zlib:0", "snappy:1", "LZ4",
    ] {
        assert!(name.parse::<Codec>().unwrap_err().contains("use none, lz4"));
    }
}
