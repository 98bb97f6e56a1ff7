//! An authentication under way on a connection, and the user that one ends in.

use bson::Bson;

use super::scram::Exchange;
use super::users::User;

/// An authentication under way.
pub(crate) struct Conversation {
    /// The messages of SCRAM.
    pub(crate) exchange: Exchange,
    /// The name of the user.
    pub(crate) name: String,
    /// The database the name belongs to.
    pub(crate) database: String,
    /// Whether the empty exchange at the end is left out.
    pub(crate) skip_empty: bool,
    /// The proof was right: only the empty exchange is missing.
    pub(crate) proven: Option<Identity>,
}

/// The user a client proved to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    /// The database the name belongs to.
    pub(crate) database: String,
    /// Tells it from a later user of the same name.
    pub(crate) id: Option<Bson>,
}

impl Identity {
    pub(crate) fn of(user: &User) -> Identity {
        Identity {
            name: user.name.clone(),
            database: user.database.clone(),
            id: user.id.clone(),
        }
    }
}
