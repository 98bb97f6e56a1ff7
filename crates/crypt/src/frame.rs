//! Frames: pieces of a file that are encrypted and authenticated, each by itself.
//!
//! The bytes of a frame are encrypted in place; its tag of [`TAG_LEN`] bytes is stored wherever
//! the format of the file has it. The nonce, 12 bytes, is the frame's place and part, big-endian.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use crate::error::KeyError;
use crate::random;

/// Bytes of the tag of a frame.
pub const TAG_LEN: usize = 16;

/// The number of a data key, from 1 on; never given twice in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a key is for. Keys of two kinds differ although data key and salt are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A run of the data file.
    Run,
    /// One use of a log segment.
    Log,
    /// The image of a checkpoint.
    Image,
    /// A slot of the superblock.
    Superblock,
    /// The data keys in a key file.
    Wrap,
    /// A temporary file that no other process reads.
    Temporary,
}

impl Kind {
    /// The string that goes into the derivation. Part of every format: never changed.
    fn label(self) -> &'static [u8] {
        match self {
            Kind::Run => b"romanesco 1 run",
            Kind::Log => b"romanesco 1 log",
            Kind::Image => b"romanesco 1 image",
            Kind::Superblock => b"romanesco 1 superblock",
            Kind::Wrap => b"romanesco 1 wrap",
            Kind::Temporary => b"romanesco 1 temporary",
        }
    }
}

/// What a file records so that its frames can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The data key.
    pub key: KeyId,
    /// Random, and used once.
    pub salt: [u8; 16],
}

impl Seal {
    /// Bytes of its encoding.
    pub const LEN: usize = 20;

    /// The number of the key, little-endian, and the salt.
    #[must_use]
    pub fn encode(&self) -> [u8; Seal::LEN] {
        let mut bytes = [0; Seal::LEN];
        let (key, salt) = bytes.split_at_mut(4);
        key.copy_from_slice(&self.key.0.to_le_bytes());
        salt.copy_from_slice(&self.salt);
        bytes
    }

    /// The seal that was encoded as `bytes`.
    #[must_use]
    pub fn decode(bytes: &[u8; Seal::LEN]) -> Seal {
        let (key, salt) = bytes.split_at(4);
        Seal {
            key: KeyId(u32::from_le_bytes(key.try_into().expect("4 of 20 bytes"))),
            salt: salt.try_into().expect("16 of 20 bytes"),
        }
    }
}

/// The place of a frame in its file. Nonces of one file ascend in the order of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce {
    /// Where: the number or the offset of a page, group or record.
    pub place: u64,
    /// The part of that, if it has several frames.
    pub part: u32,
}

impl Nonce {
    /// The first part of what is at `place`.
    #[must_use]
    pub fn at(place: u64) -> Nonce {
        Nonce { place, part: 0 }
    }

    fn bytes(self) -> ring::aead::Nonce {
        let mut bytes = [0; 12];
        let (place, part) = bytes.split_at_mut(8);
        place.copy_from_slice(&self.place.to_be_bytes());
        part.copy_from_slice(&self.part.to_be_bytes());
        ring::aead::Nonce::assume_unique_for_key(bytes)
    }
}

/// The frame was changed, or is another one, or the key is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unauthentic;

impl fmt::Display for Unauthentic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not decrypt: its bytes were changed, or belong elsewhere")
    }
}

impl std::error::Error for Unauthentic {}

/// Encrypts the frames of one file.
pub struct Sealer {
    key: LessSafeKey,
    seal: Seal,
    /// The last nonce that was used (I1).
    last: Option<Nonce>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.seal.key;
        f.debug_struct("Sealer")
            .field("key", &id)
            .finish_non_exhaustive()
    }
}

impl Sealer {
    /// A sealer for a new file under `secret`, which has the number `id`.
    pub(crate) fn new(secret: &[u8; 32], id: KeyId, kind: Kind) -> Result<Sealer, KeyError> {
        let seal = Seal {
            key: id,
            salt: random()?,
        };
        Ok(Sealer {
            key: derive(secret, &seal.salt, kind),
            seal,
            last: None,
        })
    }

    /// A sealer for a temporary file under a key that no other file has, and the opener for it.
    ///
    /// # Errors
    /// `Random`.
    pub fn temporary() -> Result<(Sealer, Opener), KeyError> {
        let secret = zeroize::Zeroizing::new(random::<32>()?);
        let sealer = Sealer::new(&secret, KeyId(0), Kind::Temporary)?;
        let opener = Opener::new(&secret, &sealer.seal, Kind::Temporary);
        Ok((sealer, opener))
    }

    /// What the file must record.
    #[must_use]
    pub fn seal(&self) -> Seal {
        self.seal
    }

    /// Encrypt `bytes` in place as the frame `nonce`, bound to `associated`, and return the tag.
    ///
    /// # Panics
    /// When `nonce` does not follow the one before (I1), or `bytes` are more than 64 GiB.
    #[must_use]
    pub fn encrypt(&mut self, nonce: Nonce, associated: &[u8], bytes: &mut [u8]) -> [u8; TAG_LEN] {
        let ascends = self.last.is_none_or(|last| last < nonce);
        assert!(ascends, "I1: {nonce:?} follows {:?}", self.last);
        self.last = Some(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce.bytes(), Aad::from(associated), bytes)
            .expect("a frame is shorter than 64 GiB");
        tag.as_ref().try_into().expect("tags have 16 bytes")
    }
}

/// Decrypts the frames of one file.
pub struct Opener {
    key: LessSafeKey,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

impl Opener {
    pub(crate) fn new(secret: &[u8; 32], seal: &Seal, kind: Kind) -> Opener {
        Opener {
            key: derive(secret, &seal.salt, kind),
        }
    }

    /// Decrypt `bytes` in place. After an error their content means nothing.
    ///
    /// # Errors
    /// The frame is not the one that was encrypted as `nonce` with `associated` and this tag.
    pub fn decrypt(
        &self,
        nonce: Nonce,
        associated: &[u8],
        bytes: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Unauthentic> {
        let aad = Aad::from(associated);
        self.key
            .open_in_place_separate_tag(nonce.bytes(), aad, Tag::from(*tag), bytes, 0..)
            .map(|_| ())
            .map_err(|_| Unauthentic)
    }
}

/// The key of a file.
fn derive(secret: &[u8; 32], salt: &[u8; 16], kind: Kind) -> LessSafeKey {
    let prk = Salt::new(HKDF_SHA256, salt).extract(secret);
    let info = [kind.label()];
    let okm = prk.expand(&info, &AES_256_GCM);
    LessSafeKey::new(UnboundKey::from(
        okm.expect("32 bytes are within HKDF's limit"),
    ))
}
