//! Converts the tree of a filter back to a document with all operators explicit, for `explain`.
//!
//! - R1. The document takes at most the given bytes in memory, as `meter::size` estimates them:
//!   each part is measured before it is made.

use bson::{Bson, Document};

use super::{Node, Test};
use crate::meter::{self, entry, size};

/// The document for `node`.
pub(super) fn node(node: &Node) -> Document {
    let mut all = usize::MAX;
    within(node, &mut all).unwrap_or_default()
}

/// As [`node`], if it takes at most `left` bytes, which are taken from `left`.
pub(super) fn within(node: &Node, left: &mut usize) -> Option<Document> {
    Room(left).node(node)
}

/// The operators of several tests, as one document.
pub(super) fn tests(tests: &[Test]) -> Document {
    let mut all = usize::MAX;
    Room(&mut all).tests(tests).unwrap_or_default()
}

/// Bytes of a value that holds others, without these.
const VALUE: usize = size_of::<Bson>() + 16;

/// Bytes of a list of all types.
const TYPES: usize = 32 * VALUE;

/// The bytes that are left (R1).
struct Room<'a>(&'a mut usize);

impl Room<'_> {
    /// Takes bytes; `None` if fewer are left.
    fn take(&mut self, bytes: usize) -> Option<()> {
        // The operation ends at its next step.
        meter::count(1 + bytes / meter::STEP_BYTES);
        *self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }

    /// A copy of a value.
    fn copy(&mut self, value: &Bson) -> Option<Bson> {
        self.take(size(value))?;
        Some(value.clone())
    }

    /// A document of one field.
    fn one(&mut self, name: &str, value: Bson) -> Option<Document> {
        self.take(entry(name) + VALUE)?;
        let mut document = Document::new();
        document.insert(name, value);
        Some(document)
    }

    fn node(&mut self, node: &Node) -> Option<Document> {
        match node {
            Node::And(nodes) => self.list("$and", nodes),
            Node::Or(nodes) => self.list("$or", nodes),
            Node::Nor(nodes) => self.list("$nor", nodes),
            Node::Field { path, test } => {
                let tests = self.tests(std::slice::from_ref(test))?;
                self.one(path.as_str(), Bson::Document(tests))
            }
            Node::Expr { spec, .. } => {
                let spec = self.copy(spec)?;
                self.one("$expr", spec)
            }
            Node::Schema(schema) => {
                self.take(meter::document_size(schema.to_document()))?;
                let schema = schema.to_document().clone();
                self.one("$jsonSchema", Bson::Document(schema))
            }
            Node::AlwaysTrue => Some(Document::new()),
            Node::AlwaysFalse => self.one("$alwaysFalse", Bson::Int32(1)),
            Node::Comment(comment) => {
                let comment = self.copy(comment)?;
                self.one("$comment", comment)
            }
        }
    }

    fn list(&mut self, name: &str, nodes: &[Node]) -> Option<Document> {
        let mut clauses = Vec::new();
        for clause in nodes {
            self.take(size_of::<Bson>())?;
            clauses.push(Bson::Document(self.node(clause)?));
        }
        self.one(name, Bson::Array(clauses))
    }

    fn tests(&mut self, tests: &[Test]) -> Option<Document> {
        let mut document = Document::new();
        for test in tests {
            let (name, value) = self.operator(test)?;
            self.take(entry(name))?;
            document.insert(name, value);
            if let Test::Regex(regex) = test
                && !regex.options().is_empty()
            {
                self.take(entry("$options") + VALUE + regex.options().len())?;
                document.insert("$options", regex.options());
            }
        }
        Some(document)
    }

    /// The name and the argument of a test's operator.
    fn operator(&mut self, test: &Test) -> Option<(&'static str, Bson)> {
        let value = match test {
            Test::Eq(value)
            | Test::Ne(value)
            | Test::Gt(value)
            | Test::Gte(value)
            | Test::Lt(value)
            | Test::Lte(value) => self.copy(value)?,
            Test::In(list) => {
                let mut values = Vec::new();
                for value in &list.values {
                    values.push(self.copy(value)?);
                }
                for regex in &list.regexes {
                    self.take(size_of::<Bson>() + regex.pattern().len())?;
                    values.push(regex.to_bson());
                }
                Bson::Array(values)
            }
            Test::Type(types) => {
                self.take(TYPES)?;
                types.to_bson()
            }
            Test::Exists(wanted) => Bson::Boolean(*wanted),
            Test::Regex(regex) => {
                self.take(regex.pattern().len())?;
                Bson::from(regex.pattern())
            }
            Test::Mod { divisor, remainder } => {
                self.take(2 * VALUE)?;
                let pair = vec![Bson::Int64(*divisor), Bson::Int64(*remainder)];
                Bson::Array(pair)
            }
            Test::Size(size) => Bson::Int64(*size),
            Test::ElemMatchObject(inner) => Bson::Document(self.node(inner)?),
            Test::ElemMatchValue(inner) | Test::Not(inner) => Bson::Document(self.tests(inner)?),
            Test::Bits(bits) => {
                self.take(bits.count() * size_of::<Bson>())?;
                bits.to_bson()
            }
            Test::Never => Bson::Array(Vec::new()),
        };
        self.take(VALUE)?;
        Some((operator(test), value))
    }
}

/// One operator as users write it, with `$nin` and `$ne` instead of a negation.
pub(super) fn given(test: &Test) -> Document {
    match test {
        Test::Not(inner) if matches!(inner.as_slice(), [Test::In(_)]) => {
            let mut document = Document::new();
            for (_, value) in tests(inner) {
                document.insert("$nin", value);
            }
            document
        }
        test => tests(std::slice::from_ref(test)),
    }
}

/// The name of a test's operator as users write it.
pub(super) fn name(test: &Test) -> &'static str {
    match test {
        Test::Not(inner) if matches!(inner.as_slice(), [Test::In(_)]) => "$nin",
        test => operator(test),
    }
}

/// The name of a test's operator.
fn operator(test: &Test) -> &'static str {
    match test {
        Test::Eq(_) => "$eq",
        Test::Ne(_) => "$ne",
        Test::Gt(_) => "$gt",
        Test::Gte(_) => "$gte",
        Test::Lt(_) => "$lt",
        Test::Lte(_) => "$lte",
        Test::In(_) | Test::Never => "$in",
        Test::Exists(_) => "$exists",
        Test::Type(_) => "$type",
        Test::Regex(_) => "$regex",
        Test::Mod { .. } => "$mod",
        Test::Size(_) => "$size",
        Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => "$elemMatch",
        Test::Bits(bits) => bits.name(),
        Test::Not(_) => "$not",
    }
}
