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
    /// All of these match.
    And(Vec<Node>),
    /// At least one of these matches.
    Or(Vec<Node>),
    /// None of these match.
    Nor(Vec<Node>),
    /// The values at `path` pass `test`.
    Field {
        /// The path of the field.
        path: Path,
        /// The test of its values.
        test: Test,
    },
    /// The expression is true.
    Expr {
        /// Parsed.
        expr: Expr,
        /// The expression as it was written.
        spec: Bson,
    },
    /// The document is valid under the schema.
    Schema(Box<Schema>),
    /// Matches every document.
    AlwaysTrue,
    /// Matches no document.
    AlwaysFalse,
    /// A comment; matches every document.
    Comment(Bson),
}

impl Node {
    /// Whether the tree has expressions; they read the whole document, not a value at a path.
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
    /// Equal to this value; null is equal to a missing value, too.
    Eq(Bson),
    /// No value is equal to this one.
    Ne(Bson),
    /// Greater than this value, and of the same type.
    Gt(Bson),
    /// Greater than or equal to this value, and of the same type.
    Gte(Bson),
    /// Less than this value, and of the same type.
    Lt(Bson),
    /// Less than or equal to this value, and of the same type.
    Lte(Bson),
    /// Equal to one of a list of values, or matched by one of its patterns.
    In(In),
    /// The field exists (true) or is missing (false).
    Exists(bool),
    /// A value of one of these types.
    Type(Types),
    /// Text that the pattern matches, or the same pattern as a value.
    Regex(Regex),
    /// A number whose integer part, divided by `divisor`, leaves `remainder`.
    Mod {
        /// Not zero.
        divisor: i64,
        /// Has the sign of the dividend.
        remainder: i64,
    },
    /// An array with this number of elements.
    Size(i64),
    /// An array with a document that matches this tree.
    ElemMatchObject(Box<Node>),
    /// An array with an element that passes all these tests.
    ElemMatchValue(Vec<Test>),
    /// A number or binary data whose bits meet the condition.
    Bits(Bits),
    /// At least one of the tests fails.
    Not(Vec<Test>),
    /// Never passes: `$all` with an empty list.
    Never,
}
