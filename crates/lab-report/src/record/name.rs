//! Names of files.

/// `text` with everything that does not belong into a file name replaced by `-`.
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
