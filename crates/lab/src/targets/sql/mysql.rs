//! The protocol of MariaDB and MySQL, through the blocking driver.

use std::time::Duration;

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Error as DriverError, OptsBuilder, Params, Row, SslOpts};
use lab_report::error::{Error, Result};

use super::address::{Address, Way};
use super::value::Value;
use super::wire::{Answer, Cancel, Failure, Take, Wire};

/// Maximum time for a server's first reply.
const CONNECT: Duration = Duration::from_secs(5);

/// Maximum number of prepared statements: enough for a thousand tables.
const STATEMENTS: usize = super::wire::STATEMENTS_MAX;

/// A connection to MariaDB or MySQL.
pub(super) struct Client {
    connection: Conn,
    options: OptsBuilder,
    place: String,
}

impl Client {
    pub(super) fn connect(address: &Address) -> Result<Client> {
        let database = Some(address.database.clone()).filter(|_| !address.managed());
        let socket = address.by_socket();
        let tls = match &address.way {
            Way::Tls(trusted) => {
                Some(SslOpts::default().with_root_cert_path(Some(trusted.clone())))
            }
            Way::Usual | Way::Tcp => None,
        };
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.host.clone()))
            .tcp_port(address.port)
            .socket(socket.map(|path| path.to_string_lossy().into_owned()))
            // If the driver located a socket by itself, it could be that of another server.
            .prefer_socket(false)
            .user(Some(address.user.clone()))
            .pass(address.password())
            .db_name(database)
            .stmt_cache_size(STATEMENTS)
            .ssl_opts(tls)
            .tcp_connect_timeout(Some(CONNECT));
        let place = address.text.clone();
        let connection =
            Conn::new(options.clone()).map_err(|e| Error::target(sentence(&place, &e)))?;
        let mut client = Client {
            connection,
            options,
            place,
        };
        if address.managed() {
            let database = &address.database;
            client.run(&format!("CREATE DATABASE IF NOT EXISTS {database}"))?;
            client.run(&format!("USE {database}"))?;
        }
        client.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        Ok(client)
    }

    fn failure(&self, error: &DriverError) -> Failure {
        failure(&self.place, error)
    }
}

impl Wire for Client {
    fn run(&mut self, text: &str) -> Answer<u64> {
        let done = self.connection.query_drop(text);
        done.map_err(|e| self.failure(&e))?;
        Ok(self.connection.affected_rows())
    }

    fn execute(&mut self, text: &str, values: Vec<Value>) -> Answer<u64> {
        let done = self.connection.exec_drop(text, positional(values));
        done.map_err(|e| self.failure(&e))?;
        Ok(self.connection.affected_rows())
    }

    fn rows(&mut self, text: &str, values: Vec<Value>, take: &mut Take<'_>) -> Answer<()> {
        let place = self.place.clone();
        let answer = self.connection.exec_iter(text, positional(values));
        let answer = answer.map_err(|e| failure(&place, &e))?;
        for row in answer {
            let row = row.map_err(|e| failure(&place, &e))?;
            if !take(values_of(row)) {
                break;
            }
        }
        Ok(())
    }

    fn cancel(&self) -> Cancel {
        let (options, id) = (self.options.clone(), self.connection.connection_id());
        Box::new(move || {
            // If the query cannot be cancelled, its result is read to the end.
            if let Ok(mut other) = Conn::new(options.clone()) {
                let _ = other.query_drop(format!("KILL QUERY {id}"));
            }
        })
    }
}

fn positional(values: Vec<Value>) -> Params {
    if values.is_empty() {
        return Params::Empty;
    }
    Params::Positional(values.into_iter().map(Into::into).collect())
}

fn values_of(row: Row) -> Vec<Value> {
    let values = row.unwrap_raw().into_iter();
    values.map(|v| v.map_or(Value::Null, Value::from)).collect()
}

/// Errors that a retry of the transaction resolves: a duplicate key, a lock timeout, a deadlock,
/// and the errors of MyRocks and InnoDB for a row that changed since the snapshot.
const CONFLICTS: [u16; 4] = [1062, 1205, 1213, 1020];

fn failure(place: &str, error: &DriverError) -> Failure {
    Failure {
        message: sentence(place, error),
        conflict: matches!(error, DriverError::MySqlError(e) if CONFLICTS.contains(&e.code)),
        duplicate: matches!(error, DriverError::MySqlError(e) if e.code == 1062),
    }
}

/// A message with the error of the server at `place`, and what to do next.
fn sentence(place: &str, error: &DriverError) -> String {
    match error {
        DriverError::MySqlError(e) if matches!(e.code, 1044 | 1045 | 1142 | 1227) => format!(
            "{place} refuses: {}; name a user who may, as in mysql://USER@HOST/DATABASE, with the \
             password in {}",
            e.message,
            super::address::Protocol::MySql.password()
        ),
        DriverError::MySqlError(e) if e.code == 1049 => {
            format!("{place}: {}; create it, or name another", e.message)
        }
        DriverError::MySqlError(e) if e.code == 1286 => format!(
            "{place}: {}; the server is built or started without it (for MyRocks on Debian: the \
             package mariadb-plugin-rocksdb)",
            e.message
        ),
        DriverError::MySqlError(e) => format!("{place}: {} ({})", e.message, e.code),
        DriverError::IoError(_) | DriverError::CodecError(_) => format!(
            "{place} went away: {error}; see its log, start it again, then `romanesco lab resume`"
        ),
        DriverError::DriverError(e) => {
            format!("no server answers at {place}: {e}; start it, or correct the address")
        }
        other => format!("{place}: {other}"),
    }
}
