//! The codecs of data blocks, by name.

use kv::EngineOptions;
use rocksdb::DBCompressionType;

/// How data blocks are compressed from now on. Each block says what it was written with, so a store
/// is read with any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Not at all.
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// zlib at its default level, 6.
    Zlib,
    /// Zstandard at its default level, 3.
    Zstd,
}

impl Codec {
    /// The names, as the own option `codec` takes them.
    pub(super) const NAMES: &'static str = "none|snappy|lz4|zlib|zstd";

    /// What `options` choose: the own option, else the class. `Err` with what is no codec.
    pub(super) fn of(options: &EngineOptions) -> Result<Codec, &str> {
        match options.own.get("codec").map(String::as_str) {
            Some("none") => Ok(Codec::None),
            Some("snappy") => Ok(Codec::Snappy),
            Some("lz4") => Ok(Codec::Lz4),
            Some("zlib") => Ok(Codec::Zlib),
            Some("zstd") => Ok(Codec::Zstd),
            Some(other) => Err(other),
            None => Ok(match options.codec {
                kv::Codec::None => Codec::None,
                kv::Codec::Fast => Codec::Lz4,
            }),
        }
    }

    /// RocksDB's word for it.
    pub(super) fn kind(self) -> DBCompressionType {
        match self {
            Codec::None => DBCompressionType::None,
            Codec::Snappy => DBCompressionType::Snappy,
            Codec::Lz4 => DBCompressionType::Lz4,
            Codec::Zlib => DBCompressionType::Zlib,
            Codec::Zstd => DBCompressionType::Zstd,
        }
    }
}
