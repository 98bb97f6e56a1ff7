//! Hostile or broken clients do not take resources that other clients need.
//!
//! The large run, 10,000 idle connections beside 16 busy ones:
//! `ROMANESCO_IDLE=10000 cargo test --release -p server --test it idle -- --nocapture`.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stdx::Rng;
use wire::{Header, OpCode};

use crate::client::{Client, Site, await_so};

/// The stall limit of the servers in these tests.
const STALL: Duration = Duration::from_millis(200);

fn impatient() -> Site {
    Site::with(|config| config.stall = STALL)
}

/// The number of connected clients.
fn connected(client: &mut Client) -> i32 {
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let connections = status.get_document("connections").unwrap();
    connections.get_i32("current").unwrap()
}

/// Wait until only `count` clients are connected: the server notices closed connections late.
fn await_connected(client: &mut Client, count: i32) {
    await_so("places to come back", || connected(client) <= count);
}

/// A message header that states this length.
fn announced(length: usize) -> [u8; 16] {
    Header {
        length,
        request_id: 1,
        response_to: 0,
        op_code: OpCode::Message,
    }
    .encode()
}

/// The resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse::<u64>().unwrap() * 1_024
}

#[test]
fn writers_that_wait_leave_room_for_readers() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 0}]});
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    let session = doc! {"lsid": {"id": id}, "txnNumber": 1_i64, "autocommit": false};
    let mut begin = doc! {"insert": "c", "documents": [{"_id": 1}], "startTransaction": true};
    begin.extend(session.clone());
    client.ok("test", begin);
    // The drop waits for the transaction, and other writers of the collection wait for the drop.
    let mut drop = site.client();
    drop.send("test", doc! {"drop": "c"}, 0);
    await_so("the drop to wait", || {
        let insert = doc! {"insert": "c", "documents": [{"a": 0}], "maxTimeMS": 1_000};
        let reply = client.run("test", insert);
        reply.get_i32("code").is_ok_and(|code| code == 50)
    });
    let waiting: Vec<Client> = (0..300)
        .map(|_| {
            let mut writer = site.client();
            writer.send("test", doc! {"insert": "c", "documents": [{"a": 1}]}, 0);
            writer
        })
        .collect();
    // There are more waiting writers than workers.
    await_so("them to wait", || {
        let status = client.ok("admin", doc! {"serverStatus": 1});
        let queue = status.get_document("globalLock").unwrap();
        let queue = queue.get_document("currentQueue").unwrap();
        40 <= queue.get_i32("writers").unwrap()
    });
    let mut reader = site.client();
    reader.ok("test", doc! {"find": "c"});
    let mut go_on = doc! {"insert": "c", "documents": [{"_id": 2}]};
    go_on.extend(session.clone());
    client.ok("test", go_on);
    let mut end = doc! {"commitTransaction": 1};
    end.extend(session);
    client.ok("admin", end);
    for mut writer in waiting {
        let (_, reply) = writer.receive().unwrap();
        assert_eq!(reply.get_i32("n").unwrap(), 1, "{reply}");
    }
}

/// C2: a client must continue a message that it has begun.
#[test]
fn a_message_that_stops_ends_its_connection_and_silence_does_not() {
    let site = impatient();
    let mut silent = site.client();
    let mut watcher = site.client();
    let mut begun = Vec::new();
    for sent in [
        &[][..],
        &[1],
        &announced(100)[..7],
        &announced(100),
        &announced(48_000_000),
    ] {
        let mut client = site.client();
        client.stream.write_all(sent).unwrap();
        begun.push((client, sent.is_empty()));
    }
    // A client that continues, but too slowly.
    let mut slow = site.client().stream;
    let mut tick = announced(1_000_000).into_iter().chain(std::iter::repeat(0));
    while slow.write_all(&[tick.next().unwrap()]).is_ok() {
        connected(&mut watcher);
    }
    for (mut client, is_silent) in begun {
        match is_silent {
            true => drop(client.ok("admin", doc! {"ping": 1})),
            false => assert!(client.receive().is_none()),
        }
    }
    silent.ok("admin", doc! {"ping": 1});
    await_connected(&mut watcher, 2);
}

/// C2: a client must read its reply.
#[test]
fn replies_that_nobody_takes_end_their_connection() {
    // A client that sends this much may pause, so this server has the default limit.
    let site = Site::new();
    let large = doc! {"s": "x".repeat(8 << 20)};
    let insert = doc! {"insert": "c", "documents": [large]};
    site.client().ok("test", insert);
    let site = Site::try_in(site.stop(), |config| config.stall = STALL).unwrap();
    let mut client = site.client();
    let mut deaf: Vec<Client> = (0..4).map(|_| site.client()).collect();
    for deaf in &mut deaf {
        for _ in 0..4 {
            deaf.send("test", doc! {"find": "c"}, 0);
        }
    }
    await_connected(&mut client, 1);
}

#[test]
fn messages_that_are_only_announced_hold_no_memory() {
    let site = impatient();
    let mut watcher = site.client();
    let before = resident();
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..200 {
        let mut stream = site.client().stream;
        stream.write_all(&announced(48_000_000)).unwrap();
        held.push(stream);
    }
    watcher.ok("admin", doc! {"ping": 1});
    // Other tests run in this process; the announced messages have 9.6 GB.
    assert!(resident().saturating_sub(before) < 1 << 30);
    await_connected(&mut watcher, 1);
}

#[test]
fn a_flood_of_connections_is_refused_and_those_that_are_there_are_served() {
    let site = Site::with(|config| config.max_connections = 50);
    let mut one = site.client();
    one.ok("admin", doc! {"hello": 1});
    for _ in 0..20 {
        await_connected(&mut one, 1);
        let flood: Vec<TcpStream> = (0..100).map(|_| site.client().stream).collect();
        one.ok("admin", doc! {"hello": 1});
        // With the connection that exists, 49 get a place and are served; the others are closed.
        // All stay open until they are counted, because a place that is freed would be taken.
        let mut flood: Vec<Client> = flood.into_iter().map(Client::over).collect();
        let mut served = 0;
        for client in &mut flood {
            served += usize::from(client.try_run("admin", doc! {"ping": 1}).is_ok());
        }
        assert_eq!(served, 49);
        assert!(connected(&mut one) <= 50);
    }
    await_connected(&mut one, 1);
    site.client().ok("admin", doc! {"ping": 1});
    let status = one.ok("admin", doc! {"serverStatus": 1});
    let connections = status.get_document("connections").unwrap();
    assert!(
        connections.get_i32("rejected").unwrap() > 0,
        "{connections}"
    );
}

#[test]
fn noise_of_all_kinds_hurts_nobody_else() {
    let site = impatient();
    let mut one = site.client();
    let seed = 0x5EED;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for round in 0..300 {
        let mut client = site.client();
        let mut bytes = vec![0; usize::try_from(rng.below(400)).unwrap()];
        for byte in &mut bytes {
            *byte = u8::try_from(rng.below(256)).unwrap();
        }
        if round % 2 == 0 && bytes.len() >= 16 {
            // A valid header before the noise, with a correct or a wrong length.
            let length = bytes.len() + usize::try_from(rng.below(3)).unwrap();
            bytes[..16].copy_from_slice(&announced(length));
        }
        // A client whose connection is closed during the write has received its answer.
        let _: std::io::Result<()> = client.stream.write_all(&bytes);
        if round % 3 == 0 {
            one.ok("admin", doc! {"hello": 1});
        }
    }
    await_connected(&mut one, 1);
}

/// Run commands of a busy client until the test ends it. Returns the number of commands.
fn busy(mut client: Client, number: i32, end: &AtomicBool, done: &AtomicU64) {
    let mut i = 0;
    while !end.load(Ordering::Relaxed) {
        i += 1;
        let documents: Vec<Document> = (0..10)
            .map(|n| doc! {"w": number, "i": i, "n": n})
            .collect();
        client.ok("test", doc! {"insert": "busy", "documents": documents});
        client.ok(
            "test",
            doc! {"find": "busy", "filter": {"w": number}, "limit": 20},
        );
        done.fetch_add(2, Ordering::Relaxed);
    }
}

/// Raise the limit of file descriptors: both ends of all connections are in this process.
fn raise() {
    let many = Some(1 << 16);
    let wanted = Rlimit {
        current: many,
        maximum: many,
    };
    // Only privileged processes may raise the hard limit.
    if setrlimit(Resource::Nofile, wanted).is_ok() {
        return;
    }
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, most).unwrap();
}

/// S1: greetings need no storage thread.
#[test]
fn idle_connections_cost_little_and_busy_ones_do_not_starve_greetings() {
    raise();
    let many = std::env::var("ROMANESCO_IDLE").ok();
    let many: Option<usize> = many.map(|text| text.parse().expect("a number of connections"));
    let site = Site::new();
    let before = resident();
    let idle: Vec<Client> = (0..many.unwrap_or(300))
        .map(|_| {
            let mut client = site.client();
            client.ok("admin", doc! {"hello": 1});
            client
        })
        .collect();
    let held = resident().saturating_sub(before);
    let end = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..16)
        .map(|number| {
            let (client, end, done) = (site.client(), Arc::clone(&end), Arc::clone(&done));
            let work = move || busy(client, number, &end, &done);
            stdx::sync::spawn("busy", work).unwrap()
        })
        .collect();
    let mut times = Vec::new();
    for mut client in idle {
        let begun = stdx::time::now();
        client.ok("admin", doc! {"hello": 1});
        times.push(begun.elapsed());
    }
    let enough = if many.is_some() { 2_000 } else { 64 };
    while done.load(Ordering::Relaxed) < enough {
        std::thread::yield_now();
    }
    end.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().unwrap();
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!(
        "{} idle connections: {} KiB each, both ends; hello beside 16 busy: p50 {:?}, p99 {:?}, \
         max {:?}; {} commands of the busy",
        times.len(),
        held / 1_024 / u64::try_from(times.len()).unwrap(),
        at(50),
        at(99),
        at(100),
        done.load(Ordering::Relaxed)
    );
    // The memory can be attributed to connections only if this test runs alone in its process.
    if many.is_some() {
        assert!(held < 500 << 20, "{held}");
    }
}
