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
use crate::settings::Settings;

/// A parsed filter, with the collation and the variables of its operation.
#[derive(Debug, Clone)]
pub struct Filter {
    root: Node,
    collator: Option<Arc<Collator>>,
    variables: Variables,
}

/// Details of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Details {
    /// The position in the outermost array by which the document matched: what the positional
    /// operator `$` stands for. With several conditions on arrays, that of the last one.
    pub array_index: Option<usize>,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// `BadValue` and others, as MongoDB, for whatever is no filter.
    pub fn parse(filter: &RawDocument, settings: &Settings) -> Result<Filter> {
        Ok(Filter {
            root: Parser::new(settings).document(filter)?,
            collator: settings.collator.clone(),
            variables: settings.variables.clone(),
        })
    }

    /// Reads a filter that may use neither `$expr` nor `$where` nor `$text`, as those of `$pull`
    /// and of `arrayFilters`.
    ///
    /// # Errors
    /// As [`Filter::parse`]; `QueryFeatureNotAllowed` for `$expr`.
    pub(crate) fn parse_plain(filter: &RawDocument, settings: &Settings) -> Result<Filter> {
        Ok(Filter {
            root: Parser::new(settings).without_special().document(filter)?,
            collator: settings.collator.clone(),
            variables: settings.variables.clone(),
        })
    }

    /// The filter that every document matches.
    #[must_use]
    pub fn everything() -> Filter {
        Filter {
            root: Node::AlwaysTrue,
            collator: None,
            variables: Variables::default(),
        }
    }

    /// Whether every document matches, as far as the form of the filter shows.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        matches!(self.root, Node::AlwaysTrue)
    }

    /// Documents that match both, which belong to one operation. Variables are those of the filter
    /// that has expressions; if both have, both must know the same variables.
    #[must_use]
    pub fn and(self, other: Filter) -> Filter {
        let variables = if self.has_expressions() {
            self.variables
        } else {
            other.variables
        };
        Filter {
            root: conjunction(vec![self.root, other.root]),
            collator: self.collator.or(other.collator),
            variables,
        }
    }

    /// The filter of a part of this one's tree, or of another tree for the same operation.
    #[must_use]
    pub fn with_root(&self, root: Node) -> Filter {
        Filter {
            root,
            collator: self.collator.clone(),
            variables: self.variables.clone(),
        }
    }

    /// The same with other variables, as `$lookup` binds them for each document.
    #[must_use]
    pub fn with_variables(&self, variables: &Variables) -> Filter {
        Filter {
            root: self.root.clone(),
            collator: self.collator.clone(),
            variables: variables.clone(),
        }
    }

    /// Whether `document` matches.
    ///
    /// # Errors
    /// Errors of expressions and patterns; `InvalidBSON` for invalid bytes.
    pub fn matches(&self, document: &RawDocument) -> Result<bool> {
        self.on(document).node(&self.root, document, &mut None)
    }

    /// As [`Filter::matches`] with other variables: a filter that is kept has not those of the
    /// operation that asks.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matches_with(&self, document: &RawDocument, variables: &Variables) -> Result<bool> {
        self.with(document, variables)
            .node(&self.root, document, &mut None)
    }

    /// Whether it has expressions, which may read variables.
    #[must_use]
    pub fn has_expressions(&self) -> bool {
        self.root.has_expressions()
    }

    /// As [`Filter::matches`], and `details` gets the position of the array element that matched.
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

    /// How strings compare.
    #[must_use]
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        self.collator.as_ref()
    }

    /// The filter with every operator spelled out.
    #[must_use]
    pub fn to_document(&self) -> Document {
        render::node(&self.root)
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
