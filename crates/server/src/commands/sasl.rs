//! Authentication: `saslStart`, `saslContinue`, `authenticate` by certificate, `logout`.

use bson::Binary;
use bson::spec::BinarySubtype;
use query::Result;
use wire::Builder;

use crate::auth::conversation::Step;
use crate::auth::{Conversation, x509};
use crate::dispatch::Call;
use crate::dispatch::row::{API, LOOSE, Privilege, Row};

pub(super) const ROWS: &[Row] = &[
    Row {
        privilege: Privilege::Open,
        flags: API,
        fields: &["mechanism", "payload", "autoAuthorize", "options"],
        ..Row::new("saslStart", start, "Start SASL authentication")
    },
    Row {
        privilege: Privilege::Open,
        flags: API,
        fields: &["conversationId", "payload"],
        ..Row::new("saslContinue", proceed, "Continue SASL authentication")
    },
    Row {
        privilege: Privilege::Open,
        fields: &["mechanism", "user", "nonce", "key"],
        ..Row::new(
            "authenticate",
            by_certificate,
            "Authenticate with the client certificate of the connection",
        )
    },
    Row {
        privilege: Privilege::Open,
        flags: LOOSE,
        ..Row::new("logout", logout, "Log out of a database")
    },
];

/// Append a message of the server.
pub(super) fn answer(reply: &mut Builder, step: Step) {
    reply.int("conversationId", 1).boolean("done", step.done);
    let payload = Binary {
        subtype: BinarySubtype::Generic,
        bytes: step.payload,
    };
    reply.value("payload", &payload.into());
}

fn start(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments()?;
    let step = Conversation::start(request, &arguments, request.database())?;
    answer(reply, step);
    Ok(())
}

fn proceed(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let step = Conversation::proceed(request, &request.arguments()?)?;
    answer(reply, step);
    Ok(())
}

fn by_certificate(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let user = x509::authenticate(request, &request.arguments()?, request.database())?;
    reply.string("dbname", x509::DATABASE).string("user", &user);
    Ok(())
}

fn logout(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let mut state = request.client.state.lock();
    state.identity = None;
    state.conversation = None;
    Ok(())
}
