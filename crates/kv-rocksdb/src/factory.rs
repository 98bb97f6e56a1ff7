//! The factory, which exists whether or not RocksDB is compiled in.

use std::path::Path;

use kv::{
    Capabilities, CodecDoc, Engine, EngineOptions, Factory, NamedCodec, OptionDoc, Result, Writes,
};

use crate::store;
use crate::support::{NAME, OPTIONS, capabilities};

/// RocksDB's factory.
#[must_use]
pub fn factory() -> &'static dyn Factory {
    &RocksDb
}

struct RocksDb;

impl Factory for RocksDb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "LSM tree with leveled or universal compaction, by Meta and others"
    }

    fn license(&self) -> &'static str {
        "Apache-2.0 OR GPL-2.0"
    }

    fn feature(&self) -> Option<&'static str> {
        Some("rocksdb")
    }

    fn available(&self) -> bool {
        store::AVAILABLE
    }

    fn version(&self) -> Option<String> {
        store::version()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(true)
    }

    fn writes(&self) -> Option<Writes> {
        Some(Writes::Changes)
    }

    fn torn_pages(&self) -> &'static str {
        "not needed: files are written once; the log has checksums"
    }

    fn options(&self) -> &'static [OptionDoc] {
        OPTIONS
    }

    fn codecs(&self) -> &'static [CodecDoc] {
        NamedCodec::DOCS
    }

    fn check(&self, options: &EngineOptions) -> Result<()> {
        self.check_own(options)?;
        store::check(options)
    }

    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        store::open(self, directory, options)
    }
}

#[cfg(test)]
mod tests {
    use kv::ErrorKind;

    use super::*;

    #[test]
    fn the_factory_is_there_whatever_is_compiled_in() {
        let factory = factory();
        assert_eq!(factory.name(), "rocksdb");
        assert_eq!(factory.available(), factory.version().is_some());
        assert_eq!(factory.missing().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn an_engine_that_is_not_compiled_in_names_its_feature() {
        if factory().available() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let error = factory()
            .open(directory.path(), &EngineOptions::default())
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("--features rocksdb"), "{error}");
    }
}
