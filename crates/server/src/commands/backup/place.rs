//! Where a client may have a backup written.
//!
//! A user with this privilege must gain no other: not to change files of the server, nor to read
//! the backup as another user of the machine.
//!
//! - L1. The place is an absolute path without `..`. Its parent exists, and its symbolic links are
//!   resolved before the path is judged.
//! - L2. It is outside of the data directory, does not contain it, and is below `backup.rootDir` if
//!   that is set. All paths that are not below get one error, so that it does not say what exists.
//! - L3. Only new files are created, under names that are fixed or end with `.tar`, readable by the
//!   server's user alone (the crate `backup` keeps this).
//! - L4. The base of an increment is beside the new backup, and no symbolic link.

use std::path::{Component, Path, PathBuf};

use backup::{ARCHIVE_SUFFIX, Place};
use query::{Code, Error, Result};

use crate::arguments::Arguments;
use crate::config::Config;

/// The place that the arguments name.
///
/// # Errors
/// `BadValue` for a place that is not allowed; `NonExistentPath` for one without a parent.
pub(super) fn asked(arguments: &Arguments<'_>, config: &Config) -> Result<Place> {
    let directory = arguments.string("backupDir")?;
    let archive = arguments.string("archive")?;
    let root = config.backup_root.as_deref();
    let checked = |path: &str| allowed(Path::new(path), &config.db_path, root);
    match (directory, archive) {
        (Some(path), None) => Ok(Place::Directory(checked(path)?)),
        (None, Some(path)) if path.ends_with(ARCHIVE_SUFFIX) => Ok(Place::Archive(checked(path)?)),
        (None, Some(_)) => Err(refused("the name of an archive must end with .tar")),
        _ => Err(refused("createBackup needs either backupDir or archive")),
    }
}

/// The base of an increment that the arguments name: beside the place, so L1 and L2 hold for it.
///
/// # Errors
/// `BadValue` for any other path, whether it exists or not.
pub(super) fn base(arguments: &Arguments<'_>, place: &Place) -> Result<Option<PathBuf>> {
    let Some(text) = arguments.string("incremental")? else {
        return Ok(None);
    };
    beside(Path::new(text), place.path()).map(Some)
}

/// The path of a base, if it is in the directory of the new backup and no link out of it.
fn beside(base: &Path, place: &Path) -> Result<PathBuf> {
    let parent = place.parent();
    let real = |path: &Path| path.canonicalize().ok();
    let above = base.components().any(|part| part == Component::ParentDir);
    let same = base.parent().and_then(real).as_deref() == parent.filter(|_| !above);
    let path = match (parent, base.file_name()) {
        (Some(parent), Some(name)) if base.is_absolute() && same => parent.join(name),
        _ => {
            let message = "incremental must name a backup, by its absolute path, in the directory \
                           of the new one";
            return Err(refused(message));
        }
    };
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => Err(refused("incremental names a symbolic link")),
        _ => Ok(path),
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::bad_value(message)
}

/// Check a place (L1, L2); returns it with the links of its parent resolved.
fn allowed(path: &Path, db_path: &Path, root: Option<&Path>) -> Result<PathBuf> {
    if !path.is_absolute() {
        // Percona Server's words.
        return Err(refused("Destination path must be absolute"));
    }
    // `components` leaves out what changes nothing, such as `.` and a slash at the end.
    let above = path.components().any(|part| part == Component::ParentDir);
    let (Some(parent), Some(name), false) = (path.parent(), path.file_name(), above) else {
        return Err(refused(
            "Destination path must name a file or directory, without ..",
        ));
    };
    let root = root.map(Root::find).transpose()?;
    let parent = parent.canonicalize().map_err(|error| match &root {
        Some(root) if !root.has_missing(parent) => root.outside(),
        _ => {
            let message = format!("the parent directory {}: {error}", parent.display());
            Error::new(Code::NON_EXISTENT_PATH, message)
        }
    })?;
    let path = parent.join(name);
    if let Some(root) = root.filter(|root| !root.has(&path)) {
        return Err(root.outside());
    }
    // An engine in memory may have no directory.
    let data = db_path
        .canonicalize()
        .unwrap_or_else(|_| db_path.to_owned());
    if path.starts_with(&data) || data.starts_with(&path) {
        let message = "Destination path must be outside of the data directory (storage.dbPath)";
        return Err(refused(message));
    }
    Ok(path)
}

/// The directory that backups must be below.
struct Root<'a> {
    set: &'a Path,
    real: PathBuf,
}

impl Root<'_> {
    fn find(set: &Path) -> Result<Root<'_>> {
        let real = set.canonicalize().map_err(|error| {
            let message = format!("backup.rootDir {}: {error}", set.display());
            Error::new(Code::NON_EXISTENT_PATH, message)
        })?;
        Ok(Root { set, real })
    }

    /// Whether a resolved path is below.
    fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.real) && path != self.real
    }

    /// Whether a directory that cannot be resolved would be in the root: what exists of it is.
    fn has_missing(&self, directory: &Path) -> bool {
        for above in directory.ancestors() {
            if let Ok(real) = above.canonicalize() {
                return real.starts_with(&self.real);
            }
            // A link whose end is missing may lead anywhere.
            if above.symlink_metadata().is_ok() {
                return false;
            }
        }
        false
    }

    fn outside(&self) -> Error {
        let root = self.set.display();
        refused(format!(
            "Destination path must be below {root} (backup.rootDir)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_base_is_beside_the_new_backup() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["backups/monday", "other/monday"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("other/monday"), at("backups/link")).unwrap();
        symlink(at("backups"), at("alias")).unwrap();
        let place = at("backups/new");
        let found = |name: &str| beside(&at(name), &place);
        let monday = at("backups/monday");
        assert_eq!(found("backups/monday").unwrap(), monday);
        assert_eq!(found("alias/monday").unwrap(), monday);
        // One that is missing is refused when it is opened.
        assert_eq!(found("backups/none").unwrap(), at("backups/none"));
        for (name, word) in [
            ("other/monday", "in the directory"),
            ("missing/monday", "in the directory"),
            ("backups/../other/monday", "in the directory"),
            ("backups/../backups/monday", "in the directory"),
            ("backups/link", "symbolic link"),
        ] {
            let error = found(name).unwrap_err();
            assert_eq!(error.code, Code::BAD_VALUE);
            assert!(
                error.message.contains(word),
                "L4: {name}: {}",
                error.message
            );
        }
        assert!(beside(Path::new("monday"), &place).is_err(), "L4");
    }

    #[test]
    fn places_are_outside_of_the_data_and_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["db/inner", "root/in", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("db"), at("root/link")).unwrap();
        symlink(at("other"), at("root/out")).unwrap();
        symlink(at("root/in"), at("other/in")).unwrap();
        let (db, root) = (at("db"), at("root"));
        let code = |name: &str, root: Option<&Path>| {
            let checked = allowed(&at(name), &db, root);
            checked.err().map_or(Code::OK, |error| error.code)
        };
        let bad = Code::BAD_VALUE;
        for (name, expected) in [
            ("other/new", Code::OK),
            ("other/./new/", Code::OK),
            ("other", Code::OK),
            ("dbx", Code::OK),
            // L2.
            ("db", bad),
            ("db/new", bad),
            ("db/inner/new", bad),
            ("root/link/new", bad),
            ("root/link/inner/new", bad),
            // L1.
            ("other/../db/new", bad),
            ("other/..", bad),
            ("missing/new", Code::NON_EXISTENT_PATH),
        ] {
            assert_eq!(code(name, None), expected, "L1, L2: {name}");
        }
        let parent = folder.path().canonicalize().unwrap();
        assert!(
            allowed(&parent, &db, None).is_err(),
            "L2: it contains the data"
        );
        assert!(allowed(Path::new("/"), &db, None).is_err());
        for relative in ["", "new", "./new", "../new"] {
            let error = allowed(Path::new(relative), &db, None).unwrap_err();
            assert_eq!(error.message, "Destination path must be absolute");
        }
        for (name, expected) in [
            ("root/new", Code::OK),
            ("root/in/new", Code::OK),
            ("other/in/new", Code::OK),
            ("root", bad),
            ("other/new", bad),
            ("root/out/new", bad),
            ("rootx", bad),
        ] {
            assert_eq!(code(name, Some(&root)), expected, "L2: {name}");
        }
        symlink(at("gone"), at("root/dangling")).unwrap();
        fs::write(at("other/file"), b"").unwrap();
        // L2: all that is outside gets one error.
        for name in [
            "missing/new",
            "other/new",
            "other/missing/new",
            "other/file/new",
            "db",
            "db/new",
            "db/missing/new",
            "root/out/missing/new",
            "root/dangling/new",
            "root/link/new",
        ] {
            let error = allowed(&at(name), &db, Some(&root)).unwrap_err();
            let message = format!(
                "Destination path must be below {} (backup.rootDir)",
                root.display()
            );
            assert_eq!((error.code, error.message), (bad, message), "{name}");
        }
        let inside = code("root/in/missing/new", Some(&root));
        assert_eq!(inside, Code::NON_EXISTENT_PATH);
        assert_eq!(code("db/inner/new", Some(&at("db/inner"))), bad);
        let missing = at("missing");
        assert_eq!(code("other/new", Some(&missing)), Code::NON_EXISTENT_PATH);
    }
}
