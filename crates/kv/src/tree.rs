//! Trees: how they are named and created.

use serde::{Deserialize, Serialize};

/// The handle of an open tree: valid in the engine that returned it, until the tree is dropped or
/// the engine is closed. A handle is never used for another tree while the engine is open. An
/// unknown handle gives `Invalid`, as does that of a dropped tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TreeId(pub u32);

/// How a tree is created. These are hints: an engine without such a feature ignores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// Keys arrive mostly in ascending order (default: false). Costs nothing in B-trees; lets an
    /// engine omit filters and fill pages completely.
    pub ascending: bool,
    /// Point lookups of absent keys are common (default: false). Trades memory for filters.
    pub point_lookups: bool,
}

/// The longest allowed tree name, in bytes. Names are non-empty, of ASCII letters, digits and
/// `_ - . : / $`.
pub const NAME_MAX: usize = 200;

/// Check that `name` is a valid name of a tree.
///
/// # Errors
/// What is wrong with the name.
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
