//! The engine-specific options: their documentation as data, and their parsed values.

use std::fmt::Display;
use std::str::FromStr;

use kv::{EngineOptions, Error, OptionDoc, Result};

use crate::support::NAME;

/// The engine-specific options, as `lab list` and error messages show them.
pub(crate) const OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "trees",
        values: "1-65535",
        default: "1024",
        about: "maximum number of trees; every snapshot clears 49 bytes of memory for each, so \
                256 or fewer make it half a microsecond cheaper than the default, and 16384 \
                make it ten dearer",
    },
    OptionDoc {
        name: "readers",
        values: "1-65535",
        default: "512",
        about: "maximum number of open snapshots; each takes 64 bytes of the lock file",
    },
    OptionDoc {
        name: "interval",
        values: "metasync|background|nosync",
        default: "metasync",
        about: "mode of `interval` durability: metasync syncs data (not the meta page) in every \
                commit, so the store always opens; background syncs in the background only, and \
                after a power loss returns to the last sync; nosync does not return, and may \
                leave a store that does not open after a power loss",
    },
    OptionDoc {
        name: "readahead",
        values: "on|off",
        default: "off",
        about: "off disables read-ahead of the kernel (MDB_NORDAHEAD): several times faster for \
                random reads and writes of a store larger than memory; on is better for scans",
    },
    OptionDoc {
        name: "backup",
        values: "plain|compact",
        default: "plain",
        about: "compact leaves free pages out of backups, at the cost of processor time",
    },
];

/// What a commit at `Durability::Interval` syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalMode {
    /// The commit syncs its data; the background thread syncs the meta page.
    MetaSync,
    /// The background thread syncs everything, and records what is synced; a power loss returns
    /// the store to that.
    Background,
    /// The background thread syncs everything.
    NoSync,
}

/// The parsed values of the engine-specific options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) trees: u32,
    pub(crate) readers: u32,
    pub(crate) interval: IntervalMode,
    pub(crate) readahead: bool,
    pub(crate) backup_compact: bool,
}

impl Settings {
    /// Parse the engine-specific options of `options`, whose names have been checked.
    pub(crate) fn read(options: &EngineOptions) -> Result<Settings> {
        Ok(Settings {
            trees: number(options, "trees")?,
            readers: number(options, "readers")?,
            interval: match word(options, "interval", ["metasync", "background", "nosync"])? {
                "background" => IntervalMode::Background,
                "nosync" => IntervalMode::NoSync,
                _ => IntervalMode::MetaSync,
            },
            readahead: word(options, "readahead", ["on", "off"])? == "on",
            backup_compact: word(options, "backup", ["plain", "compact"])? == "compact",
        })
    }
}

/// The text given for the option `name`, or its default.
fn text<'a>(options: &'a EngineOptions, name: &str) -> &'a str {
    let default = || OPTIONS.iter().find(|o| o.name == name).map(|o| o.default);
    match options.own.get(name) {
        Some(text) => text,
        None => default().expect("every option read here is documented above"),
    }
}

fn number(options: &EngineOptions, name: &str) -> Result<u32> {
    let text = text(options, name);
    match u32::from_str(text) {
        Ok(n) if (1..=65_535).contains(&n) => Ok(n),
        _ => Err(bad(name, text, "a number from 1 to 65535")),
    }
}

fn word<'a, const N: usize>(
    options: &'a EngineOptions,
    name: &str,
    words: [&str; N],
) -> Result<&'a str> {
    let text = text(options, name);
    if words.contains(&text) {
        return Ok(text);
    }
    Err(bad(name, text, words.join(" or ")))
}

fn bad(name: &str, text: &str, wanted: impl Display) -> Error {
    let message = format!("option {name}: {text:?} will not do; give {wanted}");
    Error::invalid(message).with_engine(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kv::ErrorKind;

    fn read(name: &str, value: &str) -> Result<Settings> {
        let mut options = EngineOptions::default();
        options.own.insert(name.to_owned(), value.to_owned());
        Settings::read(&options)
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let defaults = Settings::read(&EngineOptions::default()).unwrap();
        for doc in OPTIONS {
            assert_eq!(
                read(doc.name, doc.default).unwrap(),
                defaults,
                "{}",
                doc.name
            );
        }
        assert_eq!(defaults.interval, IntervalMode::MetaSync);
        assert!(!defaults.readahead && !defaults.backup_compact);
    }

    #[test]
    fn a_bad_value_is_refused_and_named() {
        for (name, value) in [
            ("trees", "0"),
            ("trees", "65536"),
            ("readers", "many"),
            ("interval", "sync"),
            ("readahead", ""),
            ("backup", "Plain"),
        ] {
            let error = read(name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(name), "{error}");
        }
        for (word, mode) in [
            ("background", IntervalMode::Background),
            ("nosync", IntervalMode::NoSync),
        ] {
            assert_eq!(read("interval", word).unwrap().interval, mode);
        }
    }
}
