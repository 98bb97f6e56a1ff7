//! Limits on unauthenticated clients, and on the memory that any client can make the server use.

use std::io::Write as _;

use bson::{Bson, Document, RawDocumentBuf, doc};
use wire::compress::compress;
use wire::{Compressor, Parts};

use crate::auth::{as_user, guarded};
use crate::certificates::Authority;
use crate::client::{Client, Site, await_so};

/// A command of exactly the given number of bytes.
fn of_length(length: usize) -> Vec<u8> {
    let with = |comment: usize| encoded(&doc! {"ping": 1, "comment": "x".repeat(comment)});
    let bytes = with(length - with(0).len());
    assert_eq!(bytes.len(), length);
    bytes
}

fn encoded(command: &Document) -> Vec<u8> {
    let mut command = command.clone();
    command.insert("$db", "admin");
    let body = RawDocumentBuf::try_from(&command).unwrap();
    wire::encode(Parts::default(), &body, &[])
}

/// Send a message; returns whether it was answered instead of the connection being closed.
fn is_answered(client: &mut Client, bytes: &[u8]) -> bool {
    client.stream.write_all(bytes).is_ok() && client.receive().is_some()
}

/// A field of the section about guests in `serverStatus`.
fn guests(client: &mut Client, field: &str) -> i64 {
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let connections = status.get_document("connections").unwrap();
    let guests = connections.get_document("unauthenticated").unwrap();
    guests.get_i64(field).unwrap()
}

fn waiting(client: &mut Client, pad: usize) -> Document {
    let reply = client.ok("admin", doc! {"hello": 1});
    let version = reply.get_document("topologyVersion").unwrap();
    doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 50_000, "pad": "x".repeat(pad)}
}

/// C3: messages of guests are limited in size.
#[test]
fn messages_are_short_until_the_client_has_authenticated() {
    let site = guarded();
    let long = of_length(64 * 1_024 + 1);
    assert!(is_answered(&mut site.client(), &of_length(64 * 1_024)));
    assert!(!is_answered(&mut site.client(), &long));
    // The limit applies to the expanded size of compressed messages.
    for compressor in Compressor::ALL {
        let bomb = compress(&long, compressor).unwrap();
        assert!(bomb.len() < 8_000);
        assert!(!is_answered(&mut site.client(), &bomb), "{compressor:?}");
    }
    let mut user = as_user(&site, "test", "reader");
    assert!(is_answered(&mut user, &long));
    user.ok("admin", doc! {"logout": 1});
    assert!(!is_answered(&mut user, &long));
    // Without authorization every client has all privileges.
    assert!(is_answered(&mut Site::new().client(), &long));
}

#[test]
fn a_compressor_that_is_off_expands_nothing() {
    let site = Site::with(|config| config.compressors = vec![Compressor::Snappy]);
    for (compressor, works) in [
        (Compressor::Noop, true),
        (Compressor::Snappy, true),
        (Compressor::Zlib, false),
        (Compressor::Zstd, false),
    ] {
        let bytes = compress(&of_length(200), compressor).unwrap();
        let answered = is_answered(&mut site.client(), &bytes);
        assert_eq!(answered, works, "{compressor:?}");
    }
}

/// C4: a greeting that waits holds only its own bytes.
#[test]
fn a_greeting_that_waits_is_short() {
    for site in [guarded(), Site::new()] {
        let mut client = site.client();
        let long = waiting(&mut client, 4_096);
        assert_eq!(client.fails("admin", long.clone()).0, 2);
        let mut at_once = long;
        at_once.remove("topologyVersion");
        at_once.remove("maxAwaitTimeMS");
        client.ok("admin", at_once);
    }
}

/// C3: guests cannot send ahead.
#[test]
fn a_guest_that_sends_ahead_is_hung_up_on() {
    let site = guarded();
    let mut client = site.client();
    let greeting = waiting(&mut client, 0);
    let ahead = encoded(&greeting);
    client.send("admin", greeting, 0);
    let more = ahead.repeat(8_192 / ahead.len() + 1);
    client.stream.write_all(&more).unwrap();
    // The first greeting is answered, those sent ahead are not.
    client.receive();
    while client.receive().is_some() {}
}

/// C3: guests share one budget of memory.
#[test]
fn guests_are_charged_for_what_they_send_until_they_are_gone() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    assert_eq!(guests(&mut root, "current"), 0);
    let begun: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = site.client();
            let bytes = of_length(60_000);
            client.stream.write_all(&bytes[..50_000]).unwrap();
            client
        })
        .collect();
    let enough = 20 * (50_000 - 16 * 1_024);
    await_so("all to be charged", || {
        guests(&mut root, "chargedBytes") >= enough
    });
    // So much may also be charged for fewer.
    await_so("all to be guests", || guests(&mut root, "current") == 20);
    assert!(guests(&mut root, "chargedBytes") <= 32 << 20);
    drop(begun);
    await_so("nothing to be charged", || {
        guests(&mut root, "chargedBytes") == 0
    });
    await_so("them to be gone", || guests(&mut root, "current") == 0);
    assert_eq!(guests(&mut root, "closed"), 0);
}

#[test]
fn half_a_handshake_is_charged_for_what_was_sent() {
    let authority = Authority::new("roots");
    let certificate = authority.server(4000);
    let site = Site::try_in(guarded().stop(), |config| {
        config.authorization = true;
        config.tls = server::TlsConfig {
            mode: server::TlsMode::Allowed,
            certificate_key_file: Some(certificate.path.clone()),
            ..server::TlsConfig::default()
        };
    });
    let site = site.unwrap();
    let mut root = as_user(&site, "admin", "root");
    // A greeting of 60,000 bytes, of which the client sends three records.
    let mut hello = vec![1, 0, 0xEA, 0x60, 3, 3];
    hello.resize(3 * 16_000, 7);
    let records: Vec<u8> = hello
        .chunks(16_000)
        .flat_map(|part| [&[22, 3, 1, 0x3E, 0x80], part].concat())
        .collect();
    let begun: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = site.client();
            client.stream.write_all(&records).unwrap();
            client
        })
        .collect();
    await_so("all to be charged", || {
        guests(&mut root, "chargedBytes") >= 20 * (47_000 - 16 * 1_024)
    });
    assert_eq!(guests(&mut root, "current"), 20);
    drop(begun);
    await_so("nothing to be charged", || {
        guests(&mut root, "chargedBytes") == 0
    });
    await_so("them to be gone", || guests(&mut root, "current") == 0);
}

#[test]
fn a_new_guest_takes_the_place_of_an_old_one_and_of_no_user() {
    let folder = guarded().stop();
    let site = Site::try_in(folder, |config| {
        config.authorization = true;
        config.max_connections = 20;
    });
    let site = site.unwrap();
    let mut users: Vec<Client> = (0..9).map(|_| as_user(&site, "admin", "root")).collect();
    let mut first: Vec<Client> = Vec::new();
    for _ in 0..10 {
        let mut guest = site.client();
        guest.ok("admin", doc! {"hello": 1});
        first.push(guest);
    }
    for _ in 0..30 {
        site.client().ok("admin", doc! {"hello": 1});
        // The connection counts until the server notices that the client has closed it.
        await_so("a place", || {
            let status = users[0].ok("admin", doc! {"serverStatus": 1});
            let connections = status.get_document("connections").unwrap();
            connections.get_i32("current").unwrap() < 20
        });
    }
    assert!(guests(&mut users[0], "closed") > 0);
    assert!(first[0].receive().is_none(), "the oldest guest is closed");
    for user in &mut users {
        user.ok("admin", doc! {"ping": 1});
    }
}

#[test]
fn lists_of_sessions_are_limited() {
    let site = Site::new();
    let mut client = site.client();
    let id = |n: u32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        Bson::from(doc! {"id": bson::Uuid::from_bytes(bytes)})
    };
    let list = |count: u32| (0..count).map(id).collect::<Vec<Bson>>();
    for command in ["endSessions", "refreshSessions", "killSessions"] {
        assert_eq!(
            client.fails("admin", doc! {command: list(10_001)}).0,
            2,
            "{command}"
        );
    }
    client.ok("admin", doc! {"endSessions": list(10_000)});
    let patterns = |name: &str| {
        let one = doc! {name: 1};
        vec![Bson::from(one); 10_001]
    };
    for command in ["killAllSessions", "killAllSessionsByPattern"] {
        let reply = client.fails("admin", doc! {command: patterns("x")});
        assert_eq!(reply.0, 2, "{command}");
    }
    // Many fields do not circumvent the limit.
    let many: Document = (0..1_001).map(|n| (format!("f{n}"), Bson::Null)).collect();
    let mut ping = doc! {"ping": 1};
    ping.extend(many);
    assert_eq!(client.fails("admin", ping).0, 40_415);
}

/// A document with everything in it that can be long.
fn long() -> Document {
    let subtype = bson::spec::BinarySubtype::Generic;
    let binary = bson::Binary {
        subtype,
        bytes: vec![0; 90_000],
    };
    let nested = (0..90).fold(doc! {}, |inner, _| doc! {"a": [inner]});
    let fields: Document = (0..20_000).map(|n| (format!("f{n}"), Bson::Null)).collect();
    let entries: Vec<Bson> = (0..20_000).map(|n| doc! {"id": n}.into()).collect();
    doc! {
        "text": "x".repeat(200_000), "y".repeat(200_000): 1, "controls": "\u{1}".repeat(50_000),
        "binary": binary,
        "nested": nested, "fields": fields, "entries": entries,
    }
}

#[test]
fn no_command_makes_a_long_line_in_the_log() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"profile": 0, "slowms": -1});
    let list = client.ok("admin", doc! {"listCommands": 1});
    let names: Vec<String> = list
        .get_document("commands")
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let (mut logged, mut last) = (0, 0);
    for name in names {
        if matches!(name.as_str(), "shutdown" | "logRotate" | "getLog" | "fsync") {
            continue;
        }
        for value in [
            Bson::from(long()),
            Bson::from("x".repeat(300_000)),
            vec![Bson::from(long())].into(),
            vec![Bson::Null; 100_000].into(),
        ] {
            let mut command = doc! {name.clone(): value};
            command.insert("comment", long());
            client.run("test", command);
        }
        let log = client.ok("admin", doc! {"getLog": "global"});
        let total = log.get_i32("totalLinesWritten").unwrap();
        let lines = log.get_array("log").unwrap();
        let bytes: usize = lines.iter().map(|line| line.as_str().unwrap().len()).sum();
        assert!(bytes <= 1 << 20, "{name}: {bytes}");
        for line in lines {
            let line = line.as_str().unwrap();
            assert!(line.len() < 40_000, "{name}: {} bytes", line.len());
        }
        logged += i32::from(last < total);
        last = total;
    }
    // Commands that are refused before they run are not logged.
    assert!(40 < logged, "{logged}");
}
