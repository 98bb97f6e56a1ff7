//! The storage of the data directory: file system, device, and kernel settings of the device.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stdx::ByteSize;

use super::{chosen, line};
use crate::envelope::{data_device, device_name, mounts, whole_disk};

/// File systems that are in memory or stacked on others, so that their device numbers name no disk.
const NOT_A_DISK: [&str; 5] = ["tmpfs", "ramfs", "overlay", "fuse", "9p"];

/// Facts about the storage of the data. Unknown facts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The file system's type.
    pub filesystem: Option<String>,
    /// The mount options.
    pub mount_options: Option<String>,
    /// Bytes an unprivileged process may still write.
    pub free_bytes: Option<u64>,
    /// The whole disk's name, such as `nvme0n1`.
    pub disk: Option<String>,
    /// The device number of the disk, as `major:minor`.
    pub device: Option<String>,
    /// The disk's size, in bytes.
    pub disk_bytes: Option<u64>,
    /// The disk's model name.
    pub model: Option<String>,
    /// True if the disk is rotational, as far as the kernel knows.
    pub rotational: Option<bool>,
    /// The I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Maximum number of queued requests.
    pub nr_requests: Option<u64>,
    /// Read-ahead of the kernel, in KiB.
    pub read_ahead_kib: Option<u64>,
    /// `write back` if the disk has a cache that must be flushed.
    pub write_cache: Option<String>,
}

impl Storage {
    /// Collect facts about the storage of `data_dir`, or of the nearest existing directory above
    /// it.
    #[must_use]
    pub fn collect(data_dir: &Path) -> Storage {
        let Some(directory) = existing(data_dir) else {
            return Storage::default();
        };
        let mounts = mounts::read(Path::new("/proc")).unwrap_or_default();
        let mount = mounts::holding(&mounts, &directory);
        let sys = Path::new("/sys");
        let disk = data_device(&directory)
            .and_then(|d| whole_disk(sys, d))
            .ok();
        let mut storage = Storage {
            filesystem: mount.map(|m| m.kind.clone()),
            mount_options: mount.map(|m| m.options.clone()),
            free_bytes: vfs::free_bytes(&directory).ok(),
            disk: disk.and_then(|d| device_name(sys, d)),
            device: disk.map(|d| d.to_string()),
            ..Storage::default()
        };
        if let Some(disk) = disk {
            storage.read_disk(&sys.join(format!("dev/block/{disk}")));
        }
        storage
    }

    fn read_disk(&mut self, disk: &Path) {
        let number = |name: &str| line(disk.join(name)).and_then(|t| t.parse::<u64>().ok());
        self.disk_bytes = number("size").map(|sectors| sectors.saturating_mul(512));
        self.model = line(disk.join("device/model"));
        self.rotational = number("queue/rotational").map(|n| n == 1);
        self.scheduler = line(disk.join("queue/scheduler")).map(|text| chosen(&text));
        self.nr_requests = number("queue/nr_requests");
        self.read_ahead_kib = number("queue/read_ahead_kb");
        self.write_cache = line(disk.join("queue/write_cache"));
    }

    /// True if the data is in memory or on a stacked file system.
    #[must_use]
    pub fn is_not_a_disk(&self) -> bool {
        let kind = self.filesystem.as_deref().unwrap_or_default();
        NOT_A_DISK.iter().any(|name| kind.starts_with(name))
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let kind = self
            .filesystem
            .as_deref()
            .unwrap_or("an unknown file system");
        if self.is_not_a_disk() {
            warnings.push(format!(
                "the data are on {kind}: I/O rates and caps mean nothing; choose a disk"
            ));
        } else if self.device.is_none() {
            warnings.push(format!(
                "no block device is known below {kind}: I/O is not counted"
            ));
        }
        // Virtual disks often report to be rotational although they are not.
        if self.rotational == Some(true) {
            let seeks = "the disk reports that it is rotational: expect seeks to dominate";
            warnings.push(seeks.to_owned());
        }
        warnings
    }

    /// A short description: file system, disk, scheduler, size.
    #[must_use]
    pub fn summary(&self) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let size = self
            .disk_bytes
            .map_or_else(String::new, |b| format!(" {}", ByteSize(b)));
        format!(
            "{} on {}{size} ({})",
            text(&self.filesystem),
            text(&self.disk),
            text(&self.scheduler)
        )
    }
}

/// The nearest existing directory at or above `path`, with links resolved.
pub(crate) fn existing(path: &Path) -> Option<std::path::PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|p| fs::canonicalize(p).ok())
}
