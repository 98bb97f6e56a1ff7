//! Allowances: the number of violations that a check still accepts in one area, so that a new rule
//! can apply to new text before all old text is corrected.
//!
//! An area is a crate, or the documents outside of all crates. Each area has a file `tidy.toml` in
//! its folder (`crates/kv/tidy.toml`, `docs/tidy.toml`), so that people who correct different
//! crates change different files. A count in this file is an upper limit: more violations are a
//! finding, fewer are accepted. `cargo xtask tighten` lowers the counts to the numbers found. It
//! never raises the sum over all areas; when code moves to another crate, it moves the allowance.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::Finding;
use super::repository::{File, Repository};
use super::{circles, invariants, words};

/// The area of the documents outside of all crates.
const DOCUMENTS: &str = "docs";
const HEADER: &str = "\
# What `cargo xtask tidy` still accepts in this area. Counts only fall: after a repair run
# `cargo xtask tighten`, which lowers them to what is found.
";

/// The place of a violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The file, relative to the root.
    pub(super) path: String,
    /// The line, from 1.
    pub(super) line: usize,
}

/// The places of all violations: by area, then by word or invariant.
pub(super) type Found = BTreeMap<String, BTreeMap<String, Vec<Place>>>;

/// Modules that may import one another in a circle, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Circle {
    /// Their names.
    pub(super) modules: BTreeSet<String>,
    /// Why they may import one another.
    pub(super) reason: String,
}

/// The allowances of one area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowances {
    /// The number of times that each word of the dialect may occur.
    pub(super) words: BTreeMap<String, usize>,
    /// The number of invariants without a citation, by code.
    pub(super) invariants: BTreeMap<String, usize>,
    /// The allowed circles of modules.
    pub(super) circles: Vec<Circle>,
}

/// The area of a file: the folder of the area's `tidy.toml`.
pub(super) fn area(file: &File) -> String {
    file.crate_name()
        .map_or_else(|| DOCUMENTS.to_owned(), |name| format!("crates/{name}"))
}

fn file_of(area: &str) -> String {
    format!("{area}/tidy.toml")
}

impl Allowances {
    /// The allowances of `area`; empty when it has no file, or one that cannot be parsed
    /// ([`readable`]).
    pub(super) fn of(repository: &Repository, area: &str) -> Allowances {
        repository
            .file(&file_of(area))
            .and_then(|file| Allowances::parse(&file.text).ok())
            .unwrap_or_default()
    }

    fn parse(text: &str) -> Result<Allowances, String> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
        let mut allowances = Allowances::default();
        for (key, value) in &table {
            match key.as_str() {
                "words" => allowances.words = counts(value)?,
                "invariants" => allowances.invariants = counts(value)?,
                "circles" => allowances.circles = circles_of(value)?,
                _ => return Err(format!("{key} is not known: words, invariants, circles")),
            }
        }
        Ok(allowances)
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.invariants.is_empty() && self.circles.is_empty()
    }

    fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (name, counts) in [("words", &self.words), ("invariants", &self.invariants)] {
            if !counts.is_empty() {
                text += &format!("\n[{name}]\n");
            }
            for (key, count) in counts {
                text += &format!("{key:?} = {count}\n");
            }
        }
        for circle in &self.circles {
            text += &format!("\n[[circles]]\nreason = {:?}\nmodules = [\n", circle.reason);
            for module in &circle.modules {
                text += &format!("    {module:?},\n");
            }
            text += "]\n";
        }
        text
    }
}

fn counts(value: &toml::Value) -> Result<BTreeMap<String, usize>, String> {
    let table = value.as_table().ok_or("a table of counts is expected")?;
    let count = |(key, value): (&String, &toml::Value)| {
        let count = value.as_integer().and_then(|n| usize::try_from(n).ok());
        let count = count.ok_or_else(|| format!("{key} needs a count"))?;
        Ok((key.clone(), count))
    };
    table.iter().map(count).collect()
}

fn circles_of(value: &toml::Value) -> Result<Vec<Circle>, String> {
    let circles = value.as_array().ok_or("circles are an array of tables")?;
    circles.iter().map(circle).collect()
}

fn circle(value: &toml::Value) -> Result<Circle, String> {
    let reason = value.get("reason").and_then(toml::Value::as_str);
    let reason = reason.filter(|r| !r.is_empty());
    let modules = value.get("modules").and_then(toml::Value::as_array);
    let names = modules
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_str);
    let modules: BTreeSet<String> = names.map(str::to_owned).collect();
    match reason {
        Some(reason) if 2 <= modules.len() => Ok(Circle {
            modules,
            reason: reason.to_owned(),
        }),
        _ => Err("a circle has a reason and at least two modules".to_owned()),
    }
}

/// Checks that every file of allowances can be parsed and belongs to an area.
pub(super) fn readable(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files(repository) {
        if let Err(message) = Allowances::parse(&file.text) {
            findings.push(Finding::new(&file.path, 1, message));
        }
        if file.path != file_of(&area(file)) {
            let message = format!("allowances lie in {}", file_of(&area(file)));
            findings.push(Finding::new(&file.path, 1, message));
        }
    }
    findings
}

fn files(repository: &Repository) -> impl Iterator<Item = &File> {
    let is_file = |f: &&File| f.path == "tidy.toml" || f.path.ends_with("/tidy.toml");
    repository.files().iter().filter(is_file)
}

/// The findings for violations beyond the allowance of their area. `advice` is the advice for a
/// key, such as a word.
pub(super) fn beyond(
    repository: &Repository,
    found: &Found,
    allowed: fn(&Allowances) -> &BTreeMap<String, usize>,
    advice: &dyn Fn(&str) -> String,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (area, keys) in found {
        let allowances = Allowances::of(repository, area);
        for (key, places) in keys {
            let limit = allowed(&allowances).get(key).copied().unwrap_or(0);
            if places.len() <= limit {
                continue;
            }
            let advice = advice(key);
            if limit == 0 {
                let finding = |p: &Place| Finding::new(&p.path, p.line, &advice);
                findings.extend(places.iter().map(finding));
                continue;
            }
            let count = places.len();
            let list: Vec<String> = places.iter().map(Place::to_string).collect();
            let list = list.join(" ");
            let message = format!("{advice}; {count} found, {limit} allowed here: {list}");
            findings.push(Finding::new(&file_of(area), 1, message));
        }
    }
    findings
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// The files of allowances that [`tighten`] changes, with their new content; `None` if nothing is
/// allowed any more.
pub(super) fn tighter(repository: &Repository) -> Vec<(String, Option<String>)> {
    let before = all(repository);
    let words = moved(&before, |a| &a.words, &words::found(repository));
    let invariants = moved(&before, |a| &a.invariants, &invariants::found(repository));
    let areas: BTreeSet<&String> = before
        .keys()
        .chain(words.keys())
        .chain(invariants.keys())
        .collect();
    let mut changed = Vec::new();
    for area in areas {
        let old = before.get(area);
        let circles = old.map_or(&[][..], |a| &a.circles);
        let new = Allowances {
            words: words.get(area).cloned().unwrap_or_default(),
            invariants: invariants.get(area).cloned().unwrap_or_default(),
            circles: circles::still_there(repository, area, circles),
        };
        if *old.unwrap_or(&Allowances::default()) != new {
            let text = (!new.is_empty()).then(|| new.text());
            changed.push((file_of(area), text));
        }
    }
    changed
}

/// The allowances of all areas whose file can be parsed.
fn all(repository: &Repository) -> BTreeMap<String, Allowances> {
    let parsed = |file: &File| Some((area(file), Allowances::parse(&file.text).ok()?));
    files(repository).filter_map(parsed).collect()
}

/// The new counts by area. If all areas together have no more of a key than they are allowed
/// together, each area is allowed the number it has: code that moves to another crate takes its
/// allowance along. Otherwise no count rises.
fn moved(
    before: &BTreeMap<String, Allowances>,
    allowed: fn(&Allowances) -> &BTreeMap<String, usize>,
    found: &Found,
) -> BTreeMap<String, BTreeMap<String, usize>> {
    let (mut limits, mut totals) = (BTreeMap::new(), BTreeMap::new());
    for (key, limit) in before.values().flat_map(allowed) {
        *limits.entry(key.as_str()).or_insert(0) += limit;
    }
    for (key, places) in found.values().flatten() {
        *totals.entry(key.as_str()).or_insert(0) += places.len();
    }
    let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for (area, keys) in found {
        for (key, places) in keys {
            let old = before.get(area).and_then(|a| allowed(a).get(key));
            let fits = totals.get(key.as_str()) <= limits.get(key.as_str());
            let count = if fits {
                places.len()
            } else {
                places.len().min(old.copied().unwrap_or(0))
            };
            if 0 < count {
                let of_area = counts.entry(area.clone()).or_default();
                of_area.insert(key.clone(), count);
            }
        }
    }
    counts
}

/// Lower the counts in every file of allowances below `root` to the numbers found; returns the
/// paths of changed files.
///
/// # Errors
/// A file that cannot be written or removed.
pub(super) fn tighten(root: &Path, repository: &Repository) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for (path, text) in tighter(repository) {
        let file = root.join(&path);
        let done = match text {
            Some(text) => fs::write(file, text),
            None => fs::remove_file(file),
        };
        done.map_err(|e| format!("{path}: {e}"))?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/kv/tidy.toml";

    #[test]
    fn a_file_survives_writing_and_reading() {
        let text = "[words]\n\"so many\" = 2\n[invariants]\nI1 = 1\n[[circles]]\n\
                    reason = \"types \\\"recurse\\\"\"\nmodules = [\"b\", \"a\"]\n";
        let allowances = Allowances::parse(text).unwrap();
        assert_eq!(allowances.words["so many"], 2);
        assert_eq!(allowances.circles[0].modules.len(), 2);
        assert_eq!(Allowances::parse(&allowances.text()), Ok(allowances));
    }

    #[test]
    fn a_file_that_cannot_be_read_or_lies_elsewhere_is_found() {
        let check = |path, text| readable(&Repository::of(&[(path, text)])).len();
        assert_eq!(check(FILE, "[words]\ntold = 1\n"), 0);
        assert_eq!(check(FILE, "[words]\ntold = -1\n"), 1);
        assert_eq!(check(FILE, "[other]\n"), 1);
        assert_eq!(check(FILE, "[[circles]]\nmodules = [\"a\", \"b\"]\n"), 1);
        assert_eq!(check("crates/kv/src/tidy.toml", ""), 1);
        assert_eq!(check("docs/tidy.toml", ""), 0);
    }

    #[test]
    fn a_count_may_fall_and_not_rise() {
        let text = "//! He was told.\n//! I was told.\n";
        let check = |limit: usize| {
            let allowed = format!("[words]\ntold = {limit}\n");
            let files = [("crates/kv/src/a.rs", text), (FILE, allowed.as_str())];
            let repository = Repository::of(&files);
            let tighter = tighter(&repository);
            (words::dialect(&repository).len(), tighter)
        };
        assert_eq!(check(2), (0, vec![]));
        assert_eq!(check(1), (1, vec![]));
        let (found, tighter) = check(3);
        assert_eq!((found, tighter.len()), (0, 1));
        assert!(
            tighter[0].1.as_deref().unwrap().contains("\"told\" = 2\n"),
            "{tighter:?}"
        );
    }

    #[test]
    fn code_that_moves_takes_its_allowance_along() {
        let text = "//! He was told.\n";
        let check = |limit: usize| {
            let allowed = format!("[words]\ntold = {limit}\n");
            let files = [
                ("crates/kv/src/a.rs", text),
                ("crates/vfs/src/a.rs", text),
                (FILE, allowed.as_str()),
            ];
            tighter(&Repository::of(&files))
        };
        let moved = check(2);
        let paths: Vec<&str> = moved.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, [FILE, "crates/vfs/tidy.toml"]);
        assert_eq!(check(1), [], "the sum does not rise");
    }

    #[test]
    fn a_file_without_use_is_removed() {
        let files = [
            ("crates/kv/src/a.rs", "//! A.\n"),
            (FILE, "[words]\ntold = 1\n"),
        ];
        assert_eq!(tighter(&Repository::of(&files)), [(FILE.to_owned(), None)]);
    }
}
