//! `Cargo.toml` files: the parts that the checks need.

use toml::{Table, Value};

use super::repository::File;

/// The kind of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `[dependencies]` and `[build-dependencies]`.
    Normal,
    /// `[dev-dependencies]`.
    Dev,
}

/// A dependency of a crate.
#[derive(Debug)]
pub(super) struct Dependency<'a> {
    /// The name of the dependency.
    pub(super) name: &'a str,
    /// The kind of the dependency.
    pub(super) kind: Kind,
    /// Whether the entry has `workspace = true`.
    pub(super) inherited: bool,
    /// Whether a feature turns it on.
    pub(super) optional: bool,
    /// The line of the manifest.
    pub(super) line: usize,
}

pub(super) struct Manifest {
    /// The path of the file.
    pub(super) path: String,
    /// The folder under `crates/`; empty for the workspace.
    pub(super) folder: String,
    /// The parsed content.
    pub(super) table: Table,
    text: String,
}

impl Manifest {
    /// The manifest in `file`, if it is one. Cargo reports a manifest that cannot be parsed before
    /// it runs this program.
    pub(super) fn of(file: &File) -> Option<Manifest> {
        let folder = match file.path.strip_suffix("Cargo.toml")? {
            "" => String::new(),
            inner => inner.strip_prefix("crates/")?.strip_suffix('/')?.to_owned(),
        };
        Some(Manifest {
            path: file.path.clone(),
            folder,
            table: file.text.parse().ok()?,
            text: file.text.clone(),
        })
    }

    pub(super) fn table_at(&self, keys: &[&str]) -> Option<&Table> {
        let mut table = &self.table;
        for key in keys {
            table = table.get(*key)?.as_table()?;
        }
        Some(table)
    }

    /// Whether the package is made to be published.
    pub(super) fn is_published(&self) -> bool {
        let publish = self.table_at(&["package"]).and_then(|t| t.get("publish"));
        publish.and_then(Value::as_bool) == Some(true)
    }

    /// The name of the package.
    pub(super) fn package(&self) -> Option<&str> {
        self.table_at(&["package"])?.get("name")?.as_str()
    }

    /// All dependencies, including those for one target only.
    pub(super) fn dependencies(&self) -> Vec<Dependency<'_>> {
        let mut tables = vec![&self.table];
        if let Some(targets) = self.table_at(&["target"]) {
            tables.extend(targets.values().filter_map(Value::as_table));
        }
        let sections = [
            ("dependencies", Kind::Normal),
            ("build-dependencies", Kind::Normal),
            ("dev-dependencies", Kind::Dev),
        ];
        let mut found = Vec::new();
        for table in tables {
            for (section, kind) in sections {
                let entries = table.get(section).and_then(Value::as_table);
                for (name, value) in entries.into_iter().flatten() {
                    found.push(Dependency {
                        name,
                        kind,
                        inherited: value.get("workspace").and_then(Value::as_bool) == Some(true),
                        optional: value.get("optional").and_then(Value::as_bool) == Some(true),
                        line: self.line_of(section, name),
                    });
                }
            }
        }
        found
    }

    /// The line, from 1, on which `key` is set in `[section]`; 1 when it is not found.
    pub(super) fn line_of(&self, section: &str, key: &str) -> usize {
        let mut inside = false;
        for (number, line) in (1..).zip(self.text.lines()) {
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_end_matches(']');
                inside = header == section || header.ends_with(&format!(".{section}"));
                if header == format!("{section}.{key}") {
                    return number;
                }
            }
            let rest = line.strip_prefix(key).map(str::trim_start);
            if inside && rest.is_some_and(|r| r.starts_with(['.', '='])) {
                return number;
            }
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::super::repository::Repository;
    use super::*;

    #[test]
    fn dependencies_have_kind_line_and_origin() {
        let text = "[package]\nname = \"a\"\n[dependencies]\nkv.workspace = true\nx = \"1\"\n\
                    [target.'cfg(unix)'.dev-dependencies]\ny = { workspace = true }\n";
        let repository = Repository::of(&[("crates/a/Cargo.toml", text)]);
        let manifest = repository.crates().next().unwrap();
        assert_eq!(
            (manifest.package(), manifest.folder.as_str()),
            (Some("a"), "a")
        );
        let found: Vec<_> = manifest
            .dependencies()
            .iter()
            .map(|d| (d.name, d.kind, d.inherited, d.line))
            .collect();
        assert_eq!(
            found,
            [
                ("kv", Kind::Normal, true, 4),
                ("x", Kind::Normal, false, 5),
                ("y", Kind::Dev, true, 7),
            ]
        );
    }
}
