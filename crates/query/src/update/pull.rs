//! `$pull`: removes the elements of an array that match a condition.
//!
//! A condition on the element itself (`{$gte: 5}`, a regular expression) is parsed as a filter on
//! the only field of a wrapping document; a condition on fields is a filter on the element.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::raw::{CStr, cstr};
use bson::{Bson, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

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
    /// Elements that are documents and match the filter.
    Document(Arc<Filter>),
    /// Elements whose wrapping document `{HOLDER: element}` matches the filter.
    Value(Arc<Filter>),
}

/// The field of the wrapping document that holds an element while it is tested.
const HOLDER: &CStr = cstr!("e");

impl Pull {
    /// The condition is parsed from bytes, since it may name a field twice.
    pub(super) fn parse(operand: RawBsonRef<'_>, settings: &Settings) -> Result<Pull> {
        match operand {
            RawBsonRef::Document(condition) if of_value(condition)? => {
                Pull::value(operand, settings)
            }
            RawBsonRef::Document(condition) => {
                let filter = Filter::parse_plain(condition, settings)?;
                Ok(Pull::Document(Arc::new(filter)))
            }
            RawBsonRef::RegularExpression(_) => Pull::value(operand, settings),
            other => Ok(Pull::Equal(Bson::try_from(other)?)),
        }
    }

    fn value(operand: RawBsonRef<'_>, settings: &Settings) -> Result<Pull> {
        let mut holder = RawDocumentBuf::new();
        holder.append(HOLDER, operand);
        let filter = Filter::parse_plain(&holder, settings)?;
        Ok(Pull::Value(Arc::new(filter)))
    }

    pub(super) fn apply(&self, current: Option<&mut Bson>, cx: &Context<'_>) -> Result<Outcome> {
        match self {
            Pull::Equal(value) => remove(current, |element| {
                Ok(compare_with(element, value, cx.collator) == Ordering::Equal)
            }),
            Pull::Document(filter) => remove(current, |element| match element {
                Bson::Document(document) => filter.matches(&RawDocumentBuf::try_from(document)?),
                _ => Ok(false),
            }),
            Pull::Value(filter) => remove(current, |element| {
                let mut holder = RawDocumentBuf::new();
                holder.append(HOLDER, RawBson::try_from(element.clone())?);
                filter.matches(&holder)
            }),
        }
    }
}

/// Whether a condition begins with an operator on the element itself, not with a field name.
fn of_value(condition: &RawDocument) -> Result<bool> {
    let first = condition.iter_elements().next().transpose()?;
    Ok(first.is_some_and(|element| is_of_fields(element.key().as_str())))
}
