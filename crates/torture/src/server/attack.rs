//! An attack by clients that never authenticate on a server that requires it.
//!
//! Each attacker has one connection, on which it does something that costs the server more than the
//! attacker ([`Way`]). Meanwhile a witness repeatedly connects and sends `hello`, and must get an
//! answer. The law:
//!
//! - W6. Clients without a password cannot stop the server, cannot prevent it from answering other
//!   clients, and cannot make it use more memory than a bound that is independent of the bytes they
//!   send.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use stdx::time;
use wire::compress::compress;
use wire::{Compressor, Header, OpCode, Parts};

use super::link::{Link, is_ok};
use super::process::Process;

/// Number of rounds for which a connection is silent after it has sent everything; then it is
/// replaced.
const SILENT: u64 = 8;

/// The pause of an attacking thread that has sent what its rate allows.
const PAUSE: Duration = Duration::from_millis(1);

/// Number of threads that attack.
pub(super) const THREADS: usize = 4;

/// Maximum time beyond [`Attack::duration`]. An attack that has not reached its minimum counts by
/// then fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The program that is attacked, run with `serve --auth`.
    pub program: PathBuf,
    /// The server's storage engine.
    pub engine: String,
    /// The directory of the store.
    pub directory: PathBuf,
    /// Number of attackers' connections.
    pub connections: usize,
    /// Minimum number of pieces that each attacker sends.
    pub rounds: u64,
    /// Minimum number of the witness's `hello` commands, each over a new connection.
    pub greetings: u64,
    /// Minimum number of connections that the server closes. How many it closes in a time depends
    /// on the machine.
    pub closed: u64,
    /// Minimum duration.
    pub duration: Duration,
    /// Maximum bytes per second that all attackers send together; `None` for no limit.
    pub rate: Option<u64>,
}

/// The result of an attack.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Peak memory of the server before the attack, in bytes.
    pub memory_before: u64,
    /// Peak memory of the server at the end of the attack, in bytes.
    pub memory_peak: u64,
    /// Bytes that the attackers sent.
    pub sent: u64,
    /// Connections of attackers that the server closed.
    pub closed: u64,
    /// The witness's `hello` commands that were answered.
    pub answered: u64,
    /// The longest wait of the witness, from connecting to the answer.
    pub longest: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes sent, {} connections closed by the server, {} greetings answered, the \
             slowest in {:?}, peak memory {} MiB, before the attack {} MiB",
            self.sent,
            self.closed,
            self.answered,
            self.longest,
            self.memory_peak >> 20,
            self.memory_before >> 20
        )
    }
}

/// How an attacker uses its connection.
#[derive(Clone)]
enum Way {
    /// Send all bytes, then nothing for some rounds; replies are never read.
    Whole(Arc<Vec<u8>>),
    /// Send one byte at a time.
    Dribble(Arc<Vec<u8>>),
}

/// One attacker's connection.
pub(super) struct Attacker {
    way: Way,
    stream: Option<TcpStream>,
    sent: usize,
    silent: u64,
}

/// The attackers' counters.
#[derive(Default)]
pub(super) struct Counts {
    end: AtomicBool,
    /// Bytes sent.
    pub(super) sent: AtomicU64,
    /// Connections that the server closed.
    pub(super) closed: AtomicU64,
    rounds: AtomicU64,
}

fn message(command: &Document) -> Result<Vec<u8>, String> {
    let mut command = command.clone();
    command.insert("$db", "admin");
    let body = RawDocumentBuf::try_from(&command).map_err(|e| e.to_string())?;
    Ok(wire::encode(Parts::default(), &body, &[]))
}

fn bomb(command: &Document, compressor: Compressor) -> Result<Vec<u8>, String> {
    compress(&message(command)?, compressor).map_err(|e| e.to_string())
}

/// All kinds of attacks; `version` is the server's `topologyVersion`.
fn ways(version: &Document) -> Result<Vec<Way>, String> {
    let waiting = |pad: usize| {
        doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 60_000,
        "pad": "x".repeat(pad)}
    };
    let session = doc! {"id": bson::Uuid::from_bytes([7; 16])};
    let sessions: Vec<Bson> = vec![session.into(); 100_000];
    let announced = Header {
        length: 47_000_000,
        request_id: 1,
        response_to: 0,
        op_code: OpCode::Message,
    };
    let unfinished = message(&waiting(60_000))?;
    let unfinished = unfinished.get(..60_000).unwrap_or_default().to_vec();
    let greetings = message(&doc! {"hello": 1})?.repeat(500);
    let whole = |bytes: Vec<u8>| Way::Whole(Arc::new(bytes));
    Ok(vec![
        // `hello` commands that wait, with data that the server must keep meanwhile.
        whole(message(&waiting(60_000))?),
        whole(bomb(&waiting(8 << 20), Compressor::Zlib)?),
        whole(bomb(&waiting(8 << 20), Compressor::Zstd)?),
        whole([message(&waiting(0))?, message(&waiting(0))?.repeat(200)].concat()),
        // Long lists, and long names that error messages repeat.
        whole(bomb(&doc! {"endSessions": sessions}, Compressor::Zstd)?),
        whole(bomb(&doc! {"x".repeat(8 << 20): 1}, Compressor::Snappy)?),
        whole(message(&doc! {"x".repeat(50_000): 1})?.repeat(20)),
        // Messages that never end.
        whole(announced.encode().to_vec()),
        whole(unfinished.clone()),
        Way::Dribble(Arc::new(unfinished)),
        // Commands whose replies the attacker does not read.
        whole(greetings),
        // A TLS handshake to a server without TLS, and an empty connection.
        whole(vec![22, 3, 1, 2, 0]),
        whole(Vec::new()),
    ])
}

impl Attacker {
    fn new(way: Way) -> Attacker {
        Attacker {
            way,
            stream: None,
            sent: 0,
            silent: 0,
        }
    }

    /// Send the next piece. If the connection has ended, the next round opens a new one.
    fn step(&mut self, port: u16, counts: &Counts) {
        let Some(stream) = &mut self.stream else {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
            self.stream = stream.ok().filter(|s| s.set_nonblocking(true).is_ok());
            (self.sent, self.silent) = (0, 0);
            return;
        };
        let (bytes, most) = match &self.way {
            Way::Whole(bytes) => (bytes, usize::MAX),
            Way::Dribble(bytes) => (bytes, 1),
        };
        let rest = bytes.get(self.sent..).unwrap_or_default();
        let piece = rest.get(..rest.len().min(most)).unwrap_or_default();
        if piece.is_empty() {
            self.silent += 1;
            // Reading a byte of the reply shows whether the connection has ended.
            let hung_up = match stream.read(&mut [0]) {
                Ok(read) => read == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            counts
                .closed
                .fetch_add(u64::from(hung_up), Ordering::Relaxed);
            if hung_up || SILENT < self.silent {
                self.stream = None;
            }
            return;
        }
        match stream.write(piece) {
            Ok(written) => {
                self.sent += written;
                let written = u64::try_from(written).unwrap_or(0);
                counts.sent.fetch_add(written, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => {
                counts.closed.fetch_add(1, Ordering::Relaxed);
                self.stream = None;
            }
        }
    }
}

impl Counts {
    /// Stop the attackers.
    pub(super) fn stop(&self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

/// The attackers of a server, one list per thread; the kinds of attacks are assigned in turn.
pub(super) fn attackers(
    port: u16,
    connections: usize,
    threads: usize,
) -> Result<Vec<Vec<Attacker>>, String> {
    let first = greet(port)?;
    let version = first.get_document("topologyVersion");
    let ways = ways(version.map_err(|e| e.to_string())?)?;
    let of_thread = |thread| {
        let numbers = (thread..connections).step_by(threads);
        let chosen = numbers.filter_map(|number| ways.iter().cycle().nth(number));
        chosen.cloned().map(Attacker::new).collect()
    };
    Ok((0..threads).map(of_thread).collect())
}

/// Attack from one thread until stopped.
pub(super) fn strike(mut attackers: Vec<Attacker>, port: u16, rate: Option<u64>, counts: &Counts) {
    let begun = time::now();
    while !counts.end.load(Ordering::Relaxed) {
        let mut stepped = false;
        for attacker in &mut attackers {
            let allowed = rate.map(|rate| rate.saturating_mul(begun.elapsed().as_secs() + 1));
            if allowed.is_none_or(|allowed| counts.sent.load(Ordering::Relaxed) < allowed) {
                attacker.step(port, counts);
                stepped = true;
            }
        }
        counts.rounds.fetch_add(1, Ordering::Relaxed);
        match stepped {
            true => std::thread::yield_now(),
            // Above its rate an attacker waits: it must not take the server's processors.
            false => time::sleep(PAUSE),
        }
    }
}

/// The peak memory of a process, in bytes.
fn peak(process: u32) -> Result<u64, String> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let kibibytes = number.ok_or_else(|| format!("{path} has no VmHWM"))?;
    Ok(kibibytes * 1_024)
}

/// Send `hello` over a new connection; returns the reply.
fn greet(port: u16) -> Result<Document, String> {
    let mut link = Link::to(port).map_err(|lost| lost.to_string())?;
    let reply = link.command("admin", &doc! {"hello": 1});
    let reply = reply.map_err(|lost| lost.to_string())?;
    match is_ok(&reply) {
        true => Ok(reply),
        false => Err(format!("hello was answered {reply}")),
    }
}

/// Start a server, attack it, and end it in order.
///
/// # Errors
/// The server cannot be started, does not answer the witness, or stops.
pub fn attack(run: &Attack) -> Result<Outcome, String> {
    let mut server = Process::start(&run.program, &run.engine, &run.directory, &["--auth"])?;
    let port = server.port()?;
    let threads = THREADS.min(run.connections.max(1));
    let attackers = attackers(port, run.connections, threads)?;
    let memory_before = peak(server.id())?;
    let counts = Arc::new(Counts::default());
    let mut striking = Vec::new();
    for attackers in attackers {
        let (rate, counts) = (run.rate, Arc::clone(&counts));
        let body = move || strike(attackers, port, rate, &counts);
        striking.push(stdx::sync::spawn("attacker", body).map_err(|e| e.to_string())?);
    }
    let rounds = run
        .rounds
        .saturating_mul(u64::try_from(threads).unwrap_or(1));
    let begun = time::now();
    let (mut answered, mut longest) = (0, Duration::ZERO);
    let witnessed = loop {
        let asked = time::now();
        if let Err(error) = greet(port) {
            let ended = server.ended().unwrap_or_default();
            break Err(format!("the witness was not answered: {error} {ended}"));
        }
        answered += 1;
        longest = longest.max(asked.elapsed());
        let closed = counts.closed.load(Ordering::Relaxed);
        let enough = run.greetings <= answered && run.closed <= closed;
        let lasted = begun.elapsed();
        if enough && run.duration <= lasted && rounds <= counts.rounds.load(Ordering::Relaxed) {
            break Ok(());
        }
        if run.duration + PATIENCE < lasted {
            break Err(format!(
                "after {} s the server has closed {closed} connections",
                lasted.as_secs()
            ));
        }
    };
    counts.stop();
    for thread in striking {
        thread.join().map_err(|_| "an attacker failed".to_owned())?;
    }
    witnessed?;
    let memory_peak = peak(server.id())?;
    server.stop()?;
    Ok(Outcome {
        memory_before,
        memory_peak,
        sent: counts.sent.load(Ordering::Relaxed),
        closed: counts.closed.load(Ordering::Relaxed),
        answered,
        longest,
    })
}
