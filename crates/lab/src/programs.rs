//! Finds system programs.

use std::env;
use std::path::PathBuf;

/// The path of a program, searched by name in `PATH` and in the directories `besides`.
pub(crate) fn found(name: &str, besides: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = env::split_paths(&path).chain(besides.iter().map(PathBuf::from));
    all.map(|directory| directory.join(name))
        .find(|file| file.is_file())
}
