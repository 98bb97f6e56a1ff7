//! The keys of an encrypted store, and the file beside the data file that has them.
//!
//! - I1. The key file is replaced whole: after a crash it is the one before or the one after.
//! - I2. The key file of another store is not overwritten when a store is created: it gets the name
//!   `keys-STORE.betree`, with which the data of that store can be opened again.
//! - I3. A data key is in the durable key file before a file is encrypted with it.
//!
//! The lock of the ring is a leaf: nothing is locked under it, and no input or output happens.

use std::path::{Path, PathBuf};

use crypt::{KeyError, KeyRing, Kind, MasterKey, Opener, Seal, Sealer};
use stdx::sync::Mutex;
use vfs::{Open, Site, Vfs};

use crate::error::{Error, ErrorKind, Result};

/// The name of the file in the directory of an encrypted store that has its data keys, wrapped by
/// the master key.
pub const KEY_FILE: &str = "keys.betree";
pub(crate) const NEW_KEY_FILE: &str = "keys.betree.new";

/// The keys of an encrypted store.
#[derive(Debug)]
pub(crate) struct Keys {
    owner: u128,
    held: Mutex<Held>,
    /// One rotation at a time; locked before `held`, and across input and output.
    rotation: Mutex<()>,
}

/// The keys of an encrypted store, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// Identifies the master key: 16 hexadecimal digits that say nothing of the key.
    pub master_key: String,
    /// The number of the data key that new files get.
    pub data_key: u32,
}

#[derive(Clone, Debug)]
struct Held {
    ring: KeyRing,
    master: MasterKey,
}

impl Keys {
    /// New keys for the new store `owner` in `directory`. A key file that is there, because the
    /// data file was moved away or a creation did not finish, is renamed (I2).
    ///
    /// # Errors
    /// `Invalid`: the key file has another master key; `Exists`: its other name is taken;
    /// `Corrupt`, `Io`.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        directory: &Path,
        owner: u128,
        master: &MasterKey,
    ) -> Result<Keys> {
        if let Some(bytes) = read(vfs, &directory.join(KEY_FILE))? {
            set_aside(vfs, directory, &bytes, master)?;
        }
        let keys = Keys::of(owner, KeyRing::generate().map_err(failed)?, master);
        keys.write(vfs, directory)?;
        Ok(keys)
    }

    /// The keys of the store in `directory`; `None` if it has no key file.
    ///
    /// # Errors
    /// `Invalid`: the key file has another master key, or is of a newer version; `Corrupt`; `Io`.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        directory: &Path,
        master: &MasterKey,
    ) -> Result<Option<Keys>> {
        let path = directory.join(KEY_FILE);
        let Some(bytes) = read(vfs, &path)? else {
            return Ok(None);
        };
        let keys = Keys::decode(&bytes, master);
        keys.map(Some).map_err(|error| error.with_path(&path))
    }

    /// The keys in the bytes of a key file.
    ///
    /// # Errors
    /// `Invalid`: it has another master key, or is of a newer version; `Corrupt`.
    pub(crate) fn decode(bytes: &[u8], master: &MasterKey) -> Result<Keys> {
        let (ring, owner) = KeyRing::decode(bytes, master).map_err(failed)?;
        Ok(Keys::of(owner, ring, master))
    }

    fn of(owner: u128, ring: KeyRing, master: &MasterKey) -> Keys {
        let master = master.clone();
        Keys {
            owner,
            held: Mutex::new(Held { ring, master }),
            rotation: Mutex::new(()),
        }
    }

    /// New keys of `owner`, with no file.
    #[cfg(test)]
    pub(crate) fn of_tests(owner: u128) -> Keys {
        let ring = KeyRing::generate().expect("random numbers");
        Keys::of(owner, ring, &MasterKey::new([7; 32]))
    }

    /// The store that the key file belongs to.
    pub(crate) fn owner(&self) -> u128 {
        self.owner
    }

    /// The same keys, for a copy of this store with another identity.
    pub(crate) fn for_copy(&self, owner: u128) -> Keys {
        let held = self.held.lock().clone();
        Keys {
            owner,
            held: Mutex::new(held),
            rotation: Mutex::new(()),
        }
    }

    /// Wrap the data keys with another master key, and with `data` add a data key, which new files
    /// get from now on. Old files keep theirs until merges rewrite them.
    ///
    /// # Errors
    /// `Full`: the key file cannot grow. After `Io` the master key may be either: open the store
    /// with the new one, and if that is refused, with the old one.
    pub(crate) fn rotate(
        &self,
        vfs: &dyn Vfs,
        directory: &Path,
        master: Option<&MasterKey>,
        data: bool,
    ) -> Result<()> {
        let _one = self.rotation.lock();
        let mut next = self.held.lock().clone();
        if let Some(master) = master {
            next.master = master.clone();
        }
        if data {
            next.ring.add().map_err(failed)?;
        }
        // I3: no file gets a key that the durable key file does not have.
        self.write_as(&next, vfs, directory)?;
        *self.held.lock() = next;
        Ok(())
    }

    /// Write the key file into `directory`, whole and durable (I1).
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub(crate) fn write(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let held = self.held.lock().clone();
        self.write_as(&held, vfs, directory)
    }

    /// The content of the key file.
    ///
    /// # Errors
    /// `Io`: the operating system has no random numbers.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let held = self.held.lock().clone();
        self.encode_as(&held)
    }

    fn encode_as(&self, held: &Held) -> Result<Vec<u8>> {
        let encoded = held.ring.encode(&held.master, self.owner);
        encoded.map_err(failed)
    }

    fn write_as(&self, held: &Held, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let bytes = self.encode_as(held)?;
        let (new, path) = (directory.join(NEW_KEY_FILE), directory.join(KEY_FILE));
        let how = Open {
            create: true,
            direct: false,
        };
        vfs.open(Site("keys.create"), &new, how)
            .and_then(|file| {
                // An interrupted write may have left a longer file.
                file.set_len(Site("keys.set_len"), 0)?;
                file.write_at(Site("keys.write"), &bytes, 0)?;
                file.sync(Site("keys.sync"))
            })
            .and_then(|()| vfs.rename(Site("keys.rename"), &new, &path))
            .and_then(|()| vfs.sync_dir(Site("keys.sync_dir"), directory))
            .map_err(|e| Error::io("write the key file", &path, e))
    }

    /// A sealer for a new file of `kind`.
    ///
    /// # Errors
    /// `Io`: the operating system has no random numbers.
    pub(crate) fn sealer(&self, kind: Kind) -> Result<Sealer> {
        self.held.lock().ring.sealer(kind).map_err(failed)
    }

    /// The opener of a file of `kind`.
    ///
    /// # Errors
    /// `Corrupt`: the key file does not have its key.
    pub(crate) fn opener(&self, kind: Kind, seal: &Seal) -> Result<Opener> {
        self.held.lock().ring.opener(kind, seal).map_err(failed)
    }

    /// What statistics say of the keys.
    pub(crate) fn encryption(&self) -> Encryption {
        let held = self.held.lock();
        Encryption {
            master_key: held.master.fingerprint(),
            data_key: held.ring.newest().0,
        }
    }
}

/// The bytes of the key file at `path`, if it exists.
fn read(vfs: &dyn Vfs, path: &Path) -> Result<Option<Vec<u8>>> {
    let how = Open {
        create: false,
        direct: false,
    };
    let io = |e| Error::io("read the key file", path, e);
    let file = match vfs.open(Site("keys.open"), path, how) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io(e)),
    };
    let length = file.len().map_err(io)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= KeyRing::ENCODED_MAX);
    let Some(length) = length else {
        let damaged = KeyError::Damaged("is longer than a key file can be");
        return Err(failed(damaged).with_path(path));
    };
    let mut bytes = vec![0; length];
    file.read_at(Site("keys.read"), &mut bytes, 0).map_err(io)?;
    Ok(Some(bytes))
}

/// Give the key file of another store, with these `bytes`, a name of its own (I2).
fn set_aside(vfs: &dyn Vfs, directory: &Path, bytes: &[u8], master: &MasterKey) -> Result<()> {
    let path = directory.join(KEY_FILE);
    let (_, other) = KeyRing::decode(bytes, master).map_err(|e| {
        let message = format!(
            "a new store is to be created where the key file of another one is: {e}; or move the \
             key file to the data that it belongs to, or name another directory"
        );
        Error::new(failed(e).kind(), message).with_path(&path)
    })?;
    let name = format!("keys-{other:032x}.betree");
    let kept = directory.join(&name);
    let names = vfs.list(directory);
    let names = names.map_err(|e| Error::io("list the directory", directory, e))?;
    if names.contains(&name) {
        let message = format!(
            "it belongs to the store {other:032x}, and so does {name}; a new store overwrites \
             neither: move one of them away"
        );
        return Err(Error::new(ErrorKind::Exists, message).with_path(&path));
    }
    vfs.rename(Site("keys.keep"), &path, &kept)
        .and_then(|()| vfs.sync_dir(Site("keys.sync_dir"), directory))
        .map_err(|e| Error::io("keep the key file of another store", &kept, e))
}

/// The error of a store for an error of keys.
fn failed(error: KeyError) -> Error {
    let kind = match &error {
        KeyError::WrongMaster | KeyError::Version(_) | KeyError::Unfit { .. } => ErrorKind::Invalid,
        KeyError::Damaged(_) | KeyError::Missing(_) => ErrorKind::Corrupt,
        KeyError::TooMany => ErrorKind::Full,
        _ => ErrorKind::Io,
    };
    Error::new(kind, error.to_string())
}

/// The error for a store that is encrypted and has no key file in `directory`.
pub(crate) fn missing(directory: &Path) -> Error {
    let path: PathBuf = directory.join(KEY_FILE);
    let message = "the key file of the encrypted store is missing: put it, or a copy of it, back; \
                   without it the data cannot be decrypted";
    Error::corrupt(message).with_path(path)
}
