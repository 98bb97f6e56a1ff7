//! The superblock: four slots of 4 KiB at the front of the data file, and nothing else is ever
//! overwritten in place.
//!
//! # Slot, little-endian
//! ```text
//!    0  magic          8   89 'B' 'E' 'T' 'R' 'E' 'E' 0A
//!    8  version        4   of the format of the whole store: 1; 2 if it is encrypted (`sealed`)
//!   12  zero           4
//!   16  store         16   random, the same in every slot and in every log segment
//!   32  number         8   of the checkpoint; 0: none yet
//!   40  image offset   8   in the data file, whole units; 0 with number 0
//!   48  image length   8   bytes; 0 with number 0
//!   56  image hash     8   the last 8 bytes of the image
//!   64  log from       8   the first sequence number to replay
//!   72  last seq       8   the newest commit the image knows of
//!   80  next run       8   the lowest run number never given
//!   88  next tree      4   the lowest tree number never given
//!   92  zero        3996
//! 4088  hash           8   XXH3-64 of bytes 0..4088
//! ```
//! Magic, version and hash keep their places in every version of the format, so that every program
//! can tell a newer store from a damaged one.
//!
//! # Writing
//! A checkpoint writes slots 0 and 1, syncs, writes slots 2 and 3, syncs. The first sync commits:
//! before it slots 2 and 3 hold the checkpoint before, whole. After the second sync all four slots
//! say the same, and only then is anything reused that the checkpoint before named.
//!
//! Invariants:
//! - I1: at every moment at least two slots hold a superblock whose image is untouched.
//! - I2: the valid slot with the largest number is the last checkpoint whose sync succeeded, or a
//!   later one that is as good: its image was durable before its slots were written.
//! - I3: so any three slots may be lost, and the fourth still serves; what it names has not been
//!   reused, whether the loss hit a finished checkpoint or one in the middle.
//!
//! One checkpoint at a time: the caller holds the lock of the checkpoint.

use std::io;
use std::path::Path;

use stdx::hash;
use vfs::{File, Open, Site, Vfs};

use super::bytes::{Reader, put_u32, put_u64};
use super::data_file::DataFile;
use super::image::Image;
use super::protocol::sync_failed;
use super::sealed::{self, SEALED_FORMAT};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keys;
use crate::plant::{Plant, planted};
use crate::types::{Extent, RunId, Seq, UNIT};

/// The version of the store's format that this program reads and writes.
pub(super) const FORMAT: u32 = 1;
/// Number of slots of the superblock.
pub(super) const SLOTS: u64 = 4;
/// Start of the data, behind the slots.
pub(crate) const DATA_START: u64 = SLOTS * UNIT;

pub(crate) const SLOT_LEN: usize = 4096;
pub(super) const HASH_AT: usize = SLOT_LEN - 8;
pub(super) const MAGIC: [u8; 8] = *b"\x89BETREE\n";
const PER_HALF: u64 = SLOTS / 2;

/// The content of a slot: the location of one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The store's random identity.
    pub(crate) store: u128,
    /// Number of the checkpoint; 0 before the first one, when there is no image.
    pub(crate) number: u64,
    /// Location of the image; `None` before the first checkpoint.
    pub(crate) image: Option<ImagePlace>,
    /// The first log record to replay.
    pub(crate) log_from: Seq,
    /// The newest commit that the image may contain.
    pub(crate) last_seq: Seq,
    /// The lowest unused run number.
    pub(crate) next_run: RunId,
    /// The lowest unused tree number.
    pub(crate) next_tree: u32,
}

/// Location of an image, which is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImagePlace {
    pub(crate) offset: u64,
    /// Length in bytes, not rounded up.
    pub(crate) length: u64,
    /// The last 8 bytes of the image.
    pub(crate) hash: u64,
}

impl ImagePlace {
    /// The location of the encoded image `bytes` at `offset`.
    pub(crate) fn of(bytes: &[u8], offset: u64) -> ImagePlace {
        let hash = bytes.last_chunk().expect("an image ends with its hash");
        ImagePlace {
            offset,
            length: u64::try_from(bytes.len()).expect("usize has at most 64 bits"),
            hash: u64::from_le_bytes(*hash),
        }
    }

    /// The extent it occupies.
    pub(crate) fn extent(self) -> Extent {
        Extent {
            offset: self.offset,
            len: self.length.div_ceil(UNIT) * UNIT,
        }
    }
}

impl Superblock {
    /// The superblock of `store` with its newest `image` at `place`.
    pub(crate) fn of(store: u128, image: &Image, place: ImagePlace) -> Superblock {
        Superblock {
            store,
            number: image.number,
            image: Some(place),
            log_from: image.log_from,
            last_seq: image.last_seq,
            next_run: image.next_run,
            next_tree: image.next_tree,
        }
    }

    /// The superblock of a store without a checkpoint.
    pub(crate) fn first(store: u128) -> Superblock {
        Superblock {
            store,
            number: 0,
            image: None,
            log_from: Seq(1),
            last_seq: Seq(0),
            next_run: RunId(1),
            next_tree: 1,
        }
    }

    /// The bytes of a slot.
    pub(crate) fn encode(&self) -> Vec<u8> {
        assert_eq!(
            self.number == 0,
            self.image.is_none(),
            "an image per number"
        );
        let image = self.image.unwrap_or(ImagePlace {
            offset: 0,
            length: 0,
            hash: 0,
        });
        let mut slot = Vec::with_capacity(SLOT_LEN);
        slot.extend(MAGIC);
        put_u32(&mut slot, FORMAT);
        put_u32(&mut slot, 0);
        slot.extend(self.store.to_le_bytes());
        put_u64(&mut slot, self.number);
        put_u64(&mut slot, image.offset);
        put_u64(&mut slot, image.length);
        put_u64(&mut slot, image.hash);
        put_u64(&mut slot, self.log_from.0);
        put_u64(&mut slot, self.last_seq.0);
        put_u64(&mut slot, self.next_run.0);
        put_u32(&mut slot, self.next_tree);
        slot.resize(HASH_AT, 0);
        let hash = hash::hash64(&slot);
        put_u64(&mut slot, hash);
        assert_eq!(slot.len(), SLOT_LEN, "a slot is a unit");
        debug_assert_eq!(
            Superblock::decode(&slot).as_ref(),
            Ok(self),
            "what is encoded decodes"
        );
        slot
    }

    /// The bytes of a slot, encrypted if there are `keys`.
    ///
    /// # Errors
    /// `Io`: the operating system has no random numbers.
    pub(crate) fn slot(&self, keys: Option<&Keys>) -> Result<Vec<u8>> {
        match keys {
            None => Ok(self.encode()),
            Some(keys) => sealed::seal_slot(self, keys),
        }
    }

    /// Decode a slot of a store that is not encrypted.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn decode(slot: &[u8]) -> Result<Superblock, Bad> {
        Superblock::decode_with(slot, None)
    }

    /// Decode a slot of a store that is encrypted if there are `keys`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn decode_with(slot: &[u8], keys: Option<&Keys>) -> Result<Superblock, Bad> {
        let (Some(body), Some(hash)) = (slot.get(..HASH_AT), slot.get(HASH_AT..SLOT_LEN)) else {
            return Err(Bad::Damaged("is cut short"));
        };
        if !body.starts_with(&MAGIC) {
            let empty = slot.iter().all(|byte| *byte == 0);
            return Err(if empty { Bad::Empty } else { Bad::Foreign });
        }
        if hash::hash64(body).to_le_bytes() != hash {
            return Err(Bad::Damaged("has a wrong checksum"));
        }
        let mut reader = Reader::new(body.get(MAGIC.len()..).unwrap_or_default());
        match reader.u32() {
            Ok(FORMAT) if keys.is_some() => Err(Bad::Plain),
            Ok(FORMAT) => {
                let zero = reader.zero_u32().map_err(Bad::Damaged);
                zero.and_then(|()| decode_body(&mut reader).map_err(Bad::Damaged))
            }
            Ok(SEALED_FORMAT) => {
                let plain = sealed::open_slot(slot, keys)?;
                decode_body(&mut Reader::new(&plain)).map_err(Bad::Damaged)
            }
            Ok(version) => Err(Bad::Version(version)),
            Err(_) => Err(Bad::Damaged("is cut short")),
        }
    }
}

fn decode_body(reader: &mut Reader<'_>) -> Result<Superblock, &'static str> {
    let store = reader.u128()?;
    let number = reader.u64()?;
    let image = ImagePlace {
        offset: reader.u64()?,
        length: reader.u64()?,
        hash: reader.u64()?,
    };
    let superblock = Superblock {
        store,
        number,
        image: (number > 0).then_some(image),
        log_from: Seq(reader.u64()?),
        last_seq: Seq(reader.u64()?),
        next_run: RunId(reader.u64()?),
        next_tree: reader.u32()?,
    };
    let ImagePlace { offset, length, .. } = image;
    if number == 0 && (offset, length, image.hash) != (0, 0, 0) {
        return Err("names an image without a checkpoint");
    }
    let end = length.checked_next_multiple_of(UNIT);
    let end = end.and_then(|length| offset.checked_add(length));
    let possible = DATA_START <= offset && offset % UNIT == 0 && 0 < length && end.is_some();
    if number > 0 && !possible {
        return Err("names an impossible place of the image");
    }
    Ok(superblock)
}

/// Why a slot cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// All zeros.
    Empty,
    /// Not written by this engine.
    Foreign,
    /// Written by this engine, and damaged.
    Damaged(&'static str),
    /// Valid, in another version of the format.
    Version(u32),
    /// Valid and encrypted, and there are no keys.
    Sealed,
    /// Valid and not encrypted, although there are keys.
    Plain,
    /// Encrypted with the keys of another store.
    OtherKeys,
    /// The file ends before the slot.
    Missing,
    /// The operating system failed.
    Unreadable(String),
}

/// The result of reading each of the four slots.
pub(super) type Slots = Vec<Result<Superblock, Bad>>;

/// Read all slots. A slot that cannot be read counts as bad.
pub(super) fn read_slots(file: &dyn File, keys: Option<&Keys>) -> Slots {
    let read = |index: u64| {
        let mut slot = vec![0; SLOT_LEN];
        match file.read_at(Site("superblock.read"), &mut slot, index * UNIT) {
            Ok(()) => Superblock::decode_with(&slot, keys),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Bad::Missing),
            Err(error) => Err(Bad::Unreadable(error.to_string())),
        }
    };
    (0..SLOTS).map(read).collect()
}

/// The newest valid superblock of the data file; bad slots are left as they are.
///
/// # Errors
/// `Invalid`: not a data file of this engine, one of another version, encrypted without keys, or
/// not encrypted with keys. `Corrupt`: no slot is
/// valid, or they are of two stores. `Io`: none is valid, and some could not be read.
pub(crate) fn read_newest(data: DataFile<'_>) -> Result<Superblock> {
    let slots = read_slots(data.file, data.keys);
    newest(&slots).map_err(|error| error.with_path(data.path))
}

/// Whether the data file is that of an encrypted store, whose keys are not known.
///
/// # Errors
/// As [`read_newest`].
pub(crate) fn is_encrypted(data: DataFile<'_>) -> Result<bool> {
    assert!(data.keys.is_none(), "the keys are not known");
    let slots = read_slots(data.file, None);
    if slots.contains(&Err(Bad::Sealed)) {
        return Ok(true);
    }
    let newest = newest(&slots).map_err(|error| error.with_path(data.path));
    newest.map(|_| false)
}

pub(super) fn newest(slots: &Slots) -> Result<Superblock> {
    for slot in slots {
        if let Err(Bad::Version(version)) = slot {
            return Err(Error::invalid(format!(
                "the store has format {version} and this program reads format {FORMAT}: \
                 open it with a version of the program that reads format {version}"
            )));
        }
    }
    if let Some(error) = slots.iter().find_map(wrong_keys) {
        return Err(error);
    }
    let valid = || slots.iter().flatten();
    // Of equal ones the first.
    let best = valid().rev().max_by_key(|superblock| superblock.number);
    let Some(best) = best else {
        return Err(all_bad(slots));
    };
    if let Some(other) = valid().find(|other| other.store != best.store) {
        return Err(Error::corrupt(format!(
            "the superblock's slots are of two stores, {:032x} and {:032x}: \
             a file was overwritten with part of another; restore a backup",
            best.store, other.store
        )));
    }
    Ok(best.clone())
}

/// The error for a slot that is valid under other keys, or without.
fn wrong_keys(slot: &Result<Superblock, Bad>) -> Option<Error> {
    match slot {
        Err(Bad::Sealed) => Some(Error::invalid(
            "the store is encrypted: open it with its master key (the engine option key_file, or \
             security.encryptionKeyFile of the server)",
        )),
        Err(Bad::Plain) => Some(not_encrypted()),
        Err(Bad::OtherKeys) => Some(Error::corrupt(
            "the key file in the directory belongs to another store: put the key file of this \
             store back",
        )),
        _ => None,
    }
}

/// The error for a store that is not encrypted, and is opened with a master key.
pub(crate) fn not_encrypted() -> Error {
    Error::invalid(
        "the store is not encrypted: open it without a master key; to encrypt its data, copy them \
         into a new store that is created with a master key",
    )
}

fn all_bad(slots: &Slots) -> Error {
    let ours = |slot: &Result<Superblock, Bad>| matches!(slot, Err(Bad::Damaged(_)));
    let foreign = |slot: &Result<Superblock, Bad>| matches!(slot, Err(Bad::Foreign));
    if !slots.iter().any(ours) && slots.first().is_some_and(foreign) {
        let message = "not a data file of betree (it begins with other bytes): check the path";
        return Error::new(ErrorKind::Invalid, message);
    }
    let mut what = String::new();
    for (index, slot) in slots.iter().enumerate() {
        let state = match slot {
            Ok(_) => "is valid".to_owned(),
            Err(Bad::Empty) => "is all zeros".to_owned(),
            Err(Bad::Foreign) => "holds other bytes".to_owned(),
            Err(Bad::Damaged(how)) => (*how).to_owned(),
            Err(Bad::Version(version)) => format!("has format {version}"),
            Err(Bad::Sealed | Bad::OtherKeys) => "is encrypted".to_owned(),
            Err(Bad::Plain) => "is not encrypted".to_owned(),
            Err(Bad::Missing) => "lies beyond the end of the file".to_owned(),
            Err(Bad::Unreadable(error)) => format!("cannot be read: {error}"),
        };
        what.push_str(&format!("; slot {index} {state}"));
    }
    if slots
        .iter()
        .any(|slot| matches!(slot, Err(Bad::Unreadable(_))))
    {
        // An unreadable slot may be intact, so this is not damage.
        let message = format!("no slot of the superblock could be read: try again{what}");
        return Error::new(ErrorKind::Io, message);
    }
    Error::corrupt(format!(
        "no slot of the superblock is valid: restore a backup{what}"
    ))
}

/// Make `superblock` the newest; see the module documentation. When this returns, it is durable in
/// all four slots.
///
/// # Errors
/// `Io`. Which checkpoint is the newest is then unknown: what either names must stay, and the store
/// must be opened again.
pub(crate) fn write(data: DataFile<'_>, superblock: &Superblock) -> Result<()> {
    let DataFile { file, path, keys } = data;
    let half = superblock.slot(keys)?.repeat(2);
    let back = PER_HALF * UNIT;
    file.write_at(Site("superblock.write"), &half, 0)
        .and_then(|()| {
            if planted(Plant::SuperblockAtOnce) {
                return Ok(());
            }
            file.sync(Site("superblock.sync"))
        })
        .and_then(|()| file.write_at(Site("superblock.copy"), &half, back))
        .and_then(|()| file.sync(Site("superblock.copy_sync")))
        .map_err(|error| sync_failed("write the superblock", path, error))
}

/// Write `newest` to the slots that do not contain it, so that all four are valid again, which I3
/// requires before space is reused. The half that is written last still contains it during the
/// write.
///
/// # Errors
/// The operating system's.
pub(super) fn heal(data: DataFile<'_>, slots: &Slots, newest: &Superblock) -> Result<()> {
    let DataFile { file, path, keys } = data;
    let holds = |slot: &Result<Superblock, Bad>| slot.as_ref() == Ok(newest);
    if slots.iter().all(holds) {
        return Ok(());
    }
    let bytes = newest.slot(keys)?.repeat(2);
    let front_serves = slots.iter().take(2).any(holds);
    let halves = if front_serves {
        [PER_HALF, 0]
    } else {
        [0, PER_HALF]
    };
    for first in halves {
        let at = usize::try_from(first).unwrap_or(0);
        if slots.iter().skip(at).take(2).all(holds) {
            continue;
        }
        file.write_at(Site("superblock.heal"), &bytes, first * UNIT)
            .and_then(|()| file.sync(Site("superblock.heal_sync")))
            .map_err(|error| sync_failed("repair the superblock", path, error))?;
    }
    Ok(())
}

/// Create the data file at `path` with `superblock` in every slot. After a crash the file exists
/// completely or not at all.
///
/// # Errors
/// The operating system's.
pub(crate) fn create(
    vfs: &dyn Vfs,
    path: &Path,
    superblock: &Superblock,
    keys: Option<&Keys>,
) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let how = Open {
        create: true,
        direct: false,
    };
    let slots = superblock.slot(keys)?.repeat(4);
    let directory = path.parent().unwrap_or(Path::new(""));
    vfs.open(Site("create.open"), new, how)
        .and_then(|file| {
            // An interrupted creation may have left a longer file.
            file.set_len(Site("create.set_len"), DATA_START)?;
            file.write_at(Site("create.write"), &slots, 0)?;
            file.sync(Site("create.sync"))
        })
        .and_then(|()| vfs.rename(Site("create.rename"), new, path))
        .and_then(|()| vfs.sync_dir(Site("create.sync_dir"), directory))
        .map_err(|error| Error::io("create the data file", path, error))
}
