//! Makes a request of a message, or says why it is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32};

use query::{Code, Error, Result};
use stdx::sync::OnceLock;
use wire::{Builder, Message};

use super::arguments::Arguments;
use super::check;
use super::failure::{self, Situation};
use super::generic::Generic;
use super::request::Request;
use super::row::{RETRYABLE, Row};
use crate::auth::privilege::Wanted;
use crate::auth::{Asked, authorize, bounded};
use crate::commands;
use crate::server::Server;
use crate::state::Client;

/// The size of a body, in bytes, from which on what it needs is computed apart from the threads of
/// the sockets.
const LARGE: usize = 64 << 10;

/// A message that is no command we run, and the error that says why.
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

/// Make a request. `database` is that of a legacy query; a message of today names its own.
///
/// # Errors
/// Why it is refused.
pub(crate) fn prepare(
    server: &Arc<Server>,
    client: &Arc<Client>,
    message: Message,
    database: Option<&str>,
) -> Result<Arc<Request>, Refused> {
    let body = message.body();
    let first = body
        .iter_elements()
        .next()
        .transpose()
        .map_err(Error::from)?;
    let Some(first) = first else {
        return Err(Error::parse("empty command").into());
    };
    let name = first.key().as_str();
    let row = commands::find(name).ok_or_else(|| check::unknown(name))?;
    let arguments = Arguments::of(name, body)?;
    let mut generic = Generic::of(body)?;
    match database {
        Some(database) => database.clone_into(&mut generic.database),
        None if generic.database.is_empty() => {
            let message = "OP_MSG requests require a $db argument";
            return Err(Error::location(40_571, message).into());
        }
        None => {}
    }
    let asked = Asked {
        row,
        database: &generic.database,
        body,
        message: Some(&message),
    };
    let needs = authorized(server, client, &asked).and_then(|needs| {
        check::check(server, row, name, &generic, &arguments)?;
        Ok(needs)
    });
    let needs = needs.map_err(|error| refused(row, &generic, error))?;
    check_sequences(&message, &arguments)?;
    advance_clock(server, client, &generic);
    Ok(Arc::new(Request {
        server: Arc::clone(server),
        client: Arc::clone(client),
        row,
        name: name.to_owned(),
        generic,
        operation: server.operations.number(),
        started: stdx::time::now(),
        killed: Arc::new(AtomicI32::new(0)),
        examined: Arc::default(),
        origin: OnceLock::new(),
        more: AtomicBool::new(false),
        repeated: AtomicBool::new(false),
        needs: cell(needs),
        message,
    }))
}

/// What the command needs, if the client is allowed it.
fn authorized(server: &Server, client: &Client, asked: &Asked<'_>) -> Result<Option<Vec<Wanted>>> {
    let large = LARGE <= asked.body.as_bytes().len();
    let authorized = || {
        let _bounded = bounded::enter(large);
        authorize(server, client, asked)
    };
    match large {
        false => authorized(),
        // Parsing a large pipeline takes long: other connections of this thread go on meanwhile.
        true => tokio::task::block_in_place(authorized),
    }
}

/// Moves the cluster time on to that of a client. Only clients with rights do so.
fn advance_clock(server: &Arc<Server>, client: &Client, generic: &Generic) {
    let is_trusted = !server.config.authorization || client.is_authenticated();
    if let Some(time) = generic.cluster_time.filter(|_| is_trusted) {
        server.advance(time);
    }
}

/// A cell with a value, or an empty one.
fn cell<T>(value: Option<T>) -> OnceLock<Arc<T>> {
    let cell = OnceLock::new();
    if let Some(value) = value {
        cell.get_or_init(|| Arc::new(value));
    }
    cell
}

fn refused(row: &Row, generic: &Generic, error: Error) -> Refused {
    let situation = Situation {
        in_transaction: generic.in_transaction,
        commit: false,
        retryable: row.has(RETRYABLE) && generic.txn_number.is_some(),
        backpressure: false,
        untouched: true,
    };
    Refused {
        error,
        situation: Some(situation),
    }
}

/// An argument comes once: in a sequence or in the body.
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
    super::run::times(server, &mut reply, Some(&refused.error));
    reply
}
