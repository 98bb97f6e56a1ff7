//! A parsed filter.

use std::cell::OnceCell;
use std::sync::Arc;

use bson::{Document, RawDocument};

use super::matches::Match;
use super::parse::{Parser, conjunction};
use super::{Node, render};
use crate::Result;
use crate::collation::Collator;
use crate::expr::Variables;
use crate::meter::{Held, hold_parsed};
use crate::settings::Settings;

/// A parsed filter, with the collation and the variables of its operation.
#[derive(Debug, Clone)]
pub struct Filter {
    root: Node,
    collator: Option<Arc<Collator>>,
    variables: Variables,
    /// The memory of the tree; nothing for a small one.
    held: Vec<Arc<Held>>,
}

/// Details of how a document matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Details {
    /// The index in the outermost array by which the document matched; the positional operator `$`
    /// stands for it. With several conditions on arrays, the index of the last condition.
    pub array_index: Option<usize>,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// `BadValue` and other codes, as MongoDB, for an invalid filter.
    pub fn parse(filter: &RawDocument, settings: &Settings) -> Result<Filter> {
        let held = hold_parsed("A filter", filter)?;
        Ok(Filter {
            root: Parser::new(settings).document(filter)?,
            collator: settings.collator.clone(),
            variables: settings.variables.clone(),
            held: held.into_iter().collect(),
        })
    }

    /// Parses a filter that must not use `$expr`, `$where` or `$text`, for `$pull` and
    /// `arrayFilters`.
    ///
    /// # Errors
    /// As [`Filter::parse`]; `QueryFeatureNotAllowed` for `$expr`.
    pub(crate) fn parse_plain(filter: &RawDocument, settings: &Settings) -> Result<Filter> {
        let held = hold_parsed("A filter", filter)?;
        Ok(Filter {
            root: Parser::new(settings).without_special().document(filter)?,
            collator: settings.collator.clone(),
            variables: settings.variables.clone(),
            held: held.into_iter().collect(),
        })
    }

    /// The filter that every document matches.
    #[must_use]
    pub fn everything() -> Filter {
        Filter {
            root: Node::AlwaysTrue,
            collator: None,
            variables: Variables::default(),
            held: Vec::new(),
        }
    }

    /// Whether every document matches, by the form of the filter alone.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        matches!(self.root, Node::AlwaysTrue)
    }

    /// A filter for documents that match both filters, which must belong to the same operation. The
    /// result has the variables of the filter with expressions; if both have expressions, their
    /// variables must be the same.
    #[must_use]
    pub fn and(mut self, other: Filter) -> Filter {
        self.held.extend(other.held);
        let variables = if self.has_expressions() {
            self.variables
        } else {
            other.variables
        };
        Filter {
            root: conjunction(vec![self.root, other.root]),
            collator: self.collator.or(other.collator),
            variables,
            held: self.held,
        }
    }

    /// A filter with the tree `root`, and with the collation and variables of this one.
    #[must_use]
    pub fn with_root(&self, root: Node) -> Filter {
        Filter {
            root,
            collator: self.collator.clone(),
            variables: self.variables.clone(),
            held: self.held.clone(),
        }
    }

    /// Returns this filter with other variables, as `$lookup` sets them for each document.
    #[must_use]
    pub fn with_variables(&self, variables: &Variables) -> Filter {
        Filter {
            root: self.root.clone(),
            collator: self.collator.clone(),
            variables: variables.clone(),
            held: self.held.clone(),
        }
    }

    /// Whether `document` matches.
    ///
    /// # Errors
    /// Errors of expressions and patterns; `InvalidBSON` for invalid bytes.
    pub fn matches(&self, document: &RawDocument) -> Result<bool> {
        self.on(document).node(&self.root, document, &mut None)
    }

    /// As [`Filter::matches`], with the variables of the current operation: a stored filter has
    /// none of them.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matches_with(&self, document: &RawDocument, variables: &Variables) -> Result<bool> {
        self.with(document, variables)
            .node(&self.root, document, &mut None)
    }

    /// Whether the filter has expressions, which may read variables.
    #[must_use]
    pub fn has_expressions(&self) -> bool {
        self.root.has_expressions()
    }

    /// As [`Filter::matches`]; `details` also gets the index of the array element that matched.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matches_at(&self, document: &RawDocument, details: &mut Details) -> Result<bool> {
        self.on(document)
            .node(&self.root, document, &mut Some(details))
    }

    /// The tree.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The collation of string comparisons; `None` compares bytes.
    #[must_use]
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        self.collator.as_ref()
    }

    /// The filter as a document with all operators explicit.
    #[must_use]
    pub fn to_document(&self) -> Document {
        render::node(&self.root)
    }

    /// As [`Filter::to_document`], if the document takes at most `left` bytes in memory, which are
    /// taken from `left`; otherwise nothing is made that does not fit.
    pub fn to_document_within(&self, left: &mut usize) -> Option<Document> {
        render::within(&self.root, left)
    }

    pub(super) fn on<'a>(&'a self, document: &'a RawDocument) -> Match<'a> {
        self.with(document, &self.variables)
    }

    fn with<'a>(&'a self, document: &'a RawDocument, variables: &'a Variables) -> Match<'a> {
        Match {
            collator: self.collator.as_deref(),
            variables,
            owned: OnceCell::new(),
            root: document,
        }
    }
}
