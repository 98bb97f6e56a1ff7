//! Parses options of stages, with the errors that several stages share.

use bson::{Bson, Document};

use crate::number::Number;
use crate::value::type_name;
use crate::{Error, Result, show};

/// Parses the operand of `$limit` or `$skip`, an integer.
///
/// # Errors
/// `code` when the operand is not a number, negative or too large.
pub(super) fn count(stage: &str, code: i32, spec: &Bson) -> Result<u64> {
    let fail = |what: &str| {
        Error::location(
            code,
            format!(
                "invalid argument to {stage} stage: Expected {what} in: {}",
                show::field(stage, spec)
            ),
        )
    };
    let Some(number) = Number::from_bson(spec) else {
        return Err(fail("a number"));
    };
    let Some(whole) = number.to_i64_exact() else {
        return Err(fail("an integer"));
    };
    u64::try_from(whole).map_err(|_| fail("a non-negative number"))
}

/// `spec` as a document; otherwise the error `code` with `message`.
pub(super) fn object<'a>(spec: &'a Bson, code: i32, message: &str) -> Result<&'a Document> {
    spec.as_document()
        .ok_or_else(|| Error::location(code, format!("{message}, found {}", type_name(spec))))
}

/// Refuses options that are not in `known`.
pub(super) fn only(stage: &str, spec: &Document, known: &[&str], code: i32) -> Result<()> {
    match spec.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Error::location(
            code,
            format!("unrecognized option to {stage}: {name}"),
        )),
    }
}
