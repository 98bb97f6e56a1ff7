//! `killOp` and `shutdown`.

use std::sync::Arc;

use query::{Code, Error, Result};
use wire::Builder;

use crate::access::{Privilege, is_allowed};
use crate::auth::privilege::Wanted;
use crate::command::{ADMIN, TEST};
use crate::request::Call;
use crate::row::Row;
use crate::state::Operation;

pub(super) const ROWS: &[Row] = &[
    Row::new("killOp", kill_op, "Kill an operation")
        .flags(ADMIN)
        .fields(&["op"])
        // Users may end their own operations: the command checks whose it is.
        .own(|_, _| Ok(())),
    Row::new("shutdown", shutdown, "Shut down the server")
        .flags(ADMIN)
        .fields(&["force", "timeoutSecs"])
        .privilege(Privilege::Cluster("shutdown")),
    Row::new(
        "testVersion2",
        nothing,
        "Command outside of the stable API, for tests",
    )
    .flags(TEST),
];

fn nothing(_: &Call<'_>, _: &mut Builder) -> Result<()> {
    Ok(())
}

fn kill_op(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let number = request.arguments().long("op")?;
    let number = number.and_then(|number| i32::try_from(number).ok());
    let number = number.ok_or_else(|| Error::location(26, "Did not provide \"op\" field"))?;
    let operation = request.server.operations.get(number);
    let own = |other: &Arc<Operation>| other.user() == request.user();
    if !is_allowed(request, &Wanted::Cluster("killop")) && !operation.as_ref().is_some_and(own) {
        let message = "not authorized on admin to execute command killOp";
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    // As in MongoDB, the command succeeds even if the operation does not exist.
    if let Some(operation) = operation {
        operation.kill();
    }
    reply.string("info", "attempting to kill op");
    Ok(())
}

fn shutdown(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.stop();
    Ok(())
}
