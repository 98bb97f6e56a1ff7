//! The codecs of trees, by name.

use kv::EngineOptions;

/// How the pages of new trees are compressed. Older trees keep what they were created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Not at all.
    None,
    /// The library's own extension.
    Snappy,
    /// LZ4 blocks; see `compressors`.
    Lz4,
    /// The library's own extension, at level 6.
    Zlib,
    /// Zstandard at level 6; see `compressors`.
    Zstd,
}

impl Codec {
    const ALL: [Codec; 5] = [
        Codec::None,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zlib,
        Codec::Zstd,
    ];

    /// The name here, in MongoDB and in the library.
    pub(super) fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zlib => "zlib",
            Codec::Zstd => "zstd",
        }
    }

    /// What `options` choose: the own option, else the class. `Err` with what is no codec.
    pub(super) fn of(options: &EngineOptions) -> Result<Codec, &str> {
        match (options.own.get("codec").map(String::as_str), options.codec) {
            (Some(name), _) => {
                let found = Codec::ALL.into_iter().find(|codec| codec.name() == name);
                found.ok_or(name)
            }
            (None, kv::Codec::None) => Ok(Codec::None),
            (None, kv::Codec::Fast) => Ok(Codec::Snappy),
        }
    }
}
