//! The names of trees.

/// The longest allowed tree name, in bytes. Names are non-empty, of ASCII letters, digits and
/// `_ - . : / $`.
pub const NAME_MAX: usize = 200;

/// Check that `name` is a valid name of a tree.
///
/// # Errors
/// A description of what is wrong with the name.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a tree name must not be empty".to_owned());
    }
    if name.len() > NAME_MAX {
        return Err(format!(
            "a tree name has at most {NAME_MAX} bytes, this one {}",
            name.len()
        ));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:/$".contains(c);
    match name.chars().find(|&c| !allowed(c)) {
        Some(c) => Err(format!("a tree name must not contain {c:?}")),
        None => Ok(()),
    }
}
