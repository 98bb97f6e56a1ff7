//! Frames of encrypted runs.
//!
//! Pages, fence block and filter block are encrypted each by itself, whole and after compression:
//!
//! ```text
//! 0             4        20
//! | length u32  | tag    | the bytes of the page or block, encrypted
//! ```
//! The nonce is the number of the page, or that of the block, which is above all pages. A run is
//! written once and in order, and after a failed write its writer is dropped, so no nonce is used
//! twice; the sealer checks it. What a frame is bound to beside: the run, by its salt and by its
//! number, and the tree. Not the store: a backup copies runs as they are into another store.

use crypt::{Nonce, Opener, Sealer, TAG_LEN};

use super::meta::MAX_PAGES;
use crate::types::{RunId, TreeId};

/// Bytes of a frame before what it encrypts.
pub(super) const HEAD: usize = 4 + TAG_LEN;

/// A part of a run that is a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Page(u32),
    Fence,
    Filter,
}

/// Which frame of which run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) tree: TreeId,
    pub(super) run: RunId,
    pub(super) part: Part,
}

impl Place {
    fn nonce(self) -> Nonce {
        Nonce::at(u64::from(match self.part {
            Part::Page(index) => index,
            Part::Fence => MAX_PAGES + 1,
            Part::Filter => MAX_PAGES + 2,
        }))
    }

    fn associated(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let (tree, run) = bytes.split_at_mut(4);
        tree.copy_from_slice(&self.tree.0.to_le_bytes());
        run.copy_from_slice(&self.run.0.to_le_bytes());
        bytes
    }
}

/// Encrypt a frame in place: its first [`HEAD`] bytes are room for its head.
pub(super) fn encrypt(sealer: &mut Sealer, place: Place, frame: &mut [u8]) {
    let (head, body) = frame.split_at_mut(HEAD);
    let tag = sealer.encrypt(place.nonce(), &place.associated(), body);
    let length = u32::try_from(body.len()).expect("pages and blocks are below 4 GiB");
    let (front, back) = head.split_at_mut(4);
    front.copy_from_slice(&length.to_le_bytes());
    back.copy_from_slice(&tag);
}

/// The length of the frame that begins with `head`, head included.
pub(super) fn stored_len(head: &[u8]) -> Result<usize, &'static str> {
    let length = head.first_chunk().ok_or("it is shorter than its head")?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    length
        .checked_add(HEAD)
        .ok_or("its length is out of bounds")
}

/// Decrypt a whole frame in place; returns what was encrypted.
pub(super) fn decrypt<'a>(
    opener: &Opener,
    place: Place,
    frame: &'a mut [u8],
) -> Result<&'a mut [u8], &'static str> {
    if stored_len(frame)? != frame.len() {
        return Err("it has another length than it says");
    }
    let short = "it is shorter than its head";
    let (head, body) = frame.split_at_mut_checked(HEAD).ok_or(short)?;
    let tag = head.last_chunk().ok_or(short)?;
    opener
        .decrypt(place.nonce(), &place.associated(), body, tag)
        .map_err(|_| "it does not decrypt: its bytes were changed, or belong elsewhere")?;
    Ok(body)
}
