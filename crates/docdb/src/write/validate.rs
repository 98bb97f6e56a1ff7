//! The collection's validator, asked before a document is stored.

use bson::{Bson, RawDocument, doc};
use query::{Code, Error, Result};

use crate::collection::{Action, Collection, Level};

/// Whether a document may be stored; `old` is what it replaces.
///
/// # Errors
/// `DocumentValidationFailure`, with what failed.
pub(crate) fn validate(
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
    if validator.matches(new)? {
        return Ok(());
    }
    if options.validation_level == Level::Moderate
        && let Some(old) = old
        && !validator.matches(old)?
    {
        return Ok(());
    }
    let id = new.get("_id")?.map(Bson::try_from).transpose()?;
    let details = validator.explain_failure(new)?;
    let info = doc! { "failingDocumentId": id.unwrap_or(Bson::Null), "details": details };
    Err(Error::new(
        Code::DOCUMENT_VALIDATION_FAILURE,
        "Document failed validation",
    )
    .with_details(doc! { "errInfo": info }))
}
