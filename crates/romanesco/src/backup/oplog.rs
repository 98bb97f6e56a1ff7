//! `romanesco oplog-archive`: follows the oplog of a server, and writes slices of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use backup::{Codec, OplogWriter, Position};
use lab::run::Interrupt;
use mongodb::bson::{Document, RawDocument, Timestamp, doc};
use mongodb::sync::Database;

use super::progress::Lines;
use super::{keep_private, listen, remote};

/// Time until the next question to a server that has nothing new, or does not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest sleep before a signal is noticed.
const NAP: Duration = Duration::from_millis(50);

/// Errors of a server that asking again does not change: wrong or unauthorized requests, a server
/// without an oplog, and entries that it does not have.
const LASTING: [i32; 8] = [2, 13, 18, 59, 72, 76, 136, 8_000];

/// Follow the oplog of a server, and write it into an archive, for restores to a time
#[derive(clap::Args)]
#[command(
    after_help = "Ends with SIGINT or SIGTERM, after what was read is written. An archive that \
exists is continued.

Example: romanesco oplog-archive --from mongodb://127.0.0.1:27017 /backup/oplog"
)]
pub(crate) struct Args {
    /// Address of a server, or of a replica set
    #[arg(
        long,
        value_name = "URI",
        env = "ROMANESCO_URI",
        hide_env_values = true
    )]
    from: String,
    /// Directory of the archive; its parent exists
    directory: PathBuf,
    /// Seconds after which entries are written at the latest
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,
    /// Compression of the slices: none, lz4 or zstd
    #[arg(long, value_name = "NAME", default_value_t = Codec::Zstd)]
    compression: Codec,
    /// End once what the server has now is written
    #[arg(long)]
    once: bool,
}

/// What a server has answered.
struct Answer {
    set: String,
    after: Position,
    /// The digest of the entry `after`; empty before all entries.
    digest: String,
    through: Timestamp,
    entries: Vec<(Position, Vec<u8>)>,
}

/// Why it has not.
enum Failed {
    /// It may answer later.
    Passing(String),
    Lasting(String),
}

impl Args {
    /// Write the archive until a signal.
    ///
    /// # Errors
    /// What failed, for the user.
    pub(crate) fn run(&self) -> Result<(), String> {
        keep_private();
        let interrupt = listen()?;
        let client = remote::connect(&self.from).map_err(|error| remote::message(&error))?;
        let admin = client.database("admin");
        // The smallest answer, for the name of the set and the oldest entry.
        let Some(first) = self.ask(&admin, doc! {"maxBytes": 1}, &interrupt)? else {
            return Ok(());
        };
        let failed = |error: kv::Error| error.to_string();
        let names = (env!("CARGO_PKG_VERSION"), first.set.as_str());
        let opened = OplogWriter::open(&self.directory, names, self.compression);
        let mut writer = opened.map_err(failed)?;
        if writer.last().is_none() {
            writer.begin(first.after, &first.digest);
        }
        self.follow(&admin, &mut writer, first.through, &interrupt)?;
        writer.cut().map_err(failed)?;
        let last = writer.last().unwrap_or(first.after);
        say!("{}: archived up to {last}", self.directory.display());
        Ok(())
    }

    /// Archive entries until a signal, or once all entries up to `through` are.
    fn follow(
        &self,
        admin: &Database,
        writer: &mut OplogWriter,
        through: Timestamp,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let failed = |error: kv::Error| error.to_string();
        let every = Duration::from_secs(self.every);
        // When the first entry that is not in a slice was read.
        let mut since: Option<Instant> = None;
        let mut lines = Lines::default();
        loop {
            let answer = self.next(admin, writer, interrupt);
            if answer.is_err() {
                // What was read is not lost.
                writer.cut().map_err(failed)?;
            }
            let Some(answer) = answer? else {
                return Ok(());
            };
            for (at, value) in &answer.entries {
                writer.add(*at, value).map_err(failed)?;
                since.get_or_insert_with(stdx::time::now);
            }
            if since.is_some_and(|since| every <= since.elapsed()) {
                since = None;
                writer.cut().map_err(failed)?;
                lines.show(|| format!("archived up to {}", last_of(writer)));
            }
            // Not before the server has shown that it has the entry that the archive ends with.
            if self.once && (through.time, through.increment) <= last_of(writer).time() {
                return Ok(());
            }
            if answer.entries.is_empty() {
                pause(interrupt);
            }
        }
    }

    /// The entries that follow those of an archive; `None` after a signal.
    fn next(
        &self,
        admin: &Database,
        writer: &OplogWriter,
        interrupt: &Interrupt,
    ) -> Result<Option<Answer>, String> {
        let last = last_of(writer);
        let ts = Timestamp {
            time: last.seconds,
            increment: last.increment,
        };
        let after = doc! {"after": {"ts": ts, "t": last.term}};
        let Some(answer) = self.ask(admin, after, interrupt)? else {
            return Ok(None);
        };
        if writer.last_digest().as_ref() == Some(&answer.digest) {
            return Ok(Some(answer));
        }
        Err(format!(
            "{}: its last entry, {last}, differs from that of the server: the archive is of \
             another deployment; name another directory",
            self.directory.display()
        ))
    }

    /// Ask for entries until the server answers; `None` after a signal.
    fn ask(
        &self,
        admin: &Database,
        fields: Document,
        interrupt: &Interrupt,
    ) -> Result<Option<Answer>, String> {
        let mut command = doc! {"readOplog": 1};
        command.extend(fields);
        let mut noted = false;
        while !interrupt.is_set() {
            match ask(admin, command.clone()) {
                Ok(answer) => return Ok(Some(answer)),
                Err(Failed::Lasting(message)) => return Err(message),
                Err(Failed::Passing(message)) if self.once => return Err(message),
                Err(Failed::Passing(message)) => {
                    if !noted {
                        note!("the server does not answer, and is asked again: {message}");
                    }
                    noted = true;
                    pause(interrupt);
                }
            }
        }
        Ok(None)
    }
}

fn last_of(writer: &OplogWriter) -> Position {
    writer.last().unwrap_or(Position::BEGIN)
}

fn pause(interrupt: &Interrupt) {
    let begun = stdx::time::now();
    while !interrupt.is_set() && begun.elapsed() < PAUSE {
        stdx::time::sleep(NAP);
    }
}

fn ask(admin: &Database, command: Document) -> Result<Answer, Failed> {
    let reply = admin.run_command(command).run().map_err(|error| {
        let message = remote::message(&error);
        let code = match &*error.kind {
            mongodb::error::ErrorKind::Command(refused) => Some(refused.code),
            mongodb::error::ErrorKind::Authentication { .. } => return Failed::Lasting(message),
            _ => None,
        };
        match code.is_some_and(|code| LASTING.contains(&code)) {
            true => Failed::Lasting(message),
            false => Failed::Passing(message),
        }
    })?;
    parse(&reply)
        .ok_or_else(|| Failed::Lasting("the server's reply is not that of readOplog".to_owned()))
}

/// The answer in a reply, which is not trusted.
fn parse(reply: &Document) -> Option<Answer> {
    let after = reply.get_document("after").ok()?;
    let mut entries = Vec::new();
    for entry in reply.get_array("entries").ok()? {
        let mongodb::bson::Bson::Binary(binary) = entry else {
            return None;
        };
        let value = binary.bytes.clone();
        entries.push((position(&value)?, value));
    }
    Some(Answer {
        set: reply.get_str("set").ok()?.to_owned(),
        after: at(after.get_timestamp("ts").ok()?, after.get_i64("t").ok()?),
        digest: reply.get_str("digest").ok()?.to_owned(),
        through: reply.get_timestamp("through").ok()?,
        entries,
    })
}

/// The position of a stored entry: it begins with a document.
fn position(value: &[u8]) -> Option<Position> {
    let length = value
        .first_chunk()
        .map(|bytes| i32::from_le_bytes(*bytes))?;
    let entry = value.get(..usize::try_from(length).ok()?)?;
    let entry = RawDocument::from_bytes(entry).ok()?;
    Some(at(
        entry.get_timestamp("ts").ok()?,
        entry.get_i64("t").ok()?,
    ))
}

fn at(ts: Timestamp, term: i64) -> Position {
    Position {
        seconds: ts.time,
        increment: ts.increment,
        term,
    }
}
