//! Control group trees made of ordinary files, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Cgroups;

/// A `/proc` and a `/sys` in a temporary directory, with a disk 8:0 and its partition 8:1.
pub(super) struct Fake {
    dir: TempDir,
    mountinfo: String,
    own: String,
}

impl Fake {
    pub(super) fn new() -> Fake {
        let dir = tempfile::tempdir().unwrap();
        let fake = Fake {
            dir,
            mountinfo: String::new(),
            own: String::new(),
        };
        for (name, device) in [("sda", "8:0"), ("sda/sda1", "8:1")] {
            fake.put(&format!("sys/devices/{name}/dev"), device);
            let link = fake.path(&format!("sys/dev/block/{device}"));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(fake.path(&format!("sys/devices/{name}")), link).unwrap();
        }
        fake.put("sys/devices/sda/sda1/partition", "1");
        fake
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(super) fn put(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Mount a version 1 hierarchy whose groups have `files`; this process is in its group `/own`.
    pub(super) fn v1(mut self, controller: &str, options: &str, files: &[&str]) -> Fake {
        let point = self.path(&format!("cg/{controller}"));
        self.mountinfo += &format!(
            "35 31 0:32 / {} {options} - cgroup cgroup rw,{controller}\n",
            point.display()
        );
        self.own += &format!("4:{controller}:/own\n");
        for file in files {
            self.put(&format!("cg/{controller}/own/{file}"), "");
        }
        self
    }

    /// Mount version 2; this process is in its group `/slice/own`. `controllers` are available in
    /// `/slice`, and `passed_on` in the groups below it.
    pub(super) fn v2(mut self, controllers: &str, passed_on: &str) -> Fake {
        self.mountinfo += &format!(
            "41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n",
            self.path("cg2").display()
        );
        self.own += "0::/slice/own\n";
        for (group, passed_on, procs) in [
            ("", controllers, "1\n"),
            ("slice/", passed_on, ""),
            ("slice/own/", "", "77\n"),
        ] {
            self.put(&format!("cg2/{group}cgroup.controllers"), controllers);
            self.put(&format!("cg2/{group}cgroup.subtree_control"), passed_on);
            self.put(&format!("cg2/{group}cgroup.procs"), procs);
            if !group.is_empty() {
                self.put(&format!("cg2/{group}cgroup.type"), "domain\n");
                self.put(&format!("cg2/{group}memory.max"), "max\n");
            }
        }
        self.put("cg2/slice/own/cgroup.controllers", passed_on);
        self
    }

    pub(super) fn detect(&self, scaffold: fn(&Path)) -> Cgroups {
        self.put("proc/self/mountinfo", &self.mountinfo);
        self.put("proc/self/cgroup", &self.own);
        let mut cgroups = Cgroups::detect_at(&self.path("proc"), &self.path("sys"));
        cgroups.scaffold = Some(scaffold);
        cgroups
    }
}

/// Create the files of a new group of any kind. Ordinary files return the value that was written,
/// as a kernel that applies the limit does.
pub(super) fn scaffold(group: &Path) {
    let empty = [
        "cgroup.procs",
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.swappiness",
        "memory.max",
        "memory.swap.max",
        "blkio.throttle.read_iops_device",
        "blkio.throttle.write_iops_device",
        "blkio.throttle.read_bps_device",
        "blkio.throttle.write_bps_device",
        "io.max",
    ];
    for file in empty {
        fs::write(group.join(file), "").unwrap();
    }
    let unlimited = "hierarchical_memory_limit 9223372036854771712\n";
    fs::write(group.join("memory.stat"), unlimited).unwrap();
}

/// As [`scaffold`], but an outer group holds only 100 MB of memory.
pub(super) fn scaffold_tight(group: &Path) {
    scaffold(group);
    let text = "hierarchical_memory_limit 100000000\n";
    fs::write(group.join("memory.stat"), text).unwrap();
}

/// As [`scaffold`], but the kernel has no file for write IOPS.
pub(super) fn scaffold_incomplete(group: &Path) {
    scaffold(group);
    fs::remove_file(group.join("blkio.throttle.write_iops_device")).unwrap();
}
