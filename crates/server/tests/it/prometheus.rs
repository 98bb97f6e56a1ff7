//! The Prometheus endpoint, over plain HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use bson::doc;

use crate::client::{Site, await_so};
use crate::users::Watched;

pub(crate) fn ask(site: &Site, line: &str) -> (String, String) {
    let address = site.server.metrics_addresses()[0];
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
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
        "romanesco_operation_duration_seconds_bucket{class=\"write\",le=\"+Inf\"} 1",
        "romanesco_operation_duration_seconds_count{class=\"write\"} 1",
        "romanesco_command_duration_seconds_count{command=\"insert\"} 1",
        "romanesco_query_memory_refused_total 0",
        "romanesco_connections_unauthenticated 0",
        "romanesco_logins_total{result=\"failed\"} 0",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} in {body}");
    }
    check_families(&body);
    assert!(ask(&site, "GET / HTTP/1.1").0.starts_with("HTTP/1.1 404"));
    assert!(
        ask(&site, "POST /metrics HTTP/1.1")
            .0
            .starts_with("HTTP/1.1 405")
    );
}

/// Each family has one type, and each sample belongs to a family before it.
fn check_families(body: &str) {
    let mut families = std::collections::BTreeMap::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let before = families.insert(name.to_owned(), kind.to_owned());
            assert!(before.is_none(), "{name} twice");
            if kind != "untyped" {
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            }
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let parts = ["_bucket", "_sum", "_count"];
            let of = parts.iter().find_map(|part| name.strip_suffix(part));
            let histogram = of.is_some_and(|of| families.get(of).is_some_and(|k| k == "histogram"));
            assert!(
                histogram || families.contains_key(name),
                "{name} has no type"
            );
            let value = line.rsplit(' ').next().unwrap();
            value.parse::<f64>().unwrap();
        }
    }
}

/// The value of a sample.
fn sample(body: &str, name: &str) -> Option<f64> {
    let mut lines = body.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.parse().unwrap())
}

#[test]
fn names_of_mongodb_exporter_are_served() {
    let site = Site::with(|config| config.prometheus_port = Some(0));
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    let (_, body) = ask(&site, "GET /metrics HTTP/1.1");
    for (name, least) in [
        ("mongodb_up", 1.0),
        ("mongodb_ss_connections{conn_type=\"current\"}", 1.0),
        ("mongodb_ss_connections{conn_type=\"available\"}", 1.0),
        ("mongodb_ss_opcounters{legacy_op_type=\"insert\"}", 1.0),
        ("mongodb_ss_opcounters{legacy_op_type=\"command\"}", 0.0),
        ("mongodb_ss_opLatencies_ops{op_type=\"writes\"}", 1.0),
        ("mongodb_ss_opLatencies_latency{op_type=\"writes\"}", 1.0),
        ("mongodb_ss_opLatencies_writes_latency", 1.0),
        ("mongodb_ss_network_bytesIn", 1.0),
        ("mongodb_ss_network_bytesOut", 1.0),
        ("mongodb_ss_network_numRequests", 1.0),
        ("mongodb_ss_mem_resident", 1.0),
        ("mongodb_ss_mem_virtual", 1.0),
        ("mongodb_ss_metrics_document{doc_op_type=\"inserted\"}", 1.0),
        ("mongodb_ss_metrics_cursor_open{csr_type=\"total\"}", 0.0),
        ("mongodb_ss_metrics_commands_insert_total", 1.0),
        (
            "mongodb_ss_metrics_commands_total{cmd_name=\"insert\"}",
            1.0,
        ),
        (
            "mongodb_ss_globalLock_currentQueue{count_type=\"total\"}",
            0.0,
        ),
        ("mongodb_ss_asserts{assert_type=\"user\"}", 0.0),
        ("mongodb_ss_extra_info_page_faults", 0.0),
        ("mongodb_ss_transactions_currentOpen", 0.0),
        ("mongodb_ss_repl_ismaster", 1.0),
        ("mongodb_ss_uptime", 0.0),
        ("mongodb_sys_cpu_num_cpus", 1.0),
    ] {
        let found = sample(&body, name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(least <= found, "{name} is {found}");
    }
    assert!(
        !body.contains("mongodb_ss_betree"),
        "the engine has names of its own"
    );
}

#[test]
fn the_process_and_the_machine_are_measured() {
    let site = Site::with(|config| config.prometheus_port = Some(0));
    let (_, body) = ask(&site, "GET /metrics HTTP/1.1");
    let positive = |name: &str| {
        let found = sample(&body, name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(0.0 < found, "{name} is {found}");
        found
    };
    let resident = positive("process_resident_memory_bytes");
    assert!(resident <= positive("process_virtual_memory_bytes"));
    assert!(positive("process_open_fds") <= positive("process_max_fds"));
    let started = positive("process_start_time_seconds");
    let now = stdx::time::wall().as_secs_f64();
    assert!(
        started < now + 60.0 && now - 86_400.0 < started,
        "{started}"
    );
    positive("process_threads");
    positive("romanesco_memory_limit_bytes");
    positive("romanesco_host_memory_bytes{state=\"total\"}");
    positive("romanesco_host_cpu_seconds_total{mode=\"user\"}");
    let total = positive("romanesco_data_filesystem_bytes{state=\"total\"}");
    assert!(positive("romanesco_data_filesystem_bytes{state=\"used\"}") <= total);
}

#[test]
fn the_oldest_open_transaction_is_reported() {
    let site = Site::with(|config| config.prometheus_port = Some(0));
    let mut client = site.client();
    client.ok("test", doc! {"create": "c"});
    let oldest = || {
        let (_, body) = ask(&site, "GET /metrics HTTP/1.1");
        sample(&body, "romanesco_transaction_oldest_seconds").unwrap()
    };
    assert!(oldest().abs() < f64::EPSILON);
    let session = bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    let of = doc! {"lsid": {"id": session}, "txnNumber": 1_i64, "autocommit": false};
    let mut insert = doc! {"insert": "c", "documents": [{"_id": 1}], "startTransaction": true};
    insert.extend(of.clone());
    client.ok("test", insert);
    assert!(0.0 < oldest());
    let mut commit = doc! {"commitTransaction": 1};
    commit.extend(of);
    client.ok("admin", commit);
    // The thread of the transaction ends after the reply.
    await_so("the transaction to end", || oldest().abs() < f64::EPSILON);
}

/// The wait of a tailable cursor is no duration of the server: what is measured is the work beside
/// it, which takes less by orders of magnitude.
#[test]
fn the_wait_for_documents_is_not_measured() {
    const WAIT: i32 = 2_000;
    let site = Site::with(|config| config.prometheus_port = Some(0));
    let mut client = site.client();
    client.ok("test", doc! {"create": "t", "capped": true, "size": 4096});
    client.ok("test", doc! {"insert": "t", "documents": [{"_id": 1}]});
    let find = doc! {"find": "t", "tailable": true, "awaitData": true};
    let reply = client.ok("test", find);
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! {"getMore": id, "collection": "t", "maxTimeMS": WAIT};
    client.ok("test", more);
    let (_, body) = ask(&site, "GET /metrics HTTP/1.1");
    let seconds = |name: &str| sample(&body, name).unwrap();
    let count = "romanesco_command_duration_seconds_count{command=\"getMore\"}";
    assert_eq!(seconds(count), 1.0);
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let latencies = status.get_document("opLatencies").unwrap();
    let reads = latencies.get_document("reads").unwrap();
    let wait = f64::from(WAIT) / 1e3;
    for taken in [
        seconds("romanesco_command_duration_seconds_sum{command=\"getMore\"}"),
        seconds("romanesco_operation_duration_seconds_sum{class=\"read\"}"),
        seconds("romanesco_command_seconds_total{class=\"read\"}"),
        reads.get_i64("latency").unwrap() as f64 / 1e6,
    ] {
        assert!(taken < wait, "{taken}");
    }
}

#[test]
fn each_address_is_served() {
    let site = Site::with(|config| {
        config.prometheus_port = Some(0);
        config.prometheus_ip = "127.0.0.1, 127.0.0.2".to_owned();
    });
    let addresses = site.server.metrics_addresses();
    assert_eq!(addresses.len(), 2, "{addresses:?}");
    for address in addresses {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{address}: {text}");
    }
}

/// An engine without statistics leaves out its own metrics only.
#[test]
fn the_server_is_measured_while_the_engine_fails() {
    let folder = tempfile::tempdir().unwrap();
    let options = kv::EngineOptions::default();
    let inner = kv_betree::factory().open(folder.path(), &options).unwrap();
    let mut engine = Watched::of(inner);
    engine.blind = true;
    let site = Site::over(Arc::new(engine), folder, |config| {
        config.prometheus_port = Some(0);
    });
    let (_, body) = ask(&site.unwrap(), "GET /metrics HTTP/1.1");
    assert!(sample(&body, "mongodb_ss_uptime").is_some());
    assert!(!body.contains("romanesco_engine_written_bytes_total"));
}

#[test]
fn there_is_no_endpoint_by_default() {
    let site = Site::new();
    assert!(site.server.metrics_addresses().is_empty());
}
