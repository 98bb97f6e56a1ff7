//! PostgreSQL's protocol, through the blocking driver.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::postgres::config::SslMode;
use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::types::ToSql;
use ::postgres::{Config, Error as DriverError, NoTls, Statement};
use lab_report::error::{Error, Result};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::{Address, Protocol, Way};
use super::value::{self, Value};
use super::wire::{Answer, Cancel, Failure, Take, Wire};

/// Maximum time for a server's first reply.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection to PostgreSQL.
pub(super) struct Client {
    client: ::postgres::Client,
    prepared: HashMap<String, Statement>,
    place: String,
    way: Way,
}

/// TLS that trusts only the certificates in this file.
fn tls(trusted: &Path) -> Result<MakeRustlsConnect> {
    let failed = |e: &dyn Display| Error::environment(format!("{}: {e}", trusted.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(trusted).map_err(|e| failed(&e))? {
        let certificate = certificate.map_err(|e| failed(&e))?;
        roots.add(certificate).map_err(|e| failed(&e))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(&e))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl Client {
    pub(super) fn connect(address: &Address) -> Result<Client> {
        let mut config = Config::new();
        match address.by_socket() {
            Some(directory) => config.host_path(directory),
            None => config.host(&address.host),
        };
        config
            .port(address.port)
            .user(&address.user)
            .dbname(&address.database)
            .application_name("romanesco-lab")
            .connect_timeout(CONNECT);
        if let Some(password) = address.password() {
            config.password(password);
        }
        let place = address.text.clone();
        let client = match &address.way {
            Way::Tls(trusted) => {
                let tls = tls(trusted)?;
                config.ssl_mode(SslMode::Require).connect(tls)
            }
            Way::Usual | Way::Tcp => config.connect(NoTls),
        };
        let client = client.map_err(|e| Error::target(sentence(&place, &e)))?;
        Ok(Client {
            client,
            prepared: HashMap::new(),
            place,
            way: address.way.clone(),
        })
    }

    fn failure(&self, error: &DriverError) -> Failure {
        failure(&self.place, error)
    }

    fn prepare(&mut self, text: &str) -> Answer<Statement> {
        if let Some(statement) = self.prepared.get(text) {
            return Ok(statement.clone());
        }
        if super::wire::STATEMENTS_MAX <= self.prepared.len() {
            self.prepared.clear();
        }
        let statement = self.client.prepare(text);
        let statement = statement.map_err(|e| self.failure(&e))?;
        self.prepared.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Wire for Client {
    fn run(&mut self, text: &str) -> Answer<u64> {
        let done = self.client.batch_execute(text);
        done.map_err(|e| self.failure(&e)).map(|()| 0)
    }

    fn execute(&mut self, text: &str, values: Vec<Value>) -> Answer<u64> {
        let statement = self.prepare(text)?;
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
        let done = self.client.execute(&statement, &values);
        done.map_err(|e| self.failure(&e))
    }

    fn rows(&mut self, text: &str, values: Vec<Value>, take: &mut Take<'_>) -> Answer<()> {
        let statement = self.prepare(text)?;
        let place = self.place.clone();
        let failed = |e: DriverError| failure(&place, &e);
        let mut rows = self.client.query_raw(&statement, values).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if !take(value::of_postgres(&row).map_err(failed)?) {
                break;
            }
        }
        Ok(())
    }

    fn cancel(&self) -> Cancel {
        let (token, way) = (self.client.cancel_token(), self.way.clone());
        Box::new(move || {
            // If the query cannot be cancelled, its result is read to the end.
            let _ = match &way {
                Way::Tls(trusted) => tls(trusted).map(|tls| token.cancel_query(tls).is_ok()),
                Way::Usual | Way::Tcp => Ok(token.cancel_query(NoTls).is_ok()),
            };
        })
    }
}

/// Errors that a retry of the transaction resolves: a serialization failure, a deadlock, an
/// unavailable lock, a duplicate key.
const CONFLICTS: [&str; 4] = ["40001", "40P01", "55P03", "23505"];

fn failure(place: &str, error: &DriverError) -> Failure {
    let conflict = error
        .code()
        .is_some_and(|code| CONFLICTS.contains(&code.code()));
    Failure {
        message: sentence(place, error),
        conflict,
        duplicate: error.code().is_some_and(|code| code.code() == "23505"),
    }
}

/// A message with the error of the server at `place`, and what to do next.
fn sentence(place: &str, error: &DriverError) -> String {
    let scheme = Protocol::Postgres.scheme();
    if let Some(e) = error.as_db_error() {
        let what = e.message();
        return match e.code().code() {
            "28000" | "28P01" | "42501" => format!(
                "{place} refuses: {what}; name a user who may, as in {scheme}USER@HOST/DATABASE, \
                 with the password in {}",
                Protocol::Postgres.password()
            ),
            "3D000" => format!("{place}: {what}; create it, or name another"),
            "57P01" | "57P02" | "57P03" => format!(
                "{place} went away: {what}; see its log, start it again, then `romanesco lab \
                 resume`"
            ),
            code => format!("{place}: {what} ({code})"),
        };
    }
    let why = error.source().map(ToString::to_string);
    let why = why.map_or(error.to_string(), |why| format!("{error}: {why}"));
    if error.is_closed() {
        return format!(
            "{place} went away: {why}; see its log, start it again, then `romanesco lab resume`"
        );
    }
    if why.contains("password") {
        return format!(
            "{place} wants a password: put it into the variable {}",
            Protocol::Postgres.password()
        );
    }
    format!("no server answers at {place}: {why}; start it, or correct the address")
}
