//! The compressors as functions: round trips, layouts and damage.

use stdx::Rng;

use super::log::{Plain, Snappy};
use super::lz4::Lz4;
use super::zstd::Zstd;
use super::{Packer, put_length};

/// Decompress as WiredTiger does: input padded with zeroes, into a buffer of the page's length.
fn back<P: Packer>(stored: &[u8], padding: usize, length: usize) -> Option<Vec<u8>> {
    let mut padded = stored.to_vec();
    padded.resize(stored.len() + padding, 0);
    let mut page = vec![0; length];
    let found = P::unpack(&padded, &mut page)?;
    page.truncate(found);
    Some(page)
}

fn pack<P: Packer>(page: &[u8]) -> Option<Vec<u8>> {
    let mut stored = vec![0; P::room(page.len())];
    let length = P::pack(page, &mut stored)?;
    stored.truncate(length);
    Some(stored)
}

/// A page of which half repeats and half is random.
fn page(rng: &mut Rng, length: usize) -> Vec<u8> {
    let mut page = vec![7; length];
    rng.fill(&mut page[length / 2..]);
    page
}

fn check<P: Packer>(seed: u64) {
    let mut rng = Rng::new(seed);
    for length in [100, 4064, 32_704, 200_000] {
        let page = page(&mut rng, length);
        let stored = pack::<P>(&page).unwrap();
        assert!(stored.len() < length);
        for padding in [0, 1, 4095] {
            assert_eq!(back::<P>(&stored, padding, length).unwrap(), page);
        }
        // A buffer that is too short is refused, and so is a truncated block.
        assert_eq!(back::<P>(&stored, 0, length - 1), None);
        for cut in [0, 1, 7, 8, 15, 16, stored.len() / 2, stored.len() - 1] {
            assert_eq!(back::<P>(&stored[..cut], 0, length), None, "cut at {cut}");
        }
        // A buffer that is too small is not an error: the page stays uncompressed.
        assert_eq!(P::pack(&page, &mut vec![0; stored.len() / 2]), None);
        assert_eq!(P::pack(&page, &mut []), None);
        for _ in 0..200 {
            let mut damaged = stored.clone();
            let at = rng.index(damaged.len().min(40));
            damaged[at] ^= 1 << rng.index(8);
            // Any result is within the page's length.
            let _ = back::<P>(&damaged, 0, length);
        }
    }
    let mut noise = vec![0; 4096];
    rng.fill(&mut noise);
    assert_eq!(pack::<P>(&noise), None, "it does not get shorter");
    assert_eq!(pack::<P>(b"x"), None);
    assert_eq!(pack::<P>(b""), None);
}

#[test]
fn pages_come_back_and_damage_is_refused() {
    let seed = 20_261_123;
    println!("seed {seed}");
    check::<Lz4>(seed);
    check::<Zstd>(seed);
    check::<Snappy>(seed);
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    // C1.
    let page = vec![1; 1000];
    for at in 0..3 {
        for wrong in [u32::MAX, 1001, 0x7fff_ffff] {
            let mut stored = pack::<Lz4>(&page).unwrap();
            stored[4 * at..][..4].copy_from_slice(&wrong.to_le_bytes());
            assert_eq!(back::<Lz4>(&stored, 0, 1000), None, "field {at} is {wrong}");
        }
    }
    for wrong in [usize::MAX, usize::MAX / 2, 4096] {
        let mut stored = pack::<Zstd>(&page).unwrap();
        put_length(wrong, &mut stored[..8]).unwrap();
        assert_eq!(back::<Zstd>(&stored, 0, 1000), None);
        assert_eq!(back::<Snappy>(&stored, 0, 1000), None);
    }
}

#[test]
fn the_layout_is_that_of_the_extensions() {
    let page = vec![1; 1000];
    let stored = pack::<Lz4>(&page).unwrap();
    let length = u32::try_from(stored.len() - 16).unwrap();
    let mut prefix = Vec::new();
    for field in [length, 1000, 1000, 0] {
        prefix.extend_from_slice(&field.to_le_bytes());
    }
    assert_eq!(&stored[..16], prefix);
    assert_eq!(
        lz4_flex::block::decompress(&stored[16..], 1000).unwrap(),
        page
    );

    let stored = pack::<Zstd>(&page).unwrap();
    let length = u64::try_from(stored.len() - 8).unwrap();
    assert_eq!(stored[..8], length.to_le_bytes());
    assert_eq!(zstd::bulk::decompress(&stored[8..], 1000).unwrap(), page);

    let stored = pack::<Snappy>(&page).unwrap();
    let length = u64::try_from(stored.len() - 8).unwrap();
    assert_eq!(stored[..8], length.to_le_bytes());
    let found = snap::raw::Decoder::new().decompress_vec(&stored[8..]);
    assert_eq!(found.unwrap(), page);
}

#[test]
fn the_plain_compressor_of_the_log_reads_what_the_other_wrote() {
    let record = vec![9; 500];
    assert_eq!(pack::<Plain>(&record), None);
    let stored = pack::<Snappy>(&record).unwrap();
    assert_eq!(back::<Plain>(&stored, 100, 500).unwrap(), record);
}
