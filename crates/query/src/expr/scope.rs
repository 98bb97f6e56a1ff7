//! The context of parsing an expression: the variables in scope and the collation.

use std::sync::Arc;

use super::Variables;
use crate::collation::Collator;
use crate::{Code, Error, Result};

/// Nesting that parsing accepts. Documents on the wire nest to 200 already.
const MAX_DEPTH: u32 = 200;

/// The variables in sight and the collation of comparisons.
///
/// Every variable that an expression binds gets a level of its own, counted from the outside, by
/// which its value is found when the expression is evaluated.
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
    /// Only the system variables, binary comparison of strings.
    #[must_use]
    pub fn new() -> Scope {
        Scope::default()
    }

    /// The same with the variables of an operation.
    #[must_use]
    pub fn with_variables(mut self, variables: &Variables) -> Scope {
        self.outer = variables.clone();
        self
    }

    /// The variables of the operation, with their values.
    pub(crate) fn variables(&self) -> &Variables {
        &self.outer
    }

    /// The same with a variable whose value [`Variables`] will hold only at evaluation, such as the
    /// `let` of `$lookup` or `$$new` of `$merge`.
    #[must_use]
    pub fn with_declared(mut self, name: &str) -> Scope {
        self.declared.push(name.into());
        self
    }

    /// The same with a collation.
    #[must_use]
    pub fn with_collator(mut self, collator: Option<Arc<Collator>>) -> Scope {
        self.collator = collator;
        self
    }

    /// The same scope with the sort key of documents available: the evaluating stage binds it.
    #[must_use]
    pub(crate) fn with_sort_key(mut self) -> Scope {
        self.sort_key = true;
        self
    }

    /// Whether that key is at hand.
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

    /// The level of a variable that an expression around this one binds.
    pub(super) fn level(&self, name: &str) -> Option<u32> {
        let at = self.locals.iter().rposition(|known| &**known == name)?;
        u32::try_from(at).ok()
    }

    /// The scope inside of an expression that binds `name`, and its level.
    pub(super) fn bind(&self, name: &str) -> (Scope, u32) {
        let mut inner = self.clone();
        inner.locals.push(name.into());
        (inner, self.next_level())
    }

    /// The level that [`Self::bind`] gives next.
    pub(super) fn next_level(&self) -> u32 {
        u32::try_from(self.locals.len()).expect("nesting is bounded, so are the variables")
    }

    /// Whether it is that of an expression as a whole, in no other.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// The scope one step of nesting further in.
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
