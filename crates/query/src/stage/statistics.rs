//! Stages that report on the server instead of returning stored documents.

use bson::{Bson, Document};

use crate::value::type_name;
use crate::{Code, Error, Namespace, Result};

/// The requested report.
#[derive(Debug, Clone, PartialEq)]
pub enum Statistics {
    /// `$collStats`, with its options.
    CollStats(Document),
    /// `$indexStats`.
    IndexStats,
    /// `$currentOp`, with its options.
    CurrentOp(Document),
    /// `$listSessions`, with its options.
    ListSessions(Document),
    /// `$listLocalSessions`, with its options.
    ListLocalSessions(Document),
    /// `$planCacheStats`.
    PlanCacheStats,
}

impl Statistics {
    /// Parses the stage `name`; `None` for a stage that is not such a report.
    ///
    /// # Errors
    /// Invalid options.
    pub fn parse(name: &str, spec: &Bson) -> Result<Option<Statistics>> {
        let (code, message) = match name {
            "$collStats" => (5_447_000, "$collStats must take a nested object but found"),
            "$indexStats" => (
                28_803,
                "The $indexStats stage specification must be an empty object, found",
            ),
            "$currentOp" => (
                9,
                "$currentOp options must be specified in an object, but found",
            ),
            "$listSessions" | "$listLocalSessions" => {
                (9, "the sessions stage must take an object, but found")
            }
            "$planCacheStats" => (9, "$planCacheStats value must be an object. Found"),
            _ => return Ok(None),
        };
        let Bson::Document(options) = spec else {
            return Err(Error::location(
                code,
                format!("{message}: {}", type_name(spec)),
            ));
        };
        if name == "$indexStats" && !options.is_empty() {
            return Err(Error::location(code, format!("{message}: object")));
        }
        let options = options.clone();
        Ok(Some(match name {
            "$collStats" => Statistics::CollStats(options),
            "$indexStats" => Statistics::IndexStats,
            "$currentOp" => Statistics::CurrentOp(options),
            "$listSessions" => Statistics::ListSessions(options),
            "$listLocalSessions" => Statistics::ListLocalSessions(options),
            _ => Statistics::PlanCacheStats,
        }))
    }

    /// Checks that the report may be made on `ns`: what is no collection's is not read from one.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn check_place(&self, ns: &Namespace) -> Result<()> {
        let (fits, message) = match self {
            Statistics::CurrentOp(_) => (
                ns.db == "admin" && ns.is_collectionless(),
                "$currentOp must be run against the 'admin' database with {aggregate: 1}",
            ),
            Statistics::ListLocalSessions(_) => (
                ns.is_collectionless(),
                "$listLocalSessions must be run against the database with {aggregate: 1}, not a \
                 collection",
            ),
            Statistics::ListSessions(_) => (
                ns.db == "config" && ns.coll == "system.sessions",
                "$listSessions may only be run against config.system.sessions",
            ),
            Statistics::CollStats(_) | Statistics::IndexStats | Statistics::PlanCacheStats => {
                return Ok(());
            }
        };
        match fits {
            true => Ok(()),
            false => Err(Error::new(Code::INVALID_NAMESPACE, message)),
        }
    }

    /// The name with its dollar.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Statistics::CollStats(_) => "$collStats",
            Statistics::IndexStats => "$indexStats",
            Statistics::CurrentOp(_) => "$currentOp",
            Statistics::ListSessions(_) => "$listSessions",
            Statistics::ListLocalSessions(_) => "$listLocalSessions",
            Statistics::PlanCacheStats => "$planCacheStats",
        }
    }
}
