//! The parts of a document that an expression reads.

use std::collections::BTreeSet;

use super::Expr;
use super::node::{Base, Node};

/// The paths of the document and the variables of the operation that an expression reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Paths of the document, as `a.b`.
    pub fields: BTreeSet<String>,
    /// Whether the document is read as a whole.
    pub whole: bool,
    /// Names of the operation's variables, without dollars.
    pub variables: BTreeSet<String>,
    /// Whether equal inputs may give different values, as with `$rand`.
    pub random: bool,
}

impl Dependencies {
    /// Whether a part of the document is read.
    #[must_use]
    pub fn needs_document(&self) -> bool {
        self.whole || !self.fields.is_empty()
    }
}

impl Expr {
    /// Adds what this expression reads.
    pub fn dependencies(&self, found: &mut Dependencies) {
        match &self.node {
            Node::Constant(_) | Node::Missing => {}
            Node::Path(Base::Root, path) if path.is_empty() => found.whole = true,
            Node::Path(Base::Root, path) => {
                found.fields.insert(path.to_string());
            }
            Node::Path(Base::Local(..), _) => {}
            Node::Path(Base::Outer(name), _) => {
                found.variables.insert(name.to_string());
            }
            Node::Object(fields) => {
                for (_, expr) in fields {
                    expr.dependencies(found);
                }
            }
            Node::Array(items) => {
                for item in items {
                    item.dependencies(found);
                }
            }
            Node::Call(call) => {
                found.random |= !call.is_pure();
                for argument in call.arguments.iter().flatten() {
                    argument.dependencies(found);
                }
            }
        }
    }
}
