//! Encrypted connections: which clients are accepted, and replacement of certificates at run time.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bson::doc;
use server::{TlsConfig, TlsMode};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version,
};

use crate::certificates::{Authority, Certificate, subject};
use crate::client::{Client, Site, await_so};

pub(crate) type Encrypted = StreamOwned<ClientConnection, TcpStream>;

static BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];

/// The properties of a client's handshake.
pub(crate) struct Greeting<'a> {
    trusts: &'a Authority,
    shows: Option<&'a Certificate>,
    versions: &'a [&'static SupportedProtocolVersion],
    name: &'static str,
}

impl<'a> Greeting<'a> {
    pub(crate) fn new(trusts: &'a Authority) -> Greeting<'a> {
        Greeting {
            trusts,
            shows: None,
            versions: BOTH,
            name: "127.0.0.1",
        }
    }

    pub(crate) fn shows(mut self, certificate: &'a Certificate) -> Greeting<'a> {
        self.shows = Some(certificate);
        self
    }

    /// Connect, or return the error of the handshake.
    pub(crate) fn connect(&self, address: SocketAddr) -> Result<Client<Encrypted>, String> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.trusts.pem().as_bytes()).unwrap();
        roots.add(root).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(self.versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match self.shows {
            None => builder.with_no_client_auth(),
            Some(shown) => {
                let pem = shown.pem.as_bytes();
                let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(pem).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from(self.name).unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(session, Client::to(address).stream);
        stream.flush().map_err(|error| error.to_string())?;
        let mut client = Client::over(stream);
        // With TLS 1.3 a client learns at its first read that it was refused.
        match client.try_run("admin", doc! {"ping": 1}) {
            Ok(_) => Ok(client),
            Err(error) => Err(error.to_string()),
        }
    }
}

pub(crate) fn settings(
    mode: TlsMode,
    certificate: &Certificate,
    roots: Option<&Authority>,
) -> TlsConfig {
    TlsConfig {
        mode,
        certificate_key_file: Some(certificate.path.clone()),
        ca_file: roots.map(Authority::path),
        ..TlsConfig::default()
    }
}

fn site(tls: TlsConfig) -> Site {
    Site::with(|config| config.tls = tls)
}

#[test]
fn a_good_client_is_served_in_both_protocols() {
    let authority = Authority::new("roots");
    let site = site(settings(TlsMode::Required, &authority.server(4000), None));
    for version in [&version::TLS12, &version::TLS13] {
        let versions = [version];
        let mut greeting = Greeting::new(&authority);
        greeting.versions = &versions;
        let mut client = greeting.connect(site.address()).unwrap();
        let documents: Vec<_> = (0..500)
            .map(|i| doc! {"n": i, "s": "x".repeat(1_000)})
            .collect();
        client.ok("test", doc! {"insert": "c", "documents": documents});
        let found = client.ok("test", doc! {"find": "c", "batchSize": 500});
        let cursor = found.get_document("cursor").unwrap();
        assert_eq!(cursor.get_array("firstBatch").unwrap().len(), 500);
        client.ok("test", doc! {"drop": "c"});
    }
    let other = Authority::new("other roots");
    let error = Greeting::new(&other).connect(site.address()).err().unwrap();
    assert!(error.contains("UnknownIssuer"), "{error}");
    let mut greeting = Greeting::new(&authority);
    greeting.name = "elsewhere.example.com";
    let error = greeting.connect(site.address()).err().unwrap();
    assert!(error.contains("not valid for name"), "{error}");
    Greeting::new(&authority).connect(site.address()).unwrap();
}

#[test]
fn protocols_that_are_disabled_or_old_are_not_spoken() {
    let authority = Authority::new("roots");
    let mut tls = settings(TlsMode::Required, &authority.server(4000), None);
    tls.without_tls12 = true;
    let site = site(tls);
    let versions = [&version::TLS12];
    let mut greeting = Greeting::new(&authority);
    greeting.versions = &versions;
    let error = greeting.connect(site.address()).err().unwrap();
    assert!(error.contains("ProtocolVersion"), "{error}");
    // The first record of a TLS 1.1 client: version 3.2, without newer versions.
    let mut hello = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0, 47, 1, 0]);
    let mut stream = Client::to(site.address()).stream;
    stream.write_all(&hello).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    // An alert, and the end of the connection.
    assert_eq!(answer.first(), Some(&21), "{answer:?}");
}

#[test]
fn plain_clients_are_taken_where_the_mode_says_so() {
    let authority = Authority::new("roots");
    let certificate = authority.server(4000);
    let required = site(settings(TlsMode::Required, &certificate, None));
    let mut plain = required.client();
    plain.send("admin", doc! {"ping": 1}, 0);
    assert!(plain.receive().is_none(), "refused");
    Greeting::new(&authority)
        .connect(required.address())
        .unwrap();

    let both = site(settings(TlsMode::Allowed, &certificate, None));
    both.client().ok("admin", doc! {"ping": 1});
    Greeting::new(&authority).connect(both.address()).unwrap();
    // The first bytes arrive one by one, in a message that looks like a handshake.
    let mut slow = both.client();
    let message = |comment: usize| {
        let body = doc! {"ping": 1, "comment": "x".repeat(comment), "$db": "admin"};
        let body = bson::RawDocumentBuf::try_from(&body).unwrap();
        wire::encode(wire::Parts::default(), &body, &[])
    };
    let bytes = message(0x1_0316 - message(0).len());
    assert_eq!(bytes[..2], [22, 3]);
    let (first, rest) = bytes.split_at(17);
    for byte in first {
        slow.stream.write_all(&[*byte]).unwrap();
    }
    slow.stream.write_all(rest).unwrap();
    assert_eq!(slow.receive().unwrap().1.get_f64("ok").unwrap(), 1.0);

    // A server without TLS closes the connection of a TLS client at once.
    let none = Site::new();
    assert!(Greeting::new(&authority).connect(none.address()).is_err());
}

#[test]
fn a_handshake_that_stands_still_is_given_up() {
    let authority = Authority::new("roots");
    for mode in [TlsMode::Allowed, TlsMode::Required] {
        let tls = settings(mode, &authority.server(4000), None);
        let site = Site::with(|config| {
            config.tls = tls;
            config.stall = std::time::Duration::from_millis(200);
        });
        gives_up(&site, &authority);
    }
}

fn gives_up(site: &Site, authority: &Authority) {
    let mut held = Vec::new();
    for sent in [
        &[][..],
        &[22, 3, 1],
        &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 9, 9, 9, 9, 9, 9, 9],
    ] {
        let mut stream = Client::to(site.address()).stream;
        stream.write_all(sent).unwrap();
        held.push(stream);
    }
    for mut stream in held {
        match stream.read(&mut [0; 64]) {
            Ok(0) => {}
            // The error that the system returns if received bytes were not read.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            other => panic!("not given up: {other:?}"),
        }
    }
    // Single bytes do not extend the deadline.
    let mut slow = Client::to(site.address()).stream;
    let record = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
    let mut bytes = record.into_iter().chain(std::iter::repeat(9));
    while slow.write_all(&[bytes.next().unwrap()]).is_ok() {
        std::thread::yield_now();
    }
    // A client that continues is not closed; on a busy machine this test itself may exceed the
    // limit, so it retries.
    let mut client = None;
    await_so("a handshake", || {
        client = Greeting::new(authority).connect(site.address()).ok();
        client.is_some()
    });
    client.unwrap().ok("admin", doc! {"ping": 1});
}

/// T2: only a valid certificate names its client.
#[test]
fn certificates_of_clients_are_asked_for_and_looked_at() {
    let authority = Authority::new("roots");
    let other = Authority::new("other roots");
    let server = authority.server(4000);
    let (good, late) = (
        authority.client("good", 2, 4000),
        authority.client("late", 3, 2000),
    );
    let (foreign, revoked) = (
        other.client("good", 4, 4000),
        authority.client("bad", 5, 4000),
    );
    let list = server.path.with_file_name("revoked.pem");
    authority.revoke(&[5], &list);
    let mut tls = settings(TlsMode::Required, &server, Some(&authority));
    tls.crl_file = Some(list);
    let greets = |site: &Site, shown: Option<&Certificate>| {
        let mut greeting = Greeting::new(&authority);
        greeting.shows = shown;
        greeting.connect(site.address()).is_ok()
    };
    let all = [
        None,
        Some(&good),
        Some(&late),
        Some(&foreign),
        Some(&revoked),
    ];
    let strict = site(tls.clone());
    let taken = all.map(|shown| greets(&strict, shown));
    assert_eq!(taken, [false, true, false, false, false]);
    tls.allow_without_certificates = true;
    let without = site(tls.clone());
    let taken = all.map(|shown| greets(&without, shown));
    assert_eq!(taken, [true, true, false, false, false]);
    tls.allow_invalid_certificates = true;
    let lenient = site(tls);
    let taken = all.map(|shown| greets(&lenient, shown));
    assert_eq!(taken, [true; 5]);
}

#[test]
fn the_holder_of_a_certificate_is_its_user() {
    let authority = Authority::new("roots");
    let other = Authority::new("other roots");
    let mut tls = settings(TlsMode::Allowed, &authority.server(4000), Some(&authority));
    tls.allow_invalid_certificates = true;
    tls.allow_without_certificates = true;
    let site = Site::with(|config| {
        config.tls = tls;
        config.authorization = true;
    });
    let roles = vec![bson::Bson::from(doc! {"role": "readWrite", "db": "test"})];
    let root = doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]};
    site.client().ok("admin", root);
    let mut root = crate::auth::as_user(&site, "admin", "root");
    let user = doc! {"createUser": subject("good"), "roles": roles};
    root.ok("$external", user);
    let good = authority.client("good", 2, 4000);
    let nobody = authority.client("nobody", 3, 4000);
    let forged = other.client("good", 4, 4000);
    let authenticate = doc! {"authenticate": 1, "mechanism": "MONGODB-X509"};
    let find = doc! {"find": "c"};

    let greeting = Greeting::new(&authority).shows(&good);
    let mut client = greeting.connect(site.address()).unwrap();
    assert_eq!(client.fails("test", find.clone()).0, 13);
    let reply = client.ok("$external", authenticate.clone());
    assert_eq!(reply.get_str("user").unwrap(), subject("good"));
    assert_eq!(reply.get_str("dbname").unwrap(), "$external");
    client.ok("test", find.clone());
    // Also within the greeting, as drivers do.
    let mut client = greeting.connect(site.address()).unwrap();
    let mut first = authenticate.clone();
    first.insert("db", "$external");
    let reply = client.ok("admin", doc! {"hello": 1, "speculativeAuthenticate": first});
    assert!(reply.contains_key("speculativeAuthenticate"), "{reply}");
    client.ok("test", find.clone());

    // A valid certificate without a user, a forged one, none, no encryption; then another name and
    // another database.
    for shown in [Some(&nobody), Some(&forged), None] {
        let mut greeting = Greeting::new(&authority);
        greeting.shows = shown;
        let mut client = greeting.connect(site.address()).unwrap();
        assert_eq!(client.fails("$external", authenticate.clone()).0, 18);
        assert_eq!(client.fails("test", find.clone()).0, 13);
    }
    let plain = site.client().fails("$external", authenticate.clone());
    assert_eq!(plain.0, 18);
    let mut client = greeting.connect(site.address()).unwrap();
    let mut named = authenticate.clone();
    named.insert("user", subject("nobody"));
    assert_eq!(client.fails("$external", named).0, 18);
    assert_eq!(client.fails("admin", authenticate).0, 17);
    assert_eq!(client.fails("test", find).0, 13);
}

/// T1: invalid files change nothing.
#[test]
fn new_certificates_serve_new_connections_and_bad_ones_none() {
    let authority = Authority::new("roots");
    let next = Authority::new("next roots");
    let certificate = authority.server(4000);
    let site = site(settings(TlsMode::Required, &certificate, None));
    let mut before = Greeting::new(&authority).connect(site.address()).unwrap();
    let rotate = doc! {"rotateCertificates": 1};
    for bad in [
        next.server(2001).pem,
        authority.pem(),
        "no certificate".to_owned(),
        format!(
            "{}{}",
            authority.pem(),
            rcgen::KeyPair::generate().unwrap().serialize_pem()
        ),
    ] {
        std::fs::write(&certificate.path, bad).unwrap();
        let (code, message) = before.fails("admin", rotate.clone());
        assert_eq!(code, 140, "{message}");
        assert!(
            message.contains("server.pem") && message.contains("stay in use"),
            "{message}"
        );
        Greeting::new(&authority).connect(site.address()).unwrap();
    }
    std::fs::write(&certificate.path, next.server(4001).pem).unwrap();
    Greeting::new(&authority).connect(site.address()).unwrap();
    before.ok("admin", rotate);
    Greeting::new(&next).connect(site.address()).unwrap();
    assert!(Greeting::new(&authority).connect(site.address()).is_err());
    before.ok("admin", doc! {"ping": 1});
    let none = Site::new()
        .client()
        .fails("admin", doc! {"rotateCertificates": 1});
    assert_eq!(none.0, 20);
}

/// T1: the certificates of clients and of the metrics are replaced together or not at all.
#[test]
fn certificates_of_both_endpoints_are_replaced_together() {
    let (authority, next) = (Authority::new("roots"), Authority::new("next roots"));
    let metrics = Authority::new("roots of the metrics");
    let (certificate, endpoint) = (authority.server(4000), metrics.server(4000));
    let site = Site::with(|config| {
        config.tls = settings(TlsMode::Required, &certificate, None);
        config.prometheus_port = Some(0);
        config.endpoint.certificate_key_file = Some(endpoint.path.clone());
    });
    let mut before = Greeting::new(&authority).connect(site.address()).unwrap();
    let rotate = doc! {"rotateCertificates": 1};
    std::fs::write(&certificate.path, next.server(4001).pem).unwrap();
    std::fs::write(&endpoint.path, "no certificate").unwrap();
    assert_eq!(before.fails("admin", rotate.clone()).0, 140);
    Greeting::new(&authority).connect(site.address()).unwrap();
    std::fs::write(&endpoint.path, endpoint.pem).unwrap();
    before.ok("admin", rotate);
    Greeting::new(&next).connect(site.address()).unwrap();
}

#[test]
fn files_that_cannot_be_used_refuse_the_start_by_name() {
    let authority = Authority::new("roots");
    let good = authority.server(4000);
    let place = good.path.with_file_name("bad.pem");
    let refused = |text: Option<String>| {
        match text {
            Some(text) => std::fs::write(&place, text).unwrap(),
            None => std::fs::remove_file(&place).unwrap(),
        }
        let mut tls = settings(TlsMode::Required, &good, None);
        tls.certificate_key_file = Some(place.clone());
        let own = Site::try_with(|config| config.tls = tls).err().unwrap();
        assert!(own.contains("bad.pem"), "{own}");
        let mut tls = settings(TlsMode::Required, &good, Some(&authority));
        tls.ca_file = Some(place.clone());
        let roots = Site::try_with(|config| config.tls = tls)
            .err()
            .unwrap_or_default();
        (own, roots)
    };
    let (own, roots) = refused(Some(authority.client("late", 1, 2000).pem));
    assert!(own.contains("expired") && roots.contains("bad.pem: ") && roots.contains("expired"));
    let (own, roots) = refused(Some("nothing".to_owned()));
    assert!(
        own.contains("no certificate") && roots.contains("no certificate"),
        "{own}, {roots}"
    );
    let kind = "ENCRYPTED PRIVATE KEY";
    let locked = format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
    let locked = format!("{}{locked}", good.pem);
    assert!(refused(Some(locked)).0.contains("openssl pkey"));
    assert!(refused(Some(authority.pem())).0.contains("no private key"));
    assert!(refused(None).0.contains("No such file"));
    let bare = TlsConfig {
        mode: TlsMode::Required,
        ..TlsConfig::default()
    };
    let error = Site::try_with(|config| config.tls = bare).err().unwrap();
    assert!(error.contains("net.tls.certificateKeyFile"), "{error}");
}
