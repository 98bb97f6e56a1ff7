//! Encryption at rest: keys, and frames of AES-256-GCM.
//!
//! ```text
//! master key (a file of the operator)  wraps  data keys (the key file of a store)
//! data key + random salt of a file, kind --HKDF-SHA256--> key of that file --> frames
//! ```
//!
//! - [`MasterKey`]: 32 bytes that the operator keeps; [`MasterKey::read`] reads its file.
//! - [`KeyRing`]: the data keys of a store, and the bytes of its key file.
//! - [`Sealer`]: encrypts the frames of one file, [`Opener`] decrypts them. [`Seal`] is what a file
//!   must record so that it can be opened: the number of the data key, and the salt.
//! - [`TemporaryWriter`], [`TemporaryReader`]: a file under a key that is thrown away.
//!
//! A file, here, is whatever is written once with one salt: a run, one use of a log segment, one
//! write of a superblock.
//!
//! # Invariants
//!
//! - I1. No nonce is used twice with one key. A key encrypts only as a [`Sealer`], which has a salt
//!   of its own from the operating system, cannot be copied, and accepts ascending nonces only.
//! - I2. A frame that was changed, or is read as another one, does not open: the kind and the salt
//!   are in its key, its place is in its nonce, and the caller adds what else identifies it as
//!   associated data.
//! - I3. A wrong master key is detected before a data key is unwrapped.
//! - I4. Keys are printed by no `Debug`. Master and data keys are overwritten in memory when they
//!   are dropped; the keys of files, which live in `ring`'s types, are not.
//!
//! No threads and no locks; the only input is the master key's file.

mod error;
mod frame;
mod keyring;
mod master;
mod temporary;

pub use error::KeyError;
pub use frame::{KeyId, Kind, Nonce, Opener, Seal, Sealer, TAG_LEN, Unauthentic};
pub use keyring::KeyRing;
pub use master::MasterKey;
pub use temporary::{TemporaryReader, TemporaryWriter};

/// Fill an array from the operating system's random numbers.
fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeyError::Random)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
