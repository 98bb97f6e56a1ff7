//! Copies raw kernel files into the result directory, so that unforeseen questions can be answered
//! later.

use std::fs;
use std::io;
use std::path::Path;

use super::{existing, vm_settings};
use crate::envelope::{Cgroups, Controller, data_device, mounts, whole_disk};

/// Maximum size of one copied file, 256 KiB: `/proc/cpuinfo` of a large server fits.
const TEXT_MAX: usize = 256 << 10;

/// Copy the files into `directory`, which is created. Returns the names of the files written; files
/// that the kernel does not provide are omitted. Environment variables and command lines are not
/// copied.
///
/// # Errors
/// An error of the operating system, if `directory` cannot be written.
pub fn capture_env(directory: &Path, data_dir: &Path) -> io::Result<Vec<String>> {
    vfs::ensure_dir(directory)?;
    let mut written = Vec::new();
    let mut put = |name: &str, text: String| -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let end = text.floor_char_boundary(TEXT_MAX);
        fs::write(directory.join(name), text.get(..end).unwrap_or_default())?;
        written.push(name.to_owned());
        Ok(())
    };
    for (name, path) in [
        ("cpuinfo.txt", "/proc/cpuinfo"),
        ("meminfo.txt", "/proc/meminfo"),
        ("version.txt", "/proc/version"),
        ("loadavg.txt", "/proc/loadavg"),
        ("swaps.txt", "/proc/swaps"),
        ("diskstats.txt", "/proc/diskstats"),
        ("os-release.txt", "/etc/os-release"),
        ("limits.txt", "/proc/self/limits"),
    ] {
        put(name, fs::read_to_string(path).unwrap_or_default())?;
    }
    put("mount.txt", mount_text(data_dir))?;
    put("sysctl-vm.txt", sysctl_text())?;
    put("queue.txt", queue_text(data_dir))?;
    put("cgroup.txt", cgroup_text())?;
    Ok(written)
}

/// Only the data directory's mount: other mounts may name hosts and shares.
fn mount_text(data_dir: &Path) -> String {
    let mounts = mounts::read(Path::new("/proc")).unwrap_or_default();
    let mount = existing(data_dir).and_then(|d| mounts::holding(&mounts, &d));
    mount.map_or_else(String::new, |m| {
        format!(
            "device {}\nroot {}\npoint {}\ntype {}\nsource {}\noptions {}\n",
            m.device,
            m.root.display(),
            m.point.display(),
            m.kind,
            m.source,
            m.options
        )
    })
}

fn sysctl_text() -> String {
    let settings = vm_settings().into_iter();
    settings
        .map(|(name, value)| format!("vm.{name} = {value}\n"))
        .collect()
}

/// Every setting of the disk's request queue.
fn queue_text(data_dir: &Path) -> String {
    let sys = Path::new("/sys");
    let disk = existing(data_dir)
        .and_then(|d| data_device(&d).ok())
        .and_then(|d| whole_disk(sys, d).ok());
    let Some(disk) = disk else {
        return String::new();
    };
    let queue = sys.join(format!("dev/block/{disk}/queue"));
    let mut lines = Vec::new();
    for entry in fs::read_dir(queue).into_iter().flatten().flatten() {
        if let Ok(value) = fs::read_to_string(entry.path()) {
            let name = entry.file_name();
            lines.push(format!("{} = {}\n", name.to_string_lossy(), value.trim()));
        }
    }
    lines.sort();
    lines.concat()
}

fn cgroup_text() -> String {
    let cgroups = Cgroups::detect();
    let mut text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for controller in [Controller::Memory, Controller::Io] {
        text += &format!("{controller:?}: {:?}\n", cgroups.access(controller));
    }
    text
}
