//! A backup as a directory. Its directories are for their owner only, and so are its files.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use kv::{Error, ErrorKind, Result};

use crate::manifest;
use crate::name;
use crate::pinned::Pinned;
use crate::target::{Output, Target, give_name, taken, unfinished};

/// The folder of the files.
pub(crate) const FILES: &str = "files";

/// The folder in which an engine prepares a copy.
const STAGING: &str = "staging";

pub(crate) struct DirectoryTarget {
    /// Its name, for messages: another directory may have it by now.
    root: PathBuf,
    held: Pinned,
    held_files: Pinned,
    /// Whether this backup created the directory.
    created: bool,
    /// The directories with files, to be synced.
    folders: Vec<PathBuf>,
    output: Option<Output>,
}

/// Create one directory, for its owner only.
pub(crate) fn create_folder(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn occupied(root: &Path) -> Error {
    let message = "the place of the backup is not an empty directory; name a new one";
    Error::new(ErrorKind::Exists, message).with_path(root)
}

/// Whether a directory, which is not empty, has nothing but what a backup leaves that has not
/// ended.
fn has_unfinished(root: &Path) -> std::io::Result<bool> {
    let part = Path::new(manifest::FILE).with_extension("incomplete");
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        if name != FILES && name != STAGING && *name != *part {
            return Ok(false);
        }
    }
    Ok(true)
}

impl DirectoryTarget {
    pub(crate) fn create(root: &Path) -> Result<DirectoryTarget> {
        let fail = |e| Error::io("create the backup", root, e);
        let created = match root.symlink_metadata() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                create_folder(root).map_err(fail)?;
                true
            }
            Err(e) => return Err(fail(e)),
            // B2. Also for a symbolic link, which is no directory.
            Ok(found) if !found.is_dir() => return Err(occupied(root)),
            Ok(_) if !vfs::is_empty(root).map_err(fail)? => {
                return Err(match has_unfinished(root).map_err(fail)? {
                    true => unfinished(root),
                    false => occupied(root),
                });
            }
            Ok(_) => false,
        };
        let held = Pinned::open(root).map_err(fail)?;
        if !vfs::is_empty(&held.at).map_err(fail)? {
            let message = "the directory of the backup was replaced; name another place";
            return Err(Error::new(ErrorKind::Exists, message).with_path(root));
        }
        let files = held.at.join(FILES);
        // Of two backups into one empty directory, one fails here.
        create_folder(&files).map_err(|e| taken(&root.join(FILES), e))?;
        let held_files = Pinned::open(&files).map_err(fail)?;
        Ok(DirectoryTarget {
            root: root.to_owned(),
            created,
            folders: vec![held_files.at.clone()],
            held,
            held_files,
            output: None,
        })
    }

    /// Create the folders above a file.
    fn folders_of(&mut self, path: &Path) -> Result<()> {
        let Some(folder) = path.parent() else {
            return Ok(());
        };
        if self.folders.iter().any(|known| known == folder) {
            return Ok(());
        }
        self.folders_of(folder)?;
        create_folder(folder).map_err(|e| taken(folder, e))?;
        self.folders.push(folder.to_owned());
        Ok(())
    }
}

impl Target for DirectoryTarget {
    fn staging(&self) -> PathBuf {
        self.held.at.join(STAGING)
    }

    fn begin(&mut self, name: &str, size: Option<u64>) -> Result<()> {
        let at = name::below(&self.held_files.at, name);
        self.folders_of(&at)?;
        let path = name::below(&self.root.join(FILES), name);
        let mut output = Output::create_at(&at, &path)?;
        output.reserve(size.unwrap_or(0))?;
        self.output = Some(output);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let output = self.output.as_mut();
        output.expect("a file was begun").write(bytes)
    }

    fn end(&mut self) -> Result<()> {
        let output = self.output.take();
        output.expect("a file was begun").sync()
    }

    fn seal(&mut self, bytes: &[u8]) -> Result<()> {
        let parent = self.root.parent().unwrap_or(Path::new("."));
        let above = [self.held.at.as_path(), parent];
        for folder in self.folders.iter().rev().map(PathBuf::as_path).chain(above) {
            vfs::sync_dir(folder).map_err(|e| Error::io("sync the backup", &self.root, e))?;
        }
        let shown = self.root.join(manifest::FILE);
        let path = self.held.at.join(manifest::FILE);
        let part = path.with_extension("incomplete");
        let mut output = Output::create_at(&part, &shown.with_extension("incomplete"))?;
        output.write(bytes)?;
        output.sync()?;
        give_name(&part, &path).map_err(|error| error.with_path(shown))
    }

    fn discard(&mut self) {
        self.output = None;
        // What cannot be removed has no manifest and is no backup (B1).
        let at = &self.held.at;
        let _ = fs::remove_file(at.join(manifest::FILE).with_extension("incomplete"));
        let _ = fs::remove_dir_all(at.join(STAGING));
        let _ = fs::remove_dir_all(at.join(FILES));
        if self.created {
            let _ = fs::remove_dir(&self.root);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_that_is_replaced_by_a_link_redirects_nothing() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("victim/files/kept")).unwrap();
        let count = |name: &str| fs::read_dir(at(name)).unwrap().count();
        for ends in [true, false] {
            let mut target = DirectoryTarget::create(&at("copy")).unwrap();
            fs::rename(at("copy"), at("moved")).unwrap();
            symlink(at("victim"), at("copy")).unwrap();
            for name in ["one", "deep/two"] {
                target.begin(name, Some(3)).unwrap();
                target.write(b"abc").unwrap();
                target.end().unwrap();
            }
            fs::create_dir(target.staging()).unwrap();
            if ends {
                target.seal(b"manifest").unwrap();
                assert_eq!(fs::read(at("moved/files/deep/two")).unwrap(), b"abc");
                assert_eq!(count("moved"), 3);
            } else {
                target.discard();
                assert_eq!(count("moved"), 0);
            }
            assert_eq!((count("victim"), count("victim/files")), (1, 1));
            assert!(at("victim/files/kept").exists());
            fs::remove_dir_all(at("moved")).unwrap();
            fs::remove_file(at("copy")).unwrap();
        }
    }
}
