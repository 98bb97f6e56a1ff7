//! The literal prefix of a pattern, for the bounds of an index.
//!
//! In doubtful cases there is no prefix: a prefix that is too long would lose documents, one that
//! is too short only costs time.

/// The prefix of every text that `pattern` matches, if it is anchored at the start of the text.
pub(super) fn literal(pattern: &str, options: &str) -> Option<String> {
    if options.contains('i') {
        return None;
    }
    let rest = match pattern.strip_prefix("\\A") {
        Some(rest) => rest,
        // With option `m`, `^` matches at the start of every line.
        None if !options.contains('m') => pattern.strip_prefix('^')?,
        None => return None,
    };
    // Another alternative may start differently.
    if rest.contains('|') {
        return None;
    }
    let mut prefix = String::new();
    let mut chars = rest.chars();
    while let Some(char) = chars.next() {
        match char {
            // These make the character before them optional.
            '*' | '?' | '{' => {
                prefix.pop();
                break;
            }
            '^' | '$' | '.' | '[' | '(' | ')' | '+' => break,
            '\\' => match chars.next() {
                // An escaped letter or digit is not a literal.
                Some(escaped) if !escaped.is_ascii_alphanumeric() => prefix.push(escaped),
                _ => break,
            },
            '#' | ' ' | '\t' | '\n' | '\r' if options.contains('x') => break,
            other => prefix.push(other),
        }
    }
    (!prefix.is_empty()).then_some(prefix)
}
