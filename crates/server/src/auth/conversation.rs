//! An authentication in progress on a connection, and the resulting user.

use bson::Bson;

use super::scram::Exchange;
use super::users::User;

/// An authentication in progress.
pub(crate) struct Conversation {
    /// The messages of SCRAM.
    pub(crate) exchange: Exchange,
    /// The name of the user.
    pub(crate) name: String,
    /// The database of the user.
    pub(crate) database: String,
    /// Whether the empty exchange at the end is left out.
    pub(crate) skip_empty: bool,
    /// Set when the proof was correct: only the empty exchange is outstanding.
    pub(crate) proven: Option<Identity>,
}

/// The authenticated user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    /// The database of the user.
    pub(crate) database: String,
    /// Distinguishes the user from a later user of the same name.
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
