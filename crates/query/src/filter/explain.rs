//! Why a document does not match: the tree that errors of validation carry as `details`.
//!
//! The shape is that of MongoDB's manual, "Schema Validation". The tree is built only for documents
//! that failed, so this code evaluates every part of the filter again.

use std::ops::ControlFlow;

use bson::{Bson, Document, RawBsonRef, RawDocument, doc};

use super::matches::Match;
use super::{Filter, Node, Test, render};
use crate::Result;
use crate::meter::{self, VALIDATION};
use crate::path::{Leaves, Path, walk_leaves};
use crate::value::type_name;

impl Filter {
    /// The conditions of the filter that `document` does not match.
    ///
    /// # Errors
    /// As [`Filter::matches`]; `ExceededMemoryLimit` for conditions that repeat too much of the
    /// document.
    pub fn explain_failure(&self, document: &RawDocument) -> Result<Document> {
        let _scope = meter::scope();
        let on = self.on(document);
        on.explain(self.root(), document, false)
    }
}

impl Match<'_> {
    /// Explains why `node` did not match or, below a negation (`matched`), why it matched.
    fn explain(&self, node: &Node, document: &RawDocument, matched: bool) -> Result<Document> {
        let mut details = doc! {"operatorName": name(node)};
        match node {
            Node::And(nodes) | Node::Or(nodes) => {
                let list = self.clauses(nodes, document, matched)?;
                details.insert(
                    if matched {
                        "clausesSatisfied"
                    } else {
                        "clausesNotSatisfied"
                    },
                    list,
                );
            }
            Node::Nor(nodes) => {
                let list = self.clauses(nodes, document, !matched)?;
                details.insert(
                    if matched {
                        "clausesNotSatisfied"
                    } else {
                        "clausesSatisfied"
                    },
                    list,
                );
            }
            Node::Field { path, test } => {
                self.of_field(path, test, document, matched, &mut details)?
            }
            Node::Expr { .. } => {
                details.insert("specifiedAs", render::node(node));
                let reason = if matched {
                    "expression did match"
                } else {
                    "expression did not match"
                };
                details.insert("reason", reason);
                details.insert("expressionResult", matched);
            }
            // It charges its parts itself.
            Node::Schema(schema) if !matched => return schema.explain(document),
            Node::Schema(schema) => {
                details.insert(
                    "specifiedAs",
                    doc! {"$jsonSchema": schema.to_document().clone()},
                );
                details.insert("reason", "schema matched");
            }
            Node::AlwaysTrue | Node::AlwaysFalse | Node::Comment(_) => {
                details.insert("specifiedAs", render::node(node));
                details.insert("reason", "expression always evaluates to false");
            }
        }
        if !matches!(node, Node::And(_) | Node::Or(_) | Node::Nor(_)) {
            meter::charge(VALIDATION, meter::document_size(&details))?;
        }
        Ok(details)
    }

    /// Explains the clauses whose result was `wanted`.
    fn clauses(&self, nodes: &[Node], document: &RawDocument, wanted: bool) -> Result<Vec<Bson>> {
        let mut list = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            if self.node(node, document, &mut None)? == wanted {
                list.push(Bson::Document(doc! {
                    "index": i32::try_from(index).unwrap_or(i32::MAX),
                    "details": self.explain(node, document, wanted)?,
                }));
            }
        }
        Ok(list)
    }

    fn of_field(
        &self,
        path: &Path,
        test: &Test,
        document: &RawDocument,
        matched: bool,
        details: &mut Document,
    ) -> Result<()> {
        if let Test::Not(tests) = test
            && !matches!(tests.as_slice(), [Test::In(_)])
        {
            // The reason for a negation is the reason of the negated tests.
            let inner = tests.iter().map(|test| Node::Field {
                path: path.clone(),
                test: test.clone(),
            });
            let inner = super::parse::conjunction(inner.collect());
            details.insert("details", self.explain(&inner, document, !matched)?);
            return Ok(());
        }
        let mut specified = Document::new();
        specified.insert(path.as_str(), render::given(test));
        details.insert("specifiedAs", specified);
        let values = values(path, test, document)?;
        if values.is_empty() && !matches!(test, Test::Exists(_)) {
            details.insert("reason", "field was missing");
            return Ok(());
        }
        details.insert("reason", reason(test, matched));
        if matches!(test, Test::Exists(_)) {
            return Ok(());
        }
        if let ([value], Test::Type(_)) = (values.as_slice(), test) {
            details.insert("consideredType", type_name(value));
        }
        match <[Bson; 1]>::try_from(values) {
            Ok([value]) => details.insert("consideredValue", value),
            Err(values) => details.insert("consideredValues", values),
        };
        Ok(())
    }
}

/// The values to which a test was applied.
fn values(path: &Path, test: &Test, document: &RawDocument) -> Result<Vec<Bson>> {
    let leaves = match test {
        Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => Leaves::Whole,
        _ => Leaves::Expanded,
    };
    let mut values: Vec<RawBsonRef<'_>> = Vec::new();
    let end = walk_leaves(document, path, leaves, &mut |leaf| {
        values.extend(leaf.value);
        ControlFlow::Continue(())
    })?;
    debug_assert!(end.is_continue(), "the visit never stops the walk");
    let mut owned = Vec::new();
    for value in values {
        let value = Bson::try_from(value)?;
        meter::charge(VALIDATION, meter::size(&value))?;
        owned.push(value);
    }
    Ok(owned)
}

fn name(node: &Node) -> &'static str {
    match node {
        Node::And(_) => "$and",
        Node::Or(_) => "$or",
        Node::Nor(_) => "$nor",
        Node::Field { test, .. } => render::name(test),
        Node::Expr { .. } => "$expr",
        Node::Schema(_) => "$jsonSchema",
        Node::AlwaysTrue | Node::Comment(_) => "$alwaysTrue",
        Node::AlwaysFalse => "$alwaysFalse",
    }
}

fn reason(test: &Test, matched: bool) -> &'static str {
    match test {
        Test::Exists(wanted) if *wanted != matched => "path does not exist",
        Test::Exists(_) => "path does exist",
        Test::Ne(_) if !matched => "comparison succeeded",
        Test::Eq(_) | Test::Gt(_) | Test::Gte(_) | Test::Lt(_) | Test::Lte(_) if matched => {
            "comparison succeeded"
        }
        Test::Ne(_) | Test::Eq(_) | Test::Gt(_) | Test::Gte(_) | Test::Lt(_) | Test::Lte(_) => {
            "comparison failed"
        }
        Test::In(_) if !matched => "no matching value found in array",
        Test::Not(_) | Test::In(_) => "matching value found in array",
        Test::Type(_) if matched => "matching types found for specified typeset",
        Test::Type(_) => "no matching types found for specified typeset",
        Test::Regex(_) if matched => "regular expression did match",
        Test::Regex(_) => "regular expression did not match",
        Test::Mod { .. } if matched => "$mod did evaluate to expected remainder",
        Test::Mod { .. } => "$mod did not evaluate to expected remainder",
        Test::Size(_) if matched => "array length was equal to given size",
        Test::Size(_) => "array length was not equal to given size",
        Test::Bits(_) if matched => "bitwise operator matched successfully",
        Test::Bits(_) => "bitwise operator failed to match",
        _ if matched => "array did satisfy the child predicate",
        _ => "array did not satisfy the child predicate",
    }
}
