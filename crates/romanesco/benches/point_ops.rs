//! What does an operation on one document cost the server? Starts `romanesco serve` as a process of
//! its own for each engine, loads documents of 1 KB, then lets clients find, update and insert one
//! document at a time, each over a connection and with a thread of its own, and without a driver.
//! `bulk` inserts the documents of iibench, 1,000 a command, into a collection with its three
//! secondary indexes.
//!
//! For each operation and number of clients it prints documents per second, processor time of the
//! server per document (user and system, from `/proc`), voluntary changes of threads of the server
//! per document, and latencies of a command. Client and server share the machine.
//!
//! `--oplog off,on --repeats 3` measures what the oplog costs, with and without it in turns.
//!
//! `cargo bench -p romanesco --bench point_ops -- --engines betree --clients 1,8` (`--help` names
//! the rest). `--server` compares with another build.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark ends with a panic"
)]

#[path = "../../docdb/benches/purchases/mod.rs"]
mod purchases;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use clap::Parser;
use stdx::Rng;
use stdx::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use stdx::time;
use wire::{Decoder, Message, Parts};

/// Before an operation is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// Documents of a bulk insert.
const BULK: usize = 1000;

/// Clock ticks per second in `/proc/PID/stat`: the same on every Linux.
const TICKS: u64 = 100;

#[derive(Parser)]
struct Options {
    #[arg(long, default_value = "betree,lmdb", value_delimiter = ',')]
    engines: Vec<String>,
    /// Numbers of connections
    #[arg(long, default_value = "1,8,32", value_delimiter = ',')]
    clients: Vec<usize>,
    /// Operations: find, update, insert (both j:false), journaled (an insert with j:true), bulk
    /// (inserts of 1,000 documents, j:false)
    #[arg(
        long,
        default_value = "find,update,insert,journaled",
        value_delimiter = ','
    )]
    operations: Vec<String>,
    /// Documents that are loaded before
    #[arg(long, default_value_t = 100_000)]
    documents: i64,
    /// Whether the server keeps an oplog: on, off, or both in turns
    #[arg(long, default_value = "on", value_delimiter = ',')]
    oplog: Vec<Oplog>,
    /// Starts of each server, in turns
    #[arg(long, default_value_t = 1)]
    repeats: usize,
    /// Seconds for each operation and number of clients
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The server's program
    #[arg(long, default_value = env!("CARGO_BIN_EXE_romanesco"))]
    server: PathBuf,
    /// Folder for the data, which is removed afterwards [default: the system's temporary folder]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Further arguments of the server
    #[arg(long = "with", allow_hyphen_values = true)]
    with: Vec<String>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Oplog {
    On,
    Off,
}

impl Oplog {
    fn name(self) -> &'static str {
        match self {
            Oplog::On => "on",
            Oplog::Off => "off",
        }
    }

    fn arguments(self) -> [&'static str; 2] {
        match self {
            Oplog::On => ["--oplogSize", "1024"],
            Oplog::Off => ["--oplogSize", "0"],
        }
    }
}

fn main() {
    let options = Options::parse();
    println!(
        "{:<8} {:<5} {:<10} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "engine",
        "oplog",
        "operation",
        "clients",
        "docs/s",
        "us CPU",
        "switches",
        "p50 us",
        "p99 us"
    );
    for _ in 0..options.repeats {
        for engine in &options.engines {
            for oplog in &options.oplog {
                run(&options, engine, *oplog);
            }
        }
    }
}

/// Start a server and measure its operations.
fn run(options: &Options, engine: &str, oplog: Oplog) {
    let folder = match &options.folder {
        Some(parent) => tempfile::tempdir_in(parent).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let server = Server::start(options, engine, oplog, folder.path());
    prepare(&server, options.documents);
    let shared = Arc::new(Shared {
        port: server.port,
        documents: options.documents,
        next: AtomicI64::new(options.documents),
        counts: AtomicBool::new(false),
        ends: AtomicBool::new(false),
    });
    for operation in &options.operations {
        for clients in &options.clients {
            let row = measure(&server, &shared, operation, *clients, options.seconds);
            let oplog = oplog.name();
            println!("{engine:<8} {oplog:<5} {operation:<10} {clients:>7} {row}");
        }
    }
}

/// The server's process; killed when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(options: &Options, engine: &str, oplog: Oplog, folder: &Path) -> Server {
        let log = folder.join("log");
        let data = folder.join("data");
        fs::create_dir(&data).unwrap();
        let child = Command::new(&options.server)
            .args(["serve", "--port", "0", "--storageEngine", engine])
            .args([Path::new("--dbpath"), &data, Path::new("--logpath"), &log])
            .args(["--cacheSizeGB", "1"])
            .args(oplog.arguments())
            .args(&options.with)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server { child, port: 0 };
        while server.port == 0 {
            assert!(server.child.try_wait().unwrap().is_none(), "it ended");
            let text = fs::read_to_string(&log).unwrap_or_default();
            server.port = text.lines().find_map(port).unwrap_or(0);
            time::sleep(Duration::from_millis(5));
        }
        server
    }

    /// Processor time so far.
    fn processor(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 1000 / TICKS)
    }

    /// Voluntary changes of its threads so far.
    fn switches(&self) -> u64 {
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut sum = 0;
        for task in fs::read_dir(tasks).unwrap() {
            // The thread may have ended since.
            let status = fs::read_to_string(task.unwrap().path().join("status"));
            let status = status.unwrap_or_default();
            let line = status.lines().find(|l| l.starts_with("voluntary"));
            let count = line.and_then(|line| line.split_whitespace().last());
            sum += count.map_or(0, |count| count.parse().unwrap());
        }
        sum
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The port in the line of the log that says so.
fn port(line: &str) -> Option<u16> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    let waits = event["id"].as_i64() == Some(23_016);
    let port = event["attr"]["port"].as_i64().filter(|_| waits)?;
    u16::try_from(port).ok()
}

/// A connection.
struct Link {
    stream: TcpStream,
    decoder: Decoder,
}

impl Link {
    fn to(port: u16) -> Link {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Link {
            stream,
            decoder: Decoder::new(),
        }
    }

    /// Send a command with a sequence of documents, and read the reply.
    fn call(&mut self, body: &Document, name: &str, documents: &[RawDocumentBuf]) -> Message {
        let documents: Vec<&bson::RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        let parts = Parts {
            request_id: 1,
            response_to: 0,
            flags: 0,
        };
        let sequences = [(name, documents.as_slice())];
        let sequences = if documents.is_empty() {
            &[]
        } else {
            &sequences[..]
        };
        let bytes = wire::encode(parts, &raw(body), sequences);
        self.stream.write_all(&bytes).unwrap();
        let mut chunk = [0; 1 << 14];
        loop {
            if let Some(frame) = self.decoder.frame().unwrap() {
                return Message::decode(frame).unwrap();
            }
            let read = self.stream.read(&mut chunk).unwrap();
            assert!(0 < read, "the server closed the connection");
            self.decoder.push(&chunk[..read]);
        }
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// A document of 1 KB.
fn document(id: i64) -> RawDocumentBuf {
    raw(&doc! {"_id": id, "n": 0, "text": "x".repeat(975)})
}

/// Load the documents, and create the indexes of the bulk inserts.
fn prepare(server: &Server, documents: i64) {
    let mut link = Link::to(server.port);
    let named = |(n, mut index): (usize, Document)| {
        index.insert("name", format!("i{n}"));
        index
    };
    let indexes: Vec<Document> = purchases::indexes()
        .into_iter()
        .enumerate()
        .map(named)
        .collect();
    let body = doc! {"createIndexes": "purchases", "indexes": indexes, "$db": "bench"};
    let reply = link.call(&body, "", &[]);
    let done = reply.body().get_f64("ok").is_ok_and(|ok| ok > 0.0);
    assert!(done, "{:?}", reply.body());
    for first in (0..documents).step_by(1000) {
        let batch: Vec<RawDocumentBuf> =
            (first..documents.min(first + 1000)).map(document).collect();
        let body = doc! {"insert": "c", "$db": "bench", "writeConcern": {"w": 1, "j": false}};
        expect(&link.call(&body, "documents", &batch), batch.len());
    }
}

/// A write changed that many documents.
fn expect(reply: &Message, documents: usize) {
    let n = reply.body().get_i32("n");
    let n = n.unwrap_or_else(|_| panic!("{:?}", reply.body()));
    assert_eq!(usize::try_from(n), Ok(documents), "{:?}", reply.body());
}

/// What all clients of an engine share.
struct Shared {
    port: u16,
    documents: i64,
    /// The next `_id`.
    next: AtomicI64,
    /// Whether operations are counted.
    counts: AtomicBool,
    ends: AtomicBool,
}

impl Shared {
    fn once(&self, link: &mut Link, operation: &str, rng: &mut Rng) {
        let range = u64::try_from(self.documents).unwrap();
        let id = i64::try_from(rng.below(range)).unwrap();
        match operation {
            "find" => {
                let body = doc! {"find": "c", "filter": {"_id": id}, "limit": 1,
                "singleBatch": true, "$db": "bench"};
                let reply = link.call(&body, "", &[]);
                let cursor = reply.body().get_document("cursor").unwrap();
                let batch = cursor.get_array("firstBatch").unwrap();
                assert_eq!(batch.into_iter().count(), 1);
            }
            "update" => {
                let body = doc! {"update": "c", "ordered": true, "$db": "bench",
                "writeConcern": {"w": 1, "j": false}};
                let update = raw(&doc! {"q": {"_id": id}, "u": {"$inc": {"n": 1}}});
                expect(&link.call(&body, "updates", &[update]), 1);
            }
            "insert" | "journaled" => {
                let journal = Bson::Boolean(operation == "journaled");
                let body = doc! {"insert": "c", "ordered": true, "$db": "bench",
                "writeConcern": {"w": 1, "j": journal}};
                let new = document(self.next.fetch_add(1, Ordering::Relaxed));
                expect(&link.call(&body, "documents", &[new]), 1);
            }
            "bulk" => {
                let body = doc! {"insert": "purchases", "ordered": true, "$db": "bench",
                "writeConcern": {"w": 1, "j": false}};
                let batch: Vec<RawDocumentBuf> =
                    (0..BULK).map(|_| purchases::document(rng)).collect();
                expect(&link.call(&body, "documents", &batch), BULK);
            }
            other => panic!("no operation {other}"),
        }
    }

    /// Operate until the end; returns microseconds of the operations that count.
    fn client(&self, operation: &str, seed: u64) -> Vec<u64> {
        let (mut link, mut rng) = (Link::to(self.port), Rng::new(seed));
        let mut taken = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            let begun = time::now();
            self.once(&mut link, operation, &mut rng);
            if self.counts.load(Ordering::Relaxed) {
                taken.push(u64::try_from(begun.elapsed().as_micros()).unwrap());
            }
        }
        taken
    }
}

/// Measure an operation; returns its row.
fn measure(
    server: &Server,
    shared: &Arc<Shared>,
    operation: &str,
    clients: usize,
    seconds: f64,
) -> String {
    shared.ends.store(false, Ordering::Relaxed);
    let threads: Vec<_> = (0..clients as u64)
        .map(|seed| {
            let (shared, operation) = (Arc::clone(shared), operation.to_owned());
            stdx::sync::spawn("client", move || shared.client(&operation, seed)).unwrap()
        })
        .collect();
    time::sleep(WARM_UP);
    let before = (server.processor(), server.switches(), time::now());
    shared.counts.store(true, Ordering::Relaxed);
    time::sleep(Duration::from_secs_f64(seconds));
    shared.counts.store(false, Ordering::Relaxed);
    let processor = server.processor().saturating_sub(before.0);
    let switches = server.switches().saturating_sub(before.1);
    let elapsed = before.2.elapsed();
    shared.ends.store(true, Ordering::Relaxed);
    let taken = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap());
    let mut taken: Vec<u64> = taken.collect();
    taken.sort_unstable();
    let each = if operation == "bulk" { BULK } else { 1 };
    let count = (taken.len() * each).max(1) as f64;
    let part = |share: usize| taken.get(taken.len() * share / 100).copied().unwrap_or(0);
    format!(
        "{:>9.0} {:>9.1} {:>9.2} {:>9} {:>9}",
        count / elapsed.as_secs_f64(),
        processor.as_secs_f64() * 1e6 / count,
        switches as f64 / count,
        part(50),
        part(99),
    )
}
