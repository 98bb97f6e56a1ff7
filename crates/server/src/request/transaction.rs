//! Which namespaces may be part of a transaction.

use query::{Code, Error, Result};

/// Refuse the server's own databases and collections in a transaction.
///
/// # Errors
/// `OperationNotSupportedInTransaction`.
pub(crate) fn outside_of_server(database: &str, collection: &str) -> Result<()> {
    let what = if matches!(database, "admin" | "config" | "local") {
        format!("'{database}' database")
    } else if matches!(collection, "system.profile" | "system.views") {
        format!("'{database}.{collection}' namespace")
    } else {
        return Ok(());
    };
    let message = format!("Cannot run command against the {what} in a transaction.");
    Err(Error::new(
        Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
        message,
    ))
}
