//! The tree of a projection.
//!
//! Invariant: no path is both an end and a way to another; children keep the order in which they
//! were given, which is the order in which computed fields are appended.

use crate::expr::Expr;
use crate::{Error, Result};

use super::extra::{ElemMatch, Slice};

/// The projection of one field.
#[derive(Debug, Clone)]
pub(super) enum Child {
    /// It is listed: it stays when the projection includes, it goes when it excludes.
    Listed,
    /// It becomes the value of an expression.
    Computed(Expr),
    /// It becomes the first element that matches.
    ElemMatch(ElemMatch),
    /// It stays, cut.
    Slice(Slice),
    /// Something happens to fields below it.
    Fields(Fields),
}

/// Children by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    children: Vec<(Box<str>, Child)>,
    /// Whether something below is computed.
    pub(super) computes: bool,
    /// Whether something below is more than listed.
    pub(super) complex: bool,
}

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&Child> {
        let mut children = self.children.iter();
        children.find(|(known, _)| **known == *name).map(|(_, c)| c)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Child)> {
        self.children.iter().map(|(name, child)| (&**name, child))
    }

    pub(super) fn len(&self) -> usize {
        self.children.len()
    }

    /// Puts `child` at `path`.
    ///
    /// # Errors
    /// 31249 and 31250 when another path meets it.
    pub(super) fn insert(&mut self, path: &str, child: Child) -> Result<()> {
        self.insert_at(path, path, child)
    }

    /// Recursion is bounded by the length of paths, which the caller has checked.
    fn insert_at(&mut self, whole: &str, rest: &str, child: Child) -> Result<()> {
        match child {
            Child::Computed(_) | Child::ElemMatch(_) => {
                self.computes = true;
                self.complex = true;
            }
            Child::Slice(_) => self.complex = true,
            Child::Listed | Child::Fields(_) => {}
        }
        let (head, below) = match rest.split_once('.') {
            Some((head, below)) => (head, Some(below)),
            None => (rest, None),
        };
        let known = self.children.iter_mut().find(|(name, _)| **name == *head);
        match (known, below) {
            (None, None) => {
                self.children.push((head.into(), child));
                Ok(())
            }
            (None, Some(below)) => {
                let mut fields = Fields::default();
                fields.insert_at(whole, below, child)?;
                self.children.push((head.into(), Child::Fields(fields)));
                Ok(())
            }
            (Some((_, Child::Fields(fields))), Some(below)) => {
                fields.insert_at(whole, below, child)
            }
            (Some((_, Child::Fields(_))), None) => Err(Error::location(
                31_250,
                format!("Path collision at {whole}"),
            )),
            (Some(_), Some(_)) => {
                // MongoDB names what follows the first part, wherever the paths meet.
                let portion = whole.split_once('.').map_or("", |(_, portion)| portion);
                Err(Error::location(
                    31_249,
                    format!("Path collision at {whole} remaining portion {portion}"),
                ))
            }
            (Some(_), None) => Err(Error::location(
                31_250,
                format!("Path collision at {whole}"),
            )),
        }
    }

    /// Removes a child, for `_id: 0`.
    pub(super) fn remove(&mut self, name: &str) {
        self.children.retain(|(known, _)| **known != *name);
    }

    /// Puts a child before all others.
    pub(super) fn prepend(&mut self, name: &str, child: Child) {
        self.children.insert(0, (name.into(), child));
    }

    /// Calls `visit` with every path of the projection and the child at its end.
    pub(super) fn visit<'a>(&'a self, prefix: &str, visit: &mut dyn FnMut(&str, &'a Child)) {
        for (name, child) in self.iter() {
            let path = if prefix.is_empty() {
                name.to_owned()
            } else {
                format!("{prefix}.{name}")
            };
            match child {
                Child::Fields(fields) => fields.visit(&path, visit),
                other => visit(&path, other),
            }
        }
    }
}
