//! Why stored bytes are not a page. The caller adds which page of which run, and where it lies.

use std::error;
use std::fmt;

/// Why stored bytes are not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageError {
    Short {
        len: usize,
    },
    Magic {
        found: u32,
    },
    Version {
        found: u8,
    },
    Length {
        said: usize,
        len: usize,
    },
    Checksum {
        stored: u64,
        computed: u64,
    },
    Codec {
        found: u8,
    },
    #[cfg(not(feature = "zstd"))]
    NoZstd,
    Header(&'static str),
    Content(&'static str),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::Short { len } => write!(
                f,
                "a page of {len} bytes is shorter than its header and checksum"
            ),
            PageError::Magic { found } => write!(
                f,
                "it does not begin with a page's magic number but with {found:#010x}"
            ),
            PageError::Version { found } => write!(
                f,
                "its format version is {found}; this build reads version 1: use a newer build"
            ),
            PageError::Length { said, len } => write!(
                f,
                "its header says {said} bytes are stored, but it has {len}"
            ),
            PageError::Checksum { stored, computed } => write!(
                f,
                "its checksum is {stored:#018x}, but its bytes as this page give {computed:#018x}"
            ),
            PageError::Codec { found } => {
                write!(f, "its codec {found} is unknown: use a newer build")
            }
            #[cfg(not(feature = "zstd"))]
            PageError::NoZstd => f.write_str(
                "it was compressed by zstd, which this build lacks: build with the feature zstd",
            ),
            PageError::Header(what) => write!(f, "its header is wrong: {what}"),
            PageError::Content(what) => write!(f, "its content is wrong: {what}"),
        }
    }
}

impl error::Error for PageError {}
