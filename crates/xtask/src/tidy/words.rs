//! Checks that comments, messages and documents use the words of the field.
//!
//! `words.txt` lists words and phrases of a dialect that readers from outside do not understand,
//! each with a replacement.

use std::collections::BTreeMap;

use super::Finding;
use super::allowances::{Found, Place, area, beyond};
use super::prose::{self, Word};
use super::repository::Repository;

const LIST: &str = include_str!("words.txt");

/// A phrase, with its replacement.
struct Entry {
    phrase: &'static str,
    words: Vec<&'static str>,
    instead: &'static str,
}

fn entries() -> Vec<Entry> {
    let lines = LIST.lines().filter(|l| !l.starts_with('#'));
    let split = |line: &'static str| line.split_once(": ");
    let entry = |(phrase, instead): (&'static str, &'static str)| Entry {
        phrase,
        words: phrase.split(|c: char| !c.is_alphanumeric()).collect(),
        instead,
    };
    lines.filter_map(split).map(entry).collect()
}

/// Checks that no phrase of the list occurs more often than its area allows.
pub(super) fn dialect(repository: &Repository) -> Vec<Finding> {
    let entries = entries();
    let instead: BTreeMap<&str, &str> = entries.iter().map(|e| (e.phrase, e.instead)).collect();
    let advice = |phrase: &str| {
        let instead = instead.get(phrase).copied().unwrap_or_default();
        format!("\"{phrase}\" is not plain: write {instead}")
    };
    beyond(repository, &found(repository), |a| &a.words, &advice)
}

/// The places of all phrases of the list.
pub(super) fn found(repository: &Repository) -> Found {
    let entries = entries();
    let mut found = Found::new();
    for file in repository.files() {
        let words = prose::of_file(file);
        for entry in &entries {
            let lines: Vec<usize> = lines_of(&words, entry).collect();
            if lines.is_empty() {
                continue;
            }
            let phrases = found.entry(area(file)).or_default();
            let places = phrases.entry(entry.phrase.to_owned()).or_default();
            places.extend(lines.into_iter().map(|line| Place {
                path: file.path.clone(),
                line,
            }));
        }
    }
    found
}

fn lines_of<'a>(words: &'a [Word], entry: &'a Entry) -> impl Iterator<Item = usize> + 'a {
    let matches = |window: &&[Word]| window.iter().zip(&entry.words).all(|(w, e)| w.text == *e);
    let windows = words.windows(entry.words.len().max(1));
    windows
        .filter(matches)
        .filter_map(|w| Some(w.first()?.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<Finding> {
        dialect(&Repository::of(&[(path, text)]))
    }

    #[test]
    fn the_list_is_whole() {
        let entries = entries();
        let lines = LIST
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'));
        assert_eq!(entries.len(), lines.count());
        for entry in &entries {
            assert!(!entry.instead.is_empty(), "{}", entry.phrase);
            assert!(
                entry.words.iter().all(|w| !w.is_empty()),
                "{}",
                entry.phrase
            );
        }
    }

    #[test]
    fn words_and_phrases_are_found_with_their_line() {
        let found = check("docs/a.md", "# A\n\nThe caller is told, and it goes\non.\n");
        let lines: Vec<usize> = found.iter().map(|f| f.line).collect();
        assert_eq!(lines, [3, 3]);
        assert!(found[0].message.contains("write continue"), "{found:?}");
        assert_eq!(
            check("docs/a.md", "# A\n\nThe engine is as one's own.\n").len(),
            1
        );
    }

    #[test]
    fn code_and_other_clauses_are_not_found() {
        assert_eq!(check("docs/a.md", "# A\n\nThe variable `told`.\n"), []);
        assert_eq!(check("docs/a.md", "# A\n\nIt goes, on the whole.\n"), []);
        assert_eq!(check("crates/kv/src/a.rs", "//! A.\nlet told = 1;\n"), []);
    }

    #[test]
    fn messages_are_read_and_texts_of_tests_are_not() {
        let path = "crates/kv/src/a.rs";
        assert_eq!(check(path, "//! A.\nf(\"nobody\");\n").len(), 1);
        assert_eq!(
            check(path, "//! A.\n#[test]\nfn f() { g(\"nobody\"); }\n"),
            []
        );
        assert_eq!(
            check(path, "//! A.\n#[test]\n// nobody\nfn f() {}\n").len(),
            1
        );
    }
}
