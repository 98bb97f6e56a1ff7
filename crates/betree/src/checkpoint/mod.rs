//! Checkpoints: durable, consistent states of the whole store.
//!
//! - [`superblock`](Superblock): four slots at the front of the data file; the newest names the
//!   image;
//! - [`Image`]: the catalog, written whole into an extent of its own;
//! - [`write`](fn@write) and [`read`]: the protocol between the two.

mod bytes;
mod data_file;
mod image;
mod protocol;
mod sealed;
mod superblock;

#[cfg(test)]
mod tests;

pub(crate) use self::data_file::DataFile;
pub(crate) use self::image::{BucketImage, Image, TreeFlags, TreeImage};
pub(crate) use self::protocol::{keep_reserve, read, read_image, rebuild_space, write};
pub(crate) use self::sealed::seal_image;
pub(crate) use self::superblock::{
    DATA_START, ImagePlace, SLOT_LEN, Superblock, create, is_encrypted, not_encrypted, read_newest,
};
