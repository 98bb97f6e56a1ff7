//! The environment of a law: a new directory, and functions to open the engine in it.

use std::path::{Path, PathBuf};

use kv::{Capabilities, Engine, EngineOptions, Factory, Limits, Result};
use tempfile::TempDir;

use crate::subject::Subject;

/// A fresh directory for one law, removed when the law ends.
#[derive(Debug)]
pub struct Bench<'a> {
    subject: &'a Subject,
    root: TempDir,
}

impl<'a> Bench<'a> {
    /// A bench for one law about `subject`.
    ///
    /// # Panics
    /// When no temporary directory can be created.
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

    /// The longest keys and values.
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

    /// A path next to the store, for a second one.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Open the store.
    ///
    /// # Panics
    /// When it does not open.
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
    /// The engine's.
    pub fn try_open(&self, directory: &Path) -> Result<Box<dyn Engine>> {
        self.factory().open(directory, self.subject.options())
    }

    /// Close `engine`, which must succeed, and open the store again.
    ///
    /// # Panics
    /// When it does not close or open.
    #[must_use]
    pub fn reopen(&self, engine: Box<dyn Engine>) -> Box<dyn Engine> {
        if let Err(e) = engine.close() {
            panic!("the store does not close: {e}");
        }
        self.open()
    }
}
