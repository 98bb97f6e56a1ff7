//! Dates from text: ISO 8601 and its common relatives without a format, or by a format's
//! specifiers.
//!
//! Both readers gather [`Fields`]; what they make of them, and what they refuse, is the same.

use super::civil::{DAY, days_in_month, days_of_date, first_iso_monday};
use super::date_format::MONTHS;
use super::zone::{Zone, parse_offset};
use crate::{Code, Error, Result};

/// What a text says of a date.
#[derive(Debug, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    millisecond: Option<i64>,
    zone: Option<Zone>,
}

/// A text and how far it is read.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

/// The instant of a text, in milliseconds. `zone` is that of texts without one of their own; a text
/// that has one is refused when `zone` is given.
pub(super) fn parse(text: &str, format: Option<&str>, zone: Option<&Zone>) -> Result<i64> {
    let mut reader = Reader { text, at: 0 };
    let fields = match format {
        Some(format) => by_format(&mut reader, format)?,
        None => free(&mut reader).ok_or_else(|| reader.error())?,
    };
    if reader.at < text.len() {
        return Err(reader.error());
    }
    fields.instant(text, zone)
}

fn refuse(message: String) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn error(&self) -> Error {
        let text = self.text;
        refuse(match self.rest().chars().next() {
            None => format!(
                "Error parsing date string '{text}'; {}: Not enough data",
                self.at
            ),
            Some(found) => format!(
                "Error parsing date string '{text}'; {}: Unexpected character '{found}'",
                self.at
            ),
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn accept(&mut self, letter: u8) -> bool {
        let found = self.peek() == Some(letter);
        self.at += usize::from(found);
        found
    }

    /// A number of `least` to `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let rest = self.rest();
        let count = rest
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < least {
            return None;
        }
        self.at += count;
        rest.get(..count)?.parse().ok()
    }

    /// Milliseconds of a fraction; digits beyond the third are dropped.
    fn fraction(&mut self) -> Option<i64> {
        let rest = self.rest();
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let kept = rest.get(..count.min(3)).filter(|kept| !kept.is_empty())?;
        self.at += count;
        let missing = u32::try_from(3 - kept.len()).ok()?;
        Some(kept.parse::<i64>().ok()? * 10_i64.pow(missing))
    }

    /// A month's name, whole or its first three letters.
    fn month(&mut self) -> Option<i64> {
        let rest = self.rest();
        let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let word = rest.get(..length)?;
        let is = |name: &&str| {
            name.eq_ignore_ascii_case(word)
                || name
                    .get(..3)
                    .is_some_and(|short| short.eq_ignore_ascii_case(word))
        };
        let at = MONTHS.iter().position(is)?;
        self.at += length;
        i64::try_from(at + 1).ok()
    }

    /// The name of a zone, or an offset.
    fn zone(&mut self) -> Option<Zone> {
        let rest = self.rest();
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-:/_".contains(byte))
            .count();
        let name = rest.get(..length).filter(|name| !name.is_empty())?;
        let zone = match name {
            "Z" | "z" | "utc" | "gmt" => Zone::Utc,
            _ => parse_offset(name).map(Zone::Fixed).or_else(|| {
                let offset = name.strip_prefix("UTC").or(name.strip_prefix("GMT"));
                match offset.and_then(parse_offset) {
                    Some(offset) => Some(Zone::Fixed(offset)),
                    None => Zone::parse(name).ok(),
                }
            })?,
        };
        self.at += length;
        Some(zone)
    }

    fn spaces(&mut self) {
        while self.accept(b' ') {}
    }
}

/// A date in a customary form, then perhaps a time and a zone. What it cannot read is left over.
fn free(reader: &mut Reader<'_>) -> Option<Fields> {
    let mut fields = Fields::default();
    reader.spaces();
    free_date(reader, &mut fields)?;
    let before = reader.at;
    reader.spaces();
    let marked = reader.accept(b'T') || reader.accept(b't') || reader.at > before;
    if marked && reader.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        free_time(reader, &mut fields)?;
    }
    reader.spaces();
    if reader.peek().is_some() {
        fields.zone = Some(reader.zone()?);
    }
    reader.spaces();
    Some(fields)
}

fn free_date(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    if reader.peek()?.is_ascii_alphabetic() {
        // July 4, 2017
        fields.month = Some(reader.month()?);
        reader.spaces();
        fields.day = Some(reader.digits(1, 2)?);
        reader.accept(b',');
        reader.spaces();
        fields.year = Some(reader.digits(4, 4)?);
        return Some(());
    }
    let start = reader.at;
    if let Some(year) = reader.digits(4, 4) {
        fields.year = Some(year);
        let separator = reader.peek();
        if separator == Some(b'-') || separator == Some(b'/') {
            reader.at += 1;
            fields.month = Some(reader.digits(1, 2)?);
            if separator.is_some_and(|separator| reader.accept(separator)) {
                fields.day = Some(reader.digits(1, 2)?);
            } else {
                fields.day = Some(1);
            }
        } else {
            // 20170704
            fields.month = Some(reader.digits(2, 2)?);
            fields.day = Some(reader.digits(2, 2)?);
        }
        return Some(());
    }
    reader.at = start;
    let first = reader.digits(1, 2)?;
    if reader.accept(b'/') {
        // 7/4/2017
        fields.month = Some(first);
        fields.day = Some(reader.digits(1, 2)?);
        reader.accept(b'/').then_some(())?;
    } else {
        // 4 July 2017, 4-Jul-2017
        fields.day = Some(first);
        let dashed = reader.accept(b'-');
        reader.spaces();
        fields.month = Some(reader.month()?);
        if dashed {
            reader.accept(b'-').then_some(())?;
        }
        reader.spaces();
    }
    fields.year = Some(reader.digits(4, 4)?);
    Some(())
}

fn free_time(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    fields.hour = Some(reader.digits(1, 2)?);
    let colon = reader.accept(b':');
    if !colon && !reader.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        return None;
    }
    fields.minute = Some(reader.digits(2, 2)?);
    let more = if colon {
        reader.accept(b':')
    } else {
        reader.peek().is_some_and(|byte| byte.is_ascii_digit())
    };
    if more {
        fields.second = Some(reader.digits(2, 2)?);
        if reader.accept(b'.') || reader.accept(b',') {
            fields.millisecond = Some(reader.fraction()?);
        }
    }
    Some(())
}

fn by_format(reader: &mut Reader<'_>, format: &str) -> Result<Fields> {
    let mut fields = Fields::default();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let matched = if letter == '%' {
            match letters.next() {
                Some(specifier) => part(reader, &mut fields, specifier)?,
                None => {
                    return Err(Error::location(
                        18_535,
                        "Unmatched '%' at end of format string",
                    ));
                }
            }
        } else {
            literal(reader, letter)
        };
        if matched.is_none() {
            return Err(reader.error());
        }
    }
    Ok(fields)
}

fn literal(reader: &mut Reader<'_>, letter: char) -> Option<()> {
    let found = reader.rest().starts_with(letter);
    reader.at += if found { letter.len_utf8() } else { 0 };
    found.then_some(())
}

/// One specifier; `Ok(None)` when the text does not go with it.
fn part(reader: &mut Reader<'_>, fields: &mut Fields, specifier: char) -> Result<Option<()>> {
    let (place, found) = match specifier {
        '%' => return Ok(literal(reader, '%')),
        'z' => {
            fields.zone = reader.zone();
            return Ok(fields.zone.as_ref().map(|_| ()));
        }
        'Z' => {
            fields.zone = minutes_offset(reader);
            return Ok(fields.zone.as_ref().map(|_| ()));
        }
        'Y' => (&mut fields.year, reader.digits(1, 4)),
        'm' => (&mut fields.month, reader.digits(1, 2)),
        'b' | 'B' => (&mut fields.month, reader.month()),
        'd' => (&mut fields.day, reader.digits(1, 2)),
        'G' => (&mut fields.iso_year, reader.digits(1, 4)),
        'V' => (&mut fields.iso_week, reader.digits(1, 2)),
        'u' => (&mut fields.iso_day, reader.digits(1, 1)),
        'j' => (&mut fields.day_of_year, reader.digits(1, 3)),
        'H' => (&mut fields.hour, reader.digits(1, 2)),
        'M' => (&mut fields.minute, reader.digits(1, 2)),
        'S' => (&mut fields.second, reader.digits(1, 2)),
        'L' => (&mut fields.millisecond, reader.fraction()),
        other => {
            return Err(Error::location(
                18_536,
                format!("Invalid format character '%{other}' in format string"),
            ));
        }
    };
    *place = found;
    Ok(found.map(|_| ()))
}

/// `+120`: minutes east of UTC.
fn minutes_offset(reader: &mut Reader<'_>) -> Option<Zone> {
    let sign = if reader.accept(b'-') {
        -1
    } else {
        reader.accept(b'+');
        1
    };
    Some(Zone::Fixed(sign * reader.digits(1, 4)? * 60_000))
}

impl Fields {
    fn instant(self, text: &str, zone: Option<&Zone>) -> Result<i64> {
        let zone = match (&self.zone, zone) {
            (Some(_), Some(_)) => {
                return Err(refuse(format!(
                    "you cannot pass in a date/time string with time zone information ('{text}') \
                     together with a timezone argument"
                )));
            }
            (own, given) => own.as_ref().or(given).unwrap_or(&Zone::Utc),
        };
        let days = self.days(text)?;
        let time = [
            ("hour", self.hour, 24, 3_600_000),
            ("minute", self.minute, 60, 60_000),
            ("second", self.second, 61, 1000),
            ("millisecond", self.millisecond, 1000, 1),
        ];
        let mut millis = days * DAY;
        for (name, value, limit, length) in time {
            let value = value.unwrap_or(0);
            if value >= limit {
                return Err(refuse(format!(
                    "Error parsing date string '{text}'; the {name} {value} is out of range"
                )));
            }
            millis += value * length;
        }
        Ok(zone.instant(millis))
    }

    fn days(&self, text: &str) -> Result<i64> {
        let checked = |name: &str, value: i64, most: i64| {
            if (1..=most).contains(&value) {
                Ok(value)
            } else {
                Err(refuse(format!(
                    "Error parsing date string '{text}'; the {name} {value} is out of range"
                )))
            }
        };
        if let Some(year) = self.iso_year {
            let week = checked("week", self.iso_week.unwrap_or(1), 53)?;
            let day = checked("day of the week", self.iso_day.unwrap_or(1), 7)?;
            return Ok(first_iso_monday(year) + (week - 1) * 7 + day - 1);
        }
        let Some(year) = self.year else {
            return Err(incomplete(text));
        };
        if let Some(day) = self.day_of_year {
            return Ok(days_of_date(year, 1, 1) + checked("day of the year", day, 366)? - 1);
        }
        let (Some(month), Some(day)) = (self.month, self.day) else {
            return Err(incomplete(text));
        };
        let month = checked("month", month, 12)?;
        let day = checked("day", day, days_in_month(year, month))?;
        Ok(days_of_date(year, month, day))
    }
}

fn incomplete(text: &str) -> Error {
    refuse(format!(
        "an incomplete date/time string has been found, with elements missing: \"{text}\""
    ))
}
