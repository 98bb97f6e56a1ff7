//! The options: documentation of the engine-specific ones, and the conversion of all options to
//! `betree::Options`.
//!
//! The preset is applied first, then the common options, then the engine-specific ones. Each option
//! is checked when it is applied, so that an error names the option that the user gave.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use betree::{Codec, MasterKey, Options};
use kv::{Encryption, EngineOptions, Error, OptionDoc, Result};
use stdx::ByteSize;

/// The engine's name.
pub(crate) const NAME: &str = "betree";

/// The engine-specific options, as `lab list` and error messages show them.
pub(crate) const OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "preset",
        values: "btree|balanced|ingest",
        default: "balanced",
        about: "sets rho, kcap and bucket together: btree (6, 2, 4M) rewrites most and reads \
                like a B-tree, ingest (1, 24, 32M) rewrites least and leaves more runs for \
                reads, balanced (2, 16, 16M) is between",
    },
    OptionDoc {
        name: "rho",
        values: "0.05-64",
        default: "2",
        about: "bytes merged for each byte flushed; more means fewer runs to read and more \
                writing",
    },
    OptionDoc {
        name: "kcap",
        values: "1-64",
        default: "16",
        about: "deltas in a bucket that force a merge of it; more smooths bursts and slows reads \
                of busy buckets",
    },
    OptionDoc {
        name: "bucket",
        values: "size 4K-1G",
        default: "16M",
        about: "stored size at which a bucket is split; larger ones get larger flushes and take \
                longer to merge, smaller ones take memory each",
    },
    OptionDoc {
        name: "buffers",
        values: "0.05-0.95",
        default: "0.5",
        about: "share of the cache memory for write buffers; more means less rewriting of \
                random inserts and fewer cached pages",
    },
    OptionDoc {
        name: "page",
        values: "size 256-1M",
        default: "8K",
        about: "size of a page before compression; larger compresses better and scans faster, \
                smaller reads less for one key",
    },
    OptionDoc {
        name: "codec",
        values: "none|lz4|snappy|zlib:1-9|zstd:1-9",
        default: "lz4",
        about: "codec of bases (default: by the codec class); a stronger one trades processor \
                time of merges for space",
    },
    OptionDoc {
        name: "delta_codec",
        values: "none|lz4|snappy|zlib:1-9|zstd:1-9",
        default: "lz4",
        about: "codec of deltas, which are soon rewritten (default: by the codec class); none \
                writes more, a stronger one slows flushes",
    },
    OptionDoc {
        name: "filter",
        values: "auto|none|all",
        default: "auto",
        about: "runs that get a filter: deltas of trees made for point lookups, none, or all; \
                filters save reads of absent keys and cost memory",
    },
    OptionDoc {
        name: "filter_bits",
        values: "4-24",
        default: "10",
        about: "filter bits per key; 10 let 1 % of the absent keys through",
    },
    OptionDoc {
        name: "log_segment",
        values: "size 64K-4G",
        default: "64M",
        about: "size of a log segment, at most half of log_max; smaller ones are released \
                sooner and switched more often",
    },
    OptionDoc {
        name: "log_codec",
        values: "none | lz4",
        default: "none",
        about: "the codec of the log; lz4 writes about a third less for some time of a core",
    },
    OptionDoc {
        name: "log_max",
        values: "size 128K-16T",
        default: "1G",
        about: "maximum log to replay at recovery; above it old buffers are flushed even if \
                they are small",
    },
    OptionDoc {
        name: "checkpoint_bytes",
        values: "size 4K-16T",
        default: "256M",
        about: "maximum log between two checkpoints; less means faster recovery and more syncs",
    },
    OptionDoc {
        name: "group_delay",
        values: "0us-1s",
        default: "0us",
        about: "how long a commit at group durability waits for others to share its sync; \
                useful where syncs are expensive",
    },
    OptionDoc {
        name: "snapshot_age",
        values: "never|1ms-8760h",
        default: "never",
        about: "the age at which snapshots and transactions end; old ones keep every version and \
                byte since they began",
    },
    OptionDoc {
        name: "transaction_max",
        values: "size 4K-1G",
        default: "1G",
        about: "maximum size of a transaction; the part that exceeds the write buffers goes to \
                disk",
    },
    OptionDoc {
        name: Encryption::OPTION,
        values: "none|absolute path",
        default: "none",
        about: "file of the master key, 32 bytes in base64 with mode 600, that encrypts the \
                store; a store is encrypted, or not, from its creation on",
    },
    OptionDoc {
        name: "seed",
        values: "0-18446744073709551615",
        default: "of the store",
        about: "seed of the jitter that spreads splits and merges over time",
    },
];

/// Convert `options`, whose engine-specific names have been checked, to the engine's options.
///
/// # Errors
/// `Invalid`, naming the option and its range.
pub(crate) fn read(options: &EngineOptions) -> Result<Options> {
    let preset = options.own.get("preset").map_or("balanced", String::as_str);
    let found = match preset {
        "btree" => Options::btree(),
        "balanced" => Options::balanced(),
        "ingest" => Options::ingest(),
        _ => return Err(bad("preset", preset)),
    };
    let mut found = common(found, options)?;
    for (name, text) in &options.own {
        if name != "preset" {
            let changed = set(found, name, text).ok_or_else(|| bad(name, text))?;
            found = checked(name, changed)?;
        }
    }
    Ok(found)
}

/// The master key that `options` name the file of.
///
/// # Errors
/// `Invalid`: the file cannot be read, or holds no key.
pub(crate) fn master(options: &EngineOptions) -> Result<Option<MasterKey>> {
    match options.own.get(Encryption::OPTION).map(String::as_str) {
        None | Some("none") => Ok(None),
        Some(path) => read_master(Path::new(path)).map(Some),
    }
}

/// The master key in the file `path`.
///
/// # Errors
/// `Invalid`: the file cannot be read, or holds no key.
pub(crate) fn read_master(path: &Path) -> Result<MasterKey> {
    MasterKey::read(path).map_err(invalid)
}

/// Apply the options that every engine has.
fn common(found: Options, options: &EngineOptions) -> Result<Options> {
    let codec = match options.codec {
        kv::Codec::None => Codec::None,
        kv::Codec::Fast => Codec::Lz4,
    };
    let found = found
        .with_codec(codec)
        .with_delta_codec(codec)
        .with_direct_io(options.direct_io)
        .with_log(options.log);
    let found = checked("cache", found.with_memory(options.cache.bytes()))?;
    let found = checked("threads", found.with_threads(options.threads.max(1)))?;
    let found = checked("interval", found.with_interval(options.interval))?;
    let interval = options.checkpoint;
    checked("checkpoint", found.with_checkpoint_interval(interval))
}

/// `options` with the engine-specific option `name` set to `text`. `None` when `text` is not a
/// valid value.
fn set(options: Options, name: &str, text: &str) -> Option<Options> {
    let found = match name {
        "rho" => options.with_rho(parse(text)?),
        "kcap" => options.with_k_cap(parse(text)?),
        "bucket" => options.with_bucket(size(text)?),
        "buffers" => options.with_buffer_share(parse(text)?),
        "page" => options.with_page(u32::try_from(size(text)?).ok()?),
        "codec" => options.with_codec(parse(text)?),
        "delta_codec" => options.with_delta_codec(parse(text)?),
        "filter" => options.with_filter(parse(text)?),
        "filter_bits" => options.with_filter_bits(parse(text)?),
        "log_segment" => options.with_log_segment(size(text)?),
        "log_codec" => options.with_log_codec(parse(text)?),
        "log_max" => options.with_log_max(size(text)?),
        "checkpoint_bytes" => options.with_checkpoint_bytes(size(text)?),
        "group_delay" => options.with_group_delay(duration(text)?),
        "snapshot_age" if text == "never" => options.with_snapshot_max_age(None),
        "snapshot_age" => options.with_snapshot_max_age(Some(duration(text)?)),
        "transaction_max" => options.with_transaction_max(size(text)?),
        // Its file is read when the store is opened.
        Encryption::OPTION if text == "none" || Path::new(text).is_absolute() => options,
        "seed" => options.with_seed(parse(text)?),
        _ => return None,
    };
    Some(found)
}

fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn size(text: &str) -> Option<u64> {
    parse::<ByteSize>(text).map(ByteSize::bytes)
}

/// Parse a duration: `250us`, `10ms`, `2s`, `5m`, `24h`; `0` needs no unit.
fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(at);
    let micros: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    let number: u64 = parse(number)?;
    number.checked_mul(micros).map(Duration::from_micros)
}

/// Check `options` after the option `name` was set, so that an error is attributed to `name`.
fn checked(name: &str, options: Options) -> Result<Options> {
    match options.validate() {
        Ok(()) => Ok(options),
        Err(e) => Err(invalid(format!("option {name}: {}", e.message()))),
    }
}

fn bad(name: &str, text: &str) -> Error {
    let doc = OPTIONS.iter().find(|o| o.name == name);
    let values = doc.map_or("nothing", |o| o.values);
    invalid(format!(
        "option {name}: {text:?} will not do; give {values}"
    ))
}

fn invalid(message: impl Display) -> Error {
    Error::invalid(message.to_string()).with_engine(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use betree::Filter;
    use kv::ErrorKind;

    fn with(own: &[(&str, &str)]) -> EngineOptions {
        let own = own.iter().map(|&(n, v)| (n.to_owned(), v.to_owned()));
        EngineOptions {
            own: own.collect(),
            ..EngineOptions::default()
        }
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let defaults = read(&EngineOptions::default()).unwrap();
        assert_eq!(defaults, Options::default());
        for doc in OPTIONS.iter().filter(|doc| doc.name != "seed") {
            let given = read(&with(&[(doc.name, doc.default)])).unwrap();
            assert_eq!(given, defaults, "{}", doc.name);
        }
    }

    #[test]
    fn every_documented_option_is_read() {
        for doc in OPTIONS {
            let error = read(&with(&[(doc.name, "???")])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let text = error.to_string();
            assert!(
                text.contains(doc.name) && text.contains(doc.values),
                "{text}"
            );
        }
    }

    #[test]
    fn values_out_of_range_are_refused_and_named() {
        for (name, value) in [
            ("rho", "0"),
            ("rho", "NaN"),
            ("kcap", "65"),
            ("bucket", "1K"),
            ("buffers", "1"),
            ("page", "8G"),
            ("codec", "zstd:20"),
            ("log_codec", "zstd:1"),
            ("filter_bits", "3"),
            ("log_max", "1K"),
            ("group_delay", "2s"),
            ("group_delay", "5 parsecs"),
            ("snapshot_age", "0"),
            ("transaction_max", "2G"),
            ("key_file", "relative/path"),
        ] {
            let error = read(&with(&[(name, value)])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(name), "{name}={value}: {error}");
        }
    }

    #[test]
    fn own_options_win_over_the_preset_and_the_codec_class() {
        let mut options = with(&[
            ("preset", "ingest"),
            ("kcap", "8"),
            ("codec", "lz4"),
            ("filter", "all"),
            ("group_delay", "250us"),
            ("snapshot_age", "24h"),
        ]);
        options.codec = kv::Codec::None;
        let found = read(&options).unwrap();
        assert_eq!((found.k_cap(), found.bucket()), (8, 32 << 20));
        assert_eq!(found.codec(), Codec::Lz4);
        assert_eq!(found.delta_codec(), Codec::None);
        assert_eq!(found.filter(), Filter::All);
        assert_eq!(found.group_delay(), Duration::from_micros(250));
        let day = Duration::from_secs(86_400);
        assert_eq!(found.snapshot_max_age(), Some(day));
    }

    #[test]
    fn common_options_are_taken_over() {
        let options = EngineOptions {
            cache: ByteSize::mib(64),
            threads: 0,
            log: false,
            direct_io: true,
            ..EngineOptions::default()
        };
        let found = read(&options).unwrap();
        assert_eq!((found.memory(), found.threads()), (64 << 20, 1));
        assert!(!found.log() && found.direct_io());
        let tiny = EngineOptions {
            cache: ByteSize::kib(1),
            ..EngineOptions::default()
        };
        let text = read(&tiny).unwrap_err().to_string();
        assert!(text.contains("cache"), "{text}");
    }
}
