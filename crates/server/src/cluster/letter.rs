//! Messages between members as BSON: the fields of the commands `replSetMessage` and
//! `replSetFetch`, and the reply of the latter.
//!
//! - L1. What arrives is decoded into a `Result`: unknown fields, wrong types, numbers out of range
//!   and configurations that break a rule are refused, and every list has a limit.

use std::sync::Arc;

use bson::{Bson, DateTime, Document, RawDocument, Timestamp, doc};
use query::{Code, Error, Result};
use repl::config::ConfigId;
use repl::log::{Log, Run};
use repl::message::{Envelope, HOPS_MAX, Heartbeat, Message, Row, VoteRequest};
use repl::position::{MemberId, Position, Term};

use super::config::SetConfig;
use super::standing::Standing;
use crate::arguments::Arguments;
use crate::long::long;

/// The most runs of a log in a message: one for each election.
const RUNS_MAX: usize = 100_000;

/// A message with what only the server adds to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Letter {
    pub(crate) envelope: Envelope,
    /// The configuration whose protocol form the envelope has.
    pub(crate) config: Option<Arc<SetConfig>>,
    /// What a heartbeat says for `replSetGetStatus`.
    pub(crate) note: Note,
}

/// What a heartbeat says for `replSetGetStatus`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) standing: Standing,
    /// The member that the sender fetches from.
    pub(crate) source: Option<u32>,
    /// The last entry that the sender has applied.
    pub(crate) applied: Position,
    /// When the sender became primary, if it is.
    pub(crate) elected: Option<DateTime>,
    /// The storage engine of the sender, if it says so.
    pub(crate) engine: Option<EngineNote>,
}

/// A storage engine and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EngineNote {
    pub(crate) name: Arc<str>,
    /// Bytes of the longest key.
    pub(crate) key_max: usize,
}

/// Bytes of the name of an engine.
const ENGINE_NAME_MAX: usize = 32;

impl Default for Note {
    fn default() -> Note {
        Note {
            standing: Standing::Unknown,
            source: None,
            applied: Position::ZERO,
            elected: None,
            engine: None,
        }
    }
}

impl Letter {
    /// A message without a note.
    pub(crate) fn plain(envelope: Envelope) -> Letter {
        Letter {
            envelope,
            config: None,
            note: Note::default(),
        }
    }

    /// The command that carries it; `None` for parts of `replSetFetch`.
    pub(crate) fn to_command(&self, set: &str) -> Option<Document> {
        let content = match &self.envelope.message {
            Message::Heartbeat(beat) => ("heartbeat", self.heartbeat(beat)),
            Message::VoteRequest(request) => (
                "voteRequest",
                doc! {
                    "dryRun": request.dry_run,
                    "takeover": request.takeover,
                    "election": long(request.election.0),
                    "last": position(request.last),
                    "config": config_id(request.config),
                },
            ),
            Message::VoteReply {
                dry_run,
                election,
                granted,
            } => (
                "voteReply",
                doc! {
                    "dryRun": *dry_run,
                    "election": long(election.0),
                    "granted": *granted,
                },
            ),
            Message::Positions(row) => (
                "positions",
                doc! {
                    "member": i64::from(row.member.0),
                    "term": long(row.term.0),
                    "durable": position(row.durable),
                    "hops": i32::from(row.hops),
                },
            ),
            Message::TakeOver => ("takeOver", doc! {}),
            Message::Fetch { .. } | Message::Batch { .. } | Message::Diverged { .. } => {
                return None;
            }
        };
        let mut command = doc! {"replSetMessage": 1, "set": set};
        command.extend(ends(&self.envelope));
        command.insert(content.0, content.1);
        Some(command)
    }

    fn heartbeat(&self, beat: &Heartbeat) -> Document {
        let mut fields = doc! {
            "last": position(beat.last),
            "durable": position(beat.durable),
            "commit": position(beat.commit),
            "config": config_id(beat.config),
            "primary": beat.primary,
            "state": self.note.standing.number(),
            "applied": position(self.note.applied),
        };
        if let Some(source) = self.note.source {
            fields.insert("source", i64::from(source));
        }
        if let Some(elected) = self.note.elected {
            fields.insert("elected", elected);
        }
        if let Some(engine) = &self.note.engine {
            fields.insert(
                "engine",
                doc! {"name": &*engine.name, "keyMax": long(engine.key_max)},
            );
        }
        if let Some(config) = &self.config {
            fields.insert("body", config.to_document());
        }
        fields
    }

    /// Decode the command `replSetMessage` (L1).
    ///
    /// # Errors
    /// The first field that is not right.
    pub(crate) fn parse(command: &RawDocument) -> Result<(String, Letter)> {
        let fields = Arguments::of("replSetMessage", command)?;
        let names = [
            "heartbeat",
            "voteRequest",
            "voteReply",
            "positions",
            "takeOver",
        ];
        let mut given = names.into_iter().filter(|name| fields.has(name));
        let (Some(name), None) = (given.next(), given.next()) else {
            let message = "replSetMessage has exactly one of heartbeat, voteRequest, voteReply, \
                positions and takeOver";
            return Err(Error::new(Code::FAILED_TO_PARSE, message));
        };
        let content = Arguments::of(name, fields.need_document(name)?)?;
        let mut letter = Letter::plain(envelope(&fields, Message::TakeOver)?);
        letter.envelope.message = match name {
            "heartbeat" => letter.parse_heartbeat(&content)?,
            "voteRequest" => {
                content.only(&["dryRun", "takeover", "election", "last", "config"])?;
                Message::VoteRequest(VoteRequest {
                    dry_run: content.is_on("dryRun")?,
                    takeover: content.is_on("takeover")?,
                    election: Term(natural(&content, "election")?),
                    last: parse_position(&content, "last")?,
                    config: parse_config_id(&content)?,
                })
            }
            "voteReply" => {
                content.only(&["dryRun", "election", "granted"])?;
                Message::VoteReply {
                    dry_run: content.is_on("dryRun")?,
                    election: Term(natural(&content, "election")?),
                    granted: content.is_on("granted")?,
                }
            }
            "positions" => {
                content.only(&["member", "term", "durable", "hops"])?;
                let hops = u8::try_from(natural(&content, "hops")?).ok();
                let hops = hops.filter(|hops| *hops <= HOPS_MAX);
                Message::Positions(Row {
                    member: MemberId(member(&content, "member")?),
                    term: Term(natural(&content, "term")?),
                    durable: parse_position(&content, "durable")?,
                    hops: hops.ok_or_else(|| out_of_range("hops"))?,
                })
            }
            _ => {
                content.only(&[])?;
                Message::TakeOver
            }
        };
        Ok((fields.need_string("set")?.to_owned(), letter))
    }

    fn parse_heartbeat(&mut self, fields: &Arguments<'_>) -> Result<Message> {
        fields.only(&[
            "last", "durable", "commit", "config", "primary", "state", "applied", "source", "body",
            "elected", "engine",
        ])?;
        let number = i32::try_from(natural(fields, "state")?).ok();
        let standing = number.and_then(Standing::of_number);
        self.note = Note {
            standing: standing.ok_or_else(|| out_of_range("state"))?,
            source: match fields.has("source") {
                true => Some(member(fields, "source")?),
                false => None,
            },
            applied: parse_position(fields, "applied")?,
            elected: match fields.get("elected") {
                None => None,
                Some(bson::RawBsonRef::DateTime(at)) => Some(at),
                Some(_) => return Err(out_of_range("elected")),
            },
            engine: fields.document("engine")?.map(parse_engine).transpose()?,
        };
        let body = fields.document("body")?.map(SetConfig::parse).transpose()?;
        self.config = body.map(Arc::new);
        Ok(Message::Heartbeat(Heartbeat {
            last: parse_position(fields, "last")?,
            durable: parse_position(fields, "durable")?,
            commit: parse_position(fields, "commit")?,
            config: parse_config_id(fields)?,
            body: self.config.as_ref().map(|config| Arc::new(config.core())),
            primary: fields.is_on("primary")?,
        }))
    }
}

/// The command `replSetFetch` for a fetch.
pub(crate) fn fetch_command(set: &str, envelope: &Envelope, after: Position) -> Document {
    let mut command = doc! {"replSetFetch": 1, "set": set, "after": position(after)};
    command.extend(ends(envelope));
    command
}

/// Decode the command `replSetFetch`: the name of the set, and the message.
///
/// # Errors
/// The first field that is not right.
pub(crate) fn parse_fetch(fields: &Arguments<'_>) -> Result<(String, Envelope)> {
    let after = parse_position(fields, "after")?;
    let envelope = envelope(fields, Message::Fetch { after })?;
    Ok((fields.need_string("set")?.to_owned(), envelope))
}

/// The fields of a reply to `replSetFetch`, but for the entries.
pub(crate) fn fetched_reply(envelope: &Envelope) -> Document {
    let mut reply = ends(envelope);
    match &envelope.message {
        Message::Batch { after, commit, .. } => {
            reply.insert("after", position(*after));
            reply.insert("commit", position(*commit));
        }
        Message::Diverged { runs } => {
            let runs = runs.iter().map(|run| {
                Bson::Document(position(Position {
                    term: run.term,
                    ts: run.last,
                }))
            });
            reply.insert("diverged", runs.collect::<Vec<Bson>>());
        }
        _ => {}
    }
    reply
}

/// Decode the reply to `replSetFetch`, whose entries have `runs`. A reply without entries and
/// without runs says that the source is too far ahead: `None`.
///
/// # Errors
/// The first field that is not right.
pub(crate) fn parse_fetched(reply: &RawDocument, runs: Vec<Run>) -> Result<Option<Envelope>> {
    let fields = Arguments::of("replSetFetch", reply)?;
    if fields.is_on("tooOld")? {
        return Ok(None);
    }
    let message = match fields.array("diverged")? {
        Some(list) => {
            let mut theirs = Vec::new();
            for run in list {
                let run = run?.as_document().ok_or_else(|| out_of_range("diverged"))?;
                let at = parse_at(run)?;
                if RUNS_MAX <= theirs.len() {
                    return Err(out_of_range("diverged"));
                }
                theirs.push(Run {
                    term: at.term,
                    last: at.ts,
                });
            }
            let log = Log::of(theirs).ok_or_else(|| out_of_range("diverged"))?;
            Message::Diverged {
                runs: log.runs().to_vec(),
            }
        }
        None => Message::Batch {
            after: parse_position(&fields, "after")?,
            runs,
            commit: parse_position(&fields, "commit")?,
        },
    };
    envelope(&fields, message).map(Some)
}

/// The position of a stored entry of the oplog, which begins with a document.
///
/// # Errors
/// An entry without a time or a term.
pub(crate) fn position_of(stored: &[u8]) -> Result<Position> {
    let length = stored.first_chunk::<4>().map(|n| u32::from_le_bytes(*n));
    let length = length.and_then(|n| usize::try_from(n).ok());
    let document = length.and_then(|n| stored.get(..n));
    let document = document.ok_or_else(|| out_of_range("entries"))?;
    parse_at(RawDocument::from_bytes(document)?)
}

/// The runs of stored entries that follow `after`.
///
/// # Errors
/// Entries whose times or terms do not increase.
pub(crate) fn runs_of<'e>(
    after: Position,
    entries: impl Iterator<Item = &'e [u8]>,
) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last = after;
    for entry in entries {
        let at = position_of(entry)?;
        if at.ts <= last.ts || at.term < last.term {
            return Err(out_of_range("entries"));
        }
        match runs.last_mut().filter(|run| run.term == at.term) {
            Some(run) => run.last = at.ts,
            None => runs.push(Run {
                term: at.term,
                last: at.ts,
            }),
        }
        last = at;
    }
    Ok(runs)
}

/// A position as an optime: `{ts, t}`.
pub(crate) fn position(at: Position) -> Document {
    doc! {"ts": timestamp(at), "t": long(at.term.0)}
}

/// The time of a position.
pub(crate) fn timestamp(at: Position) -> Timestamp {
    Timestamp {
        time: u32::try_from(at.ts >> 32).unwrap_or(u32::MAX),
        increment: u32::try_from(at.ts & u64::from(u32::MAX)).unwrap_or(u32::MAX),
    }
}

/// The date of a position, in whole seconds.
pub(crate) fn date_of(at: Position) -> DateTime {
    DateTime::from_millis(i64::from(timestamp(at).time) * 1_000)
}

/// The number of a time in positions.
pub(crate) fn number(time: Timestamp) -> u64 {
    u64::from(time.time) << 32 | u64::from(time.increment)
}

fn parse_engine(document: &RawDocument) -> Result<EngineNote> {
    let fields = Arguments::of("engine", document)?;
    fields.only(&["name", "keyMax"])?;
    let name = fields.need_string("name")?;
    if name.is_empty() || ENGINE_NAME_MAX < name.len() {
        return Err(out_of_range("engine"));
    }
    let key_max = usize::try_from(natural(&fields, "keyMax")?).ok();
    // A shorter one would keep members from writing anything.
    let key_max = key_max.filter(|bytes| 256 <= *bytes);
    Ok(EngineNote {
        name: name.into(),
        key_max: key_max.ok_or_else(|| out_of_range("keyMax"))?,
    })
}

fn ends(envelope: &Envelope) -> Document {
    doc! {
        "from": i64::from(envelope.from.0),
        "to": i64::from(envelope.to.0),
        "term": long(envelope.term.0),
    }
}

fn envelope(fields: &Arguments<'_>, message: Message) -> Result<Envelope> {
    Ok(Envelope {
        to: MemberId(member(fields, "to")?),
        from: MemberId(member(fields, "from")?),
        term: Term(natural(fields, "term")?),
        message,
    })
}

fn config_id(id: ConfigId) -> Document {
    doc! {"term": long(id.term.0), "version": long(id.version)}
}

fn parse_config_id(fields: &Arguments<'_>) -> Result<ConfigId> {
    let id = Arguments::of("config", fields.need_document("config")?)?;
    id.only(&["term", "version"])?;
    Ok(ConfigId {
        term: Term(natural(&id, "term")?),
        version: natural(&id, "version")?,
    })
}

pub(super) fn parse_position(fields: &Arguments<'_>, name: &str) -> Result<Position> {
    parse_at(fields.need_document(name)?)
}

fn parse_at(document: &RawDocument) -> Result<Position> {
    let time = document
        .get("ts")?
        .and_then(bson::RawBsonRef::as_timestamp)
        .ok_or_else(|| out_of_range("ts"))?;
    let term = document.get("t")?.and_then(crate::arguments::integer);
    let term = term.and_then(|t| u64::try_from(t).ok());
    let at = Position {
        term: Term(term.ok_or_else(|| out_of_range("t"))?),
        ts: number(time),
    };
    // Only the position before all entries has no term.
    match (at.term.0, at.ts) {
        (0, 1..) | (1.., 0) => Err(out_of_range("t")),
        _ => Ok(at),
    }
}

fn natural(fields: &Arguments<'_>, name: &str) -> Result<u64> {
    let number = fields.long(name)?.and_then(|n| u64::try_from(n).ok());
    // Terms and versions are incremented: half of the range is left for that.
    let number = number.filter(|n| *n < 1 << 62);
    number.ok_or_else(|| out_of_range(name))
}

pub(super) fn member(fields: &Arguments<'_>, name: &str) -> Result<u32> {
    let number = u32::try_from(natural(fields, name)?).ok();
    let number = number.filter(|n| *n <= 255);
    number.ok_or_else(|| out_of_range(name))
}

fn out_of_range(name: &str) -> Error {
    let message = format!("a message between members has no valid field {name}");
    Error::new(Code::FAILED_TO_PARSE, message)
}

#[cfg(test)]
mod tests;
