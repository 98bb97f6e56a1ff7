//! What `getParameter` shows and `setParameter` changes.
//!
//! A table: name, value at the start, when it may be set. Names are MongoDB's where it has one.
//! Each that may be set does what it says: some are looked up where they matter, others are handed
//! on by `Server::tune` when they change.

use std::collections::BTreeMap;

use bson::{Bson, doc};
use query::{Code, Error, Result};
use stdx::sync::RwLock;

use crate::config::Config;

/// When a parameter may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settable {
    /// Only when the server starts.
    AtStart,
    /// Also while it runs.
    AtRuntime,
    /// Never: it tells of a state.
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
    row("enableLocalhostAuthBypass", AtStart, || Bson::Boolean(true)),
    row("enableTestCommands", AtStart, || Bson::Boolean(false)),
    row("featureCompatibilityVersion", Never, || {
        Bson::Document(doc! {"version": crate::version::FEATURES})
    }),
    row("localLogicalSessionTimeoutMinutes", Never, || {
        Bson::Int32(crate::limits::SESSION_MINUTES)
    }),
    row("logLevel", AtRuntime, || Bson::Int32(0)),
    row("maxIndexBuildMemoryUsageMegabytes", AtRuntime, || {
        Bson::Int32(200)
    }),
    row("notablescan", AtRuntime, || Bson::Boolean(false)),
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
];

/// The least and the greatest of a number.
fn range(name: &str) -> (i64, i64) {
    match name {
        "scramIterationCount" | "scramSHA256IterationCount" => (5_000, 10_000_000),
        "logLevel" => (0, 5),
        "maxIndexBuildMemoryUsageMegabytes" => (50, 1 << 20),
        "queryMemoryLimitMegabytes" => (0, 1 << 30),
        _ => (1, i64::MAX),
    }
}

/// The values.
pub(crate) struct Parameters(RwLock<BTreeMap<&'static str, Bson>>);

/// What a value set from outside looks like as the kind of value there was: text from the command
/// line becomes a number or a boolean, numbers become each other.
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
        let values = PARAMETERS.iter().map(|p| (p.name, (p.initial)())).collect();
        let parameters = Parameters(RwLock::new(values));
        parameters.put("logLevel", Bson::Int32(config.verbosity), AtStart)?;
        for (name, value) in &config.parameters {
            parameters.put(name, Bson::String(value.clone()), AtStart)?;
        }
        let known = |name: &Bson| name.as_str().is_some_and(|name| MECHANISMS.contains(&name));
        let values = parameters.0.read();
        let named = values.get("authenticationMechanisms");
        if let Some(Bson::Array(named)) = named
            && let Some(unknown) = named.iter().find(|name| !known(name))
        {
            let message = format!("authenticationMechanisms: unknown mechanism {unknown}");
            return Err(Error::bad_value(message));
        }
        drop(values);
        Ok(parameters)
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
        let mut values = self.0.write();
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

    /// Change one while the server runs. What it was.
    ///
    /// # Errors
    /// `InvalidOptions`, `IllegalOperation`, `BadValue`.
    pub(crate) fn set(&self, name: &str, value: Bson) -> Result<Bson> {
        self.put(name, value, AtRuntime)
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.0.read().get(name) == Some(&Bson::Boolean(true))
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        let values = self.0.read();
        let value = values.get(name).and_then(Bson::as_i64);
        let small = || values.get(name).and_then(Bson::as_i32).map(i64::from);
        value.or_else(small).unwrap_or(0)
    }

    /// Whether a list holds a text.
    pub(crate) fn lists(&self, name: &str, text: &str) -> bool {
        let values = self.0.read();
        let list = values.get(name).and_then(Bson::as_array);
        list.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(text)))
    }

    /// All, with when they may be set.
    pub(crate) fn list(&self) -> Vec<(&'static str, Bson, Settable)> {
        let values = self.0.read();
        let value = |p: &Parameter| values.get(p.name).cloned().unwrap_or(Bson::Null);
        PARAMETERS
            .iter()
            .map(|p| (p.name, value(p), p.settable))
            .collect()
    }
}
