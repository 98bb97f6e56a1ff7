//! The configuration sections of engines, `storage.betree.*` and similar, and the options that an
//! engine is opened with.
//!
//! A section has the engine's own options under their names, and MongoDB's groups `engineConfig`,
//! `collectionConfig`, `indexConfig`. Files often keep a section of an engine that is not the one
//! in use: it is read and checked as far as it can be, and the log says that it does nothing.

use std::time::Duration;

use kv::{Encryption, EngineOptions, Factory};
use stdx::ByteSize;

use super::memory::Memory;
use super::server::{Config, EngineSetting};
use super::value::{boolean, gigabytes, within};

/// Sections, and the engines they are about.
const SECTIONS: &[(&str, &str)] = &[
    ("betree", "betree"),
    ("lmdb", "lmdb"),
    ("rocksdb", "rocksdb"),
    ("wiredTiger", "wiredtiger"),
    ("inMemory", "memory"),
];

/// The section of files made for MongoDB. Its cache size is used for every engine.
const MONGODB: &str = "wiredTiger";

/// The reason why settings for separate directories have no effect.
pub(super) const ONE_FOLDER: &str = "an engine keeps all its data in one folder";

/// Codecs that any engine may have.
const CODECS: &[&str] = &["none", "snappy", "lz4", "zlib", "zstd"];

/// The options that an engine is opened with.
#[derive(Debug, Clone)]
pub struct EngineSetup {
    /// The options.
    pub options: EngineOptions,
    /// Settings without effect, each described in a sentence.
    pub warnings: Vec<String>,
}

impl Config {
    /// Apply a setting of an engine's section. Returns false if the name is not in such a section.
    pub(super) fn set_engine(&mut self, setting: &str, value: &str) -> Result<bool, String> {
        let Some((section, name)) = setting
            .strip_prefix("storage.")
            .and_then(|rest| rest.split_once('.'))
        else {
            return Ok(false);
        };
        let Some((_, engine)) = SECTIONS.iter().find(|(known, _)| *known == section) else {
            return Ok(false);
        };
        match name {
            "engineConfig.cacheSizeGB" if section == MONGODB => {
                self.cache_bytes = Some(gigabytes(value)?);
                return Ok(true);
            }
            "engineConfig.cacheSizeGB" => {
                gigabytes(value)?;
            }
            "engineConfig.inMemorySizeGB" | "engineConfig.maxCacheOverflowFileSizeGB" => {
                gigabytes(value)?;
            }
            "engineConfig.cacheSizePct" => {
                within(value, 1_u64, 100)?;
            }
            "engineConfig.statisticsLogDelaySecs" => {
                within(value, 0_u64, u64::MAX)?;
            }
            "engineConfig.directoryForIndexes" => {
                boolean(value)?;
            }
            "engineConfig.journalCompressor" | "collectionConfig.blockCompressor"
                if !CODECS.contains(&value) =>
            {
                let known = CODECS.join(", ");
                return Err(format!("unknown codec; there are {known}"));
            }
            "engineConfig.journalCompressor" | "collectionConfig.blockCompressor" => {}
            "indexConfig.prefixCompression" => {
                boolean(value)?;
            }
            "engineConfig.zstdCompressionLevel" => {
                within(value, -7_i32, 22)?;
            }
            "engineConfig.configString" => {}
            grouped if grouped.contains('.') => return Err("unrecognized setting".to_owned()),
            _ => {}
        }
        self.engine_settings.push(EngineSetting {
            setting: setting.to_owned(),
            engine,
            name: name.to_owned(),
            value: value.to_owned(),
        });
        Ok(true)
    }

    /// The cache size of the engine in bytes, according to its settings.
    #[must_use]
    pub fn cache(&self, memory: &Memory) -> u64 {
        let own = self.engine_settings.iter().rev();
        let own = own.filter(|setting| setting.engine == self.engine);
        let named = own.filter_map(|setting| match setting.name.as_str() {
            "engineConfig.cacheSizeGB" => gigabytes(&setting.value).ok(),
            "engineConfig.cacheSizePct" => {
                let percent = within(&setting.value, 1_u64, 100).ok()?;
                Some(memory.limit / 100 * percent)
            }
            _ => None,
        });
        let general = || self.cache_bytes.unwrap_or_else(|| memory.cache());
        named.into_iter().next().unwrap_or_else(general)
    }

    /// The options to open the engine with.
    ///
    /// # Errors
    /// Every option that the engine does not know, and every value it cannot have, each in a
    /// sentence that names the setting.
    pub fn engine_setup(&self, factory: &dyn Factory) -> Result<EngineSetup, Vec<String>> {
        let memory = Memory::read();
        let cache = self.cache_bytes.unwrap_or_else(|| memory.cache());
        let mut setup = EngineSetup {
            options: EngineOptions {
                cache: ByteSize(cache),
                interval: Duration::from_millis(self.commit_interval_ms),
                checkpoint: Duration::from_secs(self.checkpoint_seconds),
                ..EngineOptions::default()
            },
            warnings: self.warnings.clone(),
        };
        let serving = factory.serving().iter();
        let serving = serving.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        setup.options.own.extend(serving);
        let mut wrong = Vec::new();
        for setting in &self.engine_settings {
            let place = &setting.setting;
            if setting.engine != factory.name() {
                let name = factory.name();
                let warning = format!("{place} does nothing: the engine in use is {name}");
                setup.warnings.push(warning);
                continue;
            }
            if let Err(error) = apply(setting, factory, &memory, &mut setup) {
                wrong.push(format!("{place}: {:?}: {error}", setting.value));
            }
        }
        let own = self.engine_options.iter().cloned();
        setup.options.own.extend(own);
        if let Err(error) = self.encrypt(factory, &mut setup) {
            wrong.push(error);
        }
        if let Err(error) = factory.check(&setup.options) {
            wrong.push(error.to_string());
        }
        if self.cache_bytes.is_some() && !factory.has_cache() {
            let warning = format!(
                "storage.cacheSizeGB does nothing: {} reads through the page cache of the \
                 operating system",
                factory.name()
            );
            setup.warnings.push(warning);
        }
        match wrong.is_empty() {
            true => Ok(setup),
            false => Err(wrong),
        }
    }
}

impl Config {
    /// Apply the settings of encryption at rest.
    fn encrypt(&self, factory: &dyn Factory, setup: &mut EngineSetup) -> Result<(), String> {
        let name = factory.name();
        let file = match (self.encryption.enabled, &self.encryption.key_file) {
            (false, None) => return Ok(()),
            (false, Some(_)) => {
                // A server that ignored it would write what its operator believes encrypted.
                return Err(
                    "security.encryptionKeyFile: set security.enableEncryption to true, or \
                            remove the key file"
                        .to_owned(),
                );
            }
            (true, None) => {
                return Err(
                    "security.enableEncryption: name the file of the master key with \
                            security.encryptionKeyFile"
                        .to_owned(),
                );
            }
            (true, Some(file)) => file,
        };
        let known = factory.options().iter();
        if !known
            .map(|option| option.name)
            .any(|it| it == Encryption::OPTION)
        {
            return Err(format!(
                "security.enableEncryption: {name} does not encrypt its files; use \
                 storage.engine betree, or encrypt the file system (dm-crypt) and remove the \
                 setting"
            ));
        }
        let file = std::path::absolute(file)
            .map_err(|error| format!("security.encryptionKeyFile: {error}"))?;
        let Some(file) = file.to_str() else {
            return Err("security.encryptionKeyFile: the path is not UTF-8".to_owned());
        };
        let own = &mut setup.options.own;
        own.insert(Encryption::OPTION.to_owned(), file.to_owned());
        Ok(())
    }
}

/// Apply a setting of the engine in use.
fn apply(
    setting: &EngineSetting,
    factory: &dyn Factory,
    memory: &Memory,
    setup: &mut EngineSetup,
) -> Result<(), String> {
    let value = setting.value.as_str();
    match setting.name.as_str() {
        "engineConfig.cacheSizeGB" => setup.options.cache = ByteSize(gigabytes(value)?),
        "engineConfig.cacheSizePct" => {
            let percent = within(value, 1_u64, 100)?;
            setup.options.cache = ByteSize(memory.limit / 100 * percent);
        }
        "engineConfig.inMemorySizeGB" => {
            let limit = gigabytes(value)?.to_string();
            setup.options.own.insert("limit".to_owned(), limit);
        }
        "engineConfig.directoryForIndexes" => {
            if boolean(value)? {
                let warning = format!("{} does nothing: {ONE_FOLDER}", setting.setting);
                setup.warnings.push(warning);
            }
        }
        "collectionConfig.blockCompressor" => codec(value, factory, &mut setup.options)?,
        "engineConfig.journalCompressor"
        | "engineConfig.maxCacheOverflowFileSizeGB"
        | "engineConfig.statisticsLogDelaySecs"
        | "engineConfig.zstdCompressionLevel"
        | "indexConfig.prefixCompression" => {
            let warning = format!("{} does nothing with this engine", setting.setting);
            setup.warnings.push(warning);
        }
        "engineConfig.configString" => {
            let warning = format!(
                "{} does nothing: options of the engine have names of their own",
                setting.setting
            );
            setup.warnings.push(warning);
        }
        name => {
            let known: Vec<&str> = factory.options().iter().map(|o| o.name).collect();
            if !known.contains(&name) {
                let known = known.join(", ");
                return Err(format!("unknown option; {} knows: {known}", factory.name()));
            }
            let own = &mut setup.options.own;
            own.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(())
}

fn codec(name: &str, factory: &dyn Factory, options: &mut EngineOptions) -> Result<(), String> {
    let codecs = factory.codecs();
    let Some(codec) = codecs.iter().find(|codec| codec.name == name) else {
        let known: Vec<&str> = codecs.iter().map(|codec| codec.name).collect();
        let known = known.join(", ");
        return Err(format!(
            "{} has no such codec; it has: {known}",
            factory.name()
        ));
    };
    options.codec = codec.class;
    for (name, value) in codec.own {
        options.own.insert((*name).to_owned(), (*value).to_owned());
    }
    Ok(())
}
