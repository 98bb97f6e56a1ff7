//! Converts this API's options to WiredTiger's configuration strings.

use std::borrow::Cow;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use kv::{EngineOptions, Error, ErrorKind, NamedCodec, Result};
use stdx::ByteSize;

use super::compressors::{LOG, LOG_PLAIN};
use super::trampoline;
use crate::support::{LSM, NAME};

/// Number of sessions for the engine's own work (checkpoints, statistics, batches), in addition to
/// those of callers. The same number is reserved for the library's threads: at most 20 for
/// eviction, 20 for LSM, 3 for the log, and a few servers.
pub(super) const SESSIONS_RESERVED: usize = 128;

/// Minimum size of WiredTiger's cache, in bytes.
const CACHE_MIN: u64 = 1 << 20;

/// Size of the log, in bytes, at which a checkpoint starts before its time (WiredTiger's maximum is
/// 2 GB). It bounds the log that must be replayed at open.
const CHECKPOINT_LOG_SIZE: u64 = 1 << 30;

/// Allocation unit of files, in bytes; if pages are smaller than this, it is the size of the
/// smallest page.
const ALLOCATION: u64 = 4096;

/// How trees are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeType {
    /// A tree is one B-tree.
    Btree,
    /// A tree is a log-structured merge of B-trees.
    Lsm,
}

/// The checked options.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) tree_type: TreeType,
    pub(super) log: bool,
    /// Time between two syncs of the log at `Durability::Interval`.
    pub(super) interval: Duration,
    /// Maximum number of sessions of callers.
    pub(super) sessions: usize,
    cache: u64,
    leaf_page: u64,
    internal_page: u64,
    split_pct: usize,
    codec: NamedCodec,
    /// Paths of the library's own extensions.
    extensions: Vec<String>,
    /// Path of our compressors, if it could be loaded.
    pub(super) own_compressors: Option<&'static str>,
    checkpoint_seconds: u64,
    threads: u32,
    direct_io: bool,
}

impl Config {
    /// Check `options`.
    ///
    /// # Errors
    /// `Invalid`, naming the option; `Unsupported` when the compressor is missing.
    pub(super) fn new(options: &EngineOptions) -> Result<Config> {
        let tree_type = match options.own.get("type").map(String::as_str) {
            None | Some("btree") => TreeType::Btree,
            Some(LSM) => TreeType::Lsm,
            Some(other) => return Err(bad("type", other, "btree or lsm")),
        };
        let leaf_page = page(options, "leaf_page", ByteSize::kib(32))?;
        let internal_page = page(options, "internal_page", ByteSize::kib(4))?;
        if options.direct_io && leaf_page.min(internal_page) < ALLOCATION {
            let message =
                "direct I/O needs pages of at least 4K; raise leaf_page and internal_page";
            return Err(Error::invalid(message).with_engine(NAME));
        }
        let sessions = number(options, "sessions", 1024)?;
        if !(4..=20_000).contains(&sessions) {
            return Err(bad(
                "sessions",
                &sessions.to_string(),
                "a number from 4 to 20000",
            ));
        }
        let split_pct = number(options, "split_pct", 90)?;
        if !(50..=100).contains(&split_pct) {
            let form = "a number from 50 to 100";
            return Err(bad("split_pct", &split_pct.to_string(), form));
        }
        let seconds = options.checkpoint.as_secs_f64().ceil();
        let codec = codec(options)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to a range that fits"
        )]
        let checkpoint_seconds = seconds.clamp(1.0, 100_000.0) as u64;
        Ok(Config {
            tree_type,
            log: options.log,
            interval: options.interval.max(Duration::from_millis(1)),
            sessions,
            cache: options.cache.bytes().clamp(CACHE_MIN, 10 << 40),
            leaf_page,
            internal_page,
            split_pct,
            codec,
            extensions: extensions(options, codec)?,
            own_compressors: own_compressors(codec)?,
            checkpoint_seconds,
            threads: options.threads,
            direct_io: options.direct_io,
        })
    }

    /// The configuration of the connection.
    pub(super) fn connection(&self) -> String {
        let mut text = format!(
            "create,config_base=false,use_environment=false,statistics=(all),\
             cache_size={},session_max={},eviction=(threads_min=1,threads_max={}),\
             lsm_manager=(worker_thread_max={})",
            self.cache,
            self.sessions + 2 * SESSIONS_RESERVED,
            self.threads.clamp(1, 20),
            self.threads.clamp(3, 20),
        );
        if self.log {
            // With `enabled=false` each commit decides whether it syncs, by the method `fsync`.
            text += &format!(
                ",log=(enabled,compressor={}),\
                 transaction_sync=(enabled=false,method=fsync),\
                 checkpoint=(wait={},log_size={CHECKPOINT_LOG_SIZE})",
                self.log_compressor(),
                self.checkpoint_seconds
            );
        } else {
            text += &format!(",checkpoint=(wait={})", self.checkpoint_seconds);
        }
        if self.direct_io {
            text += ",direct_io=[data,checkpoint]";
        }
        let files = self.extensions.iter().map(String::as_str);
        let files: Vec<String> = files
            .chain(self.own_compressors)
            .map(|file| format!("\"{file}\""))
            .collect();
        text + &format!(",extensions=[{}]", files.join(","))
    }

    /// The configuration of a new table for the tree `name`.
    pub(super) fn table(&self, name: &str) -> String {
        let allocation = ALLOCATION.min(self.leaf_page).min(self.internal_page);
        let mut text = format!(
            "key_format=u,value_format=u,app_metadata=\"{name}\",allocation_size={allocation},\
             leaf_page_max={},internal_page_max={},split_pct={},block_compressor={}",
            self.leaf_page,
            self.internal_page,
            self.split_pct,
            self.codec.name(),
        );
        if self.tree_type == TreeType::Lsm {
            // Several chunks must fit in the cache: the one being filled and those being written.
            let chunk = (self.cache / 8).clamp(512 << 10, 10 << 20);
            text += &format!(",type=lsm,lsm=(chunk_size={chunk})");
        }
        text
    }

    /// The compressor of the log. Both of our log compressors read each other's records and those
    /// of the library's Snappy. Without our compressors, the log can be read only with the codec
    /// that wrote it.
    fn log_compressor(&self) -> Cow<'_, str> {
        match (self.own_compressors, self.codec) {
            (Some(_), NamedCodec::None) => LOG_PLAIN.to_string_lossy(),
            (Some(_), _) => LOG.to_string_lossy(),
            (None, codec) => codec.name().into(),
        }
    }
}

fn codec(options: &EngineOptions) -> Result<NamedCodec> {
    NamedCodec::of(options, NamedCodec::Snappy)
        .map_err(|other| bad("codec", other, "none, snappy, lz4, zlib or zstd"))
}

/// Paths of the library's own extensions. All existing ones are loaded, because existing trees may
/// use any of them.
fn extensions(options: &EngineOptions, codec: NamedCodec) -> Result<Vec<String>> {
    let directory = options.own.get("extension_dir").map(String::as_str);
    let directory = directory.unwrap_or(env!("WIREDTIGER_LIBDIR"));
    if directory.contains(['"', '\\', '\n']) {
        return Err(bad(
            "extension_dir",
            directory,
            "a path without quotes and backslashes",
        ));
    }
    let mut files = Vec::new();
    for (of, file) in [
        (NamedCodec::Snappy, "libwiredtiger_snappy.so"),
        (NamedCodec::Zlib, "libwiredtiger_zlib.so"),
    ] {
        let path = Path::new(directory).join(file);
        if path.is_file() {
            files.push(path.display().to_string());
        } else if codec == of {
            let message = format!(
                "the extension for codec={} is missing; install libwiredtiger0, name its \
                 directory with extension_dir, or open with codec=lz4 or codec=none",
                codec.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_engine(NAME)
                .with_path(path));
        }
    }
    Ok(files)
}

/// Path of our compressors, if it can be loaded; some codecs work without it.
fn own_compressors(codec: NamedCodec) -> Result<Option<&'static str>> {
    match (trampoline::path(), codec) {
        (Ok(path), _) => Ok(Some(path)),
        (Err(why), NamedCodec::Lz4 | NamedCodec::Zstd) => {
            let message = format!(
                "codec={} cannot be loaded here ({why}); open with codec=snappy or codec=none",
                codec.name()
            );
            Err(Error::new(ErrorKind::Unsupported, message).with_engine(NAME))
        }
        (Err(_), _) => Ok(None),
    }
}

fn page(options: &EngineOptions, name: &'static str, default: ByteSize) -> Result<u64> {
    const FORM: &str = "a size from 512 to 512M, a power of two";
    let bytes = match options.own.get(name) {
        None => default,
        Some(text) => ByteSize::from_str(text).map_err(|_| bad(name, text, FORM))?,
    }
    .bytes();
    if !(512..=512 << 20).contains(&bytes) || !bytes.is_power_of_two() {
        return Err(bad(name, &bytes.to_string(), FORM));
    }
    Ok(bytes)
}

fn number(options: &EngineOptions, name: &'static str, default: usize) -> Result<usize> {
    match options.own.get(name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| bad(name, text, "a number")),
    }
}

fn bad(name: &'static str, value: &str, form: &str) -> Error {
    Error::invalid(format!("bad value {value:?} of option {name}: give {form}")).with_engine(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Config> {
        let mut options = EngineOptions::default();
        options.own.insert(name.to_owned(), value.to_owned());
        Config::new(&options)
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        for (name, value) in [
            ("type", "heap"),
            ("leaf_page", "100"),
            ("leaf_page", "48K"),
            ("internal_page", "1T"),
            ("sessions", "0"),
            ("sessions", "many"),
            ("split_pct", "49"),
            ("extension_dir", "/a\"b"),
            ("codec", "lzma"),
        ] {
            let error = with(name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn a_missing_compressor_names_the_way_out() {
        for codec in ["snappy", "zlib"] {
            let own = [("extension_dir", "/nowhere"), ("codec", codec)];
            let own = own.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
            let options = EngineOptions {
                own,
                ..EngineOptions::default()
            };
            let error = Config::new(&options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = error.to_string();
            assert!(text.contains("codec=none"), "{text}");
            let file = format!("/nowhere/libwiredtiger_{codec}.so");
            assert!(text.contains(&file), "{text}");
        }
    }

    #[test]
    fn the_own_codec_wins_over_the_class_and_the_log_is_read_by_any() {
        let compressors = |codec: &str, class| {
            let options = EngineOptions {
                codec: class,
                own: [("codec".to_owned(), codec.to_owned())].into(),
                ..EngineOptions::default()
            };
            let config = Config::new(&options).unwrap();
            let table = config.table("t");
            let block = format!("block_compressor={codec}");
            assert!(table.contains(&block), "{block} in {table}");
            config.connection()
        };
        for codec in ["snappy", "lz4", "zlib", "zstd"] {
            let text = compressors(codec, kv::Codec::None);
            assert!(text.contains("compressor=romanesco_log)"), "{text}");
        }
        let text = compressors("none", kv::Codec::Fast);
        assert!(text.contains("compressor=romanesco_log_plain)"), "{text}");
    }

    #[test]
    fn options_reach_the_configuration() {
        let options = EngineOptions {
            cache: ByteSize::mib(64),
            checkpoint: Duration::from_millis(2500),
            direct_io: true,
            codec: kv::Codec::None,
            ..EngineOptions::default()
        };
        let config = Config::new(&options).unwrap();
        let text = config.connection();
        for part in [
            "cache_size=67108864",
            "wait=3",
            "direct_io=[data,checkpoint]",
            "compressor=romanesco_log_plain",
            "/proc/self/fd/",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let table = with("type", "lsm").unwrap().table("a:b");
        assert!(
            table.contains("type=lsm") && table.contains("\"a:b\""),
            "{table}"
        );
    }
}
