//! MONGODB-X509: a client with a valid certificate is the user named by its subject. The handshake
//! verified the certificate; here the user is looked up.

use bson::doc;
use query::{Error, Result};

use super::login::{accept, enabled};
use crate::arguments::Arguments;
use crate::auth::scram::failed;
use crate::auth::{Identity, SYSTEM, SYSTEM_DATABASE, X509 as NAME};
use crate::request::Request;

pub(crate) use crate::auth::EXTERNAL as DATABASE;

/// Authenticate by the certificate of the connection. Returns the name of the user.
///
/// # Errors
/// `AuthenticationFailed`, for whatever reason; the reason is logged. Another mechanism or
/// database.
pub(crate) fn authenticate(
    request: &Request,
    arguments: &Arguments<'_>,
    database: &str,
) -> Result<String> {
    let mechanism = arguments.need_string("mechanism")?;
    enabled(&request.server, mechanism)?;
    if mechanism != NAME {
        let message = format!("Unsupported mechanism for authenticate: {mechanism}");
        return Err(Error::bad_value(message));
    }
    if database != DATABASE {
        let message = "X.509 authentication must always use the $external database.";
        return Err(Error::new(query::Code::PROTOCOL_ERROR, message));
    }
    let named = arguments.string("user")?.filter(|name| !name.is_empty());
    let client = &request.client;
    let subject = match (&client.subject, named) {
        (None, _) if !client.encrypted => Err("SSL support is required for the mechanism"),
        (None, _) => Err("No verified subject name available from client"),
        (Some(subject), Some(named)) if subject != named => {
            Err("There is no x.509 client certificate matching the user")
        }
        (Some(subject), _) => Ok(subject),
    };
    let found = subject.and_then(|subject| {
        let users = &request.server.users;
        let user = match is_member(request) {
            true => users.get(SYSTEM_DATABASE, SYSTEM),
            false => users.get(DATABASE, subject),
        };
        user.ok_or("Could not find user")
    });
    let user = found.map_err(|reason| {
        let name = named.or(client.subject.as_deref()).unwrap_or_default();
        let attributes = doc! {
            "mechanism": NAME,
            "user": name,
            "db": DATABASE,
            "client": client.peer.to_string(),
            "error": reason,
        };
        let message = "Failed to authenticate";
        let log = &request.server.log;
        log.info("ACCESS", 5_286_307, &client.name(), message, attributes);
        let now = stdx::time::now();
        request.server.logins.fail(client.source(), now);
        failed()
    })?;
    accept(request, Identity::of(&user))?;
    Ok(user.name.clone())
}

/// Whether the certificate of the connection is one of another member of the replica set, and
/// members authenticate so.
fn is_member(request: &Request) -> bool {
    let server = &request.server;
    let takes = server.config.cluster_auth.takes_certificates();
    server.member.is_some() && takes && request.client.is_member
}
