//! Authentication: `saslStart`, `saslContinue`, `authenticate` by certificate, `logout`.

use bson::Binary;
use bson::spec::BinarySubtype;
use query::Result;
use wire::Builder;

use crate::access::login::{self, Step};
use crate::access::x509;
use crate::command::{API, LOOSE, PLAIN, PROVES, SECRET};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("saslStart", start, "Start SASL authentication")
        .open()
        .flags(API | PLAIN | SECRET)
        .fields(&["mechanism", "payload", "autoAuthorize", "options"]),
    Row::new("saslContinue", proceed, "Continue SASL authentication")
        .open()
        .flags(API | PLAIN | SECRET | PROVES)
        .fields(&["conversationId", "payload"]),
    Row::new(
        "authenticate",
        by_certificate,
        "Authenticate with the client certificate of the connection",
    )
    .open()
    .flags(PLAIN | SECRET | PROVES)
    .fields(&["mechanism", "user", "nonce", "key"]),
    Row::new("logout", logout, "Log out of a database")
        .open()
        .flags(LOOSE),
];

/// Append the server's message of an authentication.
pub(super) fn answer(reply: &mut Builder, step: Step) {
    reply.int("conversationId", 1).boolean("done", step.done);
    let payload = Binary {
        subtype: BinarySubtype::Generic,
        bytes: step.payload,
    };
    reply.value("payload", &payload.into());
}

fn start(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let step = login::start(request, arguments, request.database())?;
    answer(reply, step);
    Ok(())
}

fn proceed(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let step = login::proceed(request, request.arguments())?;
    answer(reply, step);
    Ok(())
}

fn by_certificate(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let user = x509::authenticate(request, request.arguments(), request.database())?;
    reply.string("dbname", x509::DATABASE).string("user", &user);
    Ok(())
}

fn logout(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let mut state = request.client.state.lock();
    state.identity = None;
    state.share = None;
    state.conversation = None;
    Ok(())
}
