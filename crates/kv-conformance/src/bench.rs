//! The environment of a law: a new directory, and functions to open the engine in it.

use std::path::{Path, PathBuf};

use kv::{Capabilities, Engine, EngineOptions, Factory, Limits, Result};
use tempfile::TempDir;

use crate::subject::Subject;

/// A new directory for one law, removed when the law ends.
#[derive(Debug)]
pub struct Bench<'a> {
    subject: &'a Subject,
    root: TempDir,
}

impl<'a> Bench<'a> {
    /// A bench for one law, with the engine and options of `subject`.
    ///
    /// # Panics
    /// If no temporary directory can be created.
    #[must_use]
    pub fn new(subject: &'a Subject) -> Bench<'a> {
        let root = tempfile::Builder::new()
            .prefix("kv-law-")
            .tempdir()
            .expect("a temporary directory");
        Bench { subject, root }
    }

    /// The engine's capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &'a Capabilities {
        self.subject.capabilities()
    }

    /// The maximum sizes of keys and values.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.capabilities().limits
    }

    /// The engine's factory.
    #[must_use]
    pub fn factory(&self) -> &'static dyn Factory {
        self.subject.factory()
    }

    /// The options of all stores of this bench.
    #[must_use]
    pub fn options(&self) -> EngineOptions {
        self.subject.options().clone()
    }

    /// The directory of the store; it does not exist before the first [`Bench::open`].
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.path("store")
    }

    /// A path for a second store, next to that of the first.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Open the store.
    ///
    /// # Panics
    /// If the store does not open.
    #[must_use]
    pub fn open(&self) -> Box<dyn Engine> {
        match self.try_open(&self.directory()) {
            Ok(engine) => engine,
            Err(e) => panic!("the store does not open: {e}"),
        }
    }

    /// Open the store in `directory`.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn try_open(&self, directory: &Path) -> Result<Box<dyn Engine>> {
        self.factory().open(directory, self.subject.options())
    }

    /// Close `engine`, which must succeed, and open the store again.
    ///
    /// # Panics
    /// If the store does not close or does not open.
    #[must_use]
    pub fn reopen(&self, engine: Box<dyn Engine>) -> Box<dyn Engine> {
        if let Err(e) = engine.close() {
            panic!("the store does not close: {e}");
        }
        self.open()
    }
}
