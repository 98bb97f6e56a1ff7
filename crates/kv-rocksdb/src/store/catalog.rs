//! The catalog of trees.
//!
//! A tree is a column family whose name is a digit of flags, a colon and the tree's name:
//! `2:orders` was created for point lookups. The names of the column families are the whole
//! catalog, so creating or dropping a tree is atomic: it is one edit of RocksDB's manifest. The
//! column family `default`, which RocksDB requires, is empty.
//!
//! - C1. An id is used for one tree only while the store is open: ids count up.
//! - C2. A catalog never changes; a new one replaces it. Readers keep the one with which they
//!   began.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use kv::{Error, ErrorKind, Result, TreeId, TreeOptions, check_name};

use super::raw::Family;
use crate::support::NAME;

/// A tree that exists, or that existed when a reader began.
pub(super) struct Tree {
    /// Handle of the tree.
    pub(super) id: TreeId,
    pub(super) name: String,
    /// Column family of the tree.
    pub(super) family: Family,
}

/// All trees at one time.
#[derive(Clone, Default)]
pub(super) struct Catalog {
    trees: Vec<Option<Arc<Tree>>>,
    names: BTreeMap<String, TreeId>,
}

impl Catalog {
    pub(super) fn add(&mut self, name: &str, family: Family) -> Result<TreeId> {
        let id = u32::try_from(self.trees.len())
            .map_err(|_| Error::new(ErrorKind::Full, "too many trees were created"))?;
        let id = TreeId(id);
        self.trees.push(Some(Arc::new(Tree {
            id,
            name: name.to_owned(),
            family,
        })));
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Remove a tree; its id is not used again (C1).
    pub(super) fn remove(&mut self, tree: &Tree) {
        self.names.remove(&tree.name);
        if let Some(slot) = slot(tree.id).and_then(|slot| self.trees.get_mut(slot)) {
            *slot = None;
        }
    }

    #[inline]
    pub(super) fn get(&self, id: TreeId) -> Option<&Arc<Tree>> {
        self.trees.get(slot(id)?)?.as_ref()
    }

    /// The tree with that id; the error `Invalid` if it does not exist.
    #[inline]
    pub(super) fn need(&self, id: TreeId) -> Result<&Arc<Tree>> {
        self.get(id).ok_or_else(|| dropped(id))
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<Tree>> {
        self.get(*self.names.get(name)?)
    }

    /// The names, in byte order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = &Arc<Tree>> {
        self.trees.iter().flatten()
    }
}

fn slot(id: TreeId) -> Option<usize> {
    usize::try_from(id.0).ok()
}

/// The error for an invalid handle.
#[cold]
pub(super) fn dropped(id: TreeId) -> Error {
    let message = format!("tree {} was dropped or is of another store", id.0);
    Error::invalid(message).with_engine(NAME)
}

/// The name of the column family that is not a tree.
pub(super) const DEFAULT: &str = "default";

/// The name of a tree's column family.
pub(super) fn family_name(name: &str, options: &TreeOptions) -> Result<CString> {
    check_name(name).map_err(|why| Error::invalid(why).with_engine(NAME))?;
    let flags = u8::from(options.ascending) | u8::from(options.point_lookups) << 1;
    CString::new(format!("{flags}:{name}"))
        .map_err(|_| Error::invalid("a tree name must not contain a zero byte").with_engine(NAME))
}

/// Parse the name of a column family: the tree's name and options.
pub(super) fn parse_family_name(family: &str) -> Result<(&str, TreeOptions)> {
    let bad = || {
        let message = format!("column family {family:?} is no tree of ours");
        Error::new(ErrorKind::Corrupt, message).with_engine(NAME)
    };
    let (flags, name) = family.split_once(':').ok_or_else(bad)?;
    let flags = match flags.parse::<u8>() {
        Ok(flags) if flags < 4 => flags,
        _ => return Err(bad()),
    };
    check_name(name).map_err(|_| bad())?;
    let options = TreeOptions {
        ascending: flags & 1 != 0,
        point_lookups: flags & 2 != 0,
    };
    Ok((name, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_options_there_and_back() {
        for (ascending, point_lookups) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let options = TreeOptions {
                ascending,
                point_lookups,
            };
            let family = family_name("a:b/c", &options).unwrap();
            let (name, read) = parse_family_name(family.to_str().unwrap()).unwrap();
            assert_eq!((name, read), ("a:b/c", options));
        }
    }

    #[test]
    fn foreign_families_are_corrupt() {
        for family in ["", "default", "4:x", "x:y", "1:", "1:a b"] {
            let error = parse_family_name(family).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{family}");
        }
    }
}
