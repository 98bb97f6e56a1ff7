//! The extents of a file on its device (`FIEMAP`, `Documentation/filesystems/fiemap.rst` of Linux).

use std::fs::File;
use std::io;

use rustix::ioctl::{self, Ioctl, IoctlOutput, Opcode};

/// A part of a file that is contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// The offset in the file, in bytes.
    pub logical: u64,
    /// The offset on the device, in bytes.
    pub physical: u64,
    /// The length in bytes.
    pub length: u64,
}

/// Maximum number of extents that one call returns.
const BATCH: usize = 256;
/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: Opcode = 0xC020_660B;
/// The flag that marks the last extent of a file.
const LAST: u32 = 1;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_more: [u32; 3],
}

/// `struct fiemap` with room for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

struct Fiemap<'a>(&'a mut Request);

// SAFETY: the opcode takes a pointer to a `struct fiemap` and writes at most as many extents after
// it as its field `count` allows; `Request` is this struct with room for `BATCH` extents.
unsafe impl Ioctl for Fiemap<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        FS_IOC_FIEMAP
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::from_mut(self.0).cast()
    }

    // SAFETY: the function does not read through the pointer.
    unsafe fn output_from_ptr(
        _: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<Self::Output> {
        Ok(())
    }
}

/// The first extents of a file, at most `most`, in the order of their offsets in the file.
///
/// # Errors
/// `Unsupported` if the file system does not report extents; an error of the operating system.
pub fn extents_of(file: &File, most: usize) -> io::Result<Vec<FileExtent>> {
    let mut found = Vec::new();
    let mut start = 0;
    while found.len() < most {
        let mut request = Request {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: 256,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        };
        // SAFETY: `Fiemap` describes the call correctly; see the `SAFETY` comment of its `Ioctl`
        // implementation.
        unsafe { ioctl::ioctl(file, Fiemap(&mut request))? };
        let mapped = usize::try_from(request.mapped).unwrap_or(0);
        let mut last = mapped == 0;
        for extent in request.extents.iter().take(mapped) {
            found.push(FileExtent {
                logical: extent.logical,
                physical: extent.physical,
                length: extent.length,
            });
            last |= extent.flags & LAST != 0;
            start = extent.logical.saturating_add(extent.length);
        }
        if last {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn extents_cover_what_was_written_or_the_file_system_does_not_say() {
        assert_eq!(size_of::<Request>(), 32 + BATCH * 56);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 20_000]).unwrap();
        file.sync_all().unwrap();
        match extents_of(&file, 10) {
            Ok(found) => {
                let covered: u64 = found.iter().map(|e| e.length).sum();
                assert!(20_000 <= covered, "{found:?}");
                assert_eq!(found.first().unwrap().logical, 0);
            }
            // Not every file system reports extents.
            Err(e) => assert!(e.raw_os_error().is_some(), "{e}"),
        }
    }
}
