//! A light scanner of Rust source: the positions of comments and literals, the extents of
//! functions, and test code.
//!
//! It is not a parser. It recognizes the tokens that can contain other tokens (line and nested
//! block comments, strings with escapes, raw strings, and character literals, which it
//! distinguishes from lifetimes), and matches braces in the remaining code. The result is exact for
//! code that rustfmt accepts, except in macros.

use std::iter;

/// The kind of source text to which a byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Code,
    Literal,
    Comment,
}

/// Views of a source file. Each has the length and the lines of the original, with spaces in place
/// of the text that it omits.
#[derive(Debug)]
pub(super) struct Source {
    /// Only code, without comments and literals.
    pub(super) code: String,
    /// Code and literals, without comments.
    pub(super) bare: String,
    /// Comments only.
    pub(super) comments: String,
    /// Literals only.
    pub(super) literals: String,
    tests: Vec<Span>,
    macros: Vec<Span>,
}

/// Lines from `first` to `last`, both included, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The name of a function or a module; empty otherwise.
    pub(super) name: String,
    /// The first line.
    pub(super) first: usize,
    /// The last line.
    pub(super) last: usize,
}

impl Span {
    /// Whether `line` is in this span.
    pub(super) fn contains(&self, line: usize) -> bool {
        self.first <= line && line <= self.last
    }
}

impl Source {
    /// Scan `text`.
    pub(super) fn new(text: &str) -> Source {
        let classes = Lexer::classify(text.as_bytes());
        let view = |keep: fn(Class) -> bool| {
            let bytes: Vec<u8> = text
                .bytes()
                .zip(&classes)
                .map(|(b, &class)| if b == b'\n' || keep(class) { b } else { b' ' })
                .collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let code = view(|c| c == Class::Code);
        Source {
            tests: test_spans(&code),
            macros: macro_spans(&code),
            bare: view(|c| c != Class::Comment),
            comments: view(|c| c == Class::Comment),
            literals: view(|c| c == Class::Literal),
            code,
        }
    }

    /// Whether `line` is in an item that is compiled only for tests.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.tests.iter().any(|span| span.contains(line))
    }

    /// Whether `line` is in a `macro_rules!` definition.
    pub(super) fn is_macro_line(&self, line: usize) -> bool {
        self.macros.iter().any(|span| span.contains(line))
    }

    /// The functions with a body; each span is from the line of `fn` to the closing brace.
    pub(super) fn functions(&self) -> Vec<Span> {
        self.with_body("fn")
    }

    /// The modules with a body in this file, outermost first.
    pub(super) fn inline_modules(&self) -> Vec<Span> {
        self.with_body("mod")
    }

    fn with_body(&self, keyword: &str) -> Vec<Span> {
        let mut found = Vec::new();
        for (offset, word) in words(&self.code) {
            if word != keyword {
                continue;
            }
            let after = offset + word.len();
            let name = self
                .code
                .get(after..)
                .map(str::trim_start)
                .and_then(first_word);
            let end = item_end(&self.code, after);
            if let (Some(name), Some((end, true))) = (name, end) {
                found.push(Span {
                    name: name.to_owned(),
                    first: line_at(&self.code, offset),
                    last: line_at(&self.code, end),
                });
            }
        }
        found
    }

    /// The lines of `code` that contain `word` as a whole word.
    pub(super) fn lines_with_word(&self, word: &str) -> Vec<usize> {
        words(&self.code)
            .filter(|(_, found)| *found == word)
            .map(|(offset, _)| line_at(&self.code, offset))
            .collect()
    }

    /// The attributes, each with its line and its text without literals: `#[expect(a, reason = )]`.
    pub(super) fn attributes(&self) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        for (offset, _) in self.code.match_indices('#') {
            let rest = self.code.get(offset..).unwrap_or_default();
            if rest.starts_with("#[") || rest.starts_with("#![") {
                let length = attribute_length(rest);
                let text = rest.get(..length).unwrap_or(rest);
                found.push((line_at(&self.code, offset), text));
            }
        }
        found
    }
}

/// The words (identifiers, keywords, numbers) in `text`, with their positions.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split(|c: char| !is_word(c)).filter_map(move |word| {
        let start = offset;
        // The separator is one character, which may have several bytes.
        let after = text
            .get(start + word.len()..)
            .and_then(|r| r.chars().next());
        offset = start + word.len() + after.map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn first_word(text: &str) -> Option<&str> {
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty())
}

/// The line, from 1, of the byte position `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&b| b == b'\n').count()
}

/// The length of the attribute at the start of `text`.
fn attribute_length(text: &str) -> usize {
    let mut depth = 0;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return offset + 1,
            b']' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The position where the item that continues at `from` ends, and whether it has a body in braces.
fn item_end(code: &str, from: usize) -> Option<(usize, bool)> {
    let mut nested = 0_u32;
    let mut braces = 0_u32;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b';' if nested == 0 && braces == 0 => return Some((offset, false)),
            b'{' if nested == 0 || 0 < braces => braces += 1,
            b'}' if braces == 1 => return Some((offset, true)),
            b'}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The spans of items under `#[cfg(test)]` and `#[test]`; the whole file under `#![cfg(test)]`.
fn test_spans(code: &str) -> Vec<Span> {
    let mut found = Vec::new();
    for mark in ["#[cfg(test)]", "#[cfg(all(test", "#[test]", "#![cfg(test)]"] {
        for (offset, _) in code.match_indices(mark) {
            let rest = code.get(offset..).unwrap_or_default();
            let end = match item_end(code, offset + attribute_length(rest)) {
                Some((end, _)) if !mark.starts_with("#!") => end,
                _ => code.len(),
            };
            found.push(Span {
                name: String::new(),
                first: line_at(code, offset),
                last: line_at(code, end),
            });
        }
    }
    found
}

/// The spans of `macro_rules!` definitions.
fn macro_spans(code: &str) -> Vec<Span> {
    let mut found = Vec::new();
    for (offset, word) in words(code).filter(|(_, word)| *word == "macro_rules") {
        if let Some((end, true)) = item_end(code, offset + word.len()) {
            found.push(Span {
                name: String::new(),
                first: line_at(code, offset),
                last: line_at(code, end),
            });
        }
    }
    found
}

struct Lexer<'a> {
    bytes: &'a [u8],
    classes: Vec<Class>,
}

impl<'a> Lexer<'a> {
    fn classify(bytes: &'a [u8]) -> Vec<Class> {
        let mut lexer = Lexer {
            bytes,
            classes: Vec::with_capacity(bytes.len()),
        };
        while !lexer.at_end() {
            lexer.step();
        }
        lexer.classes
    }

    fn at_end(&self) -> bool {
        self.bytes.len() <= self.classes.len()
    }

    /// The byte `ahead` positions after the current one; 0 beyond the end.
    fn peek(&self, ahead: usize) -> u8 {
        let at = self.classes.len() + ahead;
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn take(&mut self, count: usize, class: Class) {
        let left = self.bytes.len() - self.classes.len();
        self.classes.extend(iter::repeat_n(class, count.min(left)));
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (b'/', b'/') => self.line_comment(),
            (b'/', b'*') => self.block_comment(),
            (b'"', _) => self.string(),
            (b'\'', _) => self.quote(),
            (b, _) if is_word_byte(b) => self.word(),
            _ => self.take(1, Class::Code),
        }
    }

    fn line_comment(&mut self) {
        while !self.at_end() && self.peek(0) != b'\n' {
            self.take(1, Class::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_u32;
        while !self.at_end() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.take(2, Class::Comment);
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.take(2, Class::Comment);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.take(1, Class::Comment),
            }
        }
    }

    fn string(&mut self) {
        self.take(1, Class::Literal);
        while !self.at_end() {
            match self.peek(0) {
                b'\\' => self.take(2, Class::Literal),
                b'"' => return self.take(1, Class::Literal),
                _ => self.take(1, Class::Literal),
            }
        }
    }

    /// Scans a word, or a literal with a prefix: `b"`, `c"`, `r"`, `br#"`, `b'`.
    fn word(&mut self) {
        let length = (0..).take_while(|&i| is_word_byte(self.peek(i))).count();
        let start = self.classes.len();
        let word = self.bytes.get(start..start + length).unwrap_or_default();
        let hashes = (0..).take_while(|&i| self.peek(length + i) == b'#').count();
        let raw = matches!(word, b"r" | b"br" | b"cr") && self.peek(length + hashes) == b'"';
        if raw {
            self.take(length + hashes + 1, Class::Literal);
            return self.raw_string(hashes);
        }
        self.take(length, Class::Code);
    }

    fn raw_string(&mut self, hashes: usize) {
        while !self.at_end() {
            let closes = self.peek(0) == b'"' && (1..=hashes).all(|i| self.peek(i) == b'#');
            if closes {
                return self.take(1 + hashes, Class::Literal);
            }
            self.take(1, Class::Literal);
        }
    }

    /// Scans a character literal, or the quote of a lifetime.
    fn quote(&mut self) {
        if self.peek(1) == b'\\' {
            self.take(3, Class::Literal);
            while !self.at_end() && self.peek(0) != b'\'' {
                self.take(1, Class::Literal);
            }
            return self.take(1, Class::Literal);
        }
        let width = match self.peek(1) {
            0..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        if self.peek(1 + width) == b'\'' {
            self.take(width + 2, Class::Literal);
        } else {
            self.take(1, Class::Code);
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || 0x80 <= byte
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = Source::new(text);
        assert_eq!(source.code.len(), text.len());
        source.code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        assert_eq!(code("a // unsafe {\nb"), "a b");
        assert_eq!(code("a /* x /* y */ z */ b"), "a b");
        assert_eq!(code(r#"f("a \" { // b", c)"#), "f( , c)");
        assert_eq!(code("f(r#\"a \" { \"#, b\"x\", c)"), "f( , b , c)");
        assert_eq!(code(r"f('{', '\'', '\u{7d}', b'{', x)"), "f( , , , b , x)");
        assert_eq!(
            code("fn f<'a>(x: &'a str, y: r#type) {}"),
            "fn f<'a>(x: &'a str, y: r#type) {}"
        );
    }

    #[test]
    fn views_complement_each_other() {
        let source = Source::new("a(\"b\"); // c\n");
        assert_eq!(source.bare.trim_end(), "a(\"b\");");
        assert_eq!(source.comments.trim(), "// c");
    }

    #[test]
    fn functions_reach_from_fn_to_the_closing_brace() {
        let text =
            "trait T {\n fn a(x: [u8; 3]);\n}\nfn b(f: fn(u8) -> u8)\n{\n if x { \"}\" }\n}\n";
        let found = Source::new(text).functions();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].first, found[0].last),
            ("b", 4, 7)
        );
    }

    #[test]
    fn test_items_are_known_and_what_follows_is_not() {
        let text = "fn a() {}\n#[cfg(test)]\nfn b() {\n}\nfn c() {}\n#[cfg(test)]\nmod tests;\nx\n";
        let source = Source::new(text);
        let lines: Vec<usize> = (1..=8).filter(|&l| source.is_test_line(l)).collect();
        assert_eq!(lines, [2, 3, 4, 6, 7]);
        assert!(Source::new("#![cfg(test)]\nfn a() {}\nfn b() {}").is_test_line(3));
    }

    #[test]
    fn macros_reach_to_their_closing_brace() {
        let source = Source::new("macro_rules! m {\n (a) => { b };\n}\nm!(a);\n");
        let lines: Vec<usize> = (1..=4).filter(|&l| source.is_macro_line(l)).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn attributes_are_whole() {
        let source = Source::new("#![a]\n#[expect(x,\n reason = \"]\")]\nfn f() {}\n");
        let found = source.attributes();
        assert_eq!(found[0], (1, "#![a]"));
        assert_eq!(found[1].0, 2);
        assert!(found[1].1.contains("reason") && found[1].1.ends_with(")]"));
    }

    #[test]
    fn words_have_their_offsets() {
        let found: Vec<_> = words("a.bc \u{e9}; d_1").collect();
        assert_eq!(found, [(0, "a"), (2, "bc"), (5, "\u{e9}"), (9, "d_1")]);
    }
}
