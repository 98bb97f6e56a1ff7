//! The model's state of collections, documents and indexes.

use std::collections::{BTreeMap, BTreeSet};

use bson::Document;
use query::{Code, Result};

use super::rig::spec;

#[derive(Clone, Debug)]
pub(super) struct Idx {
    pub(super) fields: &'static [&'static str],
    pub(super) unique: bool,
    pub(super) prepare: bool,
    pub(super) ttl: bool,
    pub(super) hidden: bool,
    /// The actor that builds the index.
    pub(super) build: Option<u64>,
}

/// The index specifications that clients request.
pub(super) fn pool() -> Vec<Idx> {
    let plain = |fields| Idx {
        fields,
        unique: false,
        prepare: false,
        ttl: false,
        hidden: false,
        build: None,
    };
    let unique = |fields| Idx {
        unique: true,
        ..plain(fields)
    };
    let prepare = |fields| Idx {
        prepare: true,
        ..plain(fields)
    };
    vec![
        plain(&["a"]),
        unique(&["a"]),
        unique(&["u"]),
        prepare(&["u"]),
        plain(&["a", "u"]),
        plain(&["u", "a"]),
    ]
}

impl Idx {
    pub(super) fn name(&self) -> String {
        let parts: Vec<String> = self.fields.iter().map(|f| format!("{f}_1")).collect();
        parts.join("_")
    }

    pub(super) fn spec(&self) -> Document {
        let key: Document = self.fields.iter().map(|f| ((*f).to_owned(), 1)).fold(
            Document::new(),
            |mut key, (field, kind)| {
                key.insert(field, kind);
                key
            },
        );
        let mut more = Document::new();
        if self.unique {
            more.insert("unique", true);
        }
        if self.prepare {
            more.insert("prepareUnique", true);
        }
        spec(&key, more)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doc {
    pub(super) a: i32,
    pub(super) u: i32,
}

impl Doc {
    fn key(self, idx: &Idx) -> Vec<i32> {
        let value = |field: &&str| if *field == "a" { self.a } else { self.u };
        idx.fields.iter().map(value).collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Coll {
    /// A number that every change of the collection in the catalog replaces by an unused one.
    pub(super) state: u64,
    pub(super) docs: BTreeMap<i32, Doc>,
    pub(super) indexes: Vec<Idx>,
}

impl Coll {
    /// Whether two documents have the same key.
    pub(super) fn has_twins(&self, idx: &Idx) -> bool {
        let keys: BTreeSet<Vec<i32>> = self.docs.values().map(|doc| doc.key(idx)).collect();
        keys.len() < self.docs.len()
    }

    pub(super) fn is_built(&self) -> bool {
        self.indexes.iter().any(|idx| idx.build.is_some())
    }

    pub(super) fn sevens(&self) -> u64 {
        self.docs.values().filter(|doc| doc.a == 7).count() as u64
    }

    /// Whether a unique index may refuse a document, and whether it must.
    pub(super) fn refuses(&self, id: i32, old: Option<Doc>, new: Doc) -> (bool, bool) {
        let (mut may, mut must) = (false, false);
        for idx in self.indexes.iter().filter(|idx| idx.unique || idx.prepare) {
            let key = new.key(idx);
            let kept = old.is_some_and(|old| old.key(idx) == key);
            let others = self.docs.iter().filter(|(other, _)| **other != id);
            if !kept && others.into_iter().any(|(_, doc)| doc.key(idx) == key) {
                may = true;
                must |= idx.build.is_none();
            }
        }
        (may, must)
    }
}

/// Check the result of a write, which a unique index may or must refuse; returns whether the write
/// was done.
pub(super) fn judge((may, must): (bool, bool), done: Result<()>) -> bool {
    match done {
        Ok(()) => {
            assert!(!must, "another document has the key");
            true
        }
        Err(error) => {
            assert_eq!(error.code, Code::DUPLICATE_KEY, "{error}");
            assert!(may, "no other document has the key: {error}");
            false
        }
    }
}
