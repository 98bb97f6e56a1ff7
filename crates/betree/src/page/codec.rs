//! The names of the codecs.

use std::fmt;
use std::str::FromStr;

/// How the values of a page, and keys of unequal lengths, are compressed. Keys of one length are
/// always stored as byte planes, which most codecs could not make smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Not at all.
    None,
    /// LZ4: about 1 ns per byte to compress, a third of that to decompress.
    #[default]
    Lz4,
    /// Zstandard at a level from 1 to 9: smaller, and several times slower than LZ4.
    Zstd(i8),
}

impl Codec {
    /// True if this build can use it (zstd is a feature of the crate) and its level is in range.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Codec::None | Codec::Lz4 => true,
            Codec::Zstd(level) => cfg!(feature = "zstd") && (1..=9).contains(&level),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::None => f.write_str("none"),
            Codec::Lz4 => f.write_str("lz4"),
            Codec::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Codec, String> {
        let codec = match text {
            "none" => Codec::None,
            "lz4" => Codec::Lz4,
            _ => text
                .strip_prefix("zstd:")
                .and_then(|level| level.parse().ok())
                .filter(|level| (1..=9).contains(level))
                .map(Codec::Zstd)
                .ok_or_else(|| {
                    format!("codec {text:?} is unknown: use none, lz4, or zstd:1 to zstd:9")
                })?,
        };
        if codec.available() {
            Ok(codec)
        } else {
            Err(format!(
                "this build lacks {codec}: use lz4, or build with the feature zstd"
            ))
        }
    }
}
