//! Prose: the words of comments, messages and documents, without the code that they quote.

use super::repository::File;
use super::scan::Source;

/// Characters that end a clause: a phrase is not searched across them.
const BREAKS: &str = ".,;:?!()\"|";

/// A word in lower case, with its line; its text is empty at the end of a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The line, from 1.
    pub(super) line: usize,
    /// The word; empty at the end of a clause.
    pub(super) text: String,
}

/// The prose of a file: the whole text of a document; the comments of a Rust file and, outside of
/// tests, its string literals; nothing for other files.
pub(super) fn of_file(file: &File) -> Vec<Word> {
    if file.is_asset() {
        return Vec::new();
    }
    match &file.source {
        Some(source) => of_source(file, source),
        None if file.has_extension("md") => words(&file.text),
        None => Vec::new(),
    }
}

fn of_source(file: &File, source: &Source) -> Vec<Word> {
    let mut found = words(&source.comments);
    if !file.is_test() {
        let messages = words(&source.literals);
        found.extend(
            messages
                .into_iter()
                .filter(|w| !source.is_test_line(w.line)),
        );
    }
    found
}

/// The words of `text`, without code in backticks and without fenced blocks.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut reader = Reader::default();
    for (line, text) in (1..).zip(text.lines()) {
        reader.line(line, text);
    }
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Vec<Word>,
    in_quote: bool,
    in_fence: bool,
}

impl Reader {
    fn line(&mut self, line: usize, text: &str) {
        let body = text.trim_start_matches(|c: char| c.is_whitespace() || "/!*".contains(c));
        if body.starts_with("```") {
            self.in_fence = !self.in_fence;
            return;
        }
        if body.is_empty() {
            // A paragraph ends here; so does a quote whose closing backtick is missing.
            self.in_quote = false;
            self.push(line, String::new());
        }
        if self.in_fence {
            return;
        }
        let mut word = String::new();
        let mut escaped = false;
        for c in body.chars().chain([' ']) {
            let joins = (c.is_alphanumeric() || c == '_') && !escaped;
            if joins && !self.in_quote {
                word.extend(c.to_lowercase());
                continue;
            }
            if !word.is_empty() {
                self.push(line, std::mem::take(&mut word));
            }
            if c == '`' {
                self.in_quote = !self.in_quote;
            }
            if c == '`' || BREAKS.contains(c) {
                self.push(line, String::new());
            }
            escaped = c == '\\' && !escaped;
        }
    }

    fn push(&mut self, line: usize, text: String) {
        let doubled = text.is_empty() && self.found.last().is_none_or(|w| w.text.is_empty());
        if !doubled {
            self.found.push(Word { line, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::repository::Repository;
    use super::*;

    fn text(words: &[Word]) -> String {
        let texts = words.iter().map(|w| match w.text.as_str() {
            "" => "|",
            word => word,
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_lower_case_and_clauses_end() {
        assert_eq!(
            text(&words("It goes on. So\nmany-sided")),
            "it goes on | so many sided"
        );
        assert_eq!(text(&words("/// A\n/// b\n///\n/// c")), "a b | c");
        assert_eq!(words("a\nb")[1].line, 2);
    }

    #[test]
    fn quoted_code_is_not_prose() {
        assert_eq!(text(&words("the `told` one")), "the | one");
        assert_eq!(text(&words("a\n```\ntold\n```\nb")), "a b");
        assert_eq!(text(&words("a ` told\n\nb")), "a | b");
        assert_eq!(text(&words(r"a\nb")), "a b");
    }

    #[test]
    fn of_a_source_comments_and_messages_are_read() {
        let code = "//! One.\nfn f() { g(\"two\"); } // three\n#[cfg(test)]\nmod tests {\n\
                    // four\n\"five\"\n}\n";
        let repository = Repository::of(&[("crates/kv/src/a.rs", code), ("a.html", "six")]);
        let found: Vec<Word> = repository.files().iter().flat_map(of_file).collect();
        let mut found: Vec<&str> = found.iter().map(|w| w.text.as_str()).collect();
        found.retain(|w| !w.is_empty());
        assert_eq!(found, ["one", "three", "four", "two"]);
    }
}
