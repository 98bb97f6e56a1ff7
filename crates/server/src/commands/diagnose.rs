//! `killOp` and `shutdown`.

use query::{Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::command::{ADMIN, TEST};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("killOp", kill_op, "Kill an operation")
        .flags(ADMIN)
        .fields(&["op"])
        .privilege(Privilege::Cluster("killop")),
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
    // As in MongoDB, the command succeeds even if the operation does not exist.
    request.server.operations.kill(number);
    reply.string("info", "attempting to kill op");
    Ok(())
}

fn shutdown(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.stop();
    Ok(())
}
