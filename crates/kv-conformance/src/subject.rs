//! The engine under test, and its options.

use std::fmt;
use std::sync::OnceLock;

use kv::{Capabilities, EngineOptions, Factory};

/// Default number of seeds of random runs.
const SEEDS: u64 = 24;

/// An engine and its options.
pub struct Subject {
    factory: &'static dyn Factory,
    options: EngineOptions,
    seeds: u64,
    capabilities: OnceLock<Capabilities>,
}

impl Subject {
    /// A subject with the engine of `factory`; every law opens it with `options`.
    #[must_use]
    pub fn new(factory: &'static dyn Factory, options: EngineOptions) -> Subject {
        Subject {
            factory,
            options,
            seeds: SEEDS,
            capabilities: OnceLock::new(),
        }
    }

    /// Returns this subject with `seeds` as the default number of seeds of random runs, instead of
    /// 24.
    #[must_use]
    pub fn with_seeds(self, seeds: u64) -> Subject {
        Subject { seeds, ..self }
    }

    /// The default number of seeds of random runs.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The factory.
    #[must_use]
    pub fn factory(&self) -> &'static dyn Factory {
        self.factory
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The engine's capabilities with the options of this subject, read once from an open engine.
    ///
    /// # Panics
    /// If the engine cannot be opened in an empty directory.
    pub fn capabilities(&self) -> &Capabilities {
        self.capabilities.get_or_init(|| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let store = directory.path().join("store");
            match self.factory.open(&store, &self.options) {
                Ok(engine) => engine.capabilities().clone(),
                Err(e) => panic!("{} does not open: {e}", self.factory.name()),
            }
        })
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("engine", &self.factory.name())
            .field("options", &self.options)
            .finish()
    }
}
