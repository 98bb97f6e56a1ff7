//! The arguments of single operators: `$regex`, `$mod`, `$size`.

use bson::{Bson, RawBsonRef, RawDocument};

use super::Test;
use crate::number::Number;
use crate::regex::Regex;
use crate::{Error, Result, show};

/// Parses `$regex`, with `$options` from the same document of operators.
pub(super) fn regex(value: RawBsonRef<'_>, operators: &RawDocument) -> Result<Regex> {
    let beside = match operators.get("$options")? {
        None => None,
        Some(RawBsonRef::String(options)) => Some(options),
        Some(_) => return Err(Error::bad_value("$options has to be a string")),
    };
    match value {
        RawBsonRef::String(pattern) => Regex::new(pattern, beside.unwrap_or_default()),
        RawBsonRef::RegularExpression(regex) => {
            let own = regex.options.as_str();
            if beside.is_some() && !own.is_empty() {
                return Err(Error::new(
                    crate::Code(51075),
                    "options set in both $regex and $options",
                ));
            }
            Regex::new(regex.pattern.as_str(), beside.unwrap_or(own))
        }
        _ => Err(Error::bad_value("$regex has to be a string")),
    }
}

/// Compiles a regular expression value.
pub(super) fn regex_value(regex: bson::raw::RawRegexRef<'_>) -> Result<Regex> {
    Regex::new(regex.pattern.as_str(), regex.options.as_str())
}

/// `$mod: [divisor, remainder]`.
pub(super) fn modulo(value: RawBsonRef<'_>) -> Result<Test> {
    let RawBsonRef::Array(list) = value else {
        return Err(Error::bad_value("malformed mod, needs to be an array"));
    };
    let items = list
        .into_iter()
        .collect::<bson::error::Result<Vec<RawBsonRef<'_>>>>()?;
    let (divisor, remainder) = match items.as_slice() {
        [] | [_] => return Err(Error::bad_value("malformed mod, not enough elements")),
        [divisor, remainder] => (*divisor, *remainder),
        _ => return Err(Error::bad_value("malformed mod, too many elements")),
    };
    let divisor = whole(divisor, "divisor")?;
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Test::Mod {
        divisor,
        remainder: whole(remainder, "remainder")?,
    })
}

fn whole(value: RawBsonRef<'_>, name: &str) -> Result<i64> {
    let number = Number::from_raw(value)
        .ok_or_else(|| Error::bad_value(format!("malformed mod, {name} not a number")))?;
    number.to_i64_truncated().ok_or_else(|| {
        let reason = if number.is_nan() || number.is_infinite() {
            "Unable to coerce NaN/Inf to integral type"
        } else {
            "Out of bounds coercing to integral value"
        };
        Error::bad_value(format!(
            "malformed mod, {name} value is invalid :: caused by :: {reason}"
        ))
    })
}

/// Parses `$size`, an integer of at least zero.
pub(super) fn size(value: RawBsonRef<'_>) -> Result<Test> {
    let fail = |what: &str| {
        let shown = shown(value);
        Error::bad_value(format!("Failed to parse $size. {what}: $size: {shown}"))
    };
    let number = Number::from_raw(value).ok_or_else(|| fail("Expected a number in"))?;
    match number.to_i64_exact() {
        Some(size) if size >= 0 => Ok(Test::Size(size)),
        Some(_) => Err(fail("Expected a non-negative number in")),
        None => Err(fail("Expected an integer")),
    }
}

/// The value as text for messages.
pub(super) fn shown(value: RawBsonRef<'_>) -> String {
    Bson::try_from(value).map_or(String::new(), |value| show::value(&value))
}
