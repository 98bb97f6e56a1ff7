//! The collection's validator, checked before a document is stored.

use std::borrow::Cow;

use bson::{Bson, Document, RawDocument, doc};
use query::expr::Variables;
use query::filter::Filter;
use query::{Code, Error, Result, meter};

use crate::collection::{Action, Collection, Level};
use crate::txn::Op;

/// The validator of a collection for one operation, built once for many documents.
pub(crate) struct Validator<'v> {
    collection: &'v Collection,
    /// `None` when documents are not validated.
    filter: Option<&'v Filter>,
    /// The operation's variables; the filter itself is cached in the collection.
    variables: Option<Variables>,
}

impl<'v> Validator<'v> {
    /// The validator that applies to `op`, unless the operation may `bypass` it.
    pub(crate) fn of(op: &Op<'_>, collection: &'v Collection, bypass: bool) -> Validator<'v> {
        let options = collection.options();
        let asked = !bypass
            && options.validation_level != Level::Off
            && options.validation_action == Action::Error;
        let filter = collection.validator().filter(|_| asked);
        let reads = filter.is_some_and(Filter::has_expressions);
        Validator {
            collection,
            filter,
            variables: reads.then(|| op.settings().variables),
        }
    }

    /// Check that the operation may store `new`; `old` is the document it replaces.
    ///
    /// # Errors
    /// `DocumentValidationFailure`, with details of the failed rules.
    pub(crate) fn check(&self, old: Option<&RawDocument>, new: &RawDocument) -> Result<()> {
        let Some(filter) = self.filter else {
            return Ok(());
        };
        let matches = |document: &RawDocument| match &self.variables {
            Some(variables) => filter.matches_with(document, variables),
            None => filter.matches(document),
        };
        if matches(new)? {
            return Ok(());
        }
        if self.collection.options().validation_level == Level::Moderate
            && let Some(old) = old
            && !matches(old)?
        {
            return Ok(());
        }
        let id = new.get("_id")?.map(Bson::try_from).transpose()?;
        let filter = match &self.variables {
            Some(variables) => Cow::Owned(filter.with_variables(variables)),
            None => Cow::Borrowed(filter),
        };
        let details = details(&filter, new)?;
        let info = doc! { "failingDocumentId": id.unwrap_or(Bson::Null), "details": details };
        Err(Error::new(
            Code::DOCUMENT_VALIDATION_FAILURE,
            "Document failed validation",
        )
        .with_details(doc! { "errInfo": info }))
    }
}

/// Why a document is not valid. The reasons of all documents of an operation share half of its
/// memory; those that do not fit are left out.
fn details(filter: &Filter, document: &RawDocument) -> Result<Document> {
    let explained = filter.explain_failure(document).and_then(|details| {
        let bytes = meter::document_size(&details);
        meter::charge_reply("Document validation", bytes)?;
        Ok(details)
    });
    match explained {
        Err(error) if error.code == Code::EXCEEDED_MEMORY_LIMIT => Ok(doc! {
            "reason": "the reasons are left out, because they need too much memory",
        }),
        explained => explained,
    }
}

/// As [`Validator::check`], for one document.
///
/// # Errors
/// As [`Validator::check`].
pub(crate) fn validate(
    op: &Op<'_>,
    collection: &Collection,
    old: Option<&RawDocument>,
    new: &RawDocument,
    bypass: bool,
) -> Result<()> {
    Validator::of(op, collection, bypass).check(old, new)
}
