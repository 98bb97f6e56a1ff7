//! Parses dates from text: without a format ([`date_free`]), or by the specifiers of a format.
//!
//! Both parsers fill [`Fields`], which are then checked and converted to an instant in the same
//! way.

use super::civil::{DAY, days_in_month, days_of_date, first_iso_monday, weekday};
use super::date_format::MONTHS;
use super::date_free;
use super::zone::Zone;
use crate::{Code, Error, Result};

/// The date fields parsed from a text.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) iso_year: Option<i64>,
    pub(super) iso_week: Option<i64>,
    pub(super) iso_day: Option<i64>,
    pub(super) day_of_year: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) millisecond: Option<i64>,
    /// The day of the week, 0 for Sunday: the date moves forward to this day.
    pub(super) weekday: Option<i64>,
    pub(super) zone: Option<Zone>,
}

/// A text, with the position up to which it is read.
pub(super) struct Reader<'t> {
    text: &'t str,
    pub(super) at: usize,
}

/// The instant of a text, in milliseconds since 1970 UTC. `zone` applies to a text without a time
/// zone; if `zone` is given, a text with a time zone is refused.
pub(super) fn parse(text: &str, format: Option<&str>, zone: Option<&Zone>) -> Result<i64> {
    let mut reader = Reader { text, at: 0 };
    let fields = match format {
        Some(format) => by_format(&mut reader, format)?,
        None => date_free::read(&mut reader).ok_or_else(|| reader.error())?,
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
    pub(super) fn rest(&self) -> &'t str {
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

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips all following letters that are in the set.
    pub(super) fn skip(&mut self, letters: &[u8]) {
        while self.one_of(letters).is_some() {}
    }

    /// Reads the next letter, if it is in the set.
    pub(super) fn one_of(&mut self, letters: &[u8]) -> Option<u8> {
        let found = self.peek().filter(|byte| letters.contains(byte))?;
        self.at += 1;
        Some(found)
    }

    /// Skips the next letter if it is `letter`; returns whether it was.
    pub(super) fn accept(&mut self, letter: u8) -> bool {
        let found = self.peek() == Some(letter);
        self.at += usize::from(found);
        found
    }

    /// Reads a number of `least` to `most` digits.
    pub(super) fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
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

    /// Reads a fraction of a second as milliseconds; digits after the third are dropped.
    pub(super) fn fraction(&mut self) -> Option<i64> {
        let rest = self.rest();
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let kept = rest.get(..count.min(3)).filter(|kept| !kept.is_empty())?;
        self.at += count;
        let missing = u32::try_from(3 - kept.len()).ok()?;
        Some(kept.parse::<i64>().ok()? * 10_i64.pow(missing))
    }

    /// Reads the name of a month, or its first three letters.
    pub(super) fn month(&mut self) -> Option<i64> {
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
}

fn by_format(reader: &mut Reader<'_>, format: &str) -> Result<Fields> {
    let mut fields = Fields::default();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let matched = if letter == '%' {
            match letters.next() {
                Some(specifier) => part(reader, &mut fields, specifier)?,
                None => return Err(unmatched_percent()),
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

/// Checks the specifiers of a format.
///
/// # Errors
/// 18535 for a `%` at the end, 18536 for a specifier that is not supported.
pub(super) fn check_format(format: &str) -> Result<()> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.next() {
            Some(specifier) if SPECIFIERS.contains(specifier) => {}
            Some(other) => return Err(unknown_specifier(other)),
            None => return Err(unmatched_percent()),
        }
    }
    Ok(())
}

/// The specifiers that [`part`] supports.
const SPECIFIERS: &str = "%zZYmbBdGVujHMSL";

fn unknown_specifier(specifier: char) -> Error {
    let message = format!("Invalid format character '%{specifier}' in format string");
    Error::location(18_536, message)
}

fn unmatched_percent() -> Error {
    Error::location(18_535, "Unmatched '%' at end of format string")
}

fn literal(reader: &mut Reader<'_>, letter: char) -> Option<()> {
    let found = reader.rest().starts_with(letter);
    reader.at += if found { letter.len_utf8() } else { 0 };
    found.then_some(())
}

/// Reads the text of one specifier; `Ok(None)` when the text does not match it.
fn part(reader: &mut Reader<'_>, fields: &mut Fields, specifier: char) -> Result<Option<()>> {
    let (place, found) = match specifier {
        '%' => return Ok(literal(reader, '%')),
        'z' => {
            fields.zone = date_free::read_zone(reader);
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
        other => return Err(unknown_specifier(other)),
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
            (Some(_), Some(given)) if !given.is_utc() => {
                return Err(refuse(format!(
                    "you cannot pass in a date/time string with time zone information ('{text}') \
                     together with a timezone argument"
                )));
            }
            (own, given) => own.as_ref().or(given).unwrap_or(&Zone::Utc),
        };
        let mut days = self.days(text)?;
        if let Some(wanted) = self.weekday {
            days += (wanted - weekday(days)).rem_euclid(7);
        }
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

    /// Checks that ISO years, weeks and weekdays are not combined with years, months and days.
    fn check_calendar(&self, text: &str) -> Result<()> {
        let iso_part = self.iso_week.or(self.iso_day).or(self.iso_year).is_some();
        let natural = self.year.or(self.month).or(self.day).is_some();
        if (self.year.is_some() && iso_part) || (self.iso_year.is_some() && natural) {
            return Err(refuse(format!(
                "Error parsing date string '{text}'; {}: Mixing of ISO dates with natural dates is \
                 not allowed",
                text.len()
            )));
        }
        Ok(())
    }

    fn days(&self, text: &str) -> Result<i64> {
        self.check_calendar(text)?;
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
