//! Uses: the module of a file, the files that are compiled only for tests, and the paths within its
//! crate that a file uses.

use std::collections::{BTreeMap, BTreeSet};

use super::repository::{File, Repository};
use super::scan::{Source, words};

/// The path of a module within its crate: `["log", "commit"]`; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// The module of a file below `src`; `None` for other files and for additional programs.
pub(super) fn module_of(file: &File) -> Option<ModulePath> {
    let name = file.crate_name()?;
    let inside = file.path.strip_prefix(&format!("crates/{name}/src/"))?;
    let inside = inside.strip_suffix(".rs")?;
    let mut path: ModulePath = inside.split('/').map(str::to_owned).collect();
    let last = path.last().map(String::as_str);
    if last == Some("mod") || (path.len() == 1 && matches!(last, Some("lib" | "main"))) {
        path.pop();
    }
    (path.first().map(String::as_str) != Some("bin")).then_some(path)
}

/// The files that are compiled only for tests: by their path, or because the parent module declares
/// them under `#[cfg(test)]`.
pub(super) fn test_files(repository: &Repository) -> BTreeSet<&str> {
    let mut modules: BTreeSet<(&str, ModulePath)> = BTreeSet::new();
    for (file, source) in repository.sources() {
        let (Some(name), Some(module)) = (file.crate_name(), module_of(file)) else {
            continue;
        };
        for child in test_children(source) {
            let mut path = module.clone();
            path.push(child.to_owned());
            modules.insert((name, path));
        }
    }
    let declared = |file: &File| {
        let (Some(name), Some(module)) = (file.crate_name(), module_of(file)) else {
            return false;
        };
        let ancestor =
            |length| modules.contains(&(name, module.iter().take(length).cloned().collect()));
        (1..=module.len()).any(ancestor)
    };
    let sources = repository.sources().map(|(file, _)| file);
    let tests = sources.filter(|file| file.is_test() || declared(file));
    tests.map(|file| file.path.as_str()).collect()
}

/// The modules in other files that a source declares only for tests.
fn test_children(source: &Source) -> Vec<&str> {
    let mut children = Vec::new();
    for (number, line) in (1..).zip(source.code.lines()) {
        if let Some(name) = declared(line).filter(|_| source.is_test_line(number)) {
            children.push(name);
        }
    }
    children
}

/// The name of the module in a line such as `mod name;`.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim().strip_suffix(';')?;
    let (before, name) = line.rsplit_once("mod ")?;
    let plain = before.trim().is_empty() || before.starts_with("pub");
    plain.then_some(name.trim())
}

/// A path within the crate that a source uses, from the root of the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Its segments.
    pub(super) path: ModulePath,
    /// The name that an import gives the item, if it is not the last segment.
    pub(super) alias: Option<String>,
    /// The line, from 1.
    pub(super) line: usize,
}

/// The paths with `crate::` or `super::` that `source`, the file of `module`, uses outside of test
/// items.
pub(super) fn named(source: &Source, module: &[String]) -> Vec<Named> {
    let code = &source.code;
    let inline = source.inline_modules();
    let mut found = Vec::new();
    let mut after_chain = 0;
    for (offset, word) in words(code) {
        if offset < after_chain || !matches!(word, "crate" | "super") {
            continue;
        }
        let before = code.get(..offset).unwrap_or_default();
        // `pub(in path)` is not a use.
        if before.ends_with("(in ") || before.trim_end().ends_with("::") {
            continue;
        }
        let mut reader = Reader::at(code, offset + word.len());
        let mut ups = usize::from(word == "super");
        let line = 1 + before.bytes().filter(|&b| b == b'\n').count();
        while reader.eat("::") {
            if !reader.eat_word("super") {
                break;
            }
            ups += 1;
        }
        if !reader.is_after("::") || source.is_test_line(line) {
            continue;
        }
        after_chain = reader.offset;
        let mut base: ModulePath = Vec::new();
        if word == "super" {
            base.extend(module.iter().cloned());
            let nested = inline.iter().filter(|span| span.contains(line));
            base.extend(nested.map(|span| span.name.clone()));
            let Some(length) = base.len().checked_sub(ups) else {
                continue;
            };
            base.truncate(length);
        }
        reader.tree(&base, line, &mut found);
    }
    found
}

/// The names that the root of a crate imports or exports from its modules, each with its module.
pub(super) fn root_names(source: &Source, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let code = &source.code;
    let mut names = BTreeMap::new();
    for (offset, word) in words(code).filter(|(_, word)| *word == "use") {
        let mut reader = Reader::at(code, offset + word.len());
        if reader.eat_word("crate") || reader.eat_word("self") {
            reader.eat("::");
        }
        let mut found = Vec::new();
        reader.tree(&[], 1, &mut found);
        for import in found {
            let (first, last) = (import.path.first(), import.path.last());
            let name = import.alias.as_ref().or(last);
            if let (Some(first), Some(name)) = (first.filter(|f| modules.contains(*f)), name) {
                names.insert(name.clone(), first.clone());
            }
        }
    }
    names
}

/// Reads a path or a tree of imports.
struct Reader<'a> {
    code: &'a str,
    offset: usize,
}

impl<'a> Reader<'a> {
    fn at(code: &'a str, offset: usize) -> Reader<'a> {
        Reader { code, offset }
    }

    fn rest(&mut self) -> &'a str {
        let rest = self.code.get(self.offset..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.offset += rest.len() - trimmed.len();
        trimmed
    }

    fn eat(&mut self, token: &str) -> bool {
        let eaten = self.rest().starts_with(token);
        if eaten {
            self.offset += token.len();
        }
        eaten
    }

    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let (start, word) = words(rest).next()?;
        if start != 0 {
            return None;
        }
        self.offset += word.len();
        Some(word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let before = self.offset;
        let eaten = self.word() == Some(word);
        if !eaten {
            self.offset = before;
        }
        eaten
    }

    fn is_after(&self, token: &str) -> bool {
        let before = self.code.get(..self.offset).unwrap_or_default();
        before.trim_end().ends_with(token)
    }

    fn tree(&mut self, prefix: &[String], line: usize, found: &mut Vec<Named>) {
        if self.eat("{") {
            while !self.eat("}") {
                self.tree(prefix, line, found);
                if !self.eat(",") {
                    self.eat("}");
                    return;
                }
            }
            return;
        }
        let Some(word) = self.word() else {
            // Skips a glob, or the arguments of a generic type.
            self.eat("*");
            return self.end(prefix, line, None, found);
        };
        let mut path = prefix.to_vec();
        path.push(word.to_owned());
        if self.eat("::") {
            return self.tree(&path, line, found);
        }
        let alias = if self.eat_word("as") {
            self.word()
        } else {
            None
        };
        self.end(&path, line, alias, found);
    }

    fn end(&self, path: &[String], line: usize, alias: Option<&str>, found: &mut Vec<Named>) {
        if !path.is_empty() {
            found.push(Named {
                path: path.to_vec(),
                alias: alias.map(str::to_owned),
                line,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ModulePath {
        let parts = text.split('/').filter(|p| !p.is_empty());
        parts.map(str::to_owned).collect()
    }

    fn paths(module: &str, code: &str) -> Vec<String> {
        let found = named(&Source::new(code), &path(module));
        found.iter().map(|n| n.path.join("::")).collect()
    }

    #[test]
    fn files_are_modules() {
        let repository = Repository::of(&[
            ("crates/kv/src/lib.rs", ""),
            ("crates/kv/src/a/mod.rs", ""),
            ("crates/kv/src/a/b.rs", ""),
            ("crates/kv/src/bin/c.rs", ""),
            ("crates/kv/tests/it/main.rs", ""),
        ]);
        let module = |p| module_of(repository.file(p).unwrap());
        assert_eq!(module("crates/kv/src/lib.rs"), Some(path("")));
        assert_eq!(module("crates/kv/src/a/mod.rs"), Some(path("a")));
        assert_eq!(module("crates/kv/src/a/b.rs"), Some(path("a/b")));
        assert_eq!(module("crates/kv/src/bin/c.rs"), None);
        assert_eq!(module("crates/kv/tests/it/main.rs"), None);
    }

    #[test]
    fn modules_declared_for_tests_are_test_files() {
        let repository = Repository::of(&[
            (
                "crates/kv/src/lib.rs",
                "mod a;\n#[cfg(test)]\npub(crate) mod fake;\n",
            ),
            ("crates/kv/src/a.rs", ""),
            ("crates/kv/src/fake/mod.rs", ""),
            ("crates/kv/src/fake/deep.rs", ""),
        ]);
        let found: Vec<&str> = test_files(&repository).into_iter().collect();
        assert_eq!(
            found,
            ["crates/kv/src/fake/deep.rs", "crates/kv/src/fake/mod.rs"]
        );
    }

    #[test]
    fn paths_are_named_from_the_root() {
        assert_eq!(
            paths("a", "use crate::b::{C, d::{self, E as F}};\n"),
            ["b::C", "b::d::self", "b::d::E"]
        );
        assert_eq!(
            paths("a/b", "use super::super::c::D;\nsuper::e();\n"),
            ["c::D", "a::e"]
        );
        assert_eq!(
            paths(
                "a",
                "fn f() -> crate::b::C<crate::D> { crate::e::f::<u8>() }\n"
            ),
            ["b::C", "D", "e::f"]
        );
        assert_eq!(
            paths("a", "pub(in crate::b) fn f() {}\npub(crate) fn g() {}\n"),
            [""; 0]
        );
        assert_eq!(
            paths(
                "a",
                "mod inner {\n use super::b;\n use super::super::c;\n}\n"
            ),
            ["a::b", "c"]
        );
        assert_eq!(paths("a", "use crate::b::*;\n"), ["b"]);
    }

    #[test]
    fn tests_name_nothing() {
        assert_eq!(
            paths("a", "#[cfg(test)]\nmod tests {\n use crate::b;\n}\n"),
            [""; 0]
        );
    }

    #[test]
    fn the_root_gives_names_to_modules() {
        let modules: BTreeSet<String> = ["a", "b"].map(str::to_owned).into();
        let root = Source::new("pub use a::{C, D as E};\nuse crate::b::F;\nuse std::fmt;\n");
        let names = root_names(&root, &modules);
        let names: Vec<String> = names.iter().map(|(n, m)| format!("{n} {m}")).collect();
        assert_eq!(names, ["C a", "E a", "F b"]);
    }
}
