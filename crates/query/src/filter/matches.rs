//! Evaluates the tree of a filter on a document.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use bson::{Document, RawArray, RawBsonRef, RawDocument};

use super::test::{self, EQ, GT, GTE, LT, LTE};
use super::{Details, Node, Test};
use crate::collation::Collator;
use crate::expr::{Env, Variables};
use crate::path::{Leaves, Path, walk_leaves};
use crate::value::truthy;
use crate::{Result, meter};

/// How many times longer it takes to decode a byte than to read it.
const DECODED: usize = 16;

/// The evaluation of a filter on one document.
pub(super) struct Match<'a> {
    pub(super) collator: Option<&'a Collator>,
    pub(super) variables: &'a Variables,
    /// The whole document for expressions, decoded when the first expression needs it.
    pub(super) owned: OnceCell<Document>,
    pub(super) root: &'a RawDocument,
}

impl Match<'_> {
    /// Recursion is bounded by the depth of the filter.
    pub(super) fn node(
        &self,
        node: &Node,
        document: &RawDocument,
        details: &mut Option<&mut Details>,
    ) -> Result<bool> {
        meter::step()?;
        match node {
            Node::Field { path, test } => self.field(path, test, document, details),
            Node::And(nodes) => {
                for node in nodes {
                    if !self.node(node, document, details)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if self.node(node, document, details)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Nor(nodes) => {
                for node in nodes {
                    if self.node(node, document, &mut None)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Expr { expr, .. } => {
                let env = Env::new(self.document()?, self.variables);
                Ok(expr.evaluate(&env)?.is_some_and(|value| truthy(&value)))
            }
            Node::Schema(schema) => schema.validates(document),
            Node::AlwaysTrue | Node::Comment(_) => Ok(true),
            Node::AlwaysFalse => Ok(false),
        }
    }

    fn document(&self) -> Result<&Document> {
        if let Some(document) = self.owned.get() {
            return Ok(document);
        }
        meter::read(self.root.as_bytes().len().saturating_mul(DECODED))?;
        let document = Document::try_from(self.root)?;
        Ok(self.owned.get_or_init(|| document))
    }

    /// Whether the values at `path` pass `test`.
    pub(super) fn field(
        &self,
        path: &Path,
        test: &Test,
        document: &RawDocument,
        details: &mut Option<&mut Details>,
    ) -> Result<bool> {
        meter::read(document.as_bytes().len())?;
        let leaves = match test {
            Test::Ne(value) => return Ok(!self.equals(path, value, document)?),
            Test::Not(tests) => {
                for test in tests {
                    if !self.field(path, test, document, &mut None)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
            Test::Exists(false) => {
                return Ok(!self.field(path, &Test::Exists(true), document, &mut None)?);
            }
            Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => Leaves::Whole,
            _ => Leaves::Expanded,
        };
        let mut found: Result<bool> = Ok(false);
        let end = walk_leaves(document, path, leaves, &mut |leaf| {
            found = match (leaf.value, test) {
                (
                    Some(RawBsonRef::Array(array)),
                    Test::ElemMatchObject(_) | Test::ElemMatchValue(_),
                ) => self.element(test, array).map(|at| {
                    note(details, at);
                    at.is_some()
                }),
                (value, test) => self.value(test, value),
            };
            match found {
                Ok(false) => ControlFlow::Continue(()),
                _ => {
                    note(details, leaf.index);
                    ControlFlow::Break(())
                }
            }
        })?;
        let passed = found?;
        debug_assert_eq!(passed, end.is_break());
        Ok(passed)
    }

    fn equals(&self, path: &Path, value: &bson::Bson, document: &RawDocument) -> Result<bool> {
        let end = walk_leaves(document, path, Leaves::Expanded, &mut |leaf| {
            if test::compares(EQ, leaf.value, value, self.collator) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(end.is_break())
    }

    /// Whether a single value passes; an array is one value.
    pub(super) fn value(&self, test: &Test, value: Option<RawBsonRef<'_>>) -> Result<bool> {
        meter::step()?;
        Ok(match test {
            Test::Eq(with) => test::compares(EQ, value, with, self.collator),
            Test::Ne(with) => !test::compares(EQ, value, with, self.collator),
            Test::Gt(with) => test::compares(GT, value, with, self.collator),
            Test::Gte(with) => test::compares(GTE, value, with, self.collator),
            Test::Lt(with) => test::compares(LT, value, with, self.collator),
            Test::Lte(with) => test::compares(LTE, value, with, self.collator),
            Test::In(list) => return list.matches(value, self.collator),
            Test::Exists(wanted) => value.is_some() == *wanted,
            Test::Not(tests) => {
                for test in tests {
                    if !self.value(test, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Never => false,
            _ => match value {
                None => false,
                Some(value) => return self.present(test, value),
            },
        })
    }

    /// Applies a test that a missing value fails.
    fn present(&self, test: &Test, value: RawBsonRef<'_>) -> Result<bool> {
        Ok(match (test, value) {
            (Test::Type(types), value) => types.matches(value),
            (Test::Regex(regex), value) => return test::regex(regex, value),
            (Test::Mod { divisor, remainder }, value) => test::modulo(*divisor, *remainder, value),
            (Test::Bits(bits), value) => return bits.matches(value),
            (Test::Size(size), RawBsonRef::Array(array)) => has_size(array, *size)?,
            (Test::ElemMatchObject(_) | Test::ElemMatchValue(_), RawBsonRef::Array(array)) => {
                self.element(test, array)?.is_some()
            }
            _ => false,
        })
    }

    /// The index of the first element that passes an `$elemMatch`.
    fn element(&self, test: &Test, array: &RawArray) -> Result<Option<usize>> {
        for (position, element) in array.into_iter().enumerate() {
            meter::step()?;
            let element = element?;
            let passed = match test {
                Test::ElemMatchObject(node) => match element {
                    RawBsonRef::Document(inner) => self.node(node, inner, &mut None)?,
                    RawBsonRef::Array(inner) => {
                        let inner = RawDocument::from_bytes(inner.as_bytes())?;
                        self.node(node, inner, &mut None)?
                    }
                    _ => false,
                },
                Test::ElemMatchValue(tests) => self.all(tests, element)?,
                _ => false,
            };
            if passed {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    fn all(&self, tests: &[Test], value: RawBsonRef<'_>) -> Result<bool> {
        for test in tests {
            if !self.value(test, Some(value))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn note(details: &mut Option<&mut Details>, index: Option<usize>) {
    if let (Some(details), Some(index)) = (details, index) {
        details.array_index = Some(index);
    }
}

fn has_size(array: &RawArray, size: i64) -> Result<bool> {
    let mut left = size;
    for element in array.iter_elements() {
        meter::step()?;
        element?;
        left -= 1;
        if left < 0 {
            return Ok(false);
        }
    }
    Ok(left == 0)
}
