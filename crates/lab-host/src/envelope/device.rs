//! Finds the whole disks that the throttling controllers require.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use vfs::DeviceId;

use super::mounts;

/// The whole disk that `device` is a partition of, or is itself. The kernel refuses limits on
/// partitions.
///
/// # Errors
/// The reason why no disk was found: a file system without a block device, or a device unknown to
/// `/sys`.
pub fn whole_disk(sys_root: &Path, device: DeviceId) -> Result<DeviceId, String> {
    if device.major == 0 {
        return Err("its file system has no block device (tmpfs, overlay or network)".to_owned());
    }
    let link = sys_root.join(format!("dev/block/{device}"));
    let directory = fs::canonicalize(&link)
        .map_err(|e| format!("cannot resolve {} of the data device: {e}", link.display()))?;
    if !directory.join("partition").exists() {
        return Ok(device);
    }
    let file = directory.with_file_name("dev");
    let text = fs::read_to_string(&file).unwrap_or_default();
    parse_device(&text).ok_or_else(|| format!("{} does not name a device", file.display()))
}

/// The kernel's name of `device`, such as `vda`.
#[must_use]
pub fn device_name(sys_root: &Path, device: DeviceId) -> Option<String> {
    let link = sys_root.join(format!("dev/block/{device}"));
    let directory = fs::canonicalize(link).ok()?;
    Some(directory.file_name()?.to_str()?.to_owned())
}

/// The block device that holds `path`. For a file system that hides it behind an anonymous device
/// number (btrfs), the device is found by the source of the mount.
///
/// # Errors
/// The reason why no device was found.
pub fn data_device(path: &Path) -> Result<DeviceId, String> {
    let path = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let device = vfs::device_of(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    if device.major != 0 {
        return Ok(device);
    }
    let mounts = mounts::read(Path::new("/proc")).unwrap_or_default();
    let source = mounts::holding(&mounts, &path).map(|m| (m.source.clone(), m.kind.clone()));
    let (source, kind) = source.unwrap_or_default();
    let number = fs::metadata(&source).map_or(0, |m| m.rdev());
    let device = DeviceId {
        major: rustix::fs::major(number),
        minor: rustix::fs::minor(number),
    };
    if source.starts_with("/dev/") && device.major != 0 {
        return Ok(device);
    }
    Err(format!(
        "{} is on {kind}, which has no block device",
        path.display()
    ))
}

/// Parse a device number of the form `major:minor`.
pub(crate) fn parse_device(text: &str) -> Option<DeviceId> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(DeviceId {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_partition_stands_for_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("devices/sda");
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::create_dir_all(dir.path().join("dev/block")).unwrap();
        fs::write(disk.join("dev"), "8:0\n").unwrap();
        fs::write(disk.join("sda1/dev"), "8:1\n").unwrap();
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        symlink(&disk, dir.path().join("dev/block/8:0")).unwrap();
        symlink(disk.join("sda1"), dir.path().join("dev/block/8:1")).unwrap();
        let of = |minor| whole_disk(dir.path(), DeviceId { major: 8, minor });
        assert_eq!(of(1).unwrap(), DeviceId { major: 8, minor: 0 });
        assert_eq!(of(0).unwrap(), DeviceId { major: 8, minor: 0 });
        assert!(of(2).unwrap_err().contains("8:2"));
        let name = device_name(dir.path(), DeviceId { major: 8, minor: 1 });
        assert_eq!(name.as_deref(), Some("sda1"));
    }

    #[test]
    fn an_anonymous_device_is_refused_with_the_reason() {
        let error = whole_disk(Path::new("/sys"), DeviceId { major: 0, minor: 5 }).unwrap_err();
        assert!(error.contains("no block device"), "{error}");
        assert!(
            data_device(Path::new("/proc"))
                .unwrap_err()
                .contains("proc")
        );
    }
}
