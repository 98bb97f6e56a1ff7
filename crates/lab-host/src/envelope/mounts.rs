//! Parses the mounts (`/proc/PID/mountinfo`) and the groups (`/proc/PID/cgroup`) of a process. See
//! proc(5) and cgroups(7) for the formats.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// One line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The device number of the mounted file system, as `major:minor`.
    pub(crate) device: String,
    /// The directory within the file system that is mounted.
    pub(crate) root: PathBuf,
    /// The mount point.
    pub(crate) point: PathBuf,
    /// The mount's own options and those of the file system, comma-separated.
    pub(crate) options: String,
    /// The file system's type.
    pub(crate) kind: String,
    /// The source of the mount, such as `/dev/vda1`.
    pub(crate) source: String,
}

impl Mount {
    /// True when `name` is among the options.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|o| o == name)
    }
}

/// The mounts of this process.
pub(crate) fn read(proc_root: &Path) -> io::Result<Vec<Mount>> {
    let text = fs::read_to_string(proc_root.join("self/mountinfo"))?;
    Ok(text.lines().filter_map(parse_line).collect())
}

/// The mount that holds `path` (absolute, without links): the one with the longest mount point, and
/// of equal ones the last mounted.
pub(crate) fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let holders = mounts.iter().filter(|m| path.starts_with(&m.point));
    holders.max_by_key(|m| m.point.components().count())
}

fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let device = left.next()?.to_owned();
    let root = PathBuf::from(unescape(left.next()?));
    let point = PathBuf::from(unescape(left.next()?));
    let own_options = left.next()?;
    let mut right = right.split(' ');
    let kind = right.next()?.to_owned();
    let source = unescape(right.next()?);
    let options = format!("{own_options},{}", right.next().unwrap_or_default());
    Some(Mount {
        device,
        root,
        point,
        options,
        kind,
        source,
    })
}

/// Decode the kernel's escapes (such as `\040`) of blanks, tabs, newlines and backslashes.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let code = escape.get(1..4).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                rest = escape.get(4..).unwrap_or_default();
            }
            None => {
                out.push('\\');
                rest = escape.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// The path of the group of `controller` in the text of `/proc/PID/cgroup`: in the version 1
/// hierarchy with that controller, or in version 2 when `controller` is `None`.
pub(crate) fn group_of(text: &str, controller: Option<&str>) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let hierarchy = fields.next()?;
        let controllers = fields.next()?;
        let path = fields.next()?;
        let found = match controller {
            Some(name) => controllers.split(',').any(|c| c == name),
            None => hierarchy == "0" && controllers.is_empty(),
        };
        found.then(|| PathBuf::from(path))
    })
}

/// The directory of group `path` (as `/proc/PID/cgroup` names it) below `mount`, or the mount
/// point when the mount does not show that group (a container with the host's hierarchy).
pub(crate) fn directory_of(mount: &Mount, path: &Path) -> PathBuf {
    let outside = path.components().any(|c| c == Component::ParentDir);
    match path.strip_prefix(&mount.root) {
        Ok(below) if !outside => {
            let directory = mount.point.join(below);
            if directory.is_dir() {
                directory
            } else {
                mount.point.clone()
            }
        }
        _ => mount.point.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 /docker/a /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw,nsdelegate
50 27 8:17 / /mnt/my\\040disk rw - xfs /dev/sdb1 rw";

    fn mounts() -> Vec<Mount> {
        MOUNTINFO.lines().filter_map(parse_line).collect()
    }

    #[test]
    fn lines_parse_with_optional_fields_and_escapes() {
        let mounts = mounts();
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[1].kind, "cgroup");
        assert!(mounts[1].has_option("memory") && !mounts[1].has_option("mem"));
        assert!(mounts[2].has_option("ro"));
        assert_eq!(mounts[3].point, Path::new("/mnt/my disk"));
        assert_eq!(mounts[3].source, "/dev/sdb1");
        assert_eq!(unescape("a\\134b\\"), "a\\b\\");
    }

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let mounts = mounts();
        let holder = |p: &str| holding(&mounts, Path::new(p)).unwrap().device.clone();
        assert_eq!(holder("/mnt/my disk/data"), "8:17");
        assert_eq!(holder("/mnt/my diskette"), "254:0");
    }

    #[test]
    fn own_groups_are_found_in_both_versions() {
        let text = "7:cpu,blkio:/x\n4:memory:/a/b\n1:name=systemd:/\n0::/user.slice\n";
        assert_eq!(group_of(text, Some("memory")).unwrap(), Path::new("/a/b"));
        assert_eq!(group_of(text, Some("blkio")).unwrap(), Path::new("/x"));
        assert_eq!(group_of(text, None).unwrap(), Path::new("/user.slice"));
        assert_eq!(group_of(text, Some("pids")), None);
    }

    #[test]
    fn a_group_outside_the_mount_falls_back_to_the_mount_point() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("x")).unwrap();
        let mut mount = mounts().remove(2);
        mount.point = dir.path().to_owned();
        let at = |p: &str| directory_of(&mount, Path::new(p));
        assert_eq!(at("/docker/a/x"), dir.path().join("x"));
        assert_eq!(at("/docker/b"), dir.path());
        assert_eq!(at("/docker/a/missing"), dir.path());
        assert_eq!(at("/../other"), dir.path());
    }
}
