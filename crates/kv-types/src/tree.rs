//! Trees: their handles, and how they are created.

/// The handle of a tree: valid in the store that returned it, until the tree is dropped or the
/// store is closed. A handle is never used for another tree while the store is open. An unknown
/// handle gives `Invalid`, as does that of a dropped tree.
#[doc(alias = "column family")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TreeId(pub u32);

/// How a tree is created. These are hints: every tree takes every key, and an engine without such a
/// feature ignores them.
#[doc(alias = "column family options")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// Keys arrive mostly in ascending order (default: false). Costs nothing in B-trees; lets an
    /// engine omit filters and fill pages completely.
    pub ascending: bool,
    /// Point lookups of absent keys are common (default: false). Trades memory and disk space for
    /// filters: about 10 bits a key.
    pub point_lookups: bool,
}
