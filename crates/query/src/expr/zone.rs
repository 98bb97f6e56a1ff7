//! Time zones: UTC, fixed offsets, and the zones of the IANA database, which is compiled in.

use bson::Bson;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::args::{Args, fail, is_nullish, type_of};
use super::civil::Civil;
use crate::Result;

/// A time zone.
#[derive(Debug, Clone)]
pub(crate) enum Zone {
    /// Coordinated universal time.
    Utc,
    /// A fixed offset in milliseconds east of UTC.
    Fixed(i64),
    /// A zone of the IANA database.
    Named(TimeZone),
}

impl Zone {
    /// Parses a name such as `Europe/Rome`, or an offset such as `+02:00`, `+0200`, `+02`.
    pub(crate) fn parse(text: &str) -> Result<Zone> {
        if matches!(text, "UTC" | "GMT" | "Z" | "Etc/UTC") {
            return Ok(Zone::Utc);
        }
        if let Some(offset) = parse_offset(text) {
            return Ok(Zone::Fixed(offset));
        }
        match TimeZone::get(text) {
            Ok(zone) => Ok(Zone::Named(zone)),
            Err(_) => fail(
                40_485,
                format!("unrecognized time zone identifier: \"{text}\""),
            ),
        }
    }

    /// The offset at an instant, in milliseconds east of UTC.
    pub(crate) fn offset(&self, instant: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                // The rules cover some ten thousand years; outside, the first or the last offset
                // applies.
                let beyond = if instant < 0 {
                    Timestamp::MIN
                } else {
                    Timestamp::MAX
                };
                let instant = Timestamp::from_millisecond(instant).unwrap_or(beyond);
                i64::from(zone.to_offset(instant).seconds()) * 1000
            }
        }
    }

    /// Local time at an instant, in milliseconds since 1970-01-01.
    pub(crate) fn local(&self, instant: i64) -> i64 {
        instant.saturating_add(self.offset(instant))
    }

    /// Local date and time at an instant.
    pub(crate) fn civil(&self, instant: i64) -> Civil {
        Civil::from_millis(self.local(instant))
    }

    /// The instant of a local time. If clocks were set back over it, the earlier of its two
    /// instants; if clocks were set forward over it, the instant by the offset before the change.
    pub(crate) fn instant(&self, local: i64) -> i64 {
        match self {
            Zone::Named(zone) => named_instant(zone, local)
                .unwrap_or_else(|| local.saturating_sub(self.offset(local))),
            _ => local.saturating_sub(self.offset(local)),
        }
    }

    /// Whether it is UTC.
    pub(crate) fn is_utc(&self) -> bool {
        matches!(self, Zone::Utc | Zone::Fixed(0))
    }
}

fn named_instant(zone: &TimeZone, local: i64) -> Option<i64> {
    let parts = Civil::from_millis(local);
    let date_time = DateTime::new(
        i16::try_from(parts.year).ok()?,
        i8::try_from(parts.month).ok()?,
        i8::try_from(parts.day).ok()?,
        i8::try_from(parts.hour).ok()?,
        i8::try_from(parts.minute).ok()?,
        i8::try_from(parts.second).ok()?,
        i32::try_from(parts.millisecond * 1_000_000).ok()?,
    )
    .ok()?;
    let instant = zone.to_ambiguous_timestamp(date_time).compatible().ok()?;
    Some(instant.as_millisecond())
}

/// Abbreviations of time zones in dates, with their offsets in minutes east of UTC.
const ABBREVIATIONS: [(&str, i64); 37] = [
    ("acdt", 630),
    ("acst", 570),
    ("adt", -180),
    ("aedt", 660),
    ("aest", 600),
    ("akdt", -480),
    ("akst", -540),
    ("ast", -240),
    ("awst", 480),
    ("bst", 60),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cst", -360),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("est", -300),
    ("gmt", 0),
    ("hkt", 480),
    ("hst", -600),
    ("jst", 540),
    ("kst", 540),
    ("mdt", -360),
    ("msk", 180),
    ("mst", -420),
    ("ndt", -150),
    ("nst", -210),
    ("nzdt", 780),
    ("nzst", 720),
    ("pdt", -420),
    ("pst", -480),
    ("sast", 120),
    ("utc", 0),
    ("west", 60),
    ("wet", 0),
    ("z", 0),
];

/// Minutes east of UTC for an abbreviation such as `CEST`, or for the letter of a military zone: A
/// to M without J are one to twelve hours east, N to Y one to twelve hours west.
pub(super) fn abbreviation(name: &str) -> Option<i64> {
    let name = name.to_ascii_lowercase();
    let known = ABBREVIATIONS.iter().find(|(known, _)| *known == name);
    if let Some((_, minutes)) = known {
        return Some(*minutes);
    }
    let &[letter] = name.as_bytes() else {
        return None;
    };
    let hours = match letter {
        b'a'..=b'i' => i64::from(letter - b'a') + 1,
        b'k'..=b'm' => i64::from(letter - b'a'),
        b'n'..=b'y' => -(i64::from(letter - b'n') + 1),
        _ => return None,
    };
    Some(hours * 60)
}

/// Parses an offset such as `+hh`, `+hhmm` or `+hh:mm`, in milliseconds.
pub(crate) fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (_, Some(digits)) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    if hours.len() != 2
        || !digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b':')
    {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// The zone of an optional argument: UTC when not given, `None` when null.
pub(super) fn argument(args: &Args<'_>, at: usize) -> Result<Option<Zone>> {
    if !args.given(at) {
        return Ok(Some(Zone::Utc));
    }
    let value = args.value(at)?;
    if is_nullish(&value) {
        return Ok(None);
    }
    match value.as_deref() {
        Some(Bson::String(name)) => Zone::parse(name).map(Some),
        _ => fail(
            40_517,
            format!(
                "timezone must evaluate to a string, found {}",
                type_of(&value)
            ),
        ),
    }
}
