//! Why stored bytes are not a page. The caller adds which page of which run, and where it lies.

use thiserror::Error;

/// Why stored bytes are not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum PageError {
    #[error("a page of {len} bytes is shorter than its header and checksum")]
    Short { len: usize },
    #[error("it does not begin with a page's magic number but with {found:#010x}")]
    Magic { found: u32 },
    #[error("its format version is {found}; this build reads version 1: use a newer build")]
    Version { found: u8 },
    #[error("its header says {said} bytes are stored, but it has {len}")]
    Length { said: usize, len: usize },
    #[error("its checksum is {stored:#018x}, but its bytes as this page give {computed:#018x}")]
    Checksum { stored: u64, computed: u64 },
    #[error("its codec {found} is unknown: use a newer build")]
    Codec { found: u8 },
    #[cfg(not(feature = "zstd"))]
    #[error("it was compressed by zstd, which this build lacks: build with the feature zstd")]
    NoZstd,
    #[error("its header is wrong: {0}")]
    Header(&'static str),
    #[error("its content is wrong: {0}")]
    Content(&'static str),
}
