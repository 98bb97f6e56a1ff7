//! The literal that a pattern begins with, for the bounds of an index.
//!
//! When in doubt, none: a prefix too long would lose documents, one too short costs time only.

/// The prefix of every text that `pattern` matches, if it is anchored at the start of the text.
pub(super) fn literal(pattern: &str, options: &str) -> Option<String> {
    if options.contains('i') {
        return None;
    }
    let rest = match pattern.strip_prefix("\\A") {
        Some(rest) => rest,
        // With `m` the caret stands for the start of any line.
        None if !options.contains('m') => pattern.strip_prefix('^')?,
        None => return None,
    };
    // An alternative may begin otherwise.
    if rest.contains('|') {
        return None;
    }
    let mut prefix = String::new();
    let mut chars = rest.chars();
    while let Some(char) = chars.next() {
        match char {
            // These make what is before them optional.
            '*' | '?' | '{' => {
                prefix.pop();
                break;
            }
            '^' | '$' | '.' | '[' | '(' | ')' | '+' => break,
            '\\' => match chars.next() {
                // Escapes of letters and digits mean something else.
                Some(escaped) if !escaped.is_ascii_alphanumeric() => prefix.push(escaped),
                _ => break,
            },
            '#' | ' ' | '\t' | '\n' | '\r' if options.contains('x') => break,
            other => prefix.push(other),
        }
    }
    (!prefix.is_empty()).then_some(prefix)
}
