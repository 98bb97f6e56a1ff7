//! The collection's validator, asked before a document is stored.

use std::borrow::Cow;

use bson::{Bson, RawDocument, doc};
use query::{Code, Error, Result};

use crate::collection::{Action, Collection, Level};
use crate::op::Op;

/// Whether an operation may store a document; `old` is what it replaces.
///
/// # Errors
/// `DocumentValidationFailure`, with what failed.
pub(crate) fn validate(
    op: &Op<'_>,
    collection: &Collection,
    old: Option<&RawDocument>,
    new: &RawDocument,
    bypass: bool,
) -> Result<()> {
    let options = collection.options();
    let asked = !bypass
        && options.validation_level != Level::Off
        && options.validation_action == Action::Error;
    let Some(validator) = collection.validator().filter(|_| asked) else {
        return Ok(());
    };
    // It is kept with the collection, and the variables are those of the operation.
    let variables = match validator.has_expressions() {
        true => Some(op.settings().variables),
        false => None,
    };
    let matches = |document: &RawDocument| match &variables {
        Some(variables) => validator.matches_with(document, variables),
        None => validator.matches(document),
    };
    if matches(new)? {
        return Ok(());
    }
    if options.validation_level == Level::Moderate
        && let Some(old) = old
        && !matches(old)?
    {
        return Ok(());
    }
    let id = new.get("_id")?.map(Bson::try_from).transpose()?;
    let validator = match &variables {
        Some(variables) => Cow::Owned(validator.with_variables(variables)),
        None => Cow::Borrowed(validator),
    };
    let details = validator.explain_failure(new)?;
    let info = doc! { "failingDocumentId": id.unwrap_or(Bson::Null), "details": details };
    Err(Error::new(
        Code::DOCUMENT_VALIDATION_FAILURE,
        "Document failed validation",
    )
    .with_details(doc! { "errInfo": info }))
}
