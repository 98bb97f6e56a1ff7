//! The files of the repository, loaded once.
//!
//! The directory `.git` and the files that the root `.gitignore` lists are not loaded.

use std::fs;
use std::path::Path;

use super::manifest::Manifest;
use super::scan::Source;

pub(super) struct File {
    /// The path relative to the root, with `/`.
    pub(super) path: String,
    /// The content; empty when it is not UTF-8.
    pub(super) text: String,
    /// The scanned content of a Rust file.
    pub(super) source: Option<Source>,
}

impl File {
    fn new(path: String, bytes: Vec<u8>) -> File {
        let text = String::from_utf8(bytes).unwrap_or_default();
        let source = path.ends_with(".rs").then(|| Source::new(&text));
        File { path, text, source }
    }

    /// The crate that contains the file, by its folder.
    pub(super) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the path ends with `.extension`.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        let ending = self.path.rsplit_once('.');
        ending.is_some_and(|(_, found)| found == extension)
    }

    /// Whether the file is a vendored or raw asset, which keeps its own style.
    pub(super) fn is_asset(&self) -> bool {
        self.path.split('/').any(|part| part == "assets")
    }

    /// Whether all code in the file is test or benchmark code.
    pub(super) fn is_test(&self) -> bool {
        let folder = |name| self.path.split('/').any(|part| part == name);
        folder("tests") || folder("benches") || self.path.ends_with("/tests.rs")
    }

    /// The lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// All files.
pub(super) struct Repository {
    files: Vec<File>,
    manifests: Vec<Manifest>,
}

impl Repository {
    fn new(mut files: Vec<File>) -> Repository {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let manifests = files.iter().filter_map(Manifest::of).collect();
        Repository { files, manifests }
    }

    /// Read the repository at `root`.
    ///
    /// # Errors
    /// The path that cannot be read, with the reason.
    pub(super) fn load(root: &Path) -> Result<Repository, String> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut skip: Vec<&str> = ignored
            .lines()
            .filter_map(|l| l.strip_prefix('/'))
            .collect();
        skip.push(".git");
        let mut files = Vec::new();
        walk(root, "", &skip, &mut files)?;
        Ok(Repository::new(files))
    }

    /// A repository with these paths and contents.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Repository {
        let file =
            |(path, text): &(&str, &str)| File::new((*path).to_owned(), text.as_bytes().to_vec());
        Repository::new(files.iter().map(file).collect())
    }

    /// All files, in the order of their paths.
    pub(super) fn files(&self) -> &[File] {
        &self.files
    }

    /// All Rust files with their scanned content.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files
            .iter()
            .filter_map(|f| Some((f, f.source.as_ref()?)))
    }

    /// The manifests of the crates under `crates/`.
    pub(super) fn crates(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter().filter(|m| !m.folder.is_empty())
    }

    pub(super) fn workspace(&self) -> Option<&Manifest> {
        self.manifests.iter().find(|m| m.folder.is_empty())
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|f| f.path == path)
    }

    /// Whether `path` is a file or a directory of the repository.
    pub(super) fn exists(&self, path: &str) -> bool {
        let inside = |f: &File| {
            f.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.files.iter().any(inside)
    }
}

fn walk(dir: &Path, prefix: &str, skip: &[&str], files: &mut Vec<File>) -> Result<(), String> {
    let failed = |e| format!("{}: {e}", dir.display());
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if prefix.is_empty() && skip.contains(&name.as_str()) {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(&path, &format!("{prefix}{name}/"), skip, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            files.push(File::new(format!("{prefix}{name}"), bytes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_know_their_crate_and_kind() {
        let repository = Repository::of(&[
            ("crates/kv/src/lib.rs", "//! Doc.\n"),
            ("crates/kv/tests/it/main.rs", ""),
            ("crates/kv/src/batch/tests.rs", ""),
            ("crates/lab/assets/chart.js", ""),
            ("README.md", ""),
        ]);
        let file = |path| repository.file(path).unwrap();
        assert_eq!(file("crates/kv/src/lib.rs").crate_name(), Some("kv"));
        assert!(!file("crates/kv/src/lib.rs").is_test());
        assert!(file("crates/kv/tests/it/main.rs").is_test());
        assert!(file("crates/kv/src/batch/tests.rs").is_test());
        assert!(file("crates/lab/assets/chart.js").is_asset());
        assert_eq!(file("README.md").crate_name(), None);
        assert!(repository.exists("crates/kv") && repository.exists("README.md"));
        assert!(!repository.exists("crates/k"));
    }
}
