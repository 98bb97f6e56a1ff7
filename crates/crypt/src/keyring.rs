//! The data keys of a store, and the bytes of its key file.
//!
//! Little-endian:
//! ```text
//!  0  magic    8   89 'B' 'T' 'K' 'E' 'Y' 'S' 0A
//!  8  version  4   1
//! 12  count    4   of keys, 1 to 1024
//! 16  owner   16   the identity of the store
//! 32  check   16   of the master key
//! 48  seal    20   salt under which the keys are wrapped (key 0: the master key)
//! 68  count * (id 4, encrypted key 32, tag 16), ids ascending; the last is the newest
//! end hash     8   XXH3-64 of all before
//! ```
//! The hash distinguishes damage from a wrong key. A key is wrapped as one frame whose nonce is its
//! place in the list, with owner and id as associated data; each encoding has a new salt.

use std::fmt;

use stdx::hash;
use zeroize::Zeroizing;

use crate::error::KeyError;
use crate::frame::{KeyId, Kind, Nonce, Opener, Seal, Sealer, TAG_LEN};
use crate::master::MasterKey;
use crate::random;

const MAGIC: [u8; 8] = *b"\x89BTKEYS\n";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 68;
const ENTRY_LEN: usize = 4 + 32 + TAG_LEN;

/// The most data keys of a store, which bounds what is read of a key file.
const KEYS_MAX: usize = 1024;

/// The data keys of a store.
#[derive(Clone)]
pub struct KeyRing {
    /// Ascending by number; never empty.
    keys: Vec<(KeyId, Zeroizing<[u8; 32]>)>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyRing").field(&self.ids()).finish()
    }
}

impl KeyRing {
    /// The most bytes that a key file has.
    pub const ENCODED_MAX: usize = HEADER_LEN + KEYS_MAX * ENTRY_LEN + 8;

    /// One new key, number 1.
    ///
    /// # Errors
    /// `Random`.
    pub fn generate() -> Result<KeyRing, KeyError> {
        let key = Zeroizing::new(random()?);
        Ok(KeyRing {
            keys: vec![(KeyId(1), key)],
        })
    }

    /// Add a new key, which is the newest from now on.
    ///
    /// # Errors
    /// `Random`, `TooMany`.
    pub fn add(&mut self) -> Result<KeyId, KeyError> {
        let next = self.newest().0.checked_add(1).ok_or(KeyError::TooMany)?;
        if KEYS_MAX <= self.keys.len() {
            return Err(KeyError::TooMany);
        }
        self.keys.push((KeyId(next), Zeroizing::new(random()?)));
        Ok(KeyId(next))
    }

    /// The number of the newest key.
    #[must_use]
    pub fn newest(&self) -> KeyId {
        self.last().0
    }

    /// The numbers of all keys, ascending.
    #[must_use]
    pub fn ids(&self) -> Vec<KeyId> {
        self.keys.iter().map(|(id, _)| *id).collect()
    }

    /// A sealer for a new file of `kind`, under the newest key.
    ///
    /// # Errors
    /// `Random`.
    pub fn sealer(&self, kind: Kind) -> Result<Sealer, KeyError> {
        let (id, secret) = self.last();
        Sealer::new(secret, *id, kind)
    }

    /// The opener of a file of `kind` with `seal`.
    ///
    /// # Errors
    /// `Missing`.
    pub fn opener(&self, kind: Kind, seal: &Seal) -> Result<Opener, KeyError> {
        let found = self.keys.iter().find(|(id, _)| *id == seal.key);
        let (_, secret) = found.ok_or(KeyError::Missing(seal.key.0))?;
        Ok(Opener::new(secret, seal, kind))
    }

    /// The bytes of a key file of the store `owner`, under `master`.
    ///
    /// # Errors
    /// `Random`.
    pub fn encode(&self, master: &MasterKey, owner: u128) -> Result<Vec<u8>, KeyError> {
        let mut wrap = Sealer::new(master.secret(), KeyId(0), Kind::Wrap)?;
        let count = u32::try_from(self.keys.len()).expect("at most KEYS_MAX");
        let mut out = Vec::with_capacity(HEADER_LEN + self.keys.len() * ENTRY_LEN + 8);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(owner.to_le_bytes());
        out.extend(check_value(master));
        out.extend(wrap.seal().encode());
        assert_eq!(out.len(), HEADER_LEN, "the header is as long as it says");
        for (place, (id, secret)) in (0..).zip(&self.keys) {
            let mut wrapped = **secret;
            let tag = wrap.encrypt(Nonce::at(place), &associated(owner, *id), &mut wrapped);
            out.extend(id.0.to_le_bytes());
            out.extend(wrapped);
            out.extend(tag);
        }
        let sum = hash::hash64(&out);
        out.extend(sum.to_le_bytes());
        Ok(out)
    }

    /// The data keys in `bytes`, a key file, and the store that owns it.
    ///
    /// # Errors
    /// `WrongMaster`, `Version`, `Damaged`.
    pub fn decode(bytes: &[u8], master: &MasterKey) -> Result<(KeyRing, u128), KeyError> {
        let damaged = KeyError::Damaged;
        let (body, sum) = bytes
            .split_last_chunk::<8>()
            .ok_or(damaged("is cut short"))?;
        let mut rest = Fields(body);
        if rest.take()? != MAGIC {
            return Err(damaged("begins with other bytes"));
        }
        if hash::hash64(body).to_le_bytes() != *sum {
            return Err(damaged("has a wrong checksum"));
        }
        let version = u32::from_le_bytes(rest.take()?);
        if version != VERSION {
            return Err(KeyError::Version(version));
        }
        let count = u32::from_le_bytes(rest.take()?) as usize;
        let owner = u128::from_le_bytes(rest.take()?);
        if rest.take::<16>()? != check_value(master) {
            return Err(KeyError::WrongMaster);
        }
        let seal = Seal::decode(&rest.take()?);
        if seal.key != KeyId(0) || !(1..=KEYS_MAX).contains(&count) {
            return Err(damaged("has impossible fields"));
        }
        if rest.0.len() != count * ENTRY_LEN {
            return Err(damaged("has another length than it says"));
        }
        let wrap = Opener::new(master.secret(), &seal, Kind::Wrap);
        let mut keys: Vec<(KeyId, Zeroizing<[u8; 32]>)> = Vec::with_capacity(count);
        for place in 0..count as u64 {
            let id = KeyId(u32::from_le_bytes(rest.take()?));
            let mut secret = Zeroizing::new(rest.take::<32>()?);
            let tag = rest.take::<TAG_LEN>()?;
            wrap.decrypt(Nonce::at(place), &associated(owner, id), &mut *secret, &tag)
                .map_err(|_| damaged("has a data key that does not decrypt"))?;
            if id <= keys.last().map_or(KeyId(0), |(before, _)| *before) {
                return Err(damaged("has data keys in a wrong order"));
            }
            keys.push((id, secret));
        }
        Ok((KeyRing { keys }, owner))
    }

    fn last(&self) -> &(KeyId, Zeroizing<[u8; 32]>) {
        self.keys.last().expect("a key ring is never empty")
    }
}

/// What a wrapped key is bound to.
fn associated(owner: u128, id: KeyId) -> [u8; 20] {
    let mut bytes = [0; 20];
    let (front, back) = bytes.split_at_mut(16);
    front.copy_from_slice(&owner.to_le_bytes());
    back.copy_from_slice(&id.0.to_le_bytes());
    bytes
}

/// The value by which a key file recognizes its master key (I3).
fn check_value(master: &MasterKey) -> [u8; 16] {
    let tag = master.tag(b"romanesco 1 key file");
    *tag.first_chunk().expect("16 of 32 bytes")
}

/// The rest of a key file.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], KeyError> {
        let (front, rest) = self
            .0
            .split_first_chunk()
            .ok_or(KeyError::Damaged("is cut short"))?;
        self.0 = rest;
        Ok(*front)
    }
}
