//! Small files that are replaced atomically: after a crash, a file has its old or its new content,
//! never a mixture.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Write `bytes` to `path` so that after a crash at any moment the file has either its old or its
/// new content: write and sync a temporary file next to it, rename it to `path`, and sync the
/// directory.
///
/// # Errors
/// An error of the operating system; the old content is unchanged and the temporary file is
/// removed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let result = write_and_sync(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is returned. A temporary file that cannot be removed is harmless, and its
        // name shows its purpose.
        let _ = fs::remove_file(&temporary);
        return result;
    }
    path.parent().map_or(Ok(()), sync_dir)
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Make the creation, renaming and removal of names in `directory` durable.
///
/// # Errors
/// An error of the operating system.
pub fn sync_dir(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_content_replaces_the_old_and_nothing_is_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_directory_is_an_error_and_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let error = write_atomic(&dir.path().join("no/f"), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
