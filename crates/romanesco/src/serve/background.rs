//! Running in the background (`--fork`): the program starts itself again in a new session, and
//! exits when the new process listens. If the new process cannot start, the program reports the
//! reason.

use std::env;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use server::Failure;
use server::failure::OTHER;

/// Environment variable that is set in the background process.
const VARIABLE: &str = "ROMANESCO_IN_BACKGROUND";

/// The line that the background process writes when it listens.
const READY: &str = "ready\n";

/// Whether this process is the background process.
pub(super) fn is_here() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Start the background process, and wait until it listens.
///
/// # Errors
/// The reason why it does not listen, with its exit code.
pub(super) fn start() -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::new(OTHER, format!("cannot start in the background: {error}"));
    let program = env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args(env::args_os().skip(1))
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    say!("about to fork child process, waiting until server is ready for connections.");
    say!("forked process: {}", child.id());
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(failed)?;
    }
    if line == READY {
        say!("child process started successfully, parent exiting");
        return Ok(());
    }
    let mut reason = String::new();
    if let Some(mut error) = child.stderr.take() {
        error.read_to_string(&mut reason).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let reason = reason.trim().trim_start_matches("romanesco serve: ");
    Err(Failure::new(
        code.unwrap_or(OTHER),
        format!("the process in the background ended: {reason}"),
    ))
}

/// Start a new session, so that the end of the parent's session does not end the server.
///
/// # Errors
/// The operating system's error.
pub(super) fn leave() -> Result<(), Failure> {
    let left = rustix::process::setsid().map_err(|error| Failure::new(OTHER, error.to_string()));
    left.map(|_| ())
}

/// Report to the parent that the server listens.
pub(super) fn ready() {
    let mut out = io::stdout().lock();
    // Writing fails if the parent has ended; the server continues.
    let _: io::Result<()> = out.write_all(READY.as_bytes()).and_then(|()| out.flush());
}
