//! The engine-specific options, parsed and checked.

use std::fmt::Display;
use std::str::FromStr;

use kv::{EngineOptions, Error, ErrorKind, NamedCodec, Result};
use stdx::ByteSize;

use crate::support::NAME;

/// How RocksDB merges runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compaction {
    /// One run per level.
    Leveled,
    /// Several runs per level (tiered).
    Universal,
}

/// All settings used by the tuning; sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    /// How RocksDB merges runs.
    pub(super) compaction: Compaction,
    /// Size of the cache, memtables included.
    pub(super) cache: usize,
    /// Maximum size of all memtables; part of `cache`.
    pub(super) memtables: usize,
    /// Size of one memtable.
    pub(super) write_buffer: usize,
    /// Size of a data block.
    pub(super) block: usize,
    /// The codec of new data blocks; each block records the codec it was written with.
    pub(super) codec: NamedCodec,
    /// Filter bits per key.
    pub(super) bloom: u8,
    /// Maximum number of threads of one compaction.
    pub(super) subcompactions: u32,
    l0_trigger: Option<i32>,
    /// Whether writes to the log and to memtables are pipelined.
    pub(super) pipelined: bool,
    /// Maximum number of files kept open; -1 for all.
    pub(super) open_files: i32,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Compaction {
    fn name(self) -> &'static str {
        match self {
            Compaction::Leveled => "leveled",
            Compaction::Universal => "universal",
        }
    }

    fn parse(name: &str) -> Option<Compaction> {
        [Compaction::Leveled, Compaction::Universal]
            .into_iter()
            .find(|c| c.name() == name)
    }
}

impl Settings {
    /// The settings that are fixed when the store is created, as its identity file records them.
    pub(super) fn fixed(&self) -> String {
        format!("compaction={}", self.compaction.name())
    }

    /// Runs in level 0 that start a merge.
    pub(super) fn l0_trigger(&self) -> i32 {
        self.l0_trigger.unwrap_or(match self.compaction {
            Compaction::Leveled => 4,
            Compaction::Universal => 8,
        })
    }

    /// Apply the settings `recorded` when the store was created. If the caller requested such a
    /// setting (`asked`), it must agree.
    ///
    /// # Errors
    /// `Invalid` when another compaction is requested; `Corrupt` when the record is invalid.
    pub(super) fn fix(&mut self, recorded: &str, asked: bool) -> Result<()> {
        let stored = recorded
            .strip_prefix("compaction=")
            .and_then(Compaction::parse)
            .ok_or_else(|| {
                let message = format!("the identity file has the options {recorded:?}");
                Error::new(ErrorKind::Corrupt, message).with_engine(NAME)
            })?;
        if asked && stored != self.compaction {
            return Err(Error::invalid(format!(
                "option compaction={} does not fit: the store was created with {}; leave the \
                 option out or name another directory",
                self.compaction.name(),
                stored.name()
            ))
            .with_engine(NAME));
        }
        self.compaction = stored;
        Ok(())
    }

    /// Parse the settings from `options`, whose engine-specific names have been checked.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub(super) fn parse(options: &EngineOptions) -> Result<Settings> {
        let cache = options.cache.bytes();
        let write_buffer = size(options, "write_buffer", 64 * KIB, 1024 * MIB)?
            .unwrap_or((cache / 8).clamp(256 * KIB, 64 * MIB));
        let memtables = size(options, "memtables", 128 * KIB, 1 << 40)?
            .unwrap_or((cache / 4).max(2 * write_buffer));
        let compaction = match options.own.get("compaction") {
            None => Compaction::Leveled,
            Some(name) => Compaction::parse(name)
                .ok_or_else(|| bad("compaction", name, "leveled|universal"))?,
        };
        let codec = NamedCodec::of(options, NamedCodec::Lz4)
            .map_err(|other| bad("codec", other, NamedCodec::NAMES))?;
        let open_files = number(options, "open_files", -1, 1_000_000)?.unwrap_or(800);
        if (0..16).contains(&open_files) {
            return Err(bad("open_files", open_files, "-1 or 16-1000000"));
        }
        Ok(Settings {
            compaction,
            cache: to_usize(cache),
            memtables: to_usize(memtables),
            write_buffer: to_usize(write_buffer),
            block: to_usize(size(options, "block", KIB, MIB)?.unwrap_or(16 * KIB)),
            codec,
            bloom: number(options, "bloom", 0, 30)?.unwrap_or(10),
            subcompactions: number(options, "subcompactions", 1, 32)?.unwrap_or(1),
            l0_trigger: number(options, "l0_trigger", 1, 64)?,
            pipelined: choice(options, "pipelined", true)?,
            open_files,
        })
    }
}

fn size(options: &EngineOptions, name: &str, least: u64, most: u64) -> Result<Option<u64>> {
    let Some(text) = options.own.get(name) else {
        return Ok(None);
    };
    let range = format!("a size from {} to {}", ByteSize(least), ByteSize(most));
    let value = ByteSize::from_str(text).map_err(|_| bad(name, text, &range))?;
    if !(least..=most).contains(&value.bytes()) {
        return Err(bad(name, text, &range));
    }
    Ok(Some(value.bytes()))
}

fn number<T>(options: &EngineOptions, name: &str, least: T, most: T) -> Result<Option<T>>
where
    T: FromStr + PartialOrd + Display,
{
    let Some(text) = options.own.get(name) else {
        return Ok(None);
    };
    match text.parse::<T>() {
        Ok(value) if least <= value && value <= most => Ok(Some(value)),
        _ => Err(bad(name, text, &format!("a number from {least} to {most}"))),
    }
}

fn choice(options: &EngineOptions, name: &str, default: bool) -> Result<bool> {
    match options.own.get(name).map(String::as_str) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(bad(name, other, "true|false")),
    }
}

fn bad(name: &str, value: impl Display, expected: &str) -> Error {
    Error::invalid(format!(
        "option {name}={value} is out of range; use {expected}"
    ))
    .with_engine(NAME)
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(own: &[(&str, &str)]) -> Result<Settings> {
        let own = own.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Settings::parse(&EngineOptions {
            own: own.collect(),
            ..EngineOptions::default()
        })
    }

    #[test]
    fn defaults_divide_the_cache() {
        let settings = with(&[]).unwrap();
        assert_eq!(settings.cache, 128 << 20);
        assert_eq!(settings.memtables, 32 << 20);
        assert_eq!(settings.write_buffer, 16 << 20);
        assert_eq!(settings.compaction, Compaction::Leveled);
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        for (name, value) in [
            ("compaction", "fifo"),
            ("write_buffer", "1"),
            ("block", "much"),
            ("codec", "lzma"),
            ("bloom", "31"),
            ("subcompactions", "0"),
            ("pipelined", "yes"),
            ("open_files", "3"),
        ] {
            let error = with(&[(name, value)]).unwrap_err();
            assert_eq!(error.kind(), kv::ErrorKind::Invalid);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn the_own_codec_wins_over_the_class() {
        for (class, found) in [
            (kv::Codec::None, NamedCodec::None),
            (kv::Codec::Fast, NamedCodec::Lz4),
        ] {
            let mut options = EngineOptions {
                codec: class,
                ..EngineOptions::default()
            };
            assert_eq!(Settings::parse(&options).unwrap().codec, found);
            options.own.insert("codec".to_owned(), "zstd".to_owned());
            assert_eq!(Settings::parse(&options).unwrap().codec, NamedCodec::Zstd);
        }
    }

    #[test]
    fn every_documented_option_is_read() {
        for doc in crate::support::OPTIONS {
            let value = "not a value of anything";
            assert!(
                with(&[(doc.name, value)]).is_err(),
                "{} is ignored",
                doc.name
            );
        }
    }
}
