//! Detects the control groups of this system and where new ones may be created.
//!
//! Each controller is detected separately, because hybrid systems mount some controllers in version
//! 1 and leave others to version 2. In version 1 the parent of new groups is the group of this
//! process. In version 2 a group with processes cannot enable controllers for its children ("no
//! internal processes", cgroups(7)), so the parent is the nearest ancestor that can.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Rights, AtFlags, CWD};
use serde::{Deserialize, Serialize};

use super::mounts::{self, Mount};
use super::status::Mode;

/// A version of the control group interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

/// A controller: limits one kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Memory, page cache included.
    Memory,
    /// Block device I/O: `blkio` in version 1, `io` in version 2.
    Io,
}

impl Controller {
    /// Name of the controller in a version of the interface.
    #[must_use]
    pub const fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Controller::Memory, _) => "memory",
            (Controller::Io, Version::V1) => "blkio",
            (Controller::Io, Version::V2) => "io",
        }
    }

    /// A file that every version 1 group has if the kernel supports the limits in use.
    const fn v1_file(self) -> &'static str {
        match self {
            Controller::Memory => "memory.limit_in_bytes",
            Controller::Io => "blkio.throttle.read_iops_device",
        }
    }
}

/// Whether a controller can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Groups with the controller may be created below `parent`.
    Usable {
        /// The version of the interface.
        version: Version,
        /// The directory of the parent group.
        parent: PathBuf,
    },
    /// The controller cannot be used.
    Unusable {
        /// The reason, and how to fix it.
        reason: String,
    },
}

impl Access {
    /// True if groups may be created.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        matches!(self, Access::Usable { .. })
    }

    /// Why the controller cannot be used; empty if it can.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Access::Usable { .. } => "",
            Access::Unusable { reason } => reason,
        }
    }

    fn parent_in(&self, wanted: Version) -> Option<&Path> {
        match self {
            Access::Usable { version, parent } if *version == wanted => Some(parent),
            _ => None,
        }
    }

    fn unusable(reason: impl Into<String>) -> Access {
        Access::Unusable {
            reason: reason.into(),
        }
    }
}

/// The control groups of this system, as far as this process may use them.
#[derive(Clone, Debug)]
pub struct Cgroups {
    memory: Access,
    io: Access,
    proc_root: PathBuf,
    sys_root: PathBuf,
    /// Fills a new directory with the control files a kernel would put there.
    #[cfg(test)]
    pub(super) scaffold: Option<fn(&Path)>,
}

impl Cgroups {
    /// Read `/proc` and `/sys`. Never fails: a missing file becomes the reason why a controller is
    /// unusable.
    #[must_use]
    pub fn detect() -> Cgroups {
        Cgroups::detect_at(Path::new("/proc"), Path::new("/sys"))
    }

    /// Read `/proc` and `/sys` at other paths.
    #[must_use]
    pub fn detect_at(proc_root: &Path, sys_root: &Path) -> Cgroups {
        let (memory, io) = match Seen::read(proc_root) {
            Ok(seen) => seen.access(),
            Err(reason) => (Access::unusable(reason.clone()), Access::unusable(reason)),
        };
        Cgroups {
            memory,
            io,
            proc_root: proc_root.to_owned(),
            sys_root: sys_root.to_owned(),
            #[cfg(test)]
            scaffold: None,
        }
    }

    /// Whether `controller` can be used, and its parent group or the reason why not.
    #[must_use]
    pub fn access(&self, controller: Controller) -> &Access {
        match controller {
            Controller::Memory => &self.memory,
            Controller::Io => &self.io,
        }
    }

    /// The versions of the usable controllers.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let uses = |version| {
            [&self.memory, &self.io]
                .iter()
                .any(|a| a.parent_in(version).is_some())
        };
        match (uses(Version::V1), uses(Version::V2)) {
            (true, true) => Mode::Hybrid,
            (true, false) => Mode::V1,
            (false, true) => Mode::V2,
            (false, false) => Mode::None,
        }
    }

    pub(super) fn proc_root(&self) -> &Path {
        &self.proc_root
    }

    pub(super) fn sys_root(&self) -> &Path {
        &self.sys_root
    }

    /// The directories that may contain groups of the laboratory.
    pub(super) fn parents(&self) -> Vec<&Path> {
        let mut parents = Vec::new();
        for access in [&self.memory, &self.io] {
            if let Access::Usable { parent, .. } = access
                && !parents.contains(&parent.as_path())
            {
                parents.push(parent.as_path());
            }
        }
        parents
    }
}

/// What `/proc` shows about the mounts and the groups of this process.
struct Seen {
    mounts: Vec<Mount>,
    own: String,
}

impl Seen {
    fn read(proc_root: &Path) -> Result<Seen, String> {
        let mounts = mounts::read(proc_root)
            .map_err(|e| format!("cannot read {}/self/mountinfo: {e}", proc_root.display()))?;
        let path = proc_root.join("self/cgroup");
        let own = fs::read_to_string(&path).map_err(|e| {
            let path = path.display();
            format!("cannot read {path}: {e}; the kernel may be built without control groups")
        })?;
        Ok(Seen { mounts, own })
    }

    /// Whether the memory and the I/O controller can be used.
    fn access(&self) -> (Access, Access) {
        let memory = self.v1(Controller::Memory);
        let io = self.v1(Controller::Io);
        let missing: Vec<Controller> = [
            memory.is_none().then_some(Controller::Memory),
            io.is_none().then_some(Controller::Io),
        ]
        .into_iter()
        .flatten()
        .collect();
        let parent = self.v2_parent(&missing);
        (
            memory.unwrap_or_else(|| self.v2(Controller::Memory, parent.as_deref())),
            io.unwrap_or_else(|| self.v2(Controller::Io, parent.as_deref())),
        )
    }

    /// Whether version 1 of the controller can be used; `None` when it is not mounted there.
    fn v1(&self, controller: Controller) -> Option<Access> {
        let name = controller.name(Version::V1);
        let is_it = |m: &&Mount| m.kind == "cgroup" && m.has_option(name);
        let mount = self.mounts.iter().rev().find(is_it)?;
        let own = mounts::group_of(&self.own, Some(name)).unwrap_or_else(|| PathBuf::from("/"));
        let parent = mounts::directory_of(mount, &own);
        let file = controller.v1_file();
        if !parent.join(file).exists() {
            let parent = parent.display();
            return Some(Access::unusable(format!(
                "{parent} has no {file}: the kernel was built without this limit"
            )));
        }
        Some(match writable(mount, &parent) {
            Ok(()) => Access::Usable {
                version: Version::V1,
                parent,
            },
            Err(reason) => Access::unusable(reason),
        })
    }

    fn v2_mount(&self) -> Option<&Mount> {
        self.mounts.iter().rev().find(|m| m.kind == "cgroup2")
    }

    /// Whether version 2 of the controller can be used below `parent`, the ancestor chosen for all
    /// controllers.
    fn v2(&self, controller: Controller, parent: Option<&Path>) -> Access {
        let name = controller.name(Version::V2);
        let Some(mount) = self.v2_mount() else {
            return Access::unusable(format!(
                "neither the version 1 hierarchy of {} nor cgroup2 is mounted",
                controller.name(Version::V1)
            ));
        };
        match parent.map(|p| (p, offers(mount, p, name))) {
            Some((parent, Ok(()))) => Access::Usable {
                version: Version::V2,
                parent: parent.to_owned(),
            },
            Some((_, Err(reason))) => Access::unusable(reason),
            None => {
                let own = self.v2_own(mount);
                let reason = offers(mount, &own, name).err();
                Access::unusable(reason.unwrap_or_else(|| format!("{name} is not available")))
            }
        }
    }

    fn v2_own(&self, mount: &Mount) -> PathBuf {
        let own = mounts::group_of(&self.own, None).unwrap_or_else(|| PathBuf::from("/"));
        mounts::directory_of(mount, &own)
    }

    /// The nearest group, among this process's group and its ancestors, that offers the largest
    /// number of the controllers `wanted`.
    fn v2_parent(&self, wanted: &[Controller]) -> Option<PathBuf> {
        let mount = self.v2_mount()?;
        let own = self.v2_own(mount);
        let mut best: Option<(usize, &Path)> = None;
        let ancestors = own.ancestors().take_while(|a| a.starts_with(&mount.point));
        for candidate in ancestors {
            let offered = |c: &&Controller| offers(mount, candidate, c.name(Version::V2)).is_ok();
            let count = wanted.iter().filter(offered).count();
            if count > best.map_or(0, |(most, _)| most) {
                best = Some((count, candidate));
            }
        }
        best.map(|(_, path)| path.to_owned())
    }
}

/// Whether groups created in `parent` of `mount` can have controller `name`; if not, the reason.
fn offers(mount: &Mount, parent: &Path, name: &str) -> Result<(), String> {
    writable(mount, parent)?;
    let lists = |file: &str| {
        fs::read_to_string(parent.join(file))
            .is_ok_and(|text| text.split_whitespace().any(|word| word == name))
    };
    if lists("cgroup.subtree_control") {
        return Ok(());
    }
    let shown = parent.display();
    if !lists("cgroup.controllers") {
        return Err(format!(
            "controller {name} is not in {shown}/cgroup.controllers: it is not delegated to us \
             (try systemd-run --scope -p Delegate=yes), bound to version 1, or not in the kernel"
        ));
    }
    // The root of the hierarchy may keep its processes; it is the only group without `cgroup.type`.
    let is_root = !parent.join("cgroup.type").exists();
    let processes = fs::read_to_string(parent.join("cgroup.procs")).unwrap_or_default();
    if !is_root && !processes.trim().is_empty() {
        return Err(format!(
            "{shown} holds processes, so it cannot pass controller {name} on to groups below it; \
             run as root, or under systemd-run --scope -p Delegate=yes"
        ));
    }
    may_write(&parent.join("cgroup.subtree_control"))
}

fn writable(mount: &Mount, directory: &Path) -> Result<(), String> {
    if mount.has_option("ro") {
        return Err(format!(
            "{} is mounted read-only; a container needs it writable (such as --privileged)",
            mount.point.display()
        ));
    }
    may_write(directory)
}

fn may_write(path: &Path) -> Result<(), String> {
    rustix::fs::accessat(CWD, path, Rights::WRITE_OK, AtFlags::EACCESS).map_err(|e| {
        let path = path.display();
        format!("no right to write to {path} ({e}); run as root or have it delegated")
    })
}
