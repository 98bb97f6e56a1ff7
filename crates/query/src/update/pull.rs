//! `$pull`: elements that match a condition out of an array.
//!
//! A condition on the element itself (`{$gte: 5}`, a regular expression) is parsed as a filter on
//! the one field of a holder; a condition on fields, as a filter on the element.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf};

use super::array::remove;
use super::modifier::{Context, Outcome};
use crate::Result;
use crate::filter::{Filter, is_of_fields};
use crate::settings::Settings;
use crate::value::compare_with;

/// The operand of `$pull`.
#[derive(Debug, Clone)]
pub(super) enum Pull {
    /// Elements equal to a value.
    Equal(Bson),
    /// Elements that are documents and match.
    Document(Arc<Filter>),
    /// Elements that pass tests.
    Value(Arc<Filter>),
}

/// The field that holds an element while it is tested.
const HOLDER: &str = "e";

impl Pull {
    pub(super) fn parse(operand: &Bson, settings: &Settings) -> Result<Pull> {
        match operand {
            Bson::Document(condition) if of_value(condition) => Pull::value(operand, settings),
            Bson::Document(condition) => {
                let filter = Filter::parse_plain(&RawDocumentBuf::try_from(condition)?, settings)?;
                Ok(Pull::Document(Arc::new(filter)))
            }
            Bson::RegularExpression(_) => Pull::value(operand, settings),
            other => Ok(Pull::Equal(other.clone())),
        }
    }

    fn value(operand: &Bson, settings: &Settings) -> Result<Pull> {
        let holder = hold(operand.clone());
        let filter = Filter::parse_plain(&RawDocumentBuf::try_from(&holder)?, settings)?;
        Ok(Pull::Value(Arc::new(filter)))
    }

    pub(super) fn apply(&self, current: Option<&Bson>, cx: &Context<'_>) -> Result<Outcome> {
        match self {
            Pull::Equal(value) => remove(current, |element| {
                Ok(compare_with(element, value, cx.collator) == Ordering::Equal)
            }),
            Pull::Document(filter) => remove(current, |element| match element {
                Bson::Document(document) => filter.matches(&RawDocumentBuf::try_from(document)?),
                _ => Ok(false),
            }),
            Pull::Value(filter) => remove(current, |element| {
                filter.matches(&RawDocumentBuf::try_from(&hold(element.clone()))?)
            }),
        }
    }
}

/// Whether a condition begins with an operator on the element itself.
fn of_value(condition: &Document) -> bool {
    condition
        .keys()
        .next()
        .is_some_and(|name| is_of_fields(name))
}

fn hold(value: Bson) -> Document {
    let mut holder = Document::new();
    holder.insert(HOLDER, value);
    holder
}
