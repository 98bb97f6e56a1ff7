//! Rebuilds the allocator from the image: extents that it refers to are used, everything else is
//! free.

use std::fmt;

use super::{Space, overlap};
use crate::error::{Error, Result};
use crate::types::{Extent, RunId, UNIT};

/// The owner of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A run.
    Run(RunId),
    /// The image of the last checkpoint.
    Image,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Run(id) => write!(f, "run {}", id.0),
            Owner::Image => f.write_str("the image"),
        }
    }
}

impl Space {
    /// The allocator of a file of `file_len` bytes in which exactly `used` is used. The whole file
    /// counts as backed by the file system; its last unit may be cut short.
    ///
    /// # Errors
    /// `Corrupt`, naming the owners: an extent that is not whole units, lies before `data_start` or
    /// beyond the end of the file, or overlaps another.
    pub(crate) fn rebuild(
        data_start: u64,
        used: &[(Extent, Owner)],
        file_len: u64,
    ) -> Result<Space> {
        let space = Space::new(data_start);
        let file_units_end = file_len.div_ceil(UNIT).saturating_mul(UNIT);
        let mut sorted = used.to_vec();
        sorted.sort_by_key(|(extent, _)| *extent);
        let mut last: Option<(Extent, Owner)> = None;
        space.change(|state| {
            for &(extent, owner) in &sorted {
                check_one(extent, owner, data_start, file_units_end)?;
                if let Some((before, other)) = last
                    && overlap(before, extent)
                {
                    return Err(Error::corrupt(format!(
                        "{other} and {owner} both hold bytes {}..{} of the data file: \
                         restore a backup, or extract what can be read",
                        extent.offset,
                        extent.end().min(before.end()),
                    )));
                }
                assert!(state.end <= extent.offset, "I2: sorted and without overlap");
                if state.end < extent.offset {
                    let hole = Extent {
                        offset: state.end,
                        len: extent.offset - state.end,
                    };
                    state.holes.insert(hole);
                }
                state.used += extent.len;
                state.end = extent.end();
                last = Some((extent, owner));
            }
            state.backed = state.backed.max(file_len / UNIT * UNIT);
            Ok(())
        })?;
        Ok(space)
    }
}

fn check_one(extent: Extent, owner: Owner, data_start: u64, file_len: u64) -> Result<()> {
    let Extent { offset, len } = extent;
    if len == 0 || len % UNIT != 0 || offset % UNIT != 0 || offset < data_start {
        return Err(Error::corrupt(format!(
            "{owner} names an impossible extent, {len} bytes at {offset}"
        )));
    }
    let end = offset.checked_add(len);
    if end.is_none_or(|end| file_len < end) {
        return Err(Error::corrupt(format!(
            "{owner} lies beyond the end of the data file, {len} bytes at {offset} of {file_len}: \
             the file was cut; restore a backup"
        )));
    }
    Ok(())
}
