//! Names of files.

/// `text` with every character that is unsafe in file names replaced by `-`.
#[must_use]
pub fn file_name(text: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "._=-".contains(c) {
            c
        } else {
            '-'
        }
    };
    text.chars().map(safe).take(80).collect()
}
