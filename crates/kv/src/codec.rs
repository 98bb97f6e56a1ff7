//! The codecs that engines are built with, under MongoDB's names.

use crate::options::{Codec, CodecDoc, EngineOptions};

/// A codec by its name in the engine-specific option `codec`. The names are those of MongoDB's
/// `blockCompressor` (manual, `storage.wiredTiger.collectionConfig.blockCompressor`); MongoDB has
/// no LZ4, whose name is RocksDB's. The engine chooses the compression level of zlib and Zstandard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedCodec {
    /// No compression.
    None,
    /// Snappy.
    Snappy,
    /// LZ4 blocks.
    Lz4,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl NamedCodec {
    /// All codecs, weakest first.
    pub const ALL: [NamedCodec; 5] = [
        NamedCodec::None,
        NamedCodec::Snappy,
        NamedCodec::Lz4,
        NamedCodec::Zlib,
        NamedCodec::Zstd,
    ];

    /// The names, in the form of [`OptionDoc::values`](crate::OptionDoc::values).
    pub const NAMES: &'static str = "none|snappy|lz4|zlib|zstd";

    /// All codecs, for [`Factory::codecs`](crate::Factory::codecs) of an engine with the option
    /// `codec`.
    pub const DOCS: &'static [CodecDoc] = &[
        doc("none", Codec::None, &[("codec", "none")]),
        doc("snappy", Codec::Fast, &[("codec", "snappy")]),
        doc("lz4", Codec::Fast, &[("codec", "lz4")]),
        doc("zlib", Codec::Fast, &[("codec", "zlib")]),
        doc("zstd", Codec::Fast, &[("codec", "zstd")]),
    ];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NamedCodec::None => "none",
            NamedCodec::Snappy => "snappy",
            NamedCodec::Lz4 => "lz4",
            NamedCodec::Zlib => "zlib",
            NamedCodec::Zstd => "zstd",
        }
    }

    /// The codec that `options` select: that of the engine-specific option `codec` if it is set,
    /// else that of the class in `options.codec`, where `fast` is the engine's codec for
    /// [`Codec::Fast`].
    ///
    /// # Errors
    /// The value of the option `codec`, if it names no codec.
    pub fn of(options: &EngineOptions, fast: NamedCodec) -> Result<NamedCodec, &str> {
        match (options.own.get("codec").map(String::as_str), options.codec) {
            (Some(name), _) => {
                let found = NamedCodec::ALL.into_iter().find(|c| c.name() == name);
                found.ok_or(name)
            }
            (None, Codec::None) => Ok(NamedCodec::None),
            (None, Codec::Fast) => Ok(fast),
        }
    }
}

const fn doc(
    name: &'static str,
    class: Codec,
    own: &'static [(&'static str, &'static str)],
) -> CodecDoc {
    CodecDoc { name, class, own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_is_chosen_by_what_is_told_of_it() {
        let names: Vec<&str> = NamedCodec::NAMES.split('|').collect();
        for (place, codec) in NamedCodec::ALL.into_iter().enumerate() {
            let doc = NamedCodec::DOCS[place];
            assert_eq!((names[place], doc.name), (codec.name(), codec.name()));
            let own = doc
                .own
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let options = EngineOptions {
                codec: doc.class,
                own: own.collect(),
                ..EngineOptions::default()
            };
            assert_eq!(NamedCodec::of(&options, NamedCodec::Lz4), Ok(codec));
        }
        assert_eq!(names.len(), NamedCodec::ALL.len());
    }
}
