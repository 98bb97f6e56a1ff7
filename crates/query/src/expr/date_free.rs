//! Parses dates written without a given format: ISO 8601, American and European dates, names of
//! months, RFC 2822, the log format of web servers.
//!
//! A text is a list of items in any order (a date, a time, a day of the week, a zone), separated by
//! spaces, commas and points; each kind of item may occur once. The forms of items are those of
//! MongoDB's parser that specify a date; relative ones ("yesterday") are not supported.

use super::date_text::{Fields, Reader};
use super::zone::{Zone, abbreviation, parse_offset};

/// Names of the days of the week, from Sunday. Their first three letters are accepted, too.
const DAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// One part of a text.
enum Item {
    /// Year, month and day; `None` if not given.
    Date(Option<i64>, Option<i64>, Option<i64>),
    /// A year, and the number of a day in that year.
    DayOfYear(i64, i64),
    /// A year, week and day of ISO 8601.
    Week(i64, i64, Option<i64>),
    /// Hour, minute, second and millisecond.
    Time([i64; 4]),
    /// The day of the week; 0 is Sunday.
    Weekday(i64),
    Zone(Zone),
}

/// Parses one form. If it returns `None`, the caller resets the reader.
type Form = fn(&mut Reader<'_>) -> Option<Item>;

/// The forms of items. A form that is the beginning of another one comes after it.
const FORMS: [Form; 13] = [
    week,
    day_of_year,
    year_first,
    american,
    log,
    day_month_year,
    short_year_first,
    time,
    day_first,
    month_first,
    weekday,
    noon,
    zone,
];

/// Parses a date text; `None` if part of it is not a date, with the reader at the start of that
/// part.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Fields> {
    let mut fields = Fields::default();
    loop {
        reader.skip(b" \t,.");
        if reader.peek().is_none() {
            return Some(fields);
        }
        let start = reader.at;
        let item = FORMS.iter().find_map(|form| {
            reader.at = start;
            form(reader)
        });
        if item.and_then(|item| enter(&mut fields, item)).is_none() {
            reader.at = start;
            return None;
        }
    }
}

/// Sets the fields of an item; `None` if they were set before.
fn enter(fields: &mut Fields, item: Item) -> Option<()> {
    let dated = fields.year.is_some() || fields.month.is_some() || fields.iso_year.is_some();
    let free = match &item {
        Item::Date(..) | Item::DayOfYear(..) | Item::Week(..) => !dated,
        Item::Time(_) => fields.hour.is_none(),
        Item::Weekday(_) => fields.weekday.is_none(),
        Item::Zone(_) => fields.zone.is_none(),
    };
    free.then_some(())?;
    match item {
        Item::Date(year, month, day) => {
            (fields.year, fields.month, fields.day) = (year, month, day);
        }
        Item::DayOfYear(year, day) => {
            (fields.year, fields.day_of_year) = (Some(year), Some(day));
        }
        Item::Week(year, week, day) => {
            (fields.iso_year, fields.iso_week, fields.iso_day) = (Some(year), Some(week), day);
        }
        Item::Time([hour, minute, second, millisecond]) => {
            (fields.hour, fields.minute) = (Some(hour), Some(minute));
            (fields.second, fields.millisecond) = (Some(second), Some(millisecond));
        }
        Item::Weekday(day) => fields.weekday = Some(day),
        Item::Zone(zone) => fields.zone = Some(zone),
    }
    Some(())
}

fn date(year: i64, month: i64, day: i64) -> Option<Item> {
    Some(Item::Date(Some(year), Some(month), Some(day)))
}

/// `None` if the next character is a digit.
fn ended(reader: &Reader<'_>) -> Option<()> {
    let digit = reader.peek().is_some_and(|byte| byte.is_ascii_digit());
    (!digit).then_some(())
}

/// A year of up to four digits; of two digits, 00 to 69 mean 2000 to 2069, 70 to 99 mean 1970 to
/// 1999.
fn year(reader: &mut Reader<'_>) -> Option<i64> {
    let start = reader.at;
    let year = reader.digits(1, 4)?;
    ended(reader)?;
    Some(match (reader.at - start, year) {
        (..=2, ..=69) => year + 2000,
        (..=2, _) => year + 1900,
        _ => year,
    })
}

/// `2017-W27-2`, `2017W27`.
fn week(reader: &mut Reader<'_>) -> Option<Item> {
    let year = reader.digits(4, 4)?;
    reader.accept(b'-');
    reader.accept(b'W').then_some(())?;
    let week = reader.digits(2, 2)?;
    reader.accept(b'-');
    Some(Item::Week(year, week, reader.digits(1, 1)))
}

/// `2017185`, `2017.185`, `2017-185`.
fn day_of_year(reader: &mut Reader<'_>) -> Option<Item> {
    let year = reader.digits(4, 4)?;
    let _separated = reader.accept(b'.') || reader.accept(b'-');
    let day = reader.digits(3, 3)?;
    ended(reader)?;
    Some(Item::DayOfYear(year, day))
}

/// `2017-07-04`, `2017/7/4`, `2017-Jul-04`, `2017-07`, `20170704`, `2017 July`.
fn year_first(reader: &mut Reader<'_>) -> Option<Item> {
    let year = reader.digits(4, 4)?;
    let separator = reader.peek()?;
    if separator.is_ascii_digit() {
        let (month, day) = (reader.digits(2, 2)?, reader.digits(2, 2)?);
        ended(reader)?;
        return date(year, month, day);
    }
    if separator == b'-' || separator == b'/' {
        reader.at += 1;
        if let Some(month) = reader.digits(1, 2) {
            let day = if reader.accept(separator) {
                reader.digits(1, 2)?
            } else {
                1
            };
            ended(reader)?;
            return date(year, month, day);
        }
        let month = reader.month()?;
        let day = if reader.accept(b'-') {
            reader.digits(1, 2)?
        } else {
            1
        };
        ended(reader)?;
        return date(year, month, day);
    }
    reader.skip(b" .\t");
    let month = reader.month()?;
    date(year, month, 1)
}

/// `7/4/2017`, `7/4/17`, or `7/4` without a year.
fn american(reader: &mut Reader<'_>) -> Option<Item> {
    let month = reader.digits(1, 2)?;
    reader.accept(b'/').then_some(())?;
    let day = reader.digits(1, 2)?;
    let year = match reader.accept(b'/') {
        true => Some(year(reader)?),
        false => None,
    };
    ended(reader)?;
    Some(Item::Date(year, Some(month), Some(day)))
}

/// `04/Jul/2017`, followed by a time such as `:11:56:02`.
fn log(reader: &mut Reader<'_>) -> Option<Item> {
    let day = reader.digits(1, 2)?;
    reader.accept(b'/').then_some(())?;
    let month = reader.month()?;
    reader.accept(b'/').then_some(())?;
    let year = reader.digits(4, 4)?;
    reader.accept(b':').then_some(())?;
    date(year, month, day)
}

/// `04-07-2017`, `4.7.2017`: the day before the month.
fn day_month_year(reader: &mut Reader<'_>) -> Option<Item> {
    let day = reader.digits(1, 2)?;
    let _separated = reader.one_of(b".-\t")?;
    let month = reader.digits(1, 2)?;
    let _separated = reader.one_of(b".-")?;
    let year = reader.digits(4, 4)?;
    ended(reader)?;
    date(year, month, day)
}

/// `17-07-04`.
fn short_year_first(reader: &mut Reader<'_>) -> Option<Item> {
    let start = reader.at;
    let year = year(reader).filter(|_| reader.at == start + 2)?;
    reader.accept(b'-').then_some(())?;
    let month = reader.digits(2, 2)?;
    reader.accept(b'-').then_some(())?;
    let day = reader.digits(2, 2)?;
    ended(reader)?;
    date(year, month, day)
}

/// `4 July 2017`, `04-Jul-17`, or `4 July` without a year; `4th of` is not supported.
fn day_first(reader: &mut Reader<'_>) -> Option<Item> {
    let day = reader.digits(1, 2)?;
    ordinal(reader);
    reader.skip(b" .\t-");
    let month = reader.month()?;
    let before = reader.at;
    reader.skip(b" .\t-");
    let year = year(reader);
    if year.is_none() {
        reader.at = before;
    }
    Some(Item::Date(year, Some(month), Some(day)))
}

/// `July 4th, 2017`, `Jul-04-2017`, `July 2017`, or `July 4` without a year.
fn month_first(reader: &mut Reader<'_>) -> Option<Item> {
    let month = reader.month()?;
    reader.skip(b" .\t-");
    let start = reader.at;
    if let Some(year) = reader.digits(4, 4) {
        ended(reader)?;
        return date(year, month, 1);
    }
    reader.at = start;
    let Some(day) = reader.digits(1, 2) else {
        return Some(Item::Date(None, Some(month), None));
    };
    ordinal(reader);
    let before = reader.at;
    reader.skip(b" ,.\t-");
    let year = year(reader).filter(|_| before < reader.at && reader.peek() != Some(b':'));
    if year.is_none() {
        reader.at = before;
    }
    Some(Item::Date(year, Some(month), Some(day)))
}

/// Skips `st`, `nd`, `rd` or `th` after the day.
fn ordinal(reader: &mut Reader<'_>) {
    let rest = reader.rest();
    let suffix = rest.get(..2).unwrap_or("").to_ascii_lowercase();
    let next = rest.as_bytes().get(2).copied();
    let whole = next.is_none_or(|byte| !byte.is_ascii_alphabetic());
    if whole && matches!(&*suffix, "st" | "nd" | "rd" | "th") {
        reader.at += 2;
    }
}

/// `11:56`, `11:56:02.813`, `T115602`, `11am`, `11:56:02 pm`.
fn time(reader: &mut Reader<'_>) -> Option<Item> {
    let marked = reader.accept(b'T') || reader.accept(b't');
    let start = reader.at;
    if marked && let Some(time) = compact_time(reader) {
        return Some(time);
    }
    reader.at = start;
    let hour = reader.digits(1, 2)?;
    let [mut minute, mut second, mut millisecond] = [0; 3];
    let separated = reader.one_of(b":.").is_some();
    if separated {
        minute = reader.digits(2, 2)?;
        let before = reader.at;
        let seconds = reader.one_of(b":.").and_then(|_| reader.digits(2, 2));
        match seconds {
            None => reader.at = before,
            Some(read) => {
                second = read;
                let before = reader.at;
                let fraction = reader.one_of(b".,:").and_then(|_| reader.fraction());
                millisecond = fraction.unwrap_or(0);
                if fraction.is_none() {
                    reader.at = before;
                }
            }
        }
    }
    ended(reader)?;
    let hour = match meridian(reader) {
        None if separated || marked => hour,
        None => return None,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
    };
    Some(Item::Time([hour, minute, second, millisecond]))
}

/// `115602`, `1156`.
fn compact_time(reader: &mut Reader<'_>) -> Option<Item> {
    let (hour, minute) = (reader.digits(2, 2)?, reader.digits(2, 2)?);
    let second = reader.digits(2, 2).unwrap_or(0);
    ended(reader)?;
    let before = reader.at;
    let fraction = reader.one_of(b".,").and_then(|_| reader.fraction());
    if fraction.is_none() {
        reader.at = before;
    }
    Some(Item::Time([hour, minute, second, fraction.unwrap_or(0)]))
}

/// Parses `am` (false) or `pm` (true).
fn meridian(reader: &mut Reader<'_>) -> Option<bool> {
    let before = reader.at;
    reader.skip(b" \t");
    let mut read = || {
        let half = reader.one_of(b"AaPp")?;
        reader.accept(b'.');
        reader.one_of(b"Mm")?;
        reader.accept(b'.');
        let more = reader.peek().is_some_and(|byte| byte.is_ascii_alphabetic());
        (!more).then_some(half.eq_ignore_ascii_case(&b'p'))
    };
    let found = read();
    if found.is_none() {
        reader.at = before;
    }
    found
}

/// The letters at the current position.
fn word<'t>(reader: &Reader<'t>) -> &'t str {
    let rest = reader.rest();
    let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    rest.get(..length).unwrap_or("")
}

fn weekday(reader: &mut Reader<'_>) -> Option<Item> {
    let word = word(reader);
    let name = word.to_ascii_lowercase();
    let is = |day: &str| day == name || day.get(..3) == Some(&*name);
    let special = |day: &str| matches!((day, &*name), ("tuesday", "tues") | ("thursday", "thurs"));
    let at = DAYS.iter().position(|day| is(day) || special(day))?;
    reader.at += word.len();
    Some(Item::Weekday(i64::try_from(at).ok()?))
}

/// `noon`, `midnight`.
fn noon(reader: &mut Reader<'_>) -> Option<Item> {
    let word = word(reader);
    let hour = match &*word.to_ascii_lowercase() {
        "noon" => 12,
        "midnight" => 0,
        _ => return None,
    };
    reader.at += word.len();
    Some(Item::Time([hour, 0, 0, 0]))
}

fn zone(reader: &mut Reader<'_>) -> Option<Item> {
    read_zone(reader).map(Item::Zone)
}

/// An offset (`+02`, `+0200`, `+02:00`, `GMT+02`), an abbreviation (`CEST`) or the letter of a
/// military zone, optionally in parentheses. Names of places are not accepted.
pub(super) fn read_zone(reader: &mut Reader<'_>) -> Option<Zone> {
    reader.skip(b" \t");
    let parenthesis = reader.accept(b'(');
    let word = word(reader);
    let rest = reader.rest().get(word.len()..).unwrap_or("");
    let signed = rest.starts_with(['+', '-']);
    let prefix = matches!(word, "GMT" | "UTC") && signed;
    let zone = if prefix || word.is_empty() {
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || b"+-:".contains(byte))
            .count();
        reader.at += word.len() + length;
        Zone::Fixed(parse_offset(rest.get(..length)?)?)
    } else {
        reader.at += word.len();
        match abbreviation(word)? {
            0 => Zone::Utc,
            minutes => Zone::Fixed(minutes * 60_000),
        }
    };
    (!parenthesis || reader.accept(b')')).then_some(zone)
}
