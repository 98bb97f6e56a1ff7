//! The trees of a store: their names, handles and WiredTiger tables.
//!
//! The tree with handle 7 is the table `table:t000007`. The tree's name is in the table's
//! `app_metadata`, so that name and table are created and dropped together, and file names never
//! contain characters of a tree's name.
//!
//! - C1. A number is used for one tree only while the store is open: the next number only grows.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::Arc;

use kv::{Error, Result, TreeId};

use super::config::TreeType;
use super::error::Called;
use super::session::Session;
use crate::support::NAME;

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) id: TreeId,
    pub(super) name: String,
    /// The URI of the table: `table:t000007`.
    pub(super) uri: CString,
    pub(super) tree_type: TreeType,
}

impl Tree {
    pub(super) fn new(id: TreeId, name: String, tree_type: TreeType) -> Tree {
        let uri = format!("table:{}", stem(id));
        Tree {
            id,
            name,
            uri: CString::new(uri).expect("digits and letters hold no zero byte"),
            tree_type,
        }
    }
}

/// All trees.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    by_name: BTreeMap<String, Arc<Tree>>,
    by_id: HashMap<TreeId, Arc<Tree>>,
    next: u32,
}

impl Catalog {
    /// Read the trees from the library's metadata.
    pub(super) fn load(session: &Session) -> Called<Catalog> {
        let mut catalog = Catalog::default();
        let mut lsm = Vec::new();
        session.with_cursor(c"metadata:", c"", |cursor| {
            // Keys ascend, so the entry `lsm:` of a tree comes before its entry `table:`.
            while cursor.next()? {
                let key = cursor.text_key()?;
                if let Some(id) = key.strip_prefix("lsm:").and_then(parse_stem) {
                    lsm.push(id);
                }
                let Some(id) = key.strip_prefix("table:").and_then(parse_stem) else {
                    continue;
                };
                let Some(name) = name_in(&cursor.text_value()?) else {
                    continue;
                };
                let tree_type = if lsm.contains(&id) {
                    TreeType::Lsm
                } else {
                    TreeType::Btree
                };
                catalog.add(Tree::new(id, name, tree_type));
            }
            Ok(())
        })?;
        Ok(catalog)
    }

    /// The handle for a new tree. It is not reused even if the tree is not added.
    pub(super) fn reserve(&mut self) -> Result<TreeId> {
        let next = self.next.checked_add(1).ok_or_else(|| {
            Error::invalid("all tree handles are used up; open the store again").with_engine(NAME)
        })?;
        let is_new = !self.by_id.contains_key(&TreeId(next));
        assert!(is_new, "C1: the next number was not used");
        self.next = next;
        Ok(TreeId(next))
    }

    pub(super) fn add(&mut self, tree: Tree) {
        let tree = Arc::new(tree);
        self.next = self.next.max(tree.id.0);
        self.by_id.insert(tree.id, Arc::clone(&tree));
        let before = self.by_name.insert(tree.name.clone(), tree);
        assert!(before.is_none(), "the caller looked for the name first");
    }

    pub(super) fn remove(&mut self, tree: &Tree) {
        self.by_id.remove(&tree.id);
        self.by_name.remove(&tree.name);
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<Tree>> {
        self.by_name.get(name).cloned()
    }

    /// The tree with a handle.
    ///
    /// # Errors
    /// `Invalid` when the handle was never issued or its tree was dropped.
    pub(super) fn by_id(&self, id: TreeId) -> Result<Arc<Tree>> {
        self.by_id.get(&id).cloned().ok_or_else(|| stale(id))
    }

    /// All names in byte order.
    pub(super) fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    /// All trees in the order of their names.
    pub(super) fn trees(&self) -> Vec<Arc<Tree>> {
        self.by_name.values().cloned().collect()
    }
}

/// The error for a handle without a tree.
pub(super) fn stale(id: TreeId) -> Error {
    let message = format!(
        "no tree has handle {}; it was dropped, or never opened here",
        id.0
    );
    Error::invalid(message).with_engine(NAME)
}

/// The name of a tree's table, with which the names of its files begin, up to `.` or `-`.
fn stem(id: TreeId) -> String {
    format!("t{:06}", id.0)
}

/// The tree whose table name or file name begins with the stem in `text`.
pub(super) fn parse_stem(text: &str) -> Option<TreeId> {
    let end = text.find(['.', '-']).unwrap_or(text.len());
    let digits = text.get(..end)?.strip_prefix('t')?;
    let number = digits.parse().ok()?;
    (6 <= digits.len()).then_some(TreeId(number))
}

/// The tree name in a table's configuration.
fn name_in(config: &str) -> Option<String> {
    let (_, rest) = config.split_once("app_metadata=")?;
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(',').next()?,
    };
    kv::check_name(name).ok().map(|()| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_metadata_quoted_or_not() {
        let name = |config| name_in(config);
        assert_eq!(
            name("app_metadata=\"a.$b:/c\",colgroups=").as_deref(),
            Some("a.$b:/c")
        );
        assert_eq!(name("x=1,app_metadata=plain,y=").as_deref(), Some("plain"));
        assert_eq!(name("app_metadata=,y="), None);
        assert_eq!(name("y=1"), None);
    }

    #[test]
    fn files_belong_to_trees() {
        assert_eq!(parse_stem("t000012.wt"), Some(TreeId(12)));
        assert_eq!(parse_stem("t000012-000003.lsm"), Some(TreeId(12)));
        assert_eq!(
            parse_stem(&stem(TreeId(12_345_678))),
            Some(TreeId(12_345_678))
        );
        assert_eq!(parse_stem("WiredTiger.wt"), None);
        assert_eq!(parse_stem("t12.wt"), None);
    }

    #[test]
    fn a_dropped_handle_stays_stale() {
        let mut catalog = Catalog::default();
        let id = catalog.reserve().unwrap();
        catalog.add(Tree::new(id, "a".to_owned(), TreeType::Btree));
        let tree = catalog.by_id(id).unwrap();
        catalog.remove(&tree);
        let again = catalog.reserve().unwrap();
        assert_ne!(id, again);
        assert!(catalog.by_id(id).is_err() && catalog.by_name("a").is_none());
    }
}
