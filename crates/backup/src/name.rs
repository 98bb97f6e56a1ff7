//! Names of files in a backup: paths below the directory of the store, with `/` between the parts.
//! They come from a manifest or an archive, so each is checked before it is used.

use std::path::{Path, PathBuf};

/// Bytes of a name. Engines use less than 100.
const LENGTH_MAX: usize = 512;

/// Parts of a name. Engines use two.
const PARTS_MAX: usize = 8;

/// Check that a name stays below the directory that it is joined to.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if LENGTH_MAX < name.len() {
        return Err("it is longer than 512 bytes");
    }
    if name.contains(|c: char| c.is_control() || c == '\\') {
        return Err("it contains a control character or a backslash");
    }
    if PARTS_MAX < name.split('/').count() {
        return Err("it has more than 8 parts");
    }
    match name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        true => Err("it is not a path below a directory"),
        false => Ok(()),
    }
}

/// The path of a checked name below `directory`.
pub(crate) fn below(directory: &Path, name: &str) -> PathBuf {
    assert_eq!(check(name), Ok(()), "B4: only checked names are used");
    directory.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_their_directory() {
        for good in ["data.betree", "rocksdb/000012.sst", "a/b/c", "..a", "a b"] {
            assert_eq!(check(good), Ok(()), "B4: {good}");
        }
        let long = "a".repeat(513);
        let deep = "a/".repeat(8) + "a";
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            ".",
            "a/../b",
            "a/..",
            "../a",
            "a//b",
            "a/",
            "a/./b",
            "a\\b",
            "a\0b",
            "a\nb",
            &long,
            &deep,
        ] {
            assert!(check(bad).is_err(), "B4: {bad:?}");
        }
    }
}
