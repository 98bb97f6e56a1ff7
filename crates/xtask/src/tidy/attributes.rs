//! Checks for required and forbidden parts of a Rust file: module docs, lint exceptions, unfinished
//! code.

use super::Finding;
use super::repository::Repository;
use super::scan::words;

/// Macros for unfinished code.
const UNFINISHED: &[&str] = &["dbg", "todo", "unimplemented"];
/// Words in a comment that promise later work; they must have the number of an issue.
const PROMISES: &[&str] = &["FIXME", "TODO", "XXX"];

/// Checks that every file begins with a module doc.
pub(super) fn module_docs(repository: &Repository) -> Vec<Finding> {
    repository
        .sources()
        .filter(|(file, _)| !file.text.starts_with("//! "))
        .map(|(file, _)| {
            Finding::new(
                &file.path,
                1,
                "begin with `//! ` and say what this module is",
            )
        })
        .collect()
}

/// Checks that exceptions from lints are expectations with a reason, and that no test is disabled.
pub(super) fn exceptions(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources() {
        for (line, attribute) in source.attributes() {
            if let Some(message) = objection(attribute, source.is_macro_line(line)) {
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// The objection to an attribute, if any. A macro cannot know whether a lint applies where it is
/// expanded, so it may use `allow` with a reason; `expect` would often fail there.
fn objection(attribute: &str, in_macro: bool) -> Option<&'static str> {
    let has = |word| words(attribute).any(|(_, found)| found == word);
    let allows = has("allow") && attribute.contains("allow(");
    if allows && !(in_macro && has("reason")) {
        return Some("#[allow] outlives its cause; write #[expect(lint, reason = \"..\")]");
    }
    if attribute.contains("expect(") && !has("reason") {
        return Some("say why: #[expect(lint, reason = \"..\")]");
    }
    if has("ignore") {
        return Some("#[ignore] hides a test; make it pass or remove it");
    }
    None
}

/// Checks that no macro for unfinished code is used, and that every promise has an issue.
pub(super) fn leftovers(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources() {
        for (number, (code, comment)) in (1..).zip(source.code.lines().zip(source.comments.lines()))
        {
            for (offset, word) in words(code).filter(|(_, w)| UNFINISHED.contains(w)) {
                let rest = code.get(offset + word.len()..).unwrap_or_default();
                if rest.starts_with('!') {
                    findings.push(Finding::new(
                        &file.path,
                        number,
                        format!("{word}! is left over"),
                    ));
                }
            }
            for (offset, word) in words(comment).filter(|(_, w)| PROMISES.contains(w)) {
                let rest = comment.get(offset + word.len()..).unwrap_or_default();
                if !names_issue(rest) {
                    let message = format!("{word} without an issue: write {word}(#number)");
                    findings.push(Finding::new(&file.path, number, message));
                }
            }
        }
    }
    findings
}

fn names_issue(after: &str) -> bool {
    let number = after
        .strip_prefix("(#")
        .and_then(|rest| rest.split(')').next());
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/kv/src/a.rs";

    fn of(text: &str) -> Repository {
        Repository::of(&[(PATH, text)])
    }

    #[test]
    fn a_file_says_what_it_is() {
        assert_eq!(module_docs(&of("//! Batches.\n")), []);
        assert_eq!(module_docs(&of("use std::fmt;\n")).len(), 1);
        assert_eq!(module_docs(&of("// Batches.\n")).len(), 1);
    }

    #[test]
    fn exceptions_need_a_reason() {
        let check = |text| exceptions(&of(text)).len();
        assert_eq!(
            check("#[expect(dead_code, reason = \"soon\")]\nfn f() {}\n"),
            0
        );
        assert_eq!(check("#[expect(dead_code)]\nfn f() {}\n"), 1);
        assert_eq!(check("#[allow(dead_code)]\nfn f() {}\n"), 1);
        assert_eq!(check("#![allow(dead_code)]\n"), 1);
        assert_eq!(check("#[cfg_attr(test, allow(dead_code))]\nfn f() {}\n"), 1);
        assert_eq!(check("x.expect(\"there is one\"); // #[allow(a)]\n"), 0);
    }

    #[test]
    fn a_macro_may_allow_with_a_reason() {
        let macro_of =
            |attribute| format!("macro_rules! m {{\n() => {{ {attribute} use a; }}\n}}\n");
        let check = |attribute| exceptions(&of(&macro_of(attribute))).len();
        assert_eq!(check("#[allow(unused, reason = \"by expansion\")]"), 0);
        assert_eq!(check("#[allow(unused)]"), 1);
    }

    #[test]
    fn a_test_is_not_switched_off() {
        assert_eq!(exceptions(&of("#[test]\n#[ignore]\nfn f() {}\n")).len(), 1);
        assert_eq!(
            exceptions(&of("#[test]\n#[ignore = \"slow\"]\nfn f() {}\n")).len(),
            1
        );
    }

    #[test]
    fn leftovers_are_found_in_code_and_comments() {
        let check = |text| leftovers(&of(text)).len();
        assert_eq!(check("fn f() { todo!() }\n"), 1);
        assert_eq!(check("fn f() { dbg!(1); unimplemented!() }\n"), 2);
        assert_eq!(check("fn todo() { let s = \"todo!()\"; }\n"), 0);
        assert_eq!(check("// TODO: later\n"), 1);
        assert_eq!(check("// TODO(#12): later\n"), 0);
        assert_eq!(check("// FIXME(#) XXX\n"), 2);
        assert_eq!(check("const TODO: u8 = 1;\n"), 0);
    }
}
