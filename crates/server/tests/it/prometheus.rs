//! The Prometheus endpoint, over plain HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bson::doc;

use crate::client::Site;

fn ask(site: &Site, line: &str) -> (String, String) {
    let address = site.server.metrics_address().expect("the endpoint is on");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{line}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

#[test]
fn metrics_are_served_in_the_text_format() {
    let site = Site::with(|config| config.prometheus_port = Some(0));
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]},
    );
    let (head, body) = ask(&site, "GET /metrics HTTP/1.1");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    for line in [
        "romanesco_operations_total{type=\"insert\"} 2",
        "romanesco_collection_documents{database=\"test\",collection=\"c\"} 2",
        "romanesco_commands_total{command=\"insert\"} 1",
        "# TYPE romanesco_engine_written_bytes_total counter",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} in {body}");
    }
    let mut families = std::collections::BTreeSet::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} twice");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(families.contains(name), "{name} has no type");
            let value = line.rsplit(' ').next().unwrap();
            value.parse::<f64>().unwrap();
        }
    }
    assert!(ask(&site, "GET / HTTP/1.1").0.starts_with("HTTP/1.1 404"));
    assert!(
        ask(&site, "POST /metrics HTTP/1.1")
            .0
            .starts_with("HTTP/1.1 405")
    );
}

#[test]
fn there_is_no_endpoint_by_default() {
    let site = Site::new();
    assert!(site.server.metrics_address().is_none());
}
