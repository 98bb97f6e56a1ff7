//! The name of a collection: database and collection, checked once.
//!
//! A database name has no dot, so the first dot of the full form separates the two.

use std::fmt;

use crate::{Code, Error, Result};

/// The longest full name, in bytes.
pub const MAX_NAMESPACE_BYTES: usize = 255;
/// The longest database name, in bytes.
pub const MAX_DATABASE_BYTES: usize = 63;

/// A collection by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    /// The database.
    pub db: String,
    /// The collection; may contain dots.
    pub coll: String,
}

impl Namespace {
    /// The collection `coll` of the database `db`.
    ///
    /// # Errors
    /// `InvalidNamespace` when MongoDB would refuse one of the names.
    pub fn new(db: impl Into<String>, coll: impl Into<String>) -> Result<Namespace> {
        let (db, coll) = (db.into(), coll.into());
        check_database(&db)?;
        check_collection(&db, &coll)?;
        Ok(Namespace { db, coll })
    }

    /// Splits `db.coll`.
    ///
    /// # Errors
    /// `InvalidNamespace` as [`Namespace::new`], and when there is no dot.
    pub fn parse(full: &str) -> Result<Namespace> {
        let Some((db, coll)) = full.split_once('.') else {
            return Err(invalid(format!("Invalid namespace specified '{full}'")));
        };
        Namespace::new(db, coll)
    }

    /// The pseudo collection of a command on a whole database: `db.$cmd.aggregate`. The name is not
    /// checked, since no collection can have it.
    #[must_use]
    pub fn collectionless(db: impl Into<String>) -> Namespace {
        Namespace {
            db: db.into(),
            coll: String::from("$cmd.aggregate"),
        }
    }

    /// Whether this is the pseudo collection of [`Namespace::collectionless`].
    #[must_use]
    pub fn is_collectionless(&self) -> bool {
        self.coll == "$cmd.aggregate"
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.db, self.coll)
    }
}

/// Whether `db` may name a database.
///
/// # Errors
/// `InvalidNamespace` with MongoDB's message.
pub fn check_database(db: &str) -> Result<()> {
    let forbidden = |c: char| matches!(c, '/' | '\\' | '.' | ' ' | '"' | '$' | '\0');
    let external = db == "$external";
    if db.is_empty() || MAX_DATABASE_BYTES < db.len() || (!external && db.contains(forbidden)) {
        return Err(invalid(format!("Invalid database name: '{db}'")));
    }
    Ok(())
}

fn check_collection(db: &str, coll: &str) -> Result<()> {
    let full = db.len() + 1 + coll.len();
    let oplog = db == "local" && coll.starts_with("oplog.$");
    let bad = coll.is_empty()
        || coll.starts_with('.')
        || coll.ends_with('.')
        || coll.contains('\0')
        || (coll.contains('$') && !oplog);
    if bad {
        return Err(invalid(format!("Invalid collection name: {coll}")));
    }
    if MAX_NAMESPACE_BYTES < full {
        return Err(invalid(format!(
            "Fully qualified namespace is too long. Namespace: {db}.{coll} Max: \
             {MAX_NAMESPACE_BYTES}"
        )));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(Code::INVALID_NAMESPACE, message)
}

#[cfg(test)]
mod tests {
    use super::Namespace;

    #[test]
    fn names_are_split_at_the_first_dot() {
        let namespace = Namespace::parse("test.system.profile").unwrap();
        assert_eq!(namespace.db, "test");
        assert_eq!(namespace.coll, "system.profile");
        assert_eq!(namespace.to_string(), "test.system.profile");
    }

    #[test]
    fn bad_names_are_refused() {
        let long = format!("a.{}", "b".repeat(254));
        for bad in [
            "", "test", ".a", "a.", "a b.c", "a..b", "a.b.", "a.$b", "a$.b", &long,
        ] {
            assert!(Namespace::parse(bad).is_err(), "{bad}");
        }
    }
}
