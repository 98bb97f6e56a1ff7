//! The block device under a path.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A block device by its numbers, printed as `major:minor`, as in the kernel's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// The major number, which stands for the driver.
    pub major: u32,
    /// The minor number, which stands for one device of the driver.
    pub minor: u32,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The device of the file system that holds `path`. File systems without a device (tmpfs, overlay)
/// have an anonymous one with major number 0.
///
/// # Errors
/// An error of the operating system.
pub fn device_of(path: &Path) -> io::Result<DeviceId> {
    let device = fs::metadata(path)?.dev();
    Ok(DeviceId {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_device_of_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, b"").unwrap();
        assert_eq!(device_of(&file).unwrap(), device_of(dir.path()).unwrap());
        assert_eq!(DeviceId { major: 8, minor: 1 }.to_string(), "8:1");
    }
}
