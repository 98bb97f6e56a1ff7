//! Conversion to text where `$toLower`, `$substrBytes` and similar operators take a string.

use bson::{Bson, Timestamp};

use super::args::{fail, type_of};
use super::civil::Civil;
use super::date_format::{self, MONTHS};
use super::env::Value;
use crate::number::Number;
use crate::{Result, meter};

/// The text of a value; empty for null and missing.
pub(super) fn to_text(value: &Value<'_>) -> Result<String> {
    let Some(found) = value.as_deref() else {
        return Ok(String::new());
    };
    match found {
        Bson::Null | Bson::Undefined => Ok(String::new()),
        Bson::String(text) | Bson::Symbol(text) | Bson::JavaScriptCode(text) => {
            meter::read(text.len())?;
            meter::charge("A string", text.len())?;
            Ok(text.clone())
        }
        Bson::DateTime(date) => Ok(date_format::iso(date.timestamp_millis())),
        Bson::Timestamp(time) => Ok(timestamp(*time)),
        // Lower case, as C prints them; `$toString` writes `NaN` and `Infinity`.
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

/// A timestamp as MongoDB shows it here: `Jan 1 00:00:02:1`, without its year. The time zone is
/// UTC; MongoDB uses the time zone of its process.
fn timestamp(time: Timestamp) -> String {
    let civil = Civil::from_millis(i64::from(time.time) * 1000);
    let month = usize::try_from(civil.month - 1).ok();
    let month = month.and_then(|month| MONTHS.get(month)?.get(..3));
    format!(
        "{} {:>2} {:02}:{:02}:{:02}:{}",
        month.unwrap_or_default(),
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        time.increment
    )
}
