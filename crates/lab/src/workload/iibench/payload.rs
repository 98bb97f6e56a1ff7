//! The payload: the part of a row that is not indexed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum length of a payload, in bytes.
const MAX: u32 = 1 << 20;

/// Length and compressibility of the payload. The text `128:50` means 128 bytes, half of them
/// constant; `10-20:50` means a random length between 10 and 20 for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Minimum length, in bytes.
    pub min: u32,
    /// Maximum length, in bytes.
    pub max: u32,
    /// Share of the payload that is the same in all rows, in percent.
    pub constant: u8,
}

impl Payload {
    /// 128 bytes, half of them constant: a row and its index entries then have 236 bytes, close to
    /// what the published numbers of 2014 imply.
    pub const CLASSIC: Payload = Payload {
        min: 128,
        max: 128,
        constant: 50,
    };

    /// 10 to 20 bytes, half of them constant, as in the current Python program.
    pub const CURRENT: Payload = Payload {
        min: 10,
        max: 20,
        constant: 50,
    };

    /// 200 bytes, half of them constant: a small document of the redo log experiment.
    pub const REDO_LOG: Payload = Payload {
        min: 200,
        max: 200,
        constant: 50,
    };

    /// The mean length in bytes.
    #[must_use]
    pub fn mean_bytes(self) -> f64 {
        f64::from(self.min + self.max) / 2.0
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Payload { min, max, constant } = self;
        if min == max {
            return f.pad(&format!("{min}:{constant}"));
        }
        f.pad(&format!("{min}-{max}:{constant}"))
    }
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Payload, String> {
        let bad = || {
            format!(
                "not a payload: {text:?}; write LENGTH:PERCENT as in 128:50, or MIN-MAX:PERCENT \
                 as in 10-20:50 (at most {MAX} bytes)"
            )
        };
        let (length, constant) = text.split_once(':').unwrap_or((text, "50"));
        let (min, max) = length.split_once('-').unwrap_or((length, length));
        let payload = Payload {
            min: min.parse().map_err(|_| bad())?,
            max: max.parse().map_err(|_| bad())?,
            constant: constant.trim_end_matches('%').parse().map_err(|_| bad())?,
        };
        let legal = payload.min <= payload.max && payload.max <= MAX && payload.constant <= 100;
        legal.then_some(payload).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_read_and_print() {
        for (text, payload) in [("128:50", Payload::CLASSIC), ("10-20:50", Payload::CURRENT)] {
            assert_eq!(text.parse::<Payload>().unwrap(), payload);
            assert_eq!(payload.to_string(), text);
        }
        for text in ["", "x", "20-10:50", "1:101", "9999999:1"] {
            assert!(text.parse::<Payload>().is_err(), "{text}");
        }
    }
}
