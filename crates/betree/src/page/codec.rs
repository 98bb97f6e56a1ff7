//! The names of the codecs.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How the values of a page, and keys of unequal lengths, are compressed. Keys of one length are
/// always stored as byte planes, which most codecs could not make smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// No compression.
    None,
    /// LZ4: about 1 ns per byte to compress, a third of that to decompress.
    #[default]
    Lz4,
    /// Snappy: of LZ4's class.
    Snappy,
    /// Zlib (deflate) at a level from 1 to 9: smaller than LZ4, and many times slower.
    Zlib(i8),
    /// Zstandard at a level from 1 to 9: smaller, and several times slower than LZ4.
    Zstd(i8),
}

/// The levels of the codecs that have levels.
const LEVELS: RangeInclusive<i8> = 1..=9;

impl Codec {
    /// Whether this build supports the codec (zstd is a feature of the crate) and its level is in
    /// range.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Codec::None | Codec::Lz4 | Codec::Snappy => true,
            Codec::Zlib(level) => LEVELS.contains(&level),
            Codec::Zstd(level) => cfg!(feature = "zstd") && LEVELS.contains(&level),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::None => f.write_str("none"),
            Codec::Lz4 => f.write_str("lz4"),
            Codec::Snappy => f.write_str("snappy"),
            Codec::Zlib(level) => write!(f, "zlib:{level}"),
            Codec::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Codec, String> {
        let level = |text: &str| text.parse().ok().filter(|level| LEVELS.contains(level));
        let codec = match text.split_once(':') {
            None if text == "none" => Some(Codec::None),
            None if text == "lz4" => Some(Codec::Lz4),
            None if text == "snappy" => Some(Codec::Snappy),
            Some(("zlib", text)) => level(text).map(Codec::Zlib),
            Some(("zstd", text)) => level(text).map(Codec::Zstd),
            _ => None,
        };
        let codec = codec.ok_or_else(|| {
            format!(
                "codec {text:?} is unknown: use none, lz4, snappy, zlib:1 to zlib:9, or zstd:1 to \
                 zstd:9"
            )
        })?;
        if codec.available() {
            Ok(codec)
        } else {
            Err(format!(
                "this build lacks {codec}: use lz4, or build with the feature zstd"
            ))
        }
    }
}
