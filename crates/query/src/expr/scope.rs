//! The context of parsing an expression: the variables in scope and the collation.

use std::sync::Arc;

use super::Variables;
use crate::collation::Collator;
use crate::{Code, Error, Result};

/// Maximum nesting; documents on the wire may nest to 200 levels.
const MAX_DEPTH: u32 = 200;

/// The defined variables, and the collation of comparisons.
///
/// Every variable that an expression defines gets a level, counted from the outermost expression;
/// evaluation finds its value by the level.
#[derive(Clone, Default)]
pub struct Scope {
    locals: Vec<Arc<str>>,
    outer: Variables,
    declared: Vec<Arc<str>>,
    collator: Option<Arc<Collator>>,
    depth: u32,
    sort_key: bool,
}

impl Scope {
    /// Only the system variables; strings are compared by their bytes.
    #[must_use]
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Returns this scope with the variables of an operation.
    #[must_use]
    pub fn with_variables(mut self, variables: &Variables) -> Scope {
        self.outer = variables.clone();
        self
    }

    /// The variables of the operation, with their values.
    pub(crate) fn variables(&self) -> &Variables {
        &self.outer
    }

    /// Returns this scope with the variable `name`, whose value [`Variables`] has only at
    /// evaluation, such as the `let` of `$lookup` or `$$new` of `$merge`.
    #[must_use]
    pub fn with_declared(mut self, name: &str) -> Scope {
        self.declared.push(name.into());
        self
    }

    /// Returns this scope with a collation.
    #[must_use]
    pub fn with_collator(mut self, collator: Option<Arc<Collator>>) -> Scope {
        self.collator = collator;
        self
    }

    /// Returns this scope with the sort key of documents, which the evaluating stage provides.
    #[must_use]
    pub(crate) fn with_sort_key(mut self) -> Scope {
        self.sort_key = true;
        self
    }

    /// Whether the sort key of documents is available.
    pub(super) fn has_sort_key(&self) -> bool {
        self.sort_key
    }

    /// The collation of comparisons.
    #[must_use]
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        self.collator.as_ref()
    }

    /// Whether a variable of the operation has this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.outer.contains(name) || self.declared.iter().any(|known| &**known == name)
    }

    /// The level of a variable that an enclosing expression defines.
    pub(super) fn level(&self, name: &str) -> Option<u32> {
        let at = self.locals.iter().rposition(|known| &**known == name)?;
        u32::try_from(at).ok()
    }

    /// The scope inside an expression that defines `name`, and the level of `name`.
    pub(super) fn bind(&self, name: &str) -> (Scope, u32) {
        let mut inner = self.clone();
        inner.locals.push(name.into());
        (inner, self.next_level())
    }

    /// The level that the next variable gets.
    pub(super) fn next_level(&self) -> u32 {
        u32::try_from(self.locals.len()).expect("nesting is bounded, so are the variables")
    }

    /// Whether this is the scope of a whole expression, not of a part of one.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// The scope of the next nesting level; an error above the maximum.
    pub(super) fn deeper(&self) -> Result<Scope> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(
                Code::OVERFLOW,
                format!("Expression exceeds the maximum nesting depth of {MAX_DEPTH}"),
            ));
        }
        let mut inner = self.clone();
        inner.depth += 1;
        Ok(inner)
    }
}
