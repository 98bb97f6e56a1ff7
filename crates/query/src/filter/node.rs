//! The tree of a filter.

use bson::Bson;

use super::{Bits, In, Types};
use crate::expr::Expr;
use crate::path::Path;
use crate::regex::Regex;
use crate::schema::Schema;

/// A condition on a document.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Node {
    /// All of them.
    And(Vec<Node>),
    /// At least one of them.
    Or(Vec<Node>),
    /// None of them.
    Nor(Vec<Node>),
    /// Whether what `path` leads to passes `test`.
    Field {
        /// The path of the field.
        path: Path,
        /// The test of its values.
        test: Test,
    },
    /// Whether the expression is true.
    Expr {
        /// Parsed.
        expr: Expr,
        /// As it was given.
        spec: Bson,
    },
    /// Whether the document is valid under a schema.
    Schema(Box<Schema>),
    /// True of every document.
    AlwaysTrue,
    /// True of no document.
    AlwaysFalse,
    /// A comment; true of every document.
    Comment(Bson),
}

impl Node {
    /// Whether there are expressions in it; they are about the whole document, and not below a
    /// path.
    pub(super) fn has_expressions(&self) -> bool {
        match self {
            Node::Expr { .. } => true,
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().any(Node::has_expressions)
            }
            _ => false,
        }
    }
}

/// A test of the values at a path. All tests except negations pass if one of the values, including
/// an array's elements, passes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Test {
    /// Equal; null is equal to a missing value too.
    Eq(Bson),
    /// No value is equal.
    Ne(Bson),
    /// Above, and of the same type.
    Gt(Bson),
    /// Equal or above, and of the same type.
    Gte(Bson),
    /// Below, and of the same type.
    Lt(Bson),
    /// Equal or below, and of the same type.
    Lte(Bson),
    /// Equal to one of a list, or matched by a pattern in it.
    In(In),
    /// Present, or missing.
    Exists(bool),
    /// Of one of some types.
    Type(Types),
    /// Text that the pattern matches, or the pattern itself.
    Regex(Regex),
    /// A number whose whole part leaves a remainder.
    Mod {
        /// Not zero.
        divisor: i64,
        /// With the sign of the dividend.
        remainder: i64,
    },
    /// An array with this number of elements.
    Size(i64),
    /// An array with a document that matches.
    ElemMatchObject(Box<Node>),
    /// An array with an element that passes every test.
    ElemMatchValue(Vec<Test>),
    /// A number or binary data with some bits set or clear.
    Bits(Bits),
    /// Not all of the tests hold.
    Not(Vec<Test>),
    /// Holds never: `$all` of nothing.
    Never,
}
