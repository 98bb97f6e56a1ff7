//! Finding and opening engines, independent of which engines were compiled in.

use std::path::Path;

use kv_types::{Error, ErrorKind, Result};

use crate::capabilities::{Capabilities, Writes};
use crate::engine::Engine;
use crate::options::{Codec, CodecDoc, EngineOptions, OptionDoc};

/// The factory of an engine, which may or may not be compiled in. Each adapter crate always exposes
/// one factory; without the crate's cargo feature, `open` returns `Unsupported` and names the
/// feature.
pub trait Factory: Send + Sync {
    /// The engine's name: lower case, as in `--engine lmdb`.
    fn name(&self) -> &'static str;

    /// Description in one line: the kind of engine and who makes it.
    fn about(&self) -> &'static str;

    /// The licence of the engine itself.
    fn license(&self) -> &'static str;

    /// The cargo feature that compiles the engine in, or `None` for an engine that is always
    /// compiled in.
    fn feature(&self) -> Option<&'static str>;

    /// Whether the engine is compiled in.
    fn available(&self) -> bool;

    /// The version of the engine's library, when it is compiled in.
    fn version(&self) -> Option<String>;

    /// What the engine supports. Available without opening a store; the same as
    /// [`Engine::capabilities`] with default options.
    fn capabilities(&self) -> Capabilities;

    /// How the engine writes changed entries to disk (default: `None`, for an engine that stores
    /// nothing there).
    fn writes(&self) -> Option<Writes> {
        None
    }

    /// How the engine protects stored pages from a write that a power failure tears: the kind of
    /// protection, `:`, and a clause. The kind is `not needed` if no page in use is overwritten
    /// (default, for an engine that stores nothing on disk).
    fn torn_pages(&self) -> &'static str {
        "not needed: nothing is on disk"
    }

    /// The engine-specific options.
    fn options(&self) -> &'static [OptionDoc];

    /// The codecs that can compress the engine's data, under their common names (default: none).
    fn codecs(&self) -> &'static [CodecDoc] {
        &[CodecDoc {
            name: "none",
            class: Codec::None,
            own: &[],
        }]
    }

    /// Whether the engine has a cache of its own, which [`EngineOptions::cache`] bounds (default
    /// true).
    fn has_cache(&self) -> bool {
        true
    }

    /// Environment variables for a process that runs this engine, such as the allocator's settings.
    /// The laboratory sets and reports them; a server may set them.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Engine-specific options that a server sets unless its operator does, by name (default:
    /// none). The laboratory measures an engine with the defaults of [`Factory::options`].
    fn serving(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Refuse unknown option names and values out of range, without accessing a file.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    fn check(&self, options: &EngineOptions) -> Result<()> {
        self.check_own(options)
    }

    /// Open the store in `directory`, creating both when missing.
    ///
    /// # Errors
    /// `Unsupported` when the engine is not compiled in; `Invalid` when the options are wrong or
    /// the directory holds another engine's store; `Io`, `Corrupt`, `Full` from the engine; never
    /// `Closed`.
    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>>;

    /// The error of `open` when the engine is not compiled in.
    fn missing(&self) -> Error {
        let feature = self.feature().unwrap_or("default");
        Error::new(
            ErrorKind::Unsupported,
            format!(
                "engine {} is not compiled in; build with --features {feature} (or all-engines)",
                self.name()
            ),
        )
        .with_engine(self.name())
    }

    /// Refuse options that this engine does not know. The error lists the known ones.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    fn check_own(&self, options: &EngineOptions) -> Result<()> {
        for name in options.own.keys() {
            if !self.options().iter().any(|o| o.name == name) {
                let known: Vec<&str> = self.options().iter().map(|o| o.name).collect();
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                let message = format!("unknown option {name:?}; {} knows: {known}", self.name());
                return Err(Error::invalid(message).with_engine(self.name()));
            }
        }
        Ok(())
    }
}
