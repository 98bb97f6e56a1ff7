//! The parameters that `getParameter` shows and `setParameter` changes.
//!
//! A table: name, value at the start, when it may be set. Names are MongoDB's where it has one.
//! Each that may be set does what it says: some are looked up where they matter, others are handed
//! on by `Server::tune` when they change.

use std::collections::BTreeMap;

use bson::{Bson, doc};
use query::{Code, Error, Result};
use stdx::sync::RwLock;

use super::components::{self, Components};
use crate::config::Config;

/// When a parameter may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settable {
    /// Only when the server starts.
    AtStart,
    /// Also while it runs.
    AtRuntime,
    /// Never: it reports a state.
    Never,
}

struct Parameter {
    name: &'static str,
    settable: Settable,
    initial: fn() -> Bson,
}

const fn row(name: &'static str, settable: Settable, initial: fn() -> Bson) -> Parameter {
    Parameter {
        name,
        settable,
        initial,
    }
}

use Settable::{AtRuntime, AtStart, Never};

/// Ways to authenticate, all enabled by default.
const MECHANISMS: &[&str] = &["MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"];

const PARAMETERS: &[Parameter] = &[
    row("authSchemaVersion", Never, || {
        Bson::Int32(crate::version::AUTH_SCHEMA)
    }),
    row("authenticationMechanisms", AtStart, || {
        Bson::Array(MECHANISMS.iter().map(|name| (*name).into()).collect())
    }),
    row("cursorTimeoutMillis", AtRuntime, || Bson::Int64(600_000)),
    row("enableFlowControl", AtRuntime, || Bson::Boolean(true)),
    row("enableLocalhostAuthBypass", AtStart, || Bson::Boolean(true)),
    row("enableTestCommands", AtStart, || Bson::Boolean(false)),
    row("featureCompatibilityVersion", Never, || {
        Bson::Document(doc! {"version": crate::version::FEATURES})
    }),
    row("flowControlTargetLagSeconds", AtRuntime, || Bson::Int32(15)),
    row("localLogicalSessionTimeoutMinutes", Never, || {
        Bson::Int32(crate::limits::SESSION_MINUTES)
    }),
    row(components::NAME, AtRuntime, || Bson::Null),
    row("logLevel", AtRuntime, || Bson::Int32(0)),
    row("maxIndexBuildMemoryUsageMegabytes", AtRuntime, || {
        Bson::Int32(200)
    }),
    row("notablescan", AtRuntime, || Bson::Boolean(false)),
    row("periodicNoopIntervalSecs", AtStart, || {
        Bson::Int32(crate::oplog::IDLE_SECONDS)
    }),
    row("queryMemoryLimitMegabytes", AtRuntime, || Bson::Int64(0)),
    row("quiet", AtRuntime, || Bson::Boolean(false)),
    row("requireApiVersion", AtRuntime, || Bson::Boolean(false)),
    row("scramIterationCount", AtRuntime, || Bson::Int32(10_000)),
    row("scramSHA256IterationCount", AtRuntime, || {
        Bson::Int32(15_000)
    }),
    row("transactionLifetimeLimitSeconds", AtRuntime, || {
        Bson::Int32(60)
    }),
    row("ttlMonitorEnabled", AtRuntime, || Bson::Boolean(true)),
    row("ttlMonitorSleepSecs", AtRuntime, || Bson::Int32(60)),
    row("writePeriodicNoops", AtStart, || Bson::Boolean(true)),
];

/// The minimum and maximum of a number.
fn range(name: &str) -> (i64, i64) {
    match name {
        "scramIterationCount" | "scramSHA256IterationCount" => (5_000, 10_000_000),
        "flowControlTargetLagSeconds" => (1, 3_600),
        "logLevel" => (0, 5),
        "maxIndexBuildMemoryUsageMegabytes" => (50, 1 << 20),
        "queryMemoryLimitMegabytes" => (0, 1 << 30),
        _ => (1, i64::MAX),
    }
}

/// The values, and the verbosity of the log's components.
pub(crate) struct Parameters {
    values: RwLock<BTreeMap<&'static str, Bson>>,
    components: RwLock<Components>,
}

/// Convert a value to the type of the old one: text from the command line to a number or a boolean,
/// and numbers to other numeric types.
fn convert(name: &str, old: &Bson, new: Bson) -> Result<Bson> {
    let wrong = || {
        let message = format!("invalid value {new} for parameter {name}");
        Error::bad_value(message)
    };
    let number = || match &new {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        #[expect(clippy::cast_possible_truncation, reason = "a setting; saturates")]
        Bson::Double(n) => Some(*n as i64),
        Bson::Boolean(b) => Some(i64::from(*b)),
        Bson::String(text) => match text.as_str() {
            "true" => Some(1),
            "false" => Some(0),
            text => text.parse().ok(),
        },
        _ => None,
    };
    match old {
        Bson::Boolean(_) => number().map(|n| Bson::Boolean(n != 0)).ok_or_else(wrong),
        Bson::Int32(_) => number()
            .and_then(|n| i32::try_from(n).ok())
            .map(Bson::Int32)
            .ok_or_else(wrong),
        Bson::Int64(_) => number().map(Bson::Int64).ok_or_else(wrong),
        Bson::Array(_) => match &new {
            Bson::Array(_) => Ok(new),
            Bson::String(text) => Ok(Bson::Array(
                text.split(',').map(|part| part.trim().into()).collect(),
            )),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

impl Parameters {
    /// The values at the start, with those of the configuration.
    ///
    /// # Errors
    /// `InvalidOptions` for an unknown name, `BadValue` for a bad value.
    pub(crate) fn new(config: &Config) -> Result<Parameters> {
        let (parameters, wrong) = Parameters::with(config);
        match wrong.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(parameters),
        }
    }

    /// What is wrong with the parameters of a configuration, each in a sentence.
    pub(crate) fn check(config: &Config) -> Vec<String> {
        let (_, wrong) = Parameters::with(config);
        let sentence = |error: Error| format!("setParameter: {}", error.message.trim_end());
        wrong.into_iter().map(sentence).collect()
    }

    /// The values at the start, and each error in them.
    fn with(config: &Config) -> (Parameters, Vec<Error>) {
        let values = PARAMETERS.iter().map(|p| (p.name, (p.initial)())).collect();
        let parameters = Parameters {
            values: RwLock::new(values),
            components: RwLock::new(Components::new(config)),
        };
        let general = ("logLevel", Bson::Int32(config.verbosity));
        let given = config.parameters.iter();
        let given = given.map(|(name, value)| (name.as_str(), Bson::String(value.clone())));
        let mut wrong: Vec<Error> = std::iter::once(general)
            .chain(given)
            .filter_map(|(name, value)| parameters.put(name, value, AtStart).err())
            .collect();
        wrong.extend(parameters.unknown_mechanism());
        (parameters, wrong)
    }

    fn unknown_mechanism(&self) -> Option<Error> {
        let known = |name: &Bson| name.as_str().is_some_and(|name| MECHANISMS.contains(&name));
        let values = self.values.read();
        let named = values.get("authenticationMechanisms")?.as_array()?;
        let unknown = named.iter().find(|name| !known(name))?;
        let message = format!("authenticationMechanisms: unknown mechanism {unknown}");
        Some(Error::bad_value(message))
    }

    fn put(&self, name: &str, value: Bson, when: Settable) -> Result<Bson> {
        let Some(row) = PARAMETERS.iter().find(|p| p.name == name) else {
            let message = format!(
                "attempted to set unrecognized parameter [{name}], use help:true \
                 to see options "
            );
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        };
        if row.settable == Never || (when == AtRuntime && row.settable != AtRuntime) {
            let message = format!("not allowed to change [{name}] at runtime");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if name == components::NAME {
            return self.put_components(&value);
        }
        let mut values = self.values.write();
        let old = values.get(name).cloned().unwrap_or(Bson::Null);
        let new = convert(name, &old, value)?;
        let number = new.as_i64().or(new.as_i32().map(i64::from));
        let (least, most) = range(name);
        if let Some(number) = number.filter(|n| !(least..=most).contains(n)) {
            let message = format!(
                "Invalid value for parameter {name}: {number} is not between {least} and {most}"
            );
            return Err(Error::bad_value(message));
        }
        values.insert(row.name, new);
        Ok(old)
    }

    /// Change the verbosity of components. What it was.
    fn put_components(&self, value: &Bson) -> Result<Bson> {
        let old = self.shown_components();
        let mut components = self.components.write();
        let (changed, general) = components.changed(value)?;
        *components = changed;
        drop(components);
        if let Some(level) = general {
            let mut values = self.values.write();
            values.insert("logLevel", Bson::Int32(level));
        }
        Ok(old)
    }

    fn shown_components(&self) -> Bson {
        let general = i32::try_from(self.number("logLevel")).unwrap_or(0);
        Bson::Document(self.components.read().shown(general))
    }

    /// Whether every command is logged.
    pub(crate) fn logs_commands(&self) -> bool {
        let general = self.number("logLevel");
        0 < self.components.read().of_commands(general)
    }

    /// Change a parameter while the server runs; returns its old value.
    ///
    /// # Errors
    /// `InvalidOptions`, `IllegalOperation`, `BadValue`.
    pub(crate) fn set(&self, name: &str, value: Bson) -> Result<Bson> {
        self.put(name, value, AtRuntime)
    }

    /// Whether a boolean parameter is true.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.values.read().get(name) == Some(&Bson::Boolean(true))
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        let values = self.values.read();
        let value = values.get(name).and_then(Bson::as_i64);
        let small = || values.get(name).and_then(Bson::as_i32).map(i64::from);
        value.or_else(small).unwrap_or(0)
    }

    /// Whether a list parameter contains a text.
    pub(crate) fn lists(&self, name: &str, text: &str) -> bool {
        let values = self.values.read();
        let list = values.get(name).and_then(Bson::as_array);
        list.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(text)))
    }

    /// All parameters, with their value and when they may be set.
    pub(crate) fn list(&self) -> Vec<(&'static str, Bson, Settable)> {
        let components = self.shown_components();
        let values = self.values.read();
        let value = |p: &Parameter| match p.name {
            components::NAME => components.clone(),
            name => values.get(name).cloned().unwrap_or(Bson::Null),
        };
        PARAMETERS
            .iter()
            .map(|p| (p.name, value(p), p.settable))
            .collect()
    }
}
