//! `$out`, and the names of collections in stages.

use bson::{Bson, Document};

use crate::settings::Settings;
use crate::value::type_name;
use crate::{Code, Error, Namespace, Result};

/// The collection that a stage names, with or without a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The database; `None` for the database of the pipeline.
    pub db: Option<String>,
    /// The collection.
    pub coll: String,
}

impl Target {
    /// A collection of the pipeline's database.
    #[must_use]
    pub fn local(coll: impl Into<String>) -> Target {
        Target {
            db: None,
            coll: coll.into(),
        }
    }

    /// Returns this target; without a database, it gets that of `settings`.
    #[must_use]
    pub(super) fn within(mut self, settings: &Settings) -> Target {
        let database = || settings.database.as_deref().map(str::to_owned);
        self.db = self.db.or_else(database);
        self
    }

    /// The full name; `db`, the database of the pipeline, is used if the target has no database.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn resolve(&self, db: &str) -> Result<Namespace> {
        Namespace::new(self.db.as_deref().unwrap_or(db), self.coll.as_str())
    }

    /// Parses `{db: .., coll: ..}`.
    pub(super) fn parse(stage: &str, spec: &Document, code: i32) -> Result<Target> {
        let text = |name: &str| match spec.get(name) {
            Some(Bson::String(text)) => Ok(Some(text.clone())),
            None => Ok(None),
            Some(other) => Err(Error::location(
                code,
                format!(
                    "{stage} option '{name}' must be a string, found {}",
                    type_name(other)
                ),
            )),
        };
        let (db, coll) = (text("db")?, text("coll")?);
        match coll {
            Some(coll) => Ok(Target { db, coll }),
            None => Err(Error::location(
                code,
                format!("{stage} must name the collection with the option 'coll'"),
            )),
        }
    }
}

/// `$out`: replaces the contents of a collection by the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Out {
    /// The target collection.
    pub target: Target,
}

impl Out {
    /// Parses the specification.
    ///
    /// # Errors
    /// 16990 when the specification names no collection; `InvalidOptions` for a time series.
    pub fn parse(spec: &Bson, settings: &Settings) -> Result<Out> {
        match spec {
            Bson::String(coll) => Ok(Out {
                target: Target::local(coll).within(settings),
            }),
            Bson::Document(options) => {
                if options.contains_key("timeseries") {
                    return Err(Error::new(
                        Code::INVALID_OPTIONS,
                        "$out to a time-series collection is not supported",
                    ));
                }
                let target = Target::parse("$out", options, 16_994)?.within(settings);
                super::options::only("$out", options, &["db", "coll"], 40_415)?;
                Ok(Out { target })
            }
            other => Err(Error::location(
                16_990,
                format!(
                    "$out only supports a string or object argument, but found {}",
                    type_name(other)
                ),
            )),
        }
    }
}
