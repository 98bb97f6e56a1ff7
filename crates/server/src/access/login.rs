//! An authentication in progress on a connection: `saslStart` begins it, `saslContinue` ends it.
//! A connection has one at a time, and an invalid message ends it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::doc;
use query::{Code, Error, Result};

use crate::arguments::Arguments;
use crate::auth::custom;
use crate::auth::scram::{ClientFirst, Exchange, Mechanism, Secret, failed};
use crate::auth::users::random;
use crate::auth::{Conversation, Identity, User};
use crate::request::Request;
use crate::server::Server;

/// One reply of an authentication.
pub(crate) struct Step {
    /// The server's message.
    pub(crate) payload: Vec<u8>,
    /// Whether the client is now authenticated.
    pub(crate) done: bool,
}

/// The payload, which may be a proof: binary, or base64 from old shells.
fn payload(arguments: &Arguments<'_>) -> Result<Secret> {
    match arguments.need("payload")? {
        bson::RawBsonRef::Binary(binary) => Ok(Secret::new(binary.bytes.to_vec())),
        bson::RawBsonRef::String(text) => {
            let decoded = BASE64.decode(text).map_err(|_| failed())?;
            Ok(Secret::new(decoded))
        }
        _ => Err(Error::type_mismatch("The payload must be binary data")),
    }
}

fn log(request: &Request, name: &str, database: &str, done: bool) {
    let attributes = doc! {
        "user": name,
        "db": database,
        "client": request.client.peer.to_string(),
    };
    let (id, message) = match done {
        true => (5_286_306, "Successfully authenticated"),
        false => (5_286_307, "Failed to authenticate"),
    };
    let context = request.client.name();
    request
        .server
        .log
        .info("ACCESS", id, &context, message, attributes);
}

/// Log and count a failed login.
fn refuse(request: &Request, name: &str, database: &str) {
    log(request, name, database, false);
    let source = request.client.source();
    request.server.logins.fail(source, stdx::time::now());
}

/// Begin an authentication of a user of `database`.
///
/// # Errors
/// An unknown mechanism, an invalid message, or a client that has authenticated already.
pub(crate) fn start(request: &Request, arguments: &Arguments<'_>, database: &str) -> Result<Step> {
    request.client.state.lock().conversation = None;
    let name = arguments.need_string("mechanism")?;
    enabled(&request.server, name)?;
    let mechanism = Mechanism::of_name(name).ok_or_else(|| {
        let message = format!("{name} is not a mechanism of saslStart");
        Error::new(Code(334), message)
    })?;
    let first = ClientFirst::parse(&payload(arguments)?)?;
    let options = arguments.document("options")?;
    let skip_empty = match options {
        Some(options) => Arguments::of("options", options)?.is_on("skipEmptyExchange")?,
        None => false,
    };
    let user = request.server.users.get(database, &first.user);
    let credential = user.as_deref().and_then(|user| user.credential(mechanism));
    // Also computed for users that exist, so that both cases take the same time.
    let rounds = request.server.scram_rounds(mechanism);
    let decoy = mechanism.decoy(&request.server.secret, (database, &first.user), rounds);
    let credential = credential.unwrap_or(decoy);
    let name = first.user.clone();
    let nonce = BASE64.encode(random(24)?);
    let exchange = Exchange::new(mechanism, credential, first, &nonce);
    let step = Step {
        payload: exchange.challenge.clone().into_bytes(),
        done: false,
    };
    request.client.state.lock().conversation = Some(Conversation {
        exchange,
        name,
        database: database.to_owned(),
        skip_empty,
        proven: None,
    });
    Ok(step)
}

/// Continue an authentication. The conversation is first removed from the connection, so that a
/// proof cannot be tried twice.
///
/// # Errors
/// `AuthenticationFailed`, whatever is wrong.
pub(crate) fn proceed(request: &Request, arguments: &Arguments<'_>) -> Result<Step> {
    let taken = request.client.state.lock().conversation.take();
    let Some(mut conversation) = taken else {
        let message = "No SASL session state found";
        return Err(Error::new(Code::PROTOCOL_ERROR, message));
    };
    if arguments.long("conversationId")? != Some(1) {
        let message = "sasl: Mismatched conversation id";
        return Err(Error::new(Code::PROTOCOL_ERROR, message));
    }
    let payload = payload(arguments)?;
    if let Some(identity) = conversation.proven.take() {
        if !payload.is_empty() {
            return Err(failed());
        }
        return authenticated(request, identity, Vec::new());
    }
    let done = conversation.exchange.finish(&payload);
    let user = request
        .server
        .users
        .get(&conversation.database, &conversation.name);
    let known = done.ok().zip(user);
    let Some((proof, user)) = known else {
        refuse(request, &conversation.name, &conversation.database);
        return Err(failed());
    };
    let identity = Identity::of(&user);
    if conversation.skip_empty {
        return authenticated(request, identity, proof.into_bytes());
    }
    conversation.proven = Some(identity);
    request.client.state.lock().conversation = Some(conversation);
    Ok(Step {
        payload: proof.into_bytes(),
        done: false,
    })
}

fn authenticated(request: &Request, identity: Identity, payload: Vec<u8>) -> Result<Step> {
    accept(request, identity)?;
    Ok(Step {
        payload,
        done: true,
    })
}

/// Check that the parameter `authenticationMechanisms` enables a mechanism.
///
/// # Errors
/// `MechanismUnavailable`.
pub(super) fn enabled(server: &Server, mechanism: &str) -> Result<()> {
    match server
        .parameters
        .lists("authenticationMechanisms", mechanism)
    {
        true => Ok(()),
        false => {
            let message =
                format!("Received authentication for mechanism {mechanism} which is not enabled");
            Err(Error::new(Code(334), message))
        }
    }
}

/// Authenticate the client as a user.
///
/// # Errors
/// `AuthenticationFailed` where the restrictions of the user exclude the address; `ProtocolError`
/// when it has authenticated as another user already.
pub(super) fn accept(request: &Request, identity: Identity) -> Result<()> {
    let users = &request.server.users;
    let user = users.get(&identity.database, &identity.name);
    let (peer, local) = (request.client.peer.address(), request.client.local);
    let permits = |user: Arc<User>| user.restrictions.iter().all(|own| own.permit(peer, local));
    if !user.is_some_and(permits) {
        refuse(request, &identity.name, &identity.database);
        return Err(failed());
    }
    let mut state = request.client.state.lock();
    if let Some(before) = &state.identity
        && (before.name != identity.name || before.database != identity.database)
    {
        let message = format!(
            "Each client connection may only be authenticated once. Previously authenticated \
             as: {}@{}",
            before.name, before.database
        );
        return Err(Error::new(Code::PROTOCOL_ERROR, message));
    }
    let user = custom::key(&identity.database, &identity.name);
    state.share = Some(request.server.shares.of(&user));
    state.identity = Some(identity.clone());
    drop(state);
    log(request, &identity.name, &identity.database, true);
    Ok(())
}
