//! The superblock and the image of an encrypted store.
//!
//! # Slot of format 2, little-endian
//! ```text
//!    0  magic          8   as in format 1
//!    8  format         4   2
//!   12  data key       4   its number
//!   16  store         16   as in format 1
//!   32  salt          16   random, of this superblock
//!   48  frame         64   bytes 32 to 96 of the slot of format 1, encrypted
//!  112  tag           16   of the frame
//!  128  zero        3960
//! 4088  hash           8   as in format 1
//! ```
//! # Encrypted image
//! ```text
//!    0  magic          8   89 'B' 'T' 'I' 'S' 'E' 'A' 'L'
//!    8  data key       4   its number
//!   12  salt          16   random, of this image
//!   28  zero           4
//!   32  frame              the whole image, encrypted
//!  end  tag           16   of the frame; its last 8 bytes are the image hash in the superblock
//! ```
//! The bytes before a frame, and the identity of the store, are its associated data. A checkpoint
//! writes the same slot four times; every other write of a superblock has another salt.

use crypt::{Kind, Nonce, Seal, TAG_LEN};
use stdx::hash;

use super::superblock::{Bad, HASH_AT, MAGIC, SLOT_LEN, Superblock};
use crate::error::{Error, Result};
use crate::keys::Keys;

/// The format of an encrypted store.
pub(super) const SEALED_FORMAT: u32 = 2;

const FRAME_AT: usize = 48;
const FRAME_LEN: usize = 64;
/// Where the frame's bytes are in a slot of format 1.
const PLAIN_AT: usize = 32;

const IMAGE_MAGIC: [u8; 8] = *b"\x89BTISEAL";
const IMAGE_HEADER: usize = 32;

/// The slot of `superblock` in a store with `keys`.
///
/// # Errors
/// `Io`: the operating system has no random numbers.
pub(super) fn seal_slot(superblock: &Superblock, keys: &Keys) -> Result<Vec<u8>> {
    assert_eq!(superblock.store, keys.owner(), "a store has its own keys");
    let mut sealer = keys.sealer(Kind::Superblock)?;
    let plain = superblock.encode();
    let mut frame = [0; FRAME_LEN];
    let inner = plain.get(PLAIN_AT..PLAIN_AT + FRAME_LEN);
    frame.copy_from_slice(inner.expect("a slot is longer"));
    let Seal { key, salt } = sealer.seal();
    let mut slot = Vec::with_capacity(SLOT_LEN);
    slot.extend(MAGIC);
    slot.extend(SEALED_FORMAT.to_le_bytes());
    slot.extend(key.0.to_le_bytes());
    slot.extend(superblock.store.to_le_bytes());
    slot.extend(salt);
    assert_eq!(slot.len(), FRAME_AT, "the frame follows");
    let tag = sealer.encrypt(Nonce::at(0), &slot, &mut frame);
    slot.extend(frame);
    slot.extend(tag);
    slot.resize(HASH_AT, 0);
    let sum = hash::hash64(&slot);
    slot.extend(sum.to_le_bytes());
    assert_eq!(slot.len(), SLOT_LEN, "a slot is a unit");
    Ok(slot)
}

/// The bytes of a slot of format 1 from its store on that `slot`, of format 2 and with a right
/// hash, stands for.
///
/// # Errors
/// Why the slot cannot be used.
pub(super) fn open_slot(slot: &[u8], keys: Option<&Keys>) -> Result<[u8; 80], Bad> {
    let short = Bad::Damaged("is cut short");
    let keys = keys.ok_or(Bad::Sealed)?;
    let (head, rest) = slot.split_at_checked(FRAME_AT).ok_or(short.clone())?;
    let (frame, rest) = rest.split_first_chunk::<FRAME_LEN>().ok_or(short.clone())?;
    let (tag, _) = rest.split_first_chunk::<TAG_LEN>().ok_or(short.clone())?;
    let store = head.get(16..32).ok_or(short.clone())?;
    if store != keys.owner().to_le_bytes() {
        return Err(Bad::OtherKeys);
    }
    let salt = head.get(32..48).and_then(|salt| salt.try_into().ok());
    let key = head.get(12..16).and_then(|key| key.try_into().ok());
    let (Some(salt), Some(key)) = (salt, key) else {
        return Err(short);
    };
    let key = crypt::KeyId(u32::from_le_bytes(key));
    let opener = keys
        .opener(Kind::Superblock, &Seal { key, salt })
        .map_err(|_| Bad::Damaged("names a data key that the key file does not have"))?;
    let mut frame = *frame;
    opener
        .decrypt(Nonce::at(0), head, &mut frame, tag)
        .map_err(|_| Bad::Damaged("does not decrypt"))?;
    let mut plain = [0; 80];
    let (front, back) = plain.split_at_mut(16);
    front.copy_from_slice(store);
    back.copy_from_slice(&frame);
    Ok(plain)
}

/// The bytes of an encoded image in a store with `keys`.
///
/// # Errors
/// `Io`: the operating system has no random numbers.
pub(crate) fn seal_image(image: &[u8], keys: &Keys) -> Result<Vec<u8>> {
    let mut sealer = keys.sealer(Kind::Image)?;
    let mut out = Vec::with_capacity(IMAGE_HEADER + image.len() + TAG_LEN);
    out.extend(IMAGE_MAGIC);
    out.extend(sealer.seal().encode());
    out.extend([0; 4]);
    assert_eq!(out.len(), IMAGE_HEADER, "the frame follows");
    let associated = associated(&out, keys);
    out.extend(image);
    let (_, frame) = out.split_at_mut(IMAGE_HEADER);
    let tag = sealer.encrypt(Nonce::at(0), &associated, frame);
    out.extend(tag);
    Ok(out)
}

/// The encoded image in `sealed`, which is decrypted in place.
///
/// # Errors
/// `Corrupt`: what is wrong.
pub(super) fn open_image<'a>(sealed: &'a mut [u8], keys: &Keys) -> Result<&'a [u8]> {
    let corrupt = |what: &str| Error::corrupt(format!("the encrypted image of the catalog {what}"));
    let (rest, tag) = sealed
        .split_last_chunk_mut::<TAG_LEN>()
        .ok_or_else(|| corrupt("is cut short"))?;
    let (head, frame) = rest
        .split_at_mut_checked(IMAGE_HEADER)
        .ok_or_else(|| corrupt("is cut short"))?;
    let seal = head.get(8..).and_then(|rest| rest.first_chunk());
    let seal = Seal::decode(seal.ok_or_else(|| corrupt("is cut short"))?);
    if !head.starts_with(&IMAGE_MAGIC) {
        return Err(corrupt("begins with other bytes"));
    }
    let opener = keys.opener(Kind::Image, &seal)?;
    opener
        .decrypt(Nonce::at(0), &associated(head, keys), frame, tag)
        .map_err(|why| corrupt(&format!("is damaged: {why}")))?;
    Ok(frame)
}

fn associated(head: &[u8], keys: &Keys) -> Vec<u8> {
    [head, &keys.owner().to_le_bytes()].concat()
}
