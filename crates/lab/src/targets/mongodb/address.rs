//! Addresses of servers: `mongodb://[USER@]HOST[:PORT][,..][/DB][?options]`.
//!
//! The database in the address holds the rows (default [`DATABASE`]), not the users: the user in
//! the address is looked up in `admin` unless `authSource` names another database. The user's
//! password comes from the environment, because the address is stored in the results.

use std::env;
use std::time::Duration;

use lab_report::error::{Error, Result};
use mongodb::options::{Acknowledgment, ClientOptions, ConnectionString};

use super::failure;

/// The scheme of these addresses.
pub(in crate::targets) const SCHEME: &str = "mongodb://";

/// The environment variable with the password of the user in the address.
pub(in crate::targets) const PASSWORD: &str = "LAB_MONGODB_PASSWORD";

/// The database for the rows, if the address names none.
pub(super) const DATABASE: &str = "romanesco_lab";

/// Maximum time to find the server, unless the address sets it.
const SELECTION: Duration = Duration::from_secs(5);

/// Check an address without connecting.
///
/// # Errors
/// A message that states what to write instead.
pub(in crate::targets) fn check(uri: &str) -> Result<()> {
    parse(uri).map(|_| ())
}

/// Parse an address.
fn parse(uri: &str) -> Result<ConnectionString> {
    let parsed = ConnectionString::parse(uri).map_err(|e| {
        let why = failure::sentence(&e);
        Error::usage(format!(
            "{uri}: {why}; write {SCHEME}HOST:PORT, as in {SCHEME}127.0.0.1:27017"
        ))
    })?;
    let credential = parsed.credential.as_ref();
    if credential.is_some_and(|c| c.password.is_some()) {
        return Err(Error::usage(format!(
            "the address of a target is kept in the results, so it must hold no password: write \
             {SCHEME}USER@HOST and put the password into the variable {PASSWORD}"
        )));
    }
    if acknowledged(&parsed) == Acknowledgment::Nodes(0) {
        return Err(Error::usage(format!(
            "{uri}: with w=0 failed writes would count as done; write w=1 or w=majority"
        )));
    }
    Ok(parsed)
}

/// `w` of an address: the members that acknowledge each write; 1 if it is not given.
fn acknowledged(parsed: &ConnectionString) -> Acknowledgment {
    let concern = parsed.write_concern.as_ref();
    let given = concern.and_then(|concern| concern.w.clone());
    given.unwrap_or(Acknowledgment::Nodes(1))
}

/// The members that acknowledge each write, as the address demands.
///
/// # Errors
/// As [`check`].
pub(super) fn acknowledgment(uri: &str) -> Result<Acknowledgment> {
    Ok(acknowledged(&parse(uri)?))
}

/// The options for the driver, and the name of the database for the rows.
pub(super) fn options(uri: &str, connections: u32) -> Result<(ClientOptions, String)> {
    let mut parsed = parse(uri)?;
    let database = parsed.default_database.take();
    if let Some(credential) = &mut parsed.credential {
        credential.password = env::var(PASSWORD).ok();
        if credential.password.is_none() && credential.mechanism.is_none() {
            return Err(Error::usage(format!(
                "{uri} names a user: put the password into the variable {PASSWORD}"
            )));
        }
        if !uri.contains("authSource=") {
            credential.source = Some("admin".to_owned());
        }
    }
    let mut options = ClientOptions::parse(parsed)
        .run()
        .map_err(|e| Error::usage(format!("{uri}: {}", failure::sentence(&e))))?;
    options.app_name.get_or_insert("romanesco-lab".to_owned());
    options.server_selection_timeout.get_or_insert(SELECTION);
    options.max_pool_size = Some(connections);
    Ok((options, database.unwrap_or(DATABASE.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_nonsense_are_refused() {
        let error = |uri: &str| check(uri).unwrap_err().message;
        assert!(error("mongodb://ann:secret@h").contains(PASSWORD));
        let refused = error("mongodb://ann:secret@h");
        assert!(!refused.contains("secret"), "M2: {refused}");
        assert!(error("mongodb://").contains("mongodb://HOST:PORT"));
        assert!(error("mongodb://h:99999").contains("mongodb://HOST:PORT"));
        assert!(check("mongodb://127.0.0.1:27017/db?replicaSet=rs0").is_ok());
        assert!(check("mongodb://ann@h,i:27018/?authSource=x").is_ok());
        assert!(error("mongodb://h/?w=0").contains("w=majority"));
    }

    #[test]
    fn the_members_that_acknowledge_come_from_the_address() {
        let of = |uri: &str| acknowledgment(uri).unwrap();
        assert_eq!(of("mongodb://h"), Acknowledgment::Nodes(1));
        assert_eq!(of("mongodb://h/?w=2"), Acknowledgment::Nodes(2));
        assert_eq!(of("mongodb://h/?w=majority"), Acknowledgment::Majority);
    }

    #[test]
    fn the_database_of_the_rows_comes_from_the_address() {
        let (options, database) = options("mongodb://h:1/shop", 3).unwrap();
        assert_eq!(
            (database.as_str(), options.max_pool_size),
            ("shop", Some(3))
        );
        assert_eq!(super::options("mongodb://h", 3).unwrap().1, DATABASE);
    }
}
