//! Values where a string is wanted: what `$toLower`, `$substrBytes` and their kin take for text.

use bson::Bson;

use super::args::{fail, type_of};
use super::date_format;
use super::env::Value;
use crate::Result;
use crate::number::Number;

/// The text of a value; empty for null and missing.
pub(super) fn to_text(value: &Value<'_>) -> Result<String> {
    let Some(found) = value.as_deref() else {
        return Ok(String::new());
    };
    match found {
        Bson::Null | Bson::Undefined => Ok(String::new()),
        Bson::String(text) | Bson::Symbol(text) | Bson::JavaScriptCode(text) => Ok(text.clone()),
        Bson::DateTime(date) => Ok(date_format::iso(date.timestamp_millis())),
        Bson::Timestamp(time) => Ok(format!("Timestamp({}, {})", time.time, time.increment)),
        // `$toString` writes them `NaN` and `Infinity`; this is how C prints them.
        Bson::Double(n) if !n.is_finite() => Ok(n.to_string().to_lowercase()),
        other => match Number::from_bson(other) {
            Some(number) => Ok(number.to_string()),
            None => fail(
                16_007,
                format!("can't convert from BSON type {} to String", type_of(value)),
            ),
        },
    }
}
