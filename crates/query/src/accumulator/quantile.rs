//! `$median` and `$percentile`: the value at rank ceil(p * n) of the sorted numbers (approximate
//! and discrete methods), or interpolated between neighbours (continuous).
//!
//! MongoDB's approximate method uses a digest; here the result is exact, which its specification
//! permits.

use bson::Bson;

use crate::number::Number;
use crate::value;
use crate::{Error, Result};

/// How a percentile is computed from the sorted numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// As one of the numbers.
    Discrete,
    /// By interpolation between two of the numbers.
    Continuous,
}

/// Parses the option `method`.
pub(crate) fn parse_method(spec: &Bson) -> Result<Method> {
    match spec {
        Bson::String(name) => match name.as_str() {
            "approximate" | "discrete" => Ok(Method::Discrete),
            "continuous" => Ok(Method::Continuous),
            _ => Err(Error::bad_value(
                "Currently only 'approximate', 'discrete' and 'continuous' can be used as \
                 percentile 'method'.",
            )),
        },
        other => Err(Error::type_mismatch(format!(
            "'method' must be a string, found {}",
            value::type_name(other)
        ))),
    }
}

/// Checks the value of `p`: an array of numbers from 0 to 1.
pub(crate) fn percentiles(spec: &Bson) -> Result<Vec<f64>> {
    let wrong = || {
        Error::location(
            7_750_301,
            format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: \
                 {spec}"
            ),
        )
    };
    let Bson::Array(items) = spec else {
        return Err(wrong());
    };
    if items.is_empty() {
        return Err(wrong());
    }
    items
        .iter()
        .map(|item| {
            let number = Number::from_bson(item).map(Number::to_f64);
            number.filter(|p| (0.0..=1.0).contains(p)).ok_or_else(wrong)
        })
        .collect()
}

/// The percentile `p` of sorted numbers; null without numbers.
pub(crate) fn quantile_of(sorted: &[f64], p: f64, method: Method) -> Bson {
    let Some(last) = sorted.len().checked_sub(1) else {
        return Bson::Null;
    };
    let at = |rank: usize| sorted.get(rank.min(last)).copied().unwrap_or(f64::NAN);
    match method {
        Method::Discrete => Bson::Double(at(whole((p * sorted.len() as f64).ceil() - 1.0))),
        Method::Continuous => {
            let rank = p * last as f64;
            let low = at(whole(rank.floor()));
            let high = at(whole(rank.ceil()));
            let share = rank - rank.floor();
            // A rank that hits a number exactly is not interpolated: with an infinite neighbour,
            // the product of zero and infinity would make it NaN.
            Bson::Double(if share == 0.0 {
                low
            } else {
                low + share * (high - low)
            })
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates: below zero is rank zero"
)]
fn whole(rank: f64) -> usize {
    rank as usize
}
