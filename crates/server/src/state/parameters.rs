//! What `getParameter` shows and `setParameter` changes.
//!
//! A table: name, value at the start, when it may be set. Names are MongoDB's where it has one.

use std::collections::BTreeMap;

use bson::{Bson, doc};
use query::{Code, Error, Result};
use stdx::sync::RwLock;

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

const PARAMETERS: &[Parameter] = &[
    row("authenticationMechanisms", AtStart, || {
        Bson::Array(vec!["SCRAM-SHA-256".into(), "SCRAM-SHA-1".into()])
    }),
    row("cursorTimeoutMillis", AtRuntime, || Bson::Int64(600_000)),
    row("enableLocalhostAuthBypass", AtStart, || Bson::Boolean(true)),
    row("enableTestCommands", AtStart, || Bson::Boolean(false)),
    row("featureCompatibilityVersion", Never, || {
        Bson::Document(doc! {"version": crate::version::FEATURES})
    }),
    row(
        "internalQueryMaxBlockingSortMemoryUsageBytes",
        AtRuntime,
        || Bson::Int32(104_857_600),
    ),
    row("localLogicalSessionTimeoutMinutes", AtStart, || {
        Bson::Int32(crate::limits::SESSION_MINUTES)
    }),
    row("logLevel", AtRuntime, || Bson::Int32(0)),
    row("maxTransactionLockRequestTimeoutMillis", AtRuntime, || {
        Bson::Int32(5)
    }),
    row("notablescan", AtRuntime, || Bson::Boolean(false)),
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
                text.split(',').map(|part| part.into()).collect(),
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
    pub(crate) fn new(given: &[(String, String)]) -> Result<Parameters> {
        let values = PARAMETERS.iter().map(|p| (p.name, (p.initial)())).collect();
        let parameters = Parameters(RwLock::new(values));
        for (name, value) in given {
            parameters.put(name, Bson::String(value.clone()), AtStart)?;
        }
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
        values.insert(row.name, convert(name, &old, value)?);
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
