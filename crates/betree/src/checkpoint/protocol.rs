//! How a checkpoint becomes the newest, and how the newest is found again.
//!
//! 1. The caller calls `Space::begin_checkpoint`, then captures the image.
//! 2. It syncs the log up to the image's `last_seq`, so that no crash can lose a commit from the
//!    log that a run already has. At recovery the log must reach `last_seq`.
//! 3. [`write()`] writes the image into an extent no image names, and syncs the data file: with it
//!    every run the image names becomes durable.
//! 4. It writes the superblock's first two slots and syncs: the checkpoint is committed. Then the
//!    other two, and syncs.
//! 5. Only now `Space::finish_checkpoint`: what no longer is named may be given out again.
//!
//! A failure in 1 to 3 leaves the store as it was, and the image's extent free. After a failure in
//! 4 either checkpoint may be the newest, so nothing is freed.
//!
//! Invariants:
//! - I1: the image is durable before a slot names it.
//! - I2: nothing that the last durable checkpoint names is given out before the next one is durable
//!   in all slots.
//!
//! One checkpoint at a time: the caller holds the lock of the checkpoint.

use std::io;
use std::path::Path;

use vfs::{File, Site};

use super::data_file::DataFile;
use super::image::Image;
use super::sealed;
use super::superblock::{self, DATA_START, ImagePlace, Superblock};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keys;
use crate::plant::{Plant, planted};
use crate::space::{Epoch, Owner, Space};
use crate::types::{Extent, UNIT};

/// Pieces in which an image is written and read.
const PIECE: usize = 1 << 20;
/// Images are padded with zeros to a multiple of this.
const BLOCK: usize = 4096;

/// Write `image`, captured at `epoch`, as the checkpoint after `last`; returns its superblock. The
/// extent of the last image is freed with what was released before the capture.
///
/// # Errors
/// `Full` when there is no room for the image: the store is as it was before. `Io`: what is durable
/// is unknown, and the store must be closed for writes (so a sync that fails for lack of room is
/// `Io`).
pub(crate) fn write(
    data: DataFile<'_>,
    space: &Space,
    last: &Superblock,
    epoch: Epoch,
    image: &Image,
) -> Result<Superblock> {
    let epoch = match planted(Plant::EpochAfterCapture) {
        true => space.begin_checkpoint(),
        false => epoch,
    };
    assert!(last.number < image.number, "checkpoints ascend");
    assert!(
        last.next_run <= image.next_run,
        "run numbers are never given again"
    );
    assert!(
        last.next_tree <= image.next_tree,
        "tree numbers are never given again"
    );
    assert!(
        last.log_from <= image.log_from,
        "the log is never needed again"
    );
    let bytes = match data.keys {
        None => image.encode(),
        Some(keys) => sealed::seal_image(&image.encode(), keys)?,
    };
    let length = u64::try_from(bytes.len()).expect("usize has at most 64 bits");
    let extent = space.allocate_reserved(length);
    let place = ImagePlace::of(&bytes, extent.offset);
    assert_eq!(place.extent(), extent, "the extent is as long as the image");
    if let Err(error) = write_image(data.file, data.path, extent, bytes) {
        space.discard(&[extent]);
        // The reserve may have been used; the space just freed can replace it.
        let refuse = |_, _| Err(io::Error::from(io::ErrorKind::StorageFull));
        // An error only means that it could be longer if the file grew.
        let _ = space.set_reserve(reserve_for(last), refuse);
        return Err(error);
    }
    let next = Superblock::of(last.store, image, place);
    superblock::write(data, &next)?;
    let mut old: Vec<Extent> = last.image.map(ImagePlace::extent).into_iter().collect();
    if planted(Plant::FreeTwice) {
        old.extend_from_within(..);
    }
    space.finish_checkpoint(epoch, &old, reserve_for(&next));
    Ok(next)
}

fn write_image(file: &dyn File, path: &Path, extent: Extent, mut bytes: Vec<u8>) -> Result<()> {
    let length = bytes.len().next_multiple_of(BLOCK);
    bytes.resize(length, 0);
    let mut offset = extent.offset;
    for piece in bytes.chunks(PIECE) {
        file.write_at(Site("image.write"), piece, offset)
            .map_err(|error| Error::io("write the image of a checkpoint", path, error))?;
        offset += piece.len() as u64;
    }
    assert_eq!(offset, extent.end(), "whole units are written");
    if planted(Plant::ImageBeforeDataSync) {
        return Ok(());
    }
    file.sync(Site("image.sync"))
        .map_err(|error| sync_failed("sync the data file for a checkpoint", path, error))
}

/// `Io` whatever the reason: freeing space does not help after a failed sync.
pub(super) fn sync_failed(operation: &'static str, path: &Path, error: io::Error) -> Error {
    Error::io(operation, path, io::Error::other(error))
}

/// Keep room aside for the checkpoint after `last`, growing the file for it if need be; to be
/// called at open and after each checkpoint.
///
/// # Errors
/// `Full`: the reserve is what could be had. Not fatal; try again after the next checkpoint.
pub(crate) fn keep_reserve(
    file: &dyn File,
    path: &Path,
    space: &Space,
    last: &Superblock,
) -> Result<()> {
    let allocate = |offset, len| file.allocate(Site("reserve.allocate"), offset, len);
    space
        .set_reserve(reserve_for(last), allocate)
        .map_err(|error| Error::io("reserve space for a checkpoint", path, error))
}

/// A quarter more than the last image, for runs created until the next one, and room for the first
/// runs.
fn reserve_for(last: &Superblock) -> u64 {
    let image = last.image.map_or(0, |place| place.length);
    image + image / 4 + (64 << 10)
}

/// The newest checkpoint of the data file: its superblock, and its image (`None` before the first).
/// Slots that do not hold the newest superblock are repaired.
///
/// # Errors
/// `Invalid`: not a data file of this engine, or one of another version. `Corrupt`: no slot of the
/// superblock is valid, or the image is not what it says.
pub(crate) fn read(data: DataFile<'_>) -> Result<(Superblock, Option<Image>)> {
    let slots = superblock::read_slots(data.file, data.keys);
    let newest = superblock::newest(&slots).map_err(|error| error.with_path(data.path))?;
    let image = match newest.image {
        Some(place) => Some(read_image(data, &newest, place)?),
        None => None,
    };
    superblock::heal(data, &slots, &newest)?;
    Ok((newest, image))
}

/// Read the image at `place` that `superblock` refers to.
///
/// # Errors
/// `Corrupt`: it is not what the superblock says; `Io`.
pub(crate) fn read_image(
    data: DataFile<'_>,
    superblock: &Superblock,
    place: ImagePlace,
) -> Result<Image> {
    let DataFile { file, path, keys } = data;
    let context = |error: Error| error.with_operation("read the catalog").with_path(path);
    let io = |error| Error::io("read the catalog", path, error);
    let end = place.offset.checked_add(place.length);
    let file_len = file.len().map_err(io)?;
    // Checked before memory is allocated, because the length may be damaged.
    if end.is_none_or(|end| file_len < end) {
        return Err(context(Error::corrupt(format!(
            "the image of checkpoint {} lies beyond the end of the file, {} bytes at {} of \
             {file_len}: the file was cut; restore a backup",
            superblock.number, place.length, place.offset
        ))));
    }
    let length = usize::try_from(place.length).map_err(|_| {
        let message = "the image is larger than the address space";
        context(Error::new(ErrorKind::Full, message))
    })?;
    let mut bytes = vec![0; length];
    let mut offset = place.offset;
    for piece in bytes.chunks_mut(PIECE) {
        file.read_at(Site("image.read"), piece, offset)
            .map_err(io)?;
        offset += piece.len() as u64;
    }
    let differs = |what: &str| {
        context(Error::corrupt(format!(
            "the image at {} has another {what} than the superblock of checkpoint {} says: \
             restore a backup",
            place.offset, superblock.number
        )))
    };
    if bytes.last_chunk() != Some(&place.hash.to_le_bytes()) {
        return Err(differs("checksum"));
    }
    let image = decode_image(&mut bytes, keys).map_err(context)?;
    if image.number != superblock.number {
        return Err(differs("number"));
    }
    if (image.last_seq, image.log_from) != (superblock.last_seq, superblock.log_from) {
        return Err(differs("place in the log"));
    }
    if (image.next_run, image.next_tree) != (superblock.next_run, superblock.next_tree) {
        return Err(differs("set of numbers to give next"));
    }
    Ok(image)
}

/// The image in `bytes`, encrypted or not as its store and its runs are.
fn decode_image(bytes: &mut [u8], keys: Option<&Keys>) -> Result<Image> {
    let image = match keys {
        None => Image::decode(bytes),
        Some(keys) => sealed::open_image(bytes, keys).and_then(Image::decode),
    }?;
    let mut runs = image.runs.iter();
    match runs.find(|run| run.seal.is_some() != keys.is_some()) {
        None => Ok(image),
        Some(run) => Err(Error::corrupt(format!(
            "run {} is not encrypted as the store is: restore a backup",
            run.id.0
        ))),
    }
}

/// The allocator as the newest checkpoint leaves it.
///
/// # Errors
/// `Corrupt`: extents overlap or lie outside of the file.
pub(crate) fn rebuild_space(
    file_len: u64,
    superblock: &Superblock,
    image: Option<&Image>,
) -> Result<Space> {
    let runs = image.map_or(&[][..], |image| &image.runs);
    let mut used: Vec<(Extent, Owner)> = Vec::with_capacity(runs.len() + 1);
    for run in runs {
        let owned = |extent: &Extent| (*extent, Owner::Run(run.id));
        used.extend(run.extents.iter().map(owned));
    }
    let place = superblock.image.map(|place| (place.extent(), Owner::Image));
    used.extend(place);
    assert_eq!(DATA_START % UNIT, 0, "data begin at a whole unit");
    Space::rebuild(DATA_START, &used, file_len)
}
