//! The threads of a member that block: one appends to the log and syncs it, one applies, one
//! writes the file. The driver waits for none of them, so heartbeats are sent while a disk stalls.
//!
//! - J1. Jobs of the log and of applying are begun in the order in which they were given; a
//!   rollback begins when those before it have ended.
//! - J2. After a failure a thread does nothing more: a failed sync is never tried again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use query::Result;
use repl::event::Hard;
use repl::position::{Position, Term};
use tokio::sync::mpsc::UnboundedSender;

use super::Done;
use crate::cluster::file::{self, Stored};
use crate::cluster::storage::{Storage, StoredEntry};

/// A job on the log.
#[derive(Debug)]
pub(super) enum Job {
    /// Append entries, of which the last is given, and sync.
    Append(Vec<StoredEntry>, Position),
    /// Report what clients have written, and sync it.
    Pump,
    RollBack(Position),
    Apply {
        to: Position,
        committed: bool,
    },
    /// Everything up to this is committed, and was applied before.
    Committed(Position),
    Lead(Term),
    Follow,
}

/// The threads. They end when it is dropped, after their last jobs.
pub(super) struct Jobs {
    log: Sender<Job>,
    file: Sender<(Stored, Hard)>,
}

/// What the thread that applies gets.
enum Apply {
    To(Position, bool),
    Committed(Position),
    RollBack(Position, Sender<()>),
}

impl Jobs {
    /// Start the threads. They report to `done`.
    ///
    /// # Errors
    /// When the system has no thread for them.
    pub(super) fn start(
        storage: &Arc<dyn Storage>,
        file: PathBuf,
        done: &UnboundedSender<Done>,
    ) -> std::io::Result<Jobs> {
        let (log, log_jobs) = channel();
        let (apply, apply_jobs) = channel();
        let (write, writes) = channel();
        let (inner, out) = (Arc::clone(storage), done.clone());
        stdx::sync::spawn("repl-apply", move || {
            report(&out, apply_all(inner.as_ref(), &apply_jobs, &out));
        })?;
        let (inner, out) = (Arc::clone(storage), done.clone());
        stdx::sync::spawn("repl-log", move || {
            report(&out, log_all(inner.as_ref(), &log_jobs, &apply, &out));
        })?;
        let out = done.clone();
        stdx::sync::spawn("repl-file", move || write_all(&file, &writes, &out))?;
        Ok(Jobs { log, file: write })
    }

    /// Do a job on the log, after those before it. After a failure nothing is done (J2).
    pub(super) fn log(&self, job: Job) {
        // The thread has ended after a failure, which it has reported.
        let _: std::result::Result<(), _> = self.log.send(job);
    }

    /// Replace the file.
    pub(super) fn persist(&self, stored: Stored, hard: Hard) {
        // As in `log`.
        let _: std::result::Result<(), _> = self.file.send((stored, hard));
    }
}

/// Report the failure that ended a thread.
fn report(done: &UnboundedSender<Done>, ended: Result<()>) {
    if let Err(error) = ended {
        send(done, Done::Failed(error.message));
    }
}

fn send(done: &UnboundedSender<Done>, what: Done) {
    // Without a driver no one asks.
    let _: std::result::Result<(), _> = done.send(what);
}

fn log_all(
    storage: &dyn Storage,
    jobs: &Receiver<Job>,
    apply: &Sender<Apply>,
    done: &UnboundedSender<Done>,
) -> Result<()> {
    let mut next = jobs.recv().ok();
    while let Some(job) = next.take() {
        match job {
            Job::Append(entries, last) => {
                storage.append(&entries)?;
                let mut until = last;
                // One sync for all batches that are there.
                while let Ok(more) = jobs.try_recv() {
                    match more {
                        Job::Append(entries, last) => {
                            storage.append(&entries)?;
                            until = last;
                        }
                        other => {
                            next = Some(other);
                            break;
                        }
                    }
                }
                storage.sync()?;
                send(done, Done::Durable(until));
            }
            Job::Pump => {
                let last = storage.last();
                send(done, Done::Wrote(last));
                storage.sync()?;
                send(done, Done::Durable(last));
            }
            Job::RollBack(to) => {
                let (ended, end) = channel();
                forward(apply, Apply::RollBack(to, ended));
                if end.recv().is_err() {
                    return Ok(());
                }
                send(done, Done::RolledBack);
            }
            Job::Apply { to, committed } => forward(apply, Apply::To(to, committed)),
            Job::Committed(at) => forward(apply, Apply::Committed(at)),
            Job::Lead(term) => send(done, Done::Led(storage.lead(term)?)),
            Job::Follow => send(done, Done::Followed(storage.follow()?)),
        }
        if next.is_none() {
            next = jobs.recv().ok();
        }
    }
    Ok(())
}

fn forward(apply: &Sender<Apply>, what: Apply) {
    // The thread has ended after a failure, which it has reported.
    let _: std::result::Result<(), _> = apply.send(what);
}

fn apply_all(
    storage: &dyn Storage,
    jobs: &Receiver<Apply>,
    done: &UnboundedSender<Done>,
) -> Result<()> {
    while let Ok(job) = jobs.recv() {
        match job {
            Apply::To(to, committed) => {
                storage.apply(to, committed)?;
                send(done, Done::Applied(to));
            }
            Apply::Committed(at) => storage.committed(at),
            Apply::RollBack(to, ended) => {
                storage.roll_back(to)?;
                // The thread of the log waits.
                let _: std::result::Result<(), _> = ended.send(());
            }
        }
    }
    Ok(())
}

fn write_all(
    path: &std::path::Path,
    jobs: &Receiver<(Stored, Hard)>,
    done: &UnboundedSender<Done>,
) {
    while let Ok(mut newest) = jobs.recv() {
        // A newer content replaces those that wait.
        while let Ok(newer) = jobs.try_recv() {
            newest = newer;
        }
        let (stored, hard) = newest;
        if let Err(error) = file::write(path, &stored) {
            let message = format!("cannot write {}: {error}", path.display());
            return send(done, Done::Failed(message));
        }
        send(done, Done::Persisted(hard));
    }
}
