//! The log in MongoDB's format, one JSON document per line, so that tools for MongoDB's logs can
//! read it.
//!
//! What clients send may be long; every line is bounded ([`EVENT`]), and so are the lines that are
//! kept in memory.
//!
//! The identifiers are MongoDB's own where an event is one of its; tools find events by them.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf, doc};
use stdx::sync::Mutex;

use super::brief::Brief;
use super::clock;
use crate::config::Config;
use crate::limits::{EVENT, LOG_BYTES, LOG_LINES};

/// Severity of an event: the letter in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The server cannot start or continue.
    Error,
    /// A warning.
    Warning,
    /// An event without a problem.
    Info,
}

impl Severity {
    fn letter(self) -> &'static str {
        match self {
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Info => "I",
        }
    }
}

/// An event of the log.
pub(crate) struct Event<'a> {
    /// Its severity.
    pub(crate) severity: Severity,
    /// The component, by MongoDB's names: `NETWORK`, `COMMAND`.
    pub(crate) component: &'a str,
    /// MongoDB's id of the event.
    pub(crate) id: i32,
    /// The thread or connection.
    pub(crate) context: &'a str,
    /// Fixed text.
    pub(crate) message: &'a str,
    /// Variable data.
    pub(crate) attributes: Document,
}

struct State {
    file: Option<File>,
    recent: VecDeque<Arc<str>>,
    /// Bytes of `recent`.
    bytes: usize,
    total: i64,
    warnings: VecDeque<Arc<str>>,
}

/// The log and its destination.
pub(crate) struct Log {
    path: Option<PathBuf>,
    quiet: bool,
    /// Whether rotation only reopens the file, because a tool has renamed it.
    reopen: bool,
    state: Mutex<State>,
}

impl Log {
    /// A log to a file, or to standard output. An old file that is not appended to is renamed, as
    /// by a rotation: a start never destroys what an earlier process wrote.
    ///
    /// # Errors
    /// When the file cannot be renamed or opened.
    pub(crate) fn open(config: &Config) -> io::Result<Log> {
        let path = config.log_path.as_deref();
        let old = path.and_then(|path| std::fs::metadata(path).ok());
        let old = old.is_some_and(|old| old.is_file() && 0 < old.len());
        if let Some(path) = path.filter(|_| old && !config.log_append) {
            std::fs::rename(path, aside(path))?;
        }
        let file = path.map(open_file).transpose()?;
        Ok(Log {
            path: path.map(Path::to_owned),
            quiet: config.quiet,
            reopen: config.log_reopen,
            state: Mutex::new(State {
                file,
                recent: VecDeque::new(),
                bytes: 0,
                total: 0,
                warnings: VecDeque::new(),
            }),
        })
    }

    pub(crate) fn write(&self, event: Event<'_>) {
        let line: Arc<str> = line(&event).into();
        let mut state = self.state.lock();
        // A failure to write the log must not end the server.
        let _: io::Result<()> = match &mut state.file {
            Some(file) => writeln!(file, "{line}"),
            None if self.quiet => Ok(()),
            None => writeln!(io::stdout().lock(), "{line}"),
        };
        state.total += 1;
        if event.severity == Severity::Warning && event.context == "initandlisten" {
            state.warnings.push_back(Arc::clone(&line));
        }
        state.keep(line);
    }

    /// Log an event.
    pub(crate) fn info(
        &self,
        component: &str,
        id: i32,
        context: &str,
        message: &str,
        of: Document,
    ) {
        self.write(Event {
            severity: Severity::Info,
            component,
            id,
            context,
            message,
            attributes: of,
        });
    }

    /// Log a startup warning, and keep it for `getLog`.
    pub(crate) fn warn_of_start(&self, component: &str, id: i32, message: &str, of: Document) {
        self.write(Event {
            severity: Severity::Warning,
            component,
            id,
            context: "initandlisten",
            message,
            attributes: of,
        });
    }

    /// Log why the server does not start.
    pub(crate) fn failed_start(&self, code: u8, reason: &str) {
        self.write(Event {
            severity: Severity::Error,
            component: "CONTROL",
            id: 20_557,
            context: "initandlisten",
            message: "The server cannot start, terminating",
            attributes: doc! {"error": reason, "exitCode": i32::from(code)},
        });
    }

    /// The last lines, and the total number of lines.
    pub(crate) fn recent(&self) -> (Vec<Arc<str>>, i64) {
        let state = self.state.lock();
        (state.recent.iter().cloned().collect(), state.total)
    }

    /// Startup warnings.
    pub(crate) fn warnings(&self) -> Vec<Arc<str>> {
        self.state.lock().warnings.iter().cloned().collect()
    }

    /// Rename the file to a name with the time, and create another; or only reopen it.
    ///
    /// # Errors
    /// When the file cannot be renamed or opened.
    pub(crate) fn rotate(&self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut state = self.state.lock();
        if !self.reopen {
            std::fs::rename(path, aside(path))?;
        }
        state.file = Some(open_file(path)?);
        Ok(())
    }
}

impl State {
    /// Keep a line for `getLog`, and drop the oldest beyond the limits.
    fn keep(&mut self, line: Arc<str>) {
        self.bytes += line.len();
        self.recent.push_back(line);
        while LOG_LINES < self.recent.len() || LOG_BYTES < self.bytes {
            match self.recent.pop_front() {
                Some(oldest) => self.bytes -= oldest.len(),
                None => break,
            }
        }
    }
}

/// The name of an old log: with the time, to the millisecond.
fn aside(path: &Path) -> PathBuf {
    let stamp = clock::now().try_to_rfc3339_string().unwrap_or_default();
    let stamp = stamp.replace(':', "-");
    let mut aside = path.to_owned().into_os_string();
    aside.push(format!(".{stamp}"));
    PathBuf::from(aside)
}

fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Log lines contain commands, and so data of users.
    options.create(true).append(true).mode(vfs::PRIVATE_FILE);
    options.open(path)
}

/// The attributes of an event, truncated to the limits of a line.
fn brief(attributes: &Document) -> Document {
    match RawDocumentBuf::try_from(attributes) {
        Ok(raw) => Brief::new(EVENT).document(&raw, 0),
        Err(error) => doc! {"unreadable": error.to_string()},
    }
}

/// Append a value as relaxed extended JSON. Fields stay in the order of the document, which
/// `serde_json` would sort. Recursion is bounded by the depth of stored documents and commands.
fn append(line: &mut String, value: &Bson) {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        Bson::Document(document) => {
            line.push('{');
            for (at, (name, value)) in document.iter().enumerate() {
                if 0 < at {
                    line.push(',');
                }
                line.push_str(&text(name));
                line.push(':');
                append(line, value);
            }
            line.push('}');
        }
        Bson::Array(items) => {
            line.push('[');
            for (at, item) in items.iter().enumerate() {
                if 0 < at {
                    line.push(',');
                }
                append(line, item);
            }
            line.push(']');
        }
        // Values of several fields, whose order `serde_json` would also change.
        Bson::Timestamp(at) => {
            let (time, increment) = (at.time, at.increment);
            let shown = format!("{{\"$timestamp\":{{\"t\":{time},\"i\":{increment}}}}}");
            line.push_str(&shown);
        }
        Bson::RegularExpression(regex) => {
            let (pattern, options) = (text(regex.pattern.as_str()), text(regex.options.as_str()));
            let fields = format!("{{\"pattern\":{pattern},\"options\":{options}}}");
            line.push_str(&format!("{{\"$regularExpression\":{fields}}}"));
        }
        leaf => line.push_str(&serde_json::Value::from(leaf.clone()).to_string()),
    }
}

/// A document as relaxed extended JSON, its fields in their order.
pub(crate) fn text(document: &Document) -> String {
    let mut text = String::new();
    append(&mut text, &Bson::Document(document.clone()));
    text
}

fn line(event: &Event<'_>) -> String {
    let json = |value: Bson| serde_json::Value::from(value).to_string();
    let text = |text: &str| json(Bson::from(text));
    // Built by hand, so that the fields are in MongoDB's order.
    let mut line = format!(
        "{{\"t\":{},\"s\":\"{}\",\"c\":{},\"id\":{},\"ctx\":{},\"msg\":{}",
        json(Bson::DateTime(clock::now())),
        event.severity.letter(),
        text(event.component),
        event.id,
        text(event.context),
        text(event.message),
    );
    if !event.attributes.is_empty() {
        line.push_str(",\"attr\":");
        append(&mut line, &Bson::Document(brief(&event.attributes)));
    }
    line.push('}');
    line
}
