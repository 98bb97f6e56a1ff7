//! The page about the server and the token of the metrics endpoint, as a client and as an attacker
//! see them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::doc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::certificates::Authority;
use crate::client::{Site, await_so};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A file with the token.
fn token_file() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{TOKEN}").unwrap();
    file
}

fn site(change: impl FnOnce(&mut server::Config)) -> Site {
    Site::with(|config| {
        config.prometheus_port = Some(0);
        config.endpoint.status_page = true;
        change(config);
    })
}

/// Send the text of a request; returns the head and the body of the answer.
fn send(site: &Site, request: &str) -> (String, String) {
    let address = site.server.metrics_addresses()[0];
    let stream = TcpStream::connect(address).unwrap();
    converse(stream, request)
}

fn converse(mut stream: impl std::io::Read + std::io::Write, request: &str) -> (String, String) {
    // A server that refuses may close before it has read everything.
    let _: std::io::Result<()> = stream.write_all(request.as_bytes());
    let mut bytes = Vec::new();
    let _: std::io::Result<usize> = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.to_owned(), body.to_owned())
}

fn get(site: &Site, path: &str, headers: &str) -> (String, String) {
    let host = if headers.contains("Host:") {
        ""
    } else {
        "Host: localhost\r\n"
    };
    let request = format!("GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n");
    send(site, &request)
}

fn code(answer: &(String, String)) -> &str {
    answer.0.split(' ').nth(1).unwrap_or("none")
}

fn json(site: &Site, path: &str) -> serde_json::Value {
    let answer = get(site, path, "");
    assert_eq!(code(&answer), "200", "{}", answer.0);
    assert!(
        answer
            .0
            .to_lowercase()
            .contains("content-type: application/json")
    );
    serde_json::from_str(&answer.1).unwrap()
}

#[test]
fn the_page_is_served_only_where_it_is_on() {
    let off = Site::with(|config| config.prometheus_port = Some(0));
    for path in ["/", "/status.json", "/map.json"] {
        assert_eq!(code(&get(&off, path, "")), "404", "{path}");
    }
    let on = site(|_| {});
    let page = get(&on, "/", "");
    assert_eq!(code(&page), "200");
    let head = page.0.to_lowercase();
    for part in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(head.contains(part), "{part} in {head}");
    }
    assert!(!head.contains("access-control-allow-origin"), "{head}");
    assert!(page.1.contains("<title>Romanesco</title>"));
    for request in [
        "POST / HTTP/1.1",
        "PUT /status.json HTTP/1.1",
        "DELETE / HTTP/1.1",
    ] {
        let request = format!(
            "{request}\r\nHost: localhost\r\nContent-Length: 0\r\n\
            Connection: close\r\n\r\n"
        );
        assert_eq!(code(&send(&on, &request)), "405", "{request}");
    }
    assert_eq!(code(&get(&on, "/../../etc/passwd", "")), "404");
}

#[test]
fn load_stalls_and_slow_commands_are_shown() {
    let site = site(|config| config.slow_ms = 0);
    let mut client = site.client();
    let name = "<img src=x onerror=alert(1)>";
    client.ok(
        "test",
        doc! {"insert": name, "documents": [{"_id": 1, "secret": "s3"}]},
    );
    client.ok(
        "test",
        doc! {"find": name, "filter": {"a": "</script><script>alert(2)"}},
    );
    client.run(
        "admin",
        doc! {"createUser": "u", "pwd": "a-password", "roles": []},
    );
    let status = json(&site, "/status.json");
    assert_eq!(status["server"]["engine"], "betree");
    assert!(0 < status["load"]["connections"].as_i64().unwrap());
    assert!(status["engine"]["debtBytes"].is_u64());
    let stalls = status["engine"]["stalls"].as_array().unwrap();
    assert!(
        stalls.iter().any(|stall| stall["reason"] == "log_sync"),
        "{stalls:?}"
    );
    let slow = status["slow"].as_array().unwrap();
    let find = slow
        .iter()
        .find(|one| one["command"].as_str().unwrap().contains("\"find\""));
    assert_eq!(find.unwrap()["ns"], format!("test.{name}"));
    let all = status.to_string();
    assert!(!all.contains("a-password"), "a password in {all}");
    // Names are data of the JSON, never part of the page.
    let page = get(&site, "/", "");
    assert!(!page.1.contains("onerror"));
    let map = json(&site, "/map.json");
    let collections = map["collections"].as_array().unwrap();
    let named = collections
        .iter()
        .find(|one| one["ns"] == format!("test.{name}"));
    let named = named.expect("the collection");
    assert_eq!(named["documents"], 1);
    assert_eq!(named["strip"].as_array().unwrap().len(), 240);
}

#[test]
fn the_history_has_points() {
    let site = site(|config| config.endpoint.period = Duration::from_millis(20));
    await_so("a point", || {
        let status = json(&site, "/status.json");
        let points = status["history"].as_array().unwrap().clone();
        points
            .iter()
            .any(|point| point["classes"]["command"]["rate"].is_number())
    });
}

/// X1: no path is answered without the token.
#[test]
fn without_the_token_nothing_is_answered() {
    let file = token_file();
    let site = site(|config| config.endpoint.token_file = Some(file.path().to_owned()));
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let basic = STANDARD.encode(format!("anyone:{TOKEN}"));
    let basic = format!("Authorization: Basic {basic}\r\n");
    for path in ["/", "/status.json", "/map.json", "/metrics", "/nothing"] {
        let refused = get(&site, path, "");
        assert_eq!(code(&refused), "401", "{path}");
        let head = refused.0.to_lowercase();
        assert!(head.contains("www-authenticate: basic"), "{head}");
        assert!(!refused.1.contains("romanesco_"), "{path}");
        let wrong = "Authorization: Bearer 0123456789abcdef0123456789abcdee\r\n";
        assert_eq!(code(&get(&site, path, wrong)), "401", "{path}");
    }
    // The connection ends although the client wants to keep it, and no method is named before.
    let refused = send(&site, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(code(&refused), "401", "{}", refused.0);
    let head = refused.0.to_lowercase();
    assert!(head.contains("connection: close"), "{head}");
    for header in [&bearer, &basic] {
        for path in ["/", "/status.json", "/map.json", "/metrics"] {
            // With a token the name does not matter: a page of another site has no token.
            let header = format!("{header}Host: db.example.com\r\n");
            assert_eq!(code(&get(&site, path, &header)), "200", "{path}");
        }
    }
    let metrics = get(&site, "/metrics", &bearer).1;
    let refused = metrics
        .lines()
        .find_map(|line| line.strip_prefix("romanesco_endpoint_refused_total "));
    assert_eq!(refused, Some("11"));
}

#[test]
fn another_sites_name_for_this_machine_is_refused() {
    let site = site(|_| {});
    for host in [
        "evil.example",
        "evil.example:9216",
        "127.0.0.1.evil.example",
        "",
    ] {
        let header = format!("Host: {host}\r\n");
        for path in ["/", "/status.json", "/map.json"] {
            assert_eq!(
                code(&get(&site, path, &header)),
                "403",
                "{path} of {host:?}"
            );
        }
        assert_eq!(code(&get(&site, "/metrics", &header)), "403", "{host:?}");
    }
    for host in ["127.0.0.1:9216", "localhost", "[::1]:9216"] {
        let header = format!("Host: {host}\r\n");
        assert_eq!(
            code(&get(&site, "/status.json", &header)),
            "200",
            "{host:?}"
        );
    }
    // On an address of the network metrics are scraped under the name of the machine.
    let open = Site::with(|config| {
        config.prometheus_port = Some(0);
        config.prometheus_ip = "0.0.0.0".to_owned();
    });
    let scrape = get(&open, "/metrics", "Host: db.example.com\r\n");
    assert_eq!(code(&scrape), "200");
}

#[test]
fn an_open_page_with_authorization_is_no_configuration() {
    let start = |change: fn(&mut server::Config)| {
        Site::try_with(|config| {
            config.prometheus_port = Some(0);
            config.endpoint.status_page = true;
            change(config);
        })
    };
    let error = start(|config| config.authorization = true).err().unwrap();
    assert!(error.contains("net.prometheus.tokenFile"), "{error}");
    let error = start(|config| config.prometheus_ip = "0.0.0.0".to_owned());
    assert!(error.err().unwrap().contains("net.prometheus.tokenFile"));
    let error = start(|config| config.prometheus_port = None).err().unwrap();
    assert!(error.contains("net.prometheus.port"), "{error}");
    let error = start(|config| config.endpoint.token_file = Some("/nothing".into()));
    assert!(error.err().unwrap().contains("/nothing"));
}

/// X2: the head of a request and the number of connections are bounded.
#[test]
fn a_long_head_and_many_connections_are_refused() {
    let site = site(|_| {});
    let long = format!("X-Long: {}\r\n", "x".repeat(100_000));
    let answer = get(&site, "/status.json", &long);
    assert_ne!(code(&answer), "200", "{}", answer.0);
    let address = site.server.metrics_addresses()[0];
    let mut held: Vec<TcpStream> = (0..server::limits::SCRAPERS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    await_so("further connections to be closed", || {
        let mut further = TcpStream::connect(address).unwrap();
        // The server closes before it reads, so the write may fail.
        let _: std::io::Result<()> = further.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        let mut byte = [0];
        let closed = matches!(further.read(&mut byte), Ok(0) | Err(_));
        held.push(further);
        closed
    });
    drop(held);
    await_so("places to be free again", || {
        code(&get(&site, "/status.json", "")) == "200"
    });
}

#[test]
fn the_endpoint_can_be_encrypted() {
    let authority = Authority::new("roots");
    let certificate = authority.server(4000).path;
    let site = site(|config| config.endpoint.certificate_key_file = Some(certificate));
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(site.server.metrics_addresses()[0]).unwrap();
    let stream = StreamOwned::new(session, stream);
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = converse(stream, request);
    assert_eq!(code(&answer), "200", "{}", answer.0);
    assert!(answer.1.contains("romanesco_build_info"));
    // Plain HTTP gets no answer.
    let plain = send(&site, request);
    assert_ne!(code(&plain), "200", "{}", plain.0);
    // The files are read again with those of the clients' connections.
    site.client().ok("admin", doc! {"rotateCertificates": 1});
}
