//! Applies settings by their names. The command line and the file go through it both; later
//! settings win.

use std::fs;
use std::path::Path;

use bson::{Bson, Document};

use super::server::Config;
use super::setting::Setting;
use super::value::within;
use super::{file, foreign, settings};

/// What a parameter of the log's components is called, before their names.
const COMPONENT_PARAMETER: &str = "logComponentVerbosity.";

/// Components of MongoDB's log, without their `.verbosity`.
pub(crate) const COMPONENTS: &[&str] = &[
    "accessControl",
    "assert",
    "command",
    "control",
    "executor",
    "ftdc",
    "geo",
    "index",
    "network",
    "network.asio",
    "network.bridge",
    "network.connectionPool",
    "query",
    "query.optimizer",
    "query.rejected",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.migration",
    "storage",
    "storage.journal",
    "storage.recovery",
    "storage.wt",
    "transaction",
    "write",
];

/// The component whose verbosity has an effect: from 1 on, every command is logged.
pub(crate) const COMMAND: &str = "command";

/// Every setting: those that change the server first, then those without meaning here.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    settings::SETTINGS.iter().chain(foreign::SETTINGS)
}

/// Parameters of `setParameter` that have no meaning here.
pub fn foreign_parameters() -> impl Iterator<Item = &'static Setting> {
    foreign::PARAMETERS.iter()
}

impl Config {
    /// Apply one setting by its name in MongoDB's configuration file.
    ///
    /// # Errors
    /// An unknown name, or a value it cannot have, in a sentence that names it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |error| match is_password(name) {
            true => format!("{name}: {error}"),
            false => format!("{name}: {value:?}: {error}"),
        };
        if let Some(parameter) = name.strip_prefix("setParameter.") {
            self.set_parameter(parameter, value).map_err(wrong)?;
        } else if let Some(option) = name.strip_prefix("storage.engineOptions.") {
            self.engine_options
                .push((option.to_owned(), value.to_owned()));
        } else if !self.set_engine(name, value).map_err(wrong)?
            && !self.set_component(name, value).map_err(wrong)?
        {
            let own = settings::SETTINGS.iter().find(|row| row.name == name);
            let Some(row) = own.or_else(|| foreign::find(foreign::SETTINGS, name)) else {
                return Err(format!("unrecognized setting {name}"));
            };
            row.apply(self, value).map_err(wrong)?;
        }
        note(&mut self.parsed, name, value);
        Ok(())
    }

    /// Apply the settings of a file.
    ///
    /// # Errors
    /// A file that cannot be read; else every setting that is wrong, as [`Config::set`] says it,
    /// after the name of the file.
    pub fn read(&mut self, path: &Path) -> Result<(), Vec<String>> {
        let place = path.display();
        let text = fs::read_to_string(path).map_err(|error| vec![format!("{place}: {error}")])?;
        let read = file::read(&text).map_err(|error| vec![format!("{place}: {error}")])?;
        let wrong: Vec<String> = read
            .into_iter()
            .filter_map(|(name, value)| self.set(&name, &value).err())
            .map(|error| format!("{place}: {error}"))
            .collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(wrong),
        }
    }

    /// Note that a setting does nothing, and why.
    pub(super) fn does_nothing(&mut self, name: &str, why: &str) {
        self.warnings.push(format!("{name} does nothing: {why}"));
    }

    fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(component) = name.strip_prefix(COMPONENT_PARAMETER) {
            let setting = match component {
                "verbosity" => "systemLog.verbosity".to_owned(),
                component => format!("systemLog.component.{component}"),
            };
            return self.set(&setting, value);
        }
        match foreign::find(foreign::PARAMETERS, name) {
            Some(row) => row.apply(self, value),
            None => {
                let parameter = (name.to_owned(), value.to_owned());
                self.parameters.push(parameter);
                Ok(())
            }
        }
    }

    /// Apply the verbosity of a component of the log. Returns whether it is one.
    fn set_component(&mut self, setting: &str, value: &str) -> Result<bool, String> {
        let name = setting.strip_prefix("systemLog.component.");
        let name = name.and_then(|name| name.strip_suffix(".verbosity"));
        let known = |name: &str| COMPONENTS.iter().find(|known| **known == name).copied();
        let Some(name) = name.and_then(known) else {
            return Ok(false);
        };
        let level = within(value, -1, 5)?;
        self.components.insert(name, level);
        if level != -1 && name != COMMAND {
            self.does_nothing(setting, "only commands are logged more or less");
        }
        Ok(true)
    }
}

/// Whether the value of a setting must not be shown.
fn is_password(name: &str) -> bool {
    name.ends_with("assword")
}

/// Keep a setting for `getCmdLineOpts`, nested as in the file, numbers and switches as such.
fn note(parsed: &mut Document, name: &str, value: &str) {
    let value = match (value, value.parse::<i32>()) {
        _ if is_password(name) => Bson::from("<password>"),
        ("true", _) => Bson::Boolean(true),
        ("false", _) => Bson::Boolean(false),
        (_, Ok(number)) => Bson::Int32(number),
        _ => Bson::from(value),
    };
    let mut place = parsed;
    let mut parts = name.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            place.insert(part, value);
            return;
        }
        let below = place
            .entry(part.to_owned())
            .or_insert_with(|| Document::new().into());
        let Bson::Document(below) = below else {
            return;
        };
        place = below;
    }
}
