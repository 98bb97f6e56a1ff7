//! Addresses of SQL servers: `mysql://USER@HOST[:PORT][/DB][?engine=NAME&tls=PATH]` and
//! `postgres://USER@HOST[:PORT][/DB][?tls=PATH]`, where `tls` encrypts connections and trusts the
//! certificates in that PEM file.
//!
//! The database for the rows is [`DATABASE`] if the address names none. The user's password comes
//! from the environment, because the address is stored in the results. A server that the laboratory
//! started is reached by its socket, `?socket=PATH`; with the parameter `tls` by TCP, where `tls=0`
//! means an unencrypted connection.

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::dialect::Dialect;
use super::engine::Engine;

/// The database for the rows, if the address names none.
pub(super) const DATABASE: &str = "romanesco_lab";

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// MariaDB and MySQL.
    MySql,
    /// PostgreSQL.
    Postgres,
}

impl Protocol {
    /// The URL scheme.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Protocol::MySql => "mysql://",
            Protocol::Postgres => "postgres://",
        }
    }

    /// The environment variable with the password of the user in the address.
    pub(super) fn password(self) -> &'static str {
        match self {
            Protocol::MySql => "LAB_MYSQL_PASSWORD",
            Protocol::Postgres => "LAB_POSTGRES_PASSWORD",
        }
    }

    fn port(self) -> u16 {
        match self {
            Protocol::MySql => 3306,
            Protocol::Postgres => 5432,
        }
    }

    fn user(self) -> &'static str {
        match self {
            Protocol::MySql => "root",
            Protocol::Postgres => "postgres",
        }
    }
}

/// The protocol of an address.
pub(super) fn protocol(text: &str) -> Option<Protocol> {
    let scheme = text.split_once("://")?.0;
    match scheme {
        "mysql" | "mariadb" => Some(Protocol::MySql),
        "postgres" | "postgresql" => Some(Protocol::Postgres),
        _ => None,
    }
}

/// Whether this is the address of an SQL server.
pub(in crate::targets) fn is_sql(text: &str) -> bool {
    protocol(text).is_some()
}

/// The engine name with which an address of this kind is recorded.
pub(in crate::targets) fn engine_name(text: &str) -> Option<&'static str> {
    match protocol(text)? {
        Protocol::MySql => Some(super::MYSQL),
        Protocol::Postgres => Some(super::POSTGRES),
    }
}

/// A parsed address.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Address {
    /// The address as the user wrote it.
    pub text: String,
    pub protocol: Protocol,
    pub user: String,
    pub host: String,
    pub port: u16,
    /// The socket of a server on this machine; for PostgreSQL, the directory that contains it.
    pub socket: Option<PathBuf>,
    pub database: String,
    /// The storage engine of the tables.
    pub engine: Engine,
    /// The transport.
    pub way: Way,
}

/// The transport to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the server's socket if the address has one, else by TCP; not encrypted.
    Usual,
    /// By TCP even if the address has a socket; not encrypted.
    Tcp,
    /// By TCP, encrypted, trusting the certificates in this file.
    Tls(PathBuf),
}

impl Address {
    /// The password of the user in the address, if one is set.
    pub(super) fn password(&self) -> Option<String> {
        // A server that the laboratory started accepts the laboratory's user without a password.
        let own = self.socket.is_some();
        env::var(self.protocol.password()).ok().filter(|_| !own)
    }

    /// The socket, if the connection uses it.
    pub(super) fn by_socket(&self) -> Option<&Path> {
        self.socket.as_deref().filter(|_| self.way == Way::Usual)
    }

    /// The SQL dialect of the server.
    pub(super) fn dialect(&self) -> Dialect {
        Dialect {
            protocol: self.protocol,
            engine: self.engine,
        }
    }

    /// Whether the laboratory started the server.
    pub(super) fn managed(&self) -> bool {
        self.socket.is_some()
    }
}

/// Check an address without connecting.
///
/// # Errors
/// A message that states what to write instead.
pub(in crate::targets) fn check(text: &str) -> Result<(), String> {
    text.parse::<Address>().map(|_| ())
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let protocol = protocol(text).ok_or_else(|| format!("{text} is no address of a server"))?;
        let scheme = protocol.scheme();
        let bad = |why: &str| format!("{text}: {why}; write {scheme}USER@HOST:PORT/DATABASE");
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (rest, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        if user.contains(':') {
            return Err(format!(
                "the address of a target is kept in the results, so it must hold no password: \
                 write {scheme}USER@HOST and put the password into the variable {}",
                protocol.password()
            ));
        }
        let (host, port) =
            host_and_port(place, protocol).ok_or_else(|| bad("no host, or a bad port"))?;
        if !plain(database) {
            return Err(bad("the name of a database has letters, digits and _ only"));
        }
        let or = |text: &str, other: &str| if text.is_empty() { other } else { text }.to_owned();
        let mut address = Address {
            text: text.to_owned(),
            protocol,
            user: or(user, protocol.user()),
            host,
            port,
            socket: None,
            database: or(database, DATABASE),
            engine: match protocol {
                Protocol::MySql => Engine::InnoDb,
                Protocol::Postgres => Engine::Heap,
            },
            way: Way::Usual,
        };
        for option in options.split('&').filter(|o| !o.is_empty()) {
            match option.split_once('=') {
                Some(("engine", name)) if protocol == Protocol::MySql => {
                    address.engine = name.parse()?;
                }
                Some(("socket", path)) => address.socket = Some(PathBuf::from(path)),
                Some(("tls", "0")) => address.way = Way::Tcp,
                Some(("tls", path)) => address.way = Way::Tls(PathBuf::from(path)),
                _ => return Err(bad(&format!("unknown option {option:?}"))),
            }
        }
        Ok(address)
    }
}

fn host_and_port(place: &str, protocol: Protocol) -> Option<(String, u16)> {
    let ipv6 = place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let (host, port) = match ipv6 {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = port.map_or(Some(protocol.port()), |port| port.parse().ok())?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// Whether a name consists of ASCII letters, digits and underscores only, so that it needs no
/// quotes in any context.
pub(super) fn plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let address: Address = "mysql://ann@db:3307/shop?engine=myrocks".parse().unwrap();
        assert_eq!(
            (address.user.as_str(), address.host.as_str()),
            ("ann", "db")
        );
        assert_eq!((address.port, address.engine), (3307, Engine::MyRocks));
        assert_eq!(address.database, "shop");
        let address: Address = "postgres://[::1]".parse().unwrap();
        assert_eq!((address.host.as_str(), address.port), ("::1", 5432));
        assert_eq!(
            (address.user.as_str(), address.database.as_str()),
            ("postgres", DATABASE)
        );
        assert!(!address.managed());
        let address: Address = "mysql://localhost?socket=/a/b".parse().unwrap();
        assert!(address.managed() && address.password().is_none());
        assert_eq!(address.by_socket(), Some(Path::new("/a/b")));
        let address: Address = "postgres://h:5?socket=/a&tls=/c.pem".parse().unwrap();
        assert_eq!(address.way, Way::Tls(PathBuf::from("/c.pem")));
        assert!(address.managed() && address.by_socket().is_none());
    }

    #[test]
    fn passwords_and_nonsense_are_refused() {
        let error = |text: &str| check(text).unwrap_err();
        assert!(error("mysql://ann:secret@h").contains("LAB_MYSQL_PASSWORD"));
        let refused = error("mysql://ann:secret@h");
        assert!(!refused.contains("secret"), "Q2: {refused}");
        assert!(error("postgres://ann:pw@h").contains("LAB_POSTGRES_PASSWORD"));
        assert!(error("mysql://h?engine=innodbb").contains("did you mean \"innodb\""));
        assert!(error("postgres://h?engine=innodb").contains("unknown option"));
        assert!(error("mysql://").contains("USER@HOST"));
        assert!(error("mysql://h:99999").contains("USER@HOST"));
        assert!(error("mysql://h/a;b").contains("letters"));
    }
}
