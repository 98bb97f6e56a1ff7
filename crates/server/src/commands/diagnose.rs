//! The end of a command, `killOp`, and of the server, `shutdown`.

use query::{Error, Result};
use wire::Builder;

use crate::dispatch::Call;
use crate::dispatch::row::{ADMIN, Privilege, Row, TEST};

pub(super) const ROWS: &[Row] = &[
    Row {
        flags: ADMIN,
        fields: &["op"],
        privilege: Privilege::Cluster("killop"),
        ..Row::new("killOp", kill_op, "Kill an operation")
    },
    Row {
        flags: ADMIN,
        fields: &["force", "timeoutSecs"],
        privilege: Privilege::Cluster("shutdown"),
        ..Row::new("shutdown", shutdown, "Shut down the server")
    },
    Row {
        flags: TEST,
        ..Row::new(
            "testVersion2",
            nothing,
            "Command outside of the stable API, for tests",
        )
    },
];

fn nothing(_: &Call<'_>, _: &mut Builder) -> Result<()> {
    Ok(())
}

fn kill_op(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let number = request.arguments()?.long("op")?;
    let number = number.and_then(|number| i32::try_from(number).ok());
    let number = number.ok_or_else(|| Error::location(26, "Did not provide \"op\" field"))?;
    // As MongoDB: success does not say that there was such an operation.
    request.server.operations.kill(number);
    reply.string("info", "attempting to kill op");
    Ok(())
}

fn shutdown(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.stop();
    Ok(())
}
