//! To be written: a stand-in of the codec's name.

use std::fmt;
use std::str::FromStr;

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at a level of 1 to 9.
    Zstd(i8),
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::None => f.pad("none"),
            Codec::Lz4 => f.pad("lz4"),
            Codec::Zstd(level) => f.pad(&format!("zstd:{level}")),
        }
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Codec, String> {
        let level = text.strip_prefix("zstd:").and_then(|l| l.parse().ok());
        match (text, level) {
            ("none", _) => Ok(Codec::None),
            ("lz4", _) => Ok(Codec::Lz4),
            (_, Some(level @ 1..=9)) => Ok(Codec::Zstd(level)),
            _ => Err(format!(
                "not a codec: {text:?}; use none, lz4 or zstd:1 to zstd:9"
            )),
        }
    }
}
