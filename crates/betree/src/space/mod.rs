//! The allocator of the data file (signatures; the bodies follow).

use std::fmt;

use crate::error::Result;
use crate::types::{Extent, RunId};

/// Who holds an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Run(RunId),
    Image,
}

/// A checkpoint that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

pub(crate) struct Space;

impl Space {
    pub(crate) fn new(_data_start: u64) -> Space {
        unimplemented!()
    }
    pub(crate) fn rebuild(
        _data_start: u64,
        _used: &[(Extent, Owner)],
        _file_len: u64,
    ) -> Result<Space> {
        unimplemented!()
    }
    /// `len` bytes, rounded up to UNIT: one extent, at the lowest address that fits.
    pub(crate) fn allocate(&self, _len: u64) -> Extent {
        unimplemented!()
    }
    /// As `allocate`, but may draw on the reserve.
    pub(crate) fn allocate_reserved(&self, _len: u64) -> Extent {
        unimplemented!()
    }
    pub(crate) fn discard(&self, _extents: &[Extent]) {
        unimplemented!()
    }
    pub(crate) fn release(&self, _extents: &[Extent]) {
        unimplemented!()
    }
    pub(crate) fn begin_checkpoint(&self) -> Epoch {
        unimplemented!()
    }
    pub(crate) fn checkpoint_durable(&self, _epoch: Epoch) {
        unimplemented!()
    }
    pub(crate) fn end(&self) -> u64 {
        unimplemented!()
    }
    pub(crate) fn free_bytes(&self) -> u64 {
        unimplemented!()
    }
    pub(crate) fn pending_bytes(&self) -> u64 {
        unimplemented!()
    }
    pub(crate) fn used_bytes(&self) -> u64 {
        unimplemented!()
    }
    pub(crate) fn free_list(&self) -> Vec<Extent> {
        unimplemented!()
    }
    pub(crate) fn largest_free(&self) -> u64 {
        unimplemented!()
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").finish_non_exhaustive()
    }
}
