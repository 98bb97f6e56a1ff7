//! Turns a message into a request, or into an error.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use docdb::plant::{Plant, planted};
use query::{Code, Error, Result};
use stdx::sync::OnceLock;
use tokio::sync::Notify;
use wire::{Builder, Message};

use super::{check, roles};
use crate::access::{Sent, authorize};
use crate::arguments::{Arguments, Generic, Parsed};
use crate::command::{Command, ENDS, RETRYABLE};
use crate::commands;
use crate::request::Request;
use crate::request::failure::{self, Situation};
use crate::server::Server;
use crate::state::{Client, Operation};

/// The error for a message that is refused.
pub(crate) struct Refused {
    error: Error,
    situation: Option<Situation>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused {
            error,
            situation: None,
        }
    }
}

/// Make a request. `database` is that of an `OP_QUERY`; an `OP_MSG` names its own.
///
/// # Errors
/// The error of parsing, authorization, or a check.
pub(crate) fn prepare(
    server: &Arc<Server>,
    client: &Arc<Client>,
    message: Message,
    database: Option<&str>,
) -> Result<Arc<Request>, Refused> {
    let first = message.body().iter_elements().next();
    let first = first.transpose().map_err(Error::from)?;
    let name = first.map(|first| first.key().as_str());
    let name = name.ok_or_else(|| Error::parse("empty command"))?;
    let row = commands::find(name).ok_or_else(|| check::unknown(name))?;
    let parsed = Parsed::of(message)?;
    let (arguments, message) = (parsed.arguments(), parsed.message());
    let mut generic = Generic::of(arguments)?;
    match database {
        Some(database) => database.clone_into(&mut generic.database),
        None if generic.database.is_empty() => {
            let message = "OP_MSG requests require a $db argument";
            return Err(Error::location(40_571, message).into());
        }
        None => {}
    }
    let sent = Sent {
        command: &row.command,
        database: &generic.database,
        arguments,
        message: Some(message),
    };
    let needed = authorize(server, client, &row.rule, sent).and_then(|needed| {
        // A read may name the time that it brings.
        advance_clock(server, client, &generic);
        check::check(server, row, &generic, arguments)?;
        roles::check(server, row, &generic, (arguments, message.body()))?;
        Ok(needed)
    });
    let needed = needed.map_err(|error| refused(row, &generic, error))?;
    check_sequences(message, arguments)?;
    let (wanted, understood) = match needed {
        Some(needed) => (Some(needed.wanted), needed.understood),
        None => (None, None),
    };
    let operation = Operation {
        client: Arc::clone(client),
        parsed,
        command: &row.command,
        generic,
        number: server.operations.number(),
        started: stdx::time::now(),
        killed: Arc::new(AtomicI32::new(0)),
        interrupted: Notify::new(),
        examined: Arc::default(),
        origin: OnceLock::new(),
    };
    Ok(Arc::new(Request {
        brief: row.brief,
        needs: cell(wanted),
        understood,
        ..Request::new(server, operation, row.run)
    }))
}

/// Advance the cluster time to that of an authenticated client.
fn advance_clock(server: &Arc<Server>, client: &Client, generic: &Generic) {
    let is_trusted = !server.config.authorization || client.is_authenticated();
    if let Some(time) = generic.cluster_time.filter(|_| is_trusted) {
        server.advance(time);
    }
}

/// A cell that contains `value`, if there is one.
fn cell<T>(value: Option<T>) -> OnceLock<Arc<T>> {
    let cell = OnceLock::new();
    if let Some(value) = value {
        cell.get_or_init(|| Arc::new(value));
    }
    cell
}

fn refused(command: &Command, generic: &Generic, error: Error) -> Refused {
    // A commit that is refused here may have happened at another primary.
    let ends = command.has(ENDS) && !planted(Plant::RefusedCommitRolledBack);
    let situation = Situation {
        in_transaction: generic.in_transaction && !ends,
        commit: ends,
        retryable: (ends || command.has(RETRYABLE)) && generic.txn_number.is_some(),
        backpressure: false,
        untouched: true,
        stream: false,
    };
    Refused {
        error,
        situation: Some(situation),
    }
}

/// Refuse an argument that is both in the body and a sequence.
fn check_sequences(message: &Message, arguments: &Arguments<'_>) -> Result<(), Refused> {
    let twice = message.sequence_names().find(|name| arguments.has(name));
    let Some(name) = twice else {
        return Ok(());
    };
    let message = format!("Duplicate field between body and document sequence {name}");
    Err(Error::new(Code::PROTOCOL_ERROR, message).into())
}

/// The reply to a message that is refused.
pub(crate) fn refuse(server: &Server, refused: &Refused) -> Builder {
    let mut reply = Builder::new();
    failure::fill(&mut reply, &refused.error, refused.situation, None);
    server.metrics.user_errors.one();
    super::run::times(server, &mut reply, Some(&refused.error), None);
    reply
}
