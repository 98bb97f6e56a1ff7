//! Settings of an operation for parsing and evaluation.

use std::sync::Arc;

use bson::DateTime;

use crate::collation::Collator;
use crate::expr::{Scope, Variables};

/// The collation, the variables, the time and the database of an operation.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How strings compare; none compares bytes.
    pub collator: Option<Arc<Collator>>,
    /// The variables of `let`, and the system's.
    pub variables: Variables,
    /// When the operation began.
    pub now: DateTime,
    /// The database of collections that stages name without one (default: none, which leaves it to
    /// [`crate::stage::Target::resolve`]). Pipelines within `$lookup`, `$unionWith` and views have
    /// that of the collection they read.
    pub database: Option<Arc<str>>,
}

impl Default for Settings {
    /// No collation, no variables, the beginning of 1970.
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
    /// No collation, and the variables that every operation has which began at `now`.
    #[must_use]
    pub fn at(now: DateTime) -> Settings {
        Settings {
            collator: None,
            variables: Variables::at(now),
            now,
            database: None,
        }
    }

    /// The same for a pipeline that reads a collection of `database`.
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
