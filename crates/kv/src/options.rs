//! The options of every engine at opening.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stdx::ByteSize;

/// The compression of an engine, as a class, so that the lab compares similar codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// No compression.
    None,
    /// A fast codec of the LZ4 class (LZ4, Snappy).
    Fast,
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Codec::None => "none",
            Codec::Fast => "fast",
        })
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Codec, String> {
        match text {
            "none" => Ok(Codec::None),
            "fast" => Ok(Codec::Fast),
            _ => Err(format!("not a codec class: {text:?}; use fast or none")),
        }
    }
}

/// Options common to all engines, and engine-specific options by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOptions {
    /// Memory for the engine's cache and write buffers together (default 128 MiB).
    pub cache: ByteSize,
    /// Time between two syncs of the log at `Durability::Interval` (default 100 ms).
    pub interval: Duration,
    /// Time between checkpoints, for engines that have them (default 10 s).
    pub checkpoint: Duration,
    /// Whether the engine keeps a redo log (default true). If false, every commit is at
    /// `Durability::None`, and all engines, also those that never have a log, refuse the stronger
    /// levels with `Unsupported`.
    pub log: bool,
    /// Bypass the page cache of the operating system where the engine can (default false).
    pub direct_io: bool,
    /// Compression class (default fast, where the engine compresses).
    pub codec: Codec,
    /// Background threads (default 2).
    pub threads: u32,
    /// Maximum size of the store, for engines that need one (LMDB's map; default 1 TiB).
    pub size_max: ByteSize,
    /// Engine-specific options. An unknown name or a bad value is refused with `Invalid`.
    pub own: BTreeMap<String, String>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            cache: ByteSize::mib(128),
            interval: Duration::from_millis(100),
            checkpoint: Duration::from_secs(10),
            log: true,
            direct_io: false,
            codec: Codec::Fast,
            threads: 2,
            size_max: ByteSize::gib(1024),
            own: BTreeMap::new(),
        }
    }
}

/// An engine-specific option, documented as data for `lab list` and for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OptionDoc {
    /// The name, as in `engine:name=value`.
    pub name: &'static str,
    /// Syntax of the value: `size`, `1-32`, `leveled|universal`.
    pub values: &'static str,
    /// The default.
    pub default: &'static str,
    /// The effect of the option and its trade-off.
    pub about: &'static str,
}

/// A codec of an engine, by the codec's common name, and the options that select it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecDoc {
    /// The name: `none`, `snappy`, `lz4`, `zlib`, `zstd`.
    pub name: &'static str,
    /// The class that selects it in [`EngineOptions::codec`].
    pub class: Codec,
    /// The engine-specific options that select it, in addition to the class.
    pub own: &'static [(&'static str, &'static str)],
}

impl CodecDoc {
    /// No compression.
    pub const NONE: CodecDoc = CodecDoc {
        name: "none",
        class: Codec::None,
        own: &[],
    };

    /// The codec that an engine uses for [`Codec::Fast`] without further options.
    #[must_use]
    pub const fn fast(name: &'static str) -> CodecDoc {
        CodecDoc {
            name,
            class: Codec::Fast,
            own: &[],
        }
    }
}
