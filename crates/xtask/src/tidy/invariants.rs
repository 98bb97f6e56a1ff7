//! Checks that an assert or a test cites every invariant that a module's documentation numbers
//! (`I1`, `W3`).
//!
//! A statement is a numbered sentence of a `//!` doc: `- I1. Buffers do not overlap.`, `W2: ..`,
//! `**I3** ..`. It counts as cited if the message of an assert (or another message of the product)
//! has its number, or a comment or message in a test of its crate. A citation belongs to the
//! nearest module that states the number: the file itself, else the modules that contain it. A
//! citation elsewhere belongs to the only module of the crate that states the number. If several
//! modules state the number, the cited line, or the file name of the integration test, must name
//! the module (`// log: I3`).

use std::collections::BTreeSet;

use super::Finding;
use super::allowances::{Found, Place, area, beyond};
use super::repository::{File, Repository};
use super::scan::words;
use super::uses::{module_of, test_files};

/// A numbered sentence in the documentation of a module.
struct Statement {
    area: String,
    module: Vec<String>,
    code: String,
    place: Place,
}

/// Checks that every invariant is cited, except the number that its crate allows.
pub(super) fn cited(repository: &Repository) -> Vec<Finding> {
    let advice = |code: &str| {
        format!("{code} is stated, and no assert message and no test cites it (\"{code}: ..\")")
    };
    beyond(repository, &found(repository), |a| &a.invariants, &advice)
}

/// The invariants without a citation, by code.
pub(super) fn found(repository: &Repository) -> Found {
    let tests = test_files(repository);
    let product = |file: &&File| !tests.contains(file.path.as_str());
    let files = repository.files().iter();
    let statements: Vec<Statement> = files.filter(product).flat_map(statements).collect();
    let mut covered = BTreeSet::new();
    for file in repository.files() {
        let is_test = tests.contains(file.path.as_str());
        for (code, line) in citations(file, is_test) {
            covered.extend(owner(&statements, file, &code, line));
        }
    }
    let mut found = Found::new();
    for (at, statement) in statements.into_iter().enumerate() {
        if !covered.contains(&at) {
            let codes = found.entry(statement.area).or_default();
            codes
                .entry(statement.code)
                .or_default()
                .push(statement.place);
        }
    }
    found
}

/// The statements in the documentation of a file.
fn statements(file: &File) -> Vec<Statement> {
    let Some(module) = module_of(file) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in file.lines() {
        let Some(text) = line.strip_prefix("//!") else {
            break;
        };
        let text = text.trim();
        let item = text.strip_prefix("- ").or_else(|| text.strip_prefix("* "));
        let begins = item.is_some() || before.is_empty() || before.ends_with(['.', ':', ';', ')']);
        let start = Some(item.unwrap_or(text)).filter(|_| begins);
        let later = text
            .match_indices(". ")
            .filter_map(|(at, _)| text.get(at + 2..));
        for code in start.into_iter().chain(later).filter_map(stated_code) {
            found.push(Statement {
                area: area(file),
                module: module.clone(),
                code: code.to_owned(),
                place: Place {
                    path: file.path.clone(),
                    line: number,
                },
            });
        }
        before = text;
    }
    found
}

/// The code with which a statement begins: `I1. ..`, `I1: ..` or `**I1** ..`.
fn stated_code(text: &str) -> Option<&str> {
    let bold = text.strip_prefix("**");
    let (_, code) = words(bold.unwrap_or(text))
        .next()
        .filter(|(at, _)| *at == 0)?;
    let rest = bold.unwrap_or(text).get(code.len()..)?;
    let end = if bold.is_some() {
        rest.strip_prefix("**")?
    } else {
        rest.strip_prefix(['.', ':'])?
    };
    let ends = end.is_empty() || end.starts_with(' ');
    (ends && is_code(code)).then_some(code)
}

/// Whether `word` is one or two capitals followed by one or two digits.
fn is_code(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = word
        .bytes()
        .skip(letters)
        .filter(u8::is_ascii_digit)
        .count();
    (1..=2).contains(&letters) && (1..=2).contains(&digits) && letters + digits == word.len()
}

/// The codes that a file cites, each with the text of its line: in messages and, in tests, also in
/// comments.
fn citations(file: &File, is_test: bool) -> Vec<(String, &str)> {
    let Some(source) = &file.source else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let views = source.literals.lines().zip(source.comments.lines());
    for ((number, line), (literals, comments)) in file.lines().zip(views) {
        let mut codes = codes(literals);
        codes.retain(|(at, code)| !is_datum(line, *at, code));
        if is_test || source.is_test_line(number) {
            codes.extend(self::codes(comments));
        }
        found.extend(codes.into_iter().map(|(_, code)| (code.to_owned(), line)));
    }
    found
}

/// The codes in `text`, with their positions.
fn codes(text: &str) -> Vec<(usize, &str)> {
    words(text).filter(|(_, word)| is_code(word)).collect()
}

/// Whether the code at `at` is a whole string literal that is not the last argument of a call. The
/// message of an assert is the last argument: `assert!(x, "R5")` cites an invariant, `("R5", 5)`
/// does not.
fn is_datum(line: &str, at: usize, code: &str) -> bool {
    let before = line.get(..at).and_then(|t| t.strip_suffix('"'));
    let after = line
        .get(at + code.len()..)
        .and_then(|t| t.strip_prefix('"'));
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    let (before, after) = (before.trim(), after.trim());
    let is_last = after.is_empty() || after.starts_with(')');
    !is_last || !(before.is_empty() || before.ends_with(','))
}

/// The index of the statement to which a citation belongs.
fn owner(statements: &[Statement], file: &File, code: &str, line: &str) -> Option<usize> {
    let home = area(file);
    let same = |(_, s): &(usize, &Statement)| s.area == home && s.code == code;
    let stated: Vec<(usize, &Statement)> = statements.iter().enumerate().filter(same).collect();
    let from = module_of(file).map(|m| m.into_iter().filter(|p| p != "tests").collect());
    let from: Vec<String> = from.unwrap_or_default();
    let around = stated.iter().filter(|(_, s)| from.starts_with(&s.module));
    let nearest = around.max_by_key(|(_, s)| s.module.len());
    if let Some((at, statement)) = nearest {
        // Every module is within the root, so a module that the line names has precedence over the
        // root.
        if !statement.module.is_empty() || stated.len() == 1 {
            return Some(*at);
        }
    }
    if let [(at, _)] = stated.as_slice() {
        return Some(*at);
    }
    let stem = file
        .path
        .rsplit('/')
        .next()
        .and_then(|n| n.strip_suffix(".rs"));
    let is_named = |name: &str| stem == Some(name) || words(line).any(|(_, word)| word == name);
    let by_name = |(_, s): &&(usize, &Statement)| s.module.last().is_some_and(|n| is_named(n));
    let named = stated.iter().find(by_name).or(nearest);
    named.map(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATED: &str = "//! A.\n//!\n//! - I1. It holds.\n//! - I2: it too, as I1. I3. More.\n";

    fn uncovered(files: &[(&str, &str)]) -> Vec<String> {
        let found = found(&Repository::of(files));
        let codes = found.into_values().flatten();
        codes
            .flat_map(|(code, places)| places.into_iter().map(move |p| format!("{code} {p}")))
            .collect()
    }

    #[test]
    fn statements_are_read_and_mentions_are_not() {
        let codes = |text| uncovered(&[("crates/kv/src/a.rs", text)]).len();
        assert_eq!(codes(STATED), 3);
        assert_eq!(codes("//! * **I2** A group.\n"), 1);
        assert_eq!(
            codes("//! As said (I2).\n//! By I1. And by\n//! I4. And I1..I5.\n"),
            0
        );
        assert_eq!(codes("//! A.\n\n/// - I1. Not of the module.\n"), 0);
        assert_eq!(codes("//! V1 of the format. SHA1. TLS13: no.\n"), 0);
    }

    #[test]
    fn asserts_and_tests_cover() {
        let with = |rest: &str| {
            let text = format!("{STATED}{rest}");
            uncovered(&[("crates/kv/src/a.rs", &text)]).len()
        };
        assert_eq!(with("fn f() { assert!(x, \"I1: it holds\"); }\n"), 2);
        assert_eq!(with("// I1: a comment is no check.\n"), 3);
        assert_eq!(with("const A: &str = \"I1\";\n"), 3);
        assert_eq!(with("const A: &[(&str, u8)] = &[(\"I1\", 1)];\n"), 3);
        assert_eq!(with("fn f() { assert!(x, \"I1\"); }\n"), 2);
        assert_eq!(with("#[test]\nfn f() {\n // I2: it holds.\n}\n"), 2);
        assert_eq!(
            with("#[test]\nfn f() {\n assert!(x, \"I2, I3: so\");\n}\n"),
            1
        );
    }

    #[test]
    fn a_citation_belongs_to_the_nearest_module() {
        let a = "//! - I1. A.\n";
        let cite = "fn f() { assert!(x, \"I1: so\"); }\n";
        let check = |path: &str, text: &str| {
            let files = [
                ("crates/kv/src/a/mod.rs", a),
                ("crates/kv/src/b.rs", a),
                (path, text),
            ];
            uncovered(&files)
        };
        assert_eq!(
            check("crates/kv/src/a/x.rs", cite),
            ["I1 crates/kv/src/b.rs:1"]
        );
        assert_eq!(
            check("crates/kv/src/a/tests/b.rs", cite),
            ["I1 crates/kv/src/b.rs:1"]
        );
        assert_eq!(check("crates/kv/src/c.rs", cite).len(), 2);
        assert_eq!(check("crates/vfs/src/a.rs", cite).len(), 2);
        assert_eq!(
            check("crates/kv/tests/it/b.rs", cite),
            ["I1 crates/kv/src/a/mod.rs:1"]
        );
        let named = "// I1 of `b`: it holds.\n";
        assert_eq!(
            check("crates/kv/tests/it/x.rs", named),
            ["I1 crates/kv/src/a/mod.rs:1"]
        );
    }

    #[test]
    fn the_allowance_is_a_limit() {
        let check = |limit: usize| {
            let allowed = format!("[invariants]\nI1 = {limit}\nI2 = 1\nI3 = 1\n");
            let files = [
                ("crates/kv/src/a.rs", STATED),
                ("crates/kv/tidy.toml", &allowed),
            ];
            cited(&Repository::of(&files)).len()
        };
        assert_eq!((check(1), check(0)), (0, 1));
    }
}
