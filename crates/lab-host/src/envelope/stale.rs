//! Removes groups that killed laboratory processes left behind.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroups::Cgroups;
use super::group::{self, PREFIX};

/// Remove the groups whose laboratory process no longer runs, and kill the processes in them.
/// Returns the removed directories. Groups that hold processes of another pid namespace stay,
/// because the pid in their name means nothing in this one.
pub fn remove_stale(cgroups: &Cgroups) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for parent in cgroups.parents() {
        let Ok(entries) = fs::read_dir(parent) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(owner) = name.to_str().and_then(owner_of) else {
                continue;
            };
            let path = entry.path();
            if is_alive(cgroups.proc_root(), owner) || group::processes(&path).contains(&0) {
                continue;
            }
            if group::remove(&path).is_ok() {
                removed.push(path);
            }
        }
    }
    removed
}

/// The pid in `romanesco-<pid>-<n>`.
fn owner_of(name: &str) -> Option<u32> {
    let (pid, n) = name.strip_prefix(PREFIX)?.split_once('-')?;
    n.parse::<u32>().ok()?;
    pid.parse().ok()
}

fn is_alive(proc_root: &Path, pid: u32) -> bool {
    pid == std::process::id() || proc_root.join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_have_an_owner() {
        assert_eq!(owner_of("romanesco-123-0"), Some(123));
        for name in [
            "romanesco-123",
            "romanesco-x-0",
            "romanesco-1-x",
            "user-1-0",
            "",
        ] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }
}
