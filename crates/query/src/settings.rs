//! Settings of an operation for parsing and evaluation.

use std::sync::Arc;

use bson::DateTime;

use crate::collation::Collator;
use crate::expr::{Scope, Variables};

/// The collation, the variables, the time and the database of an operation.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The collation by which strings are compared; `None` compares their bytes.
    pub collator: Option<Arc<Collator>>,
    /// The variables of `let` and the system variables.
    pub variables: Variables,
    /// When the operation started.
    pub now: DateTime,
    /// The database of collections that stages name without a database. Default `None`: the caller
    /// of [`crate::stage::Target::resolve`] passes the database. For a pipeline within `$lookup`,
    /// `$unionWith` or a view it is the database of the collection that this pipeline reads.
    pub database: Option<Arc<str>>,
}

impl Default for Settings {
    /// No collation, no variables; `now` is the start of 1970.
    fn default() -> Settings {
        let now = DateTime::from_millis(0);
        Settings {
            collator: None,
            variables: Variables::at(now),
            now,
            database: None,
        }
    }
}

impl Settings {
    /// Settings without a collation, with the system variables of an operation that started at
    /// `now`.
    #[must_use]
    pub fn at(now: DateTime) -> Settings {
        Settings {
            collator: None,
            variables: Variables::at(now),
            now,
            database: None,
        }
    }

    /// Returns these settings for a pipeline that reads a collection of `database`.
    #[must_use]
    pub fn within(mut self, database: &str) -> Settings {
        if self.database.as_deref() != Some(database) {
            self.database = Some(Arc::from(database));
        }
        self
    }

    /// The scope in which expressions of the operation are parsed.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::new()
            .with_variables(&self.variables)
            .with_collator(self.collator.clone())
    }
}
