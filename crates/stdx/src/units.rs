//! Units in a form for people: sizes in bytes, counts, durations.

use std::fmt;
use std::str::FromStr;

/// A number of bytes. Written `512M`, `1.5G`, `4096`; K, M, G, T are powers of 1024, and a
/// trailing `B` or `iB` is allowed. With the feature `serde` it is serialised as a plain number of
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> ByteSize {
        ByteSize(n << 10)
    }

    /// `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> ByteSize {
        ByteSize(n << 20)
    }

    /// `n` GiB.
    #[must_use]
    pub const fn gib(n: u64) -> ByteSize {
        ByteSize(n << 30)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

const UNITS: [(&str, u64); 4] = [
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
];

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, size) in UNITS {
            if self.0 >= size {
                let text = if self.0.is_multiple_of(size) {
                    format!("{}{name}", self.0 / size)
                } else {
                    format!("{:.1}{name}", self.0 as f64 / size as f64)
                };
                return f.pad(&text);
            }
        }
        f.pad(&format!("{}B", self.0))
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let bad = || format!("not a size: {text:?}; write it like 512M, 1.5G or 4096");
        let upper = text.trim().to_ascii_uppercase();
        let digits = upper.trim_end_matches('B').trim_end_matches('I');
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, size)| Some((digits.strip_suffix(name)?, *size)))
            .unwrap_or((digits, 1));
        let number = number.trim();
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(ByteSize).ok_or_else(bad);
        }
        let value = number.parse::<f64>().map_err(|_| bad())? * unit as f64;
        if !(0.0..9.0e18).contains(&value) {
            return Err(bad());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked above; fractions of a byte are dropped"
        )]
        Ok(ByteSize(value as u64))
    }
}

#[cfg(feature = "serde")]
mod in_records {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::ByteSize;

    impl Serialize for ByteSize {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u64(self.0)
        }
    }

    impl<'de> Deserialize<'de> for ByteSize {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
            #[derive(Deserialize)]
            #[serde(untagged)]
            enum Either {
                Number(u64),
                Text(String),
            }
            match Either::deserialize(deserializer)? {
                Either::Number(n) => Ok(ByteSize(n)),
                Either::Text(t) => t.parse().map_err(Error::custom),
            }
        }
    }
}

/// Formats a count: `950`, `12.3k`, `4.56M`, `7.80G` (decimal units).
#[must_use]
pub fn count(n: f64) -> String {
    match n.abs() {
        x if x >= 1e9 => format!("{:.2}G", n / 1e9),
        x if x >= 1e6 => format!("{:.2}M", n / 1e6),
        x if x >= 1e4 => format!("{:.1}k", n / 1e3),
        x if x >= 100.0 || n.fract() == 0.0 => format!("{n:.0}"),
        _ => format!("{n:.2}"),
    }
}

/// Formats a duration in seconds: `850ms`, `12.3s`, `04:12`, `2:03:00`.
#[must_use]
pub fn seconds(s: f64) -> String {
    if s < 1.0 {
        return format!("{:.0}ms", s * 1e3);
    }
    if s < 60.0 {
        return format!("{s:.1}s");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "s >= 60; saturates"
    )]
    let whole = s.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{rest:02}")
    } else {
        format!("{minutes:02}:{rest:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes) in [
            ("4096", 4096),
            ("512M", 512 << 20),
            ("1.5G", 3 << 29),
            ("2 KiB", 2048),
            ("7b", 7),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().bytes(), bytes, "{text}");
        }
        assert_eq!(ByteSize::mib(384).to_string(), "384M");
        assert_eq!(ByteSize(1_610_612_736).to_string(), "1.5G");
        assert_eq!(ByteSize(12).to_string(), "12B");
    }

    #[test]
    fn what_is_not_a_size_is_named() {
        for text in ["", "M", "-1", "1X", "99999999999999T", "NaN"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert!("12Q".parse::<ByteSize>().unwrap_err().contains("12Q"));
    }

    #[test]
    fn people_can_read_counts_and_durations() {
        assert_eq!(count(133_000.0), "133.0k");
        assert_eq!(count(12.0), "12");
        assert_eq!(seconds(0.85), "850ms");
        assert_eq!(seconds(252.0), "04:12");
        assert_eq!(seconds(7380.0), "2:03:00");
    }
}
