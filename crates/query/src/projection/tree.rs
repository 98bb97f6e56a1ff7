//! The tree of a projection.
//!
//! Invariant: no path of the projection is the beginning of another. Children keep the order of the
//! specification, which is the order in which computed fields are appended.

use crate::expr::Expr;
use crate::keyed::Keyed;
use crate::{Error, Result};

use super::extra::{ElemMatch, Slice};

/// The projection of one field.
#[derive(Debug, Clone)]
pub(super) enum Child {
    /// The field is listed: an inclusion keeps it, an exclusion drops it.
    Listed,
    /// The field gets the value of an expression.
    Computed(Expr),
    /// The field keeps only the first element that matches.
    ElemMatch(ElemMatch),
    /// The field keeps a part of its array.
    Slice(Slice),
    /// Fields below this one are projected.
    Fields(Fields),
}

/// Children by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    children: Keyed<Child>,
    /// Whether a field at any depth is computed.
    pub(super) computes: bool,
    /// Whether a child at any depth is something else than `Listed`.
    pub(super) complex: bool,
}

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&Child> {
        self.children.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Child)> {
        self.children.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.children.len()
    }

    /// Puts `child` at `path`.
    ///
    /// # Errors
    /// 31249 and 31250 when another path is equal to `path`, contains it, or lies below it.
    pub(super) fn insert(&mut self, path: &str, child: Child) -> Result<()> {
        self.insert_at(path, path, child)
    }

    /// Recursion is bounded by the number of names in a path, which the caller has checked.
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
        match (self.children.get_mut(head), below) {
            (None, None) => {
                self.children.set(head, child);
                Ok(())
            }
            (None, Some(below)) => {
                let mut fields = Fields::default();
                fields.insert_at(whole, below, child)?;
                self.children.set(head, Child::Fields(fields));
                Ok(())
            }
            (Some(Child::Fields(fields)), Some(below)) => fields.insert_at(whole, below, child),
            (Some(Child::Fields(_)), None) => Err(Error::location(
                31_250,
                format!("Path collision at {whole}"),
            )),
            (Some(_), Some(_)) => {
                // MongoDB reports everything after the first name, at whatever name the two paths
                // collide.
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
        self.children.remove(name);
    }

    /// Puts a child before all others.
    pub(super) fn prepend(&mut self, name: &str, child: Child) {
        self.children.prepend(name, child);
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
