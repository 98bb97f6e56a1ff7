//! Failpoints, which tests set: `configureFailPoint`, behind `--setParameter enableTestCommands=1`.
//!
//! - H1. While no point is set, a command pays one relaxed load for each place where a fault may
//!   hit it: no lock, no random number, and no argument is read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bson::{Bson, Document, RawDocument};
use query::repeated::tree;
use query::{Code, Error, Result};
use stdx::rng::Rng;
use stdx::sync::Mutex;

use crate::command::Commands;
use crate::long::long;

/// When a fault occurs.
#[derive(Debug, Clone, PartialEq)]
enum Mode {
    AlwaysOn,
    /// Only the next times, as many as the number.
    Times(i64),
    /// Always, after skipping this many times.
    Skip(i64),
    Probability(f64),
}

/// The effects of `failCommand` on a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fault {
    /// Return this error instead of running the command.
    pub(crate) code: Option<i32>,
    /// Labels of the error, instead of those that its code implies.
    pub(crate) labels: Option<Vec<String>>,
    /// End the connection instead of answering.
    pub(crate) close: bool,
    /// Time to wait before the command.
    pub(crate) block: Option<Duration>,
    /// Run the command, and report this error of its write concern.
    pub(crate) write_concern: Option<Document>,
}

#[derive(Debug)]
struct Point {
    mode: Mode,
    commands: Vec<String>,
    application: Option<String>,
    entered: i64,
    fault: Fault,
}

/// The failpoints that are set.
pub(crate) struct FailPoints {
    /// Whether `state` holds a point. Written with `state` locked, read without (H1).
    is_set: AtomicBool,
    state: Mutex<State>,
}

struct State {
    points: BTreeMap<String, Point>,
    rng: Rng,
}

/// The place after a retryable write was executed: see [`FailPoints::hit_write`].
const WRITE: &str = "onPrimaryTransactionalWrite";

/// Every time limit expires at once.
const LIMIT: &str = "maxTimeAlwaysTimeOut";

/// Any command, before it runs: see [`FailPoints::hit`].
const COMMAND: &str = "failCommand";

/// The place where a `getMore` has found its cursor: see [`FailPoints::hit_cursor`].
const CURSOR: &str = "failGetMoreAfterCursorCheckout";

/// The failpoints that can be set. All but the first are named after places in MongoDB's source and
/// are used by the test suites of drivers.
const KNOWN: &[&str] = &[COMMAND, CURSOR, WRITE, LIMIT];

impl FailPoints {
    /// No failpoints set.
    pub(crate) fn new(seed: u64) -> FailPoints {
        FailPoints {
            is_set: AtomicBool::new(false),
            state: Mutex::new(State {
                points: BTreeMap::new(),
                rng: Rng::new(seed),
            }),
        }
    }

    /// Whether any point is set (H1).
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Remove failpoints that have fired as often as requested, and publish whether any remain.
    fn settle(&self, state: &mut State) {
        state.points.retain(|_, point| point.mode != Mode::Times(0));
        self.is_set
            .store(!state.points.is_empty(), Ordering::Relaxed);
    }

    /// Set or remove a point. Returns how often it fired so far. `known` are the commands it may
    /// name.
    ///
    /// # Errors
    /// `BadValue` for an unknown name or mode.
    pub(crate) fn configure(
        &self,
        known: &Commands,
        name: &str,
        body: &RawDocument,
    ) -> Result<i64> {
        if !KNOWN.contains(&name) {
            return Err(Error::bad_value(format!("{name} not found")));
        }
        let body = tree("configureFailPoint", body)?;
        let mode = mode(body.get("mode"))?;
        let data = body.get_document("data").cloned().unwrap_or_default();
        let mut state = self.state.lock();
        let entered = state.points.remove(name).map_or(0, |point| point.entered);
        if let Some(mode) = mode {
            // The others are at places in the commands that have these.
            let mut named = match name {
                COMMAND => strings(&data, "failCommands").unwrap_or_default(),
                _ => Vec::new(),
            };
            // An alias stands for the command, which clients may call by any of its names.
            for name in &mut named {
                if let Some(command) = known.find(name) {
                    command.name.clone_into(name);
                }
            }
            let point = Point {
                mode,
                commands: named,
                application: data.get_str("appName").ok().map(str::to_owned),
                entered: 0,
                fault: if name == WRITE {
                    write_fault(&data)?
                } else {
                    fault(&data)?
                },
            };
            state.points.insert(name.to_owned(), point);
        }
        self.is_set
            .store(!state.points.is_empty(), Ordering::Relaxed);
        Ok(entered)
    }

    /// The fault that now affects the command with this row name. `application` is called only
    /// while failpoints are set.
    pub(crate) fn hit(&self, command: &str, application: impl FnOnce() -> String) -> Option<Fault> {
        if !self.is_set() {
            return None;
        }
        let application = application();
        let mut state = self.state.lock();
        let chance = state.rng.unit();
        let mut hit = None;
        for point in state.points.values_mut() {
            let named = point.commands.iter().any(|name| name == command);
            let asked = point
                .application
                .as_deref()
                .is_none_or(|a| a == application);
            if named && asked && point.mode.fires(chance) {
                point.entered += 1;
                hit = Some(point.fault.clone());
            }
        }
        self.settle(&mut state);
        hit
    }

    /// The fault that now affects a command with a time limit: the limit expires at once.
    pub(crate) fn hit_limit(&self, limited: bool) -> Option<Fault> {
        limited.then(|| self.fire(LIMIT)).flatten()?;
        Some(Fault {
            code: Some(Code::MAX_TIME_MS_EXPIRED.0),
            ..Fault::default()
        })
    }

    /// The code of the error with which a `getMore` now fails once it has found its cursor, so that
    /// the error has the labels of that cursor.
    pub(crate) fn hit_cursor(&self) -> Option<i32> {
        self.fire(CURSOR)?.code
    }

    /// The fault of a point that fires now.
    fn fire(&self, name: &str) -> Option<Fault> {
        if !self.is_set() {
            return None;
        }
        let mut state = self.state.lock();
        let chance = state.rng.unit();
        let point = state.points.get_mut(name)?;
        if !point.mode.fires(chance) {
            return None;
        }
        point.entered += 1;
        let hit = point.fault.clone();
        self.settle(&mut state);
        Some(hit)
    }

    /// The fault that now affects a retryable write, `before` its execution or after it. Named
    /// after a place in MongoDB's source; it closes the connection unless its data specify
    /// otherwise, and with an error code the write is not executed. Skips are counted in
    /// statements; `statements` is called only to skip.
    pub(crate) fn hit_write(
        &self,
        before: bool,
        statements: impl FnOnce() -> usize,
    ) -> Option<Fault> {
        if !self.is_set() {
            return None;
        }
        let mut state = self.state.lock();
        let chance = state.rng.unit();
        let point = state.points.get_mut(WRITE)?;
        if point.fault.code.is_some() != before {
            return None;
        }
        if let Mode::Skip(left) = &mut point.mode {
            let statements = statements();
            let skipped = long(statements).min(*left);
            *left -= skipped;
            if usize::try_from(skipped) == Ok(statements) {
                return None;
            }
        } else if !point.mode.fires(chance) {
            return None;
        }
        point.entered += 1;
        let hit = point.fault.clone();
        self.settle(&mut state);
        Some(hit)
    }
}

impl Mode {
    fn fires(&mut self, chance: f64) -> bool {
        match self {
            Mode::AlwaysOn => true,
            Mode::Times(left) => {
                *left -= 1;
                *left >= 0
            }
            Mode::Skip(left) if *left > 0 => {
                *left -= 1;
                false
            }
            Mode::Skip(_) => true,
            Mode::Probability(p) => chance < *p,
        }
    }
}

fn mode(value: Option<&Bson>) -> Result<Option<Mode>> {
    let number = |value: &Bson| match value {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a count, saturating is right"
        )]
        Bson::Double(n) => Some(*n as i64),
        _ => None,
    };
    let of = |document: &Document| {
        let (name, value) = document.iter().next()?;
        match name.as_str() {
            "times" => number(value).map(Mode::Times),
            "skip" => number(value).map(Mode::Skip),
            "activationProbability" => value.as_f64().map(Mode::Probability),
            _ => None,
        }
    };
    match value {
        Some(Bson::String(text)) if text == "off" => Ok(None),
        Some(Bson::String(text)) if text == "alwaysOn" => Ok(Some(Mode::AlwaysOn)),
        Some(Bson::Document(document)) => match of(document) {
            Some(mode) => Ok(Some(mode)),
            None => Err(Error::bad_value(
                "'mode' must have one of times, skip, \
                 activationProbability, with a number",
            )),
        },
        _ => Err(Error::bad_value("unknown mode of a fail point")),
    }
}

fn strings(document: &Document, name: &str) -> Option<Vec<String>> {
    let values = document.get_array(name).ok()?;
    Some(
        values
            .iter()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect(),
    )
}

fn code(data: &Document, name: &str) -> Result<Option<i32>> {
    match data.get(name) {
        None => Ok(None),
        Some(Bson::Int32(code)) => Ok(Some(*code)),
        Some(Bson::Int64(code)) => Ok(i32::try_from(*code).ok()),
        Some(_) => {
            let message = format!("{name} must be a number");
            Err(Error::new(Code::TYPE_MISMATCH, message))
        }
    }
}

fn write_fault(data: &Document) -> Result<Fault> {
    Ok(Fault {
        code: code(data, "failBeforeCommitExceptionCode")?,
        close: data.get_bool("closeConnection").unwrap_or(true),
        ..Fault::default()
    })
}

fn fault(data: &Document) -> Result<Fault> {
    let code = code(data, "errorCode")?;
    let millis = match data.get("blockTimeMS") {
        Some(Bson::Int32(millis)) => u64::try_from(*millis).ok(),
        Some(Bson::Int64(millis)) => u64::try_from(*millis).ok(),
        _ => None,
    };
    let blocks = data.get_bool("blockConnection").unwrap_or(false);
    Ok(Fault {
        code,
        labels: strings(data, "errorLabels"),
        close: data.get_bool("closeConnection").unwrap_or(false),
        block: millis.filter(|_| blocks).map(Duration::from_millis),
        write_concern: data.get_document("writeConcernError").ok().cloned(),
    })
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};

    use super::*;

    /// Visit every place where a fault can affect a command. Returns the number of faults, and
    /// whether an argument of the command was read.
    fn visit(points: &FailPoints) -> (usize, bool) {
        let mut asked = false;
        let hit = points.hit("insert", || {
            asked = true;
            String::new()
        });
        let mut counted = false;
        let write = points.hit_write(true, || {
            counted = true;
            1
        });
        let hits = [hit, write, points.hit_limit(true)];
        (hits.iter().flatten().count(), asked || counted)
    }

    fn configure(points: &FailPoints, name: &str, mode: Bson, data: Document) {
        let body = doc! {"configureFailPoint": name, "mode": mode, "data": data};
        let body = RawDocumentBuf::try_from(&body).unwrap();
        let known = Commands::of(std::iter::empty());
        points.configure(&known, name, &body).unwrap();
    }

    #[test]
    fn no_argument_is_read_while_no_point_is_set() {
        let points = FailPoints::new(1);
        assert!(!points.is_set(), "H1");
        assert_eq!(visit(&points), (0, false), "H1");
        let data = doc! {"failCommands": ["insert"], "errorCode": 91};
        configure(&points, "failCommand", doc! {"times": 1}.into(), data);
        assert!(points.is_set());
        assert_eq!(visit(&points), (1, true));
        // The only failpoint has fired for the last time.
        assert!(!points.is_set(), "H1");
        assert_eq!(visit(&points), (0, false), "H1");
        configure(&points, LIMIT, "alwaysOn".into(), doc! {});
        assert_eq!(visit(&points).0, 1);
        configure(&points, LIMIT, "off".into(), doc! {});
        assert!(!points.is_set(), "H1");
    }

    #[test]
    fn statements_are_counted_only_to_skip() {
        let points = FailPoints::new(1);
        let data = doc! {"failBeforeCommitExceptionCode": 91};
        configure(&points, WRITE, "alwaysOn".into(), data.clone());
        let unasked = || -> usize { unreachable!("the statements are not counted") };
        assert!(points.hit_write(true, unasked).is_some());
        assert!(points.hit_write(false, unasked).is_none());
        configure(&points, WRITE, doc! {"skip": 3}.into(), data);
        assert!(points.hit_write(true, || 2).is_none());
        assert!(points.hit_write(true, || 2).is_some());
    }
}
