//! Whether a client may run a command: the rule of the command's row, and the privileges that its
//! arguments require.

use query::{Code, Error, Result};
use wire::Message;

use super::bounded;
use crate::arguments::{Arguments, switch};
use crate::auth::User;
use crate::auth::privilege::Wanted;
use crate::command::{Command, ELSEWHERE, FIRST_USER};
use crate::request::{Request, Understood};
use crate::server::Server;
use crate::state::Client;

/// Commands with a body of this size or more are authorized outside of the network threads.
const LARGE: usize = 64 << 10;

/// The privilege that a command requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// None, not even authentication.
    Open,
    /// Authentication as any user.
    Authenticated,
    /// An action on the collection that the command names.
    Collection(&'static str),
    /// An action on the database.
    Database(&'static str),
    /// An action on the cluster.
    Cluster(&'static str),
    /// Only those that its arguments require.
    Own,
}

/// Adds the privileges that the arguments of a command require. It parses the arguments with the
/// functions that the command itself uses.
///
/// # Errors
/// Arguments that are not right. What was added before is needed all the same.
pub(crate) type Needs = fn(&Asked<'_>, &mut Needed) -> Result<()>;

/// The rule of a command: the privileges that it requires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Required with any arguments.
    pub(crate) privilege: Privilege,
    /// Required by its arguments.
    pub(crate) needs: Option<Needs>,
}

/// A command that is not yet a request.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub(crate) command: &'static Command,
    pub(crate) database: &'a str,
    pub(crate) arguments: &'a Arguments<'a>,
    /// The message that contains it, which may have document sequences beside its body.
    pub(crate) message: Option<&'a Message>,
}

/// A command with the user that sent it.
pub(crate) struct Asked<'a> {
    pub(crate) server: &'a Server,
    pub(crate) user: &'a User,
    /// The command.
    pub(crate) sent: Sent<'a>,
}

/// The privileges that a command requires, and the request that was parsed to determine them.
#[derive(Default)]
pub(crate) struct Needed {
    /// The privileges.
    pub(crate) wanted: Vec<Wanted>,
    /// The parsed arguments, with which the command then runs (A4).
    pub(crate) understood: Option<Understood>,
}

impl Needed {
    pub(crate) fn push(&mut self, wanted: Wanted) {
        self.wanted.push(wanted);
    }

    pub(crate) fn extend(&mut self, wanted: impl IntoIterator<Item = Wanted>) {
        self.wanted.extend(wanted);
    }
}

impl<'a> Sent<'a> {
    /// The size of its message, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.message
            .map_or(0, |message| message.body().as_bytes().len())
    }

    /// The collection that its first field names; empty if it names none.
    pub(crate) fn collection(&self) -> &'a str {
        self.arguments.target().as_str().unwrap_or_default()
    }

    /// An action on that collection.
    pub(crate) fn on(&self, action: &'static str) -> Wanted {
        self.on_collection(self.collection(), action)
    }

    /// An action on a collection of its database.
    pub(crate) fn on_collection(&self, collection: &str, action: &'static str) -> Wanted {
        Wanted::Collection(self.database.to_owned(), collection.to_owned(), action)
    }

    pub(crate) fn on_database(&self, action: &'static str) -> Wanted {
        Wanted::Database(self.database.to_owned(), action)
    }
}

impl Rule {
    /// Add the privileges of a command; returns false if it has no rule (A3).
    ///
    /// # Errors
    /// As [`Needs`].
    pub(crate) fn add(&self, asked: &Asked<'_>, needed: &mut Needed) -> Result<bool> {
        let sent = &asked.sent;
        match self.privilege {
            Privilege::Open | Privilege::Authenticated => {}
            Privilege::Collection(action) => needed.push(sent.on(action)),
            Privilege::Database(action) => needed.push(sent.on_database(action)),
            Privilege::Cluster(action) => needed.push(Wanted::Cluster(action)),
            Privilege::Own if self.needs.is_none() => return Ok(false),
            Privilege::Own => {}
        }
        if let Some(needs) = self.needs {
            needs(asked, needed)?;
        }
        if !sent.command.has(ELSEWHERE) && bypasses(sent.arguments) {
            needed.push(sent.on("bypassDocumentValidation"));
        }
        Ok(true)
    }
}

/// Check that a client may run a command. Returns the privileges that it required, or `None` if it
/// required none.
///
/// # Errors
/// `Unauthorized`; arguments that cannot be understood.
pub(crate) fn authorize(
    server: &Server,
    client: &Client,
    rule: &Rule,
    sent: Sent<'_>,
) -> Result<Option<Needed>> {
    if !server.config.authorization || rule.privilege == Privilege::Open {
        return Ok(None);
    }
    let compute = |large: bool| {
        let _bounded = bounded::enter(Some(&server.memory), large);
        authorized(server, client, rule, sent)
    };
    // Parsing a large pipeline takes long: let other connections of this thread run meanwhile.
    let apart = || tokio::task::block_in_place(|| compute(true));
    if LARGE <= sent.bytes() {
        return apart();
    }
    match compute(false) {
        // Small commands, too, may have constant expressions that take long or are large. Few at
        // once, because each keeps a thread for up to a second.
        Err(error) if bounded::is_spent(&error) => match server.computing.try_acquire() {
            Ok(_place) => apart(),
            Err(_) => Err(error),
        },
        done => done,
    }
}

fn authorized(
    server: &Server,
    client: &Client,
    rule: &Rule,
    sent: Sent<'_>,
) -> Result<Option<Needed>> {
    let name = sent.command.name;
    let Some(user) = server.user_of(client) else {
        let first = sent.command.has(FIRST_USER) && sent.database == "admin";
        if first && is_excepted(server, client) {
            return Ok(None);
        }
        return Err(unauthenticated(name));
    };
    let asked = Asked {
        server,
        user: &user,
        sent,
    };
    let mut needed = Needed::default();
    let ruled = rule.add(&asked, &mut needed);
    // Privileges found before an error are required in any case: a client that may not run the
    // command learns nothing about the error.
    match (needed.wanted.iter().all(|w| user.may(w)), ruled) {
        (true, Ok(true)) => Ok((rule.privilege != Privilege::Authenticated).then_some(needed)),
        (true, Err(error)) => Err(error),
        (false, _) | (true, Ok(false)) => Err(refusal(name, sent.database)),
    }
}

/// Whether a client may create the first user: it is on this machine, and there are no users.
fn is_excepted(server: &Server, client: &Client) -> bool {
    client.peer.ip().is_loopback()
        && server.users.is_empty()
        && server.parameters.is_on("enableLocalhostAuthBypass")
}

/// Check again what a request required before it waited: meanwhile another client may have created
/// the first user, or have revoked a role of this one.
///
/// # Errors
/// `Unauthorized`.
pub(crate) fn still_authorized(request: &Request) -> Result<()> {
    let (server, client) = (&request.server, &request.client);
    if !server.config.authorization {
        return Ok(());
    }
    match (request.needs.get(), server.user_of(client)) {
        (Some(needs), Some(user)) => match needs.iter().all(|wanted| user.may(wanted)) {
            true => Ok(()),
            false => Err(refusal(request.command.name, request.database())),
        },
        (None, Some(_)) => Ok(()),
        (None, None) if is_excepted(server, client) => Ok(()),
        (_, None) => Err(unauthenticated(request.command.name)),
    }
}

fn unauthenticated(command: &str) -> Error {
    let message = format!("Command {command} requires authentication");
    Error::new(Code::UNAUTHORIZED, message)
}

fn refusal(command: &str, database: &str) -> Error {
    let message = format!("not authorized on {database} to execute command {command}");
    Error::new(Code::UNAUTHORIZED, message)
}

/// Whether the client of a request has a privilege; always true without authorization.
pub(crate) fn is_allowed(request: &Request, wanted: &Wanted) -> bool {
    let server = &request.server;
    !server.config.authorization
        || server
            .user_of(&request.client)
            .is_some_and(|user| user.may(wanted))
}

/// Whether a command asks to write documents that a validator rejects. An invalid value is refused
/// later.
pub(crate) fn bypasses(arguments: &Arguments<'_>) -> bool {
    let bypass = arguments.get("bypassDocumentValidation");
    bypass.is_some_and(|value| switch(value) != Some(false))
}
