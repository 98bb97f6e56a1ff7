//! Reading: point reads and cursors over what a snapshot sees of a tree.
//!
//! A tree is divided into buckets, and a bucket is a few sorted sequences, newer ones before older
//! ones: buffers in memory, runs of changes, the base. A reader takes a [`View`] of a bucket, which
//! keeps all of them alive, and needs no lock and no permission from then on: what is flushed or
//! merged meanwhile becomes new runs, and the old ones stay until the last view of them is dropped.
//!
//! - [`get`] asks the sequences from the newest on until one knows the key.
//! - [`MergeCursor`] (`walk`) goes from bucket to bucket. Within one it merges (`merge`) sources
//!   (`source`, `input`) that each give one version of a key: windows copied from buffers and from
//!   the transaction's own writes (`windowed`), runs as a snapshot sees them (`visible`), and the
//!   runs of the base one after the other (`base`).

mod base;
mod bounds;
mod input;
mod merge;
mod own;
mod source;
mod stop;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod view;
mod visible;
mod walk;
mod windowed;

pub(crate) use own::Own;
pub(crate) use view::{At, Buckets, View, get, newest};
pub(crate) use walk::MergeCursor;
