//! A schema as a list of rules, one per keyword.

use bson::{Bson, Document};

use crate::number::Number;
use crate::regex::Regex;
use crate::types::Types;

/// A parsed schema.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(super) rules: Vec<Rule>,
    /// `title` and `description`, which error details repeat.
    pub(super) notes: Document,
    pub(super) spec: Document,
}

/// One keyword, with its text as written.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// The keyword with its argument.
    pub(super) spec: Document,
    pub(super) check: Check,
}

/// A bound of a length: minimum or maximum.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    Least(usize),
    Most(usize),
}

impl Bound {
    pub(super) fn holds(self, length: usize) -> bool {
        match self {
            Bound::Least(least) => least <= length,
            Bound::Most(most) => length <= most,
        }
    }
}

/// The rule for properties or items to which no other keyword applies.
#[derive(Debug, Clone)]
pub(super) enum Additional {
    Allowed,
    Forbidden,
    Like(Schema),
}

#[derive(Debug, Clone)]
pub(super) enum Dependency {
    /// These properties must exist.
    Properties(Vec<String>),
    /// The document must be valid.
    Schema(Schema),
}

#[derive(Debug, Clone)]
pub(super) enum Check {
    Types(Types),
    /// The values in the form of [`super::unordered`].
    Enum(Vec<Bson>),
    Minimum {
        limit: Number,
        exclusive: bool,
    },
    Maximum {
        limit: Number,
        exclusive: bool,
    },
    MultipleOf(Number),
    Length(Bound),
    Pattern(Regex),
    Required(Vec<String>),
    Properties(Vec<(String, Schema)>),
    PatternProperties(Vec<(Regex, Schema)>),
    AdditionalProperties {
        names: Vec<String>,
        patterns: Vec<Regex>,
        additional: Additional,
    },
    PropertyCount(Bound),
    Dependencies(Vec<(String, Dependency)>),
    Items(Schema),
    ItemList(Vec<Schema>),
    AdditionalItems {
        from: usize,
        additional: Additional,
    },
    ItemCount(Bound),
    UniqueItems,
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
}

impl Schema {
    /// The schema as it was written.
    #[must_use]
    pub fn to_document(&self) -> &Document {
        &self.spec
    }
}
