//! Dates as text, by the format specifiers of `$dateToString`.

use std::fmt::Write as _;

use super::args::fail;
use super::civil::Civil;
use super::zone::Zone;
use crate::Result;

/// The default format for dates in UTC.
pub(crate) const ISO_UTC: &str = "%Y-%m-%dT%H:%M:%S.%LZ";
/// The default format for dates in other time zones.
pub(crate) const ISO_LOCAL: &str = "%Y-%m-%dT%H:%M:%S.%L";

/// English names of the months, for printing and for parsing.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Formats an instant, in milliseconds since 1970 UTC, as local time of `zone`.
pub(crate) fn format(pattern: &str, instant: i64, zone: &Zone) -> Result<String> {
    let civil = zone.civil(instant);
    let mut text = String::with_capacity(pattern.len() + 16);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let Some(specifier) = letters.next() else {
            return fail(18_535, "Unmatched '%' at end of format string");
        };
        write_part(&mut text, specifier, &civil, zone.offset(instant) / 60_000)?;
    }
    Ok(text)
}

fn write_part(text: &mut String, specifier: char, civil: &Civil, offset: i64) -> Result<()> {
    let month = || {
        let at = usize::try_from(civil.month - 1).unwrap_or(0);
        MONTHS.get(at).copied().unwrap_or("")
    };
    let (number, width) = match specifier {
        '%' => {
            text.push('%');
            return Ok(());
        }
        'b' => {
            text.push_str(month().get(..3).unwrap_or(""));
            return Ok(());
        }
        'B' => {
            text.push_str(month());
            return Ok(());
        }
        'z' => {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs());
            return print(
                text,
                format_args!("{sign}{:02}{:02}", minutes / 60, minutes % 60),
            );
        }
        'Z' => return print(text, format_args!("{offset}")),
        'Y' => (four_digits(civil.year)?, 4),
        'G' => (four_digits(civil.iso_week().0)?, 4),
        'm' => (civil.month, 2),
        'd' => (civil.day, 2),
        'H' => (civil.hour, 2),
        'M' => (civil.minute, 2),
        'S' => (civil.second, 2),
        'L' => (civil.millisecond, 3),
        'j' => (civil.day_of_year(), 3),
        'w' => (civil.day_of_week(), 1),
        'u' => (civil.iso_day_of_week(), 1),
        'U' => (civil.week(), 2),
        'V' => (civil.iso_week().1, 2),
        other => {
            return fail(
                18_536,
                format!("Invalid format character '%{other}' in format string"),
            );
        }
    };
    print(text, format_args!("{number:0width$}"))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the arms of a match that return results end with it"
)]
fn print(text: &mut String, part: std::fmt::Arguments<'_>) -> Result<()> {
    text.write_fmt(part)
        .expect("strings take all that is written");
    Ok(())
}

fn four_digits(year: i64) -> Result<i64> {
    if !(0..=9999).contains(&year) {
        return fail(
            18_537,
            format!("$dateToString is only defined on year 0-9999, tried to use year {year}"),
        );
    }
    Ok(year)
}

/// An instant as `2024-01-31T12:00:00.000Z`; the year has as many digits as it needs.
pub(crate) fn iso(instant: i64) -> String {
    let c = Civil::from_millis(instant);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    )
}
