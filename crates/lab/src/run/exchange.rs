//! Requests to the worker, and its events until the final one.

use lab_host::envelope::Envelope;
use lab_report::analysis;
use lab_report::error::{Error, Result};
use lab_report::record::{Main, StepPlan};
use lab_report::store::StepDir;

use super::child::Worker;
use super::interrupt::Interrupt;
use super::observe::Observer;
use super::progress::{Progress, Second};
use crate::protocol::{Event, Request, Tick};

/// The worker, with the conditions that may end an exchange early.
pub(super) struct Exchange<'a> {
    pub worker: &'a mut Worker,
    pub interrupt: &'a Interrupt,
    pub envelope: &'a Envelope,
}

impl Exchange<'_> {
    /// Send a request and observe the worker until the final event.
    pub(super) fn observed(
        &mut self,
        request: &Request,
        step_log: &mut StepLog<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Event> {
        self.worker.ask(request, self.envelope)?;
        loop {
            match self.worker.event(self.interrupt, self.envelope)? {
                Event::Tick(tick) => step_log.second(observer, *tick)?,
                Event::Interval(interval) => observer.interval(&interval),
                last => return Ok(last),
            }
        }
    }

    /// Let the target settle, and observe it.
    pub(super) fn settled(
        &mut self,
        seconds_max: f64,
        step_log: &mut StepLog<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Settling> {
        match self.observed(&Request::Settle { seconds_max }, step_log, observer)? {
            Event::Settled {
                seconds,
                cut,
                unknown,
            } => Ok(Settling {
                seconds,
                cut,
                unknown,
            }),
            other => Err(unexpected(&other)),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settling {
    pub seconds: f64,
    pub cut: bool,
    /// The target does not report its pending work.
    pub unknown: bool,
}

pub(super) fn unexpected(event: &Event) -> Error {
    Error::target(format!("unexpected event from the worker: {event:?}"))
}

/// Displays and stores every second of a step.
pub(super) struct StepLog<'a> {
    step: &'a StepPlan,
    dir: &'a mut StepDir,
    pub(super) progress: &'a mut dyn Progress,
    stalls: u64,
}

/// Maximum seconds that clients may be busy after the end of their step: one statement each.
const PATIENCE: f64 = 120.0;

impl<'a> StepLog<'a> {
    pub(super) fn new(
        step: &'a StepPlan,
        dir: &'a mut StepDir,
        progress: &'a mut dyn Progress,
    ) -> StepLog<'a> {
        StepLog {
            step,
            dir,
            progress,
            stalls: 0,
        }
    }

    pub(super) fn second(&mut self, observer: &mut Observer<'_>, tick: Tick) -> Result<()> {
        let queries = tick.queries;
        let row = observer.tick(tick);
        if row.phase != "settle" && self.step.seconds_max + PATIENCE < row.t {
            return Err(Error::target(format!(
                "its clients are still busy {PATIENCE:.0} s after their time was up: the target \
                 does not answer; see its log, and whether its disk is full"
            )));
        }
        self.dir.push(&row)?;
        self.dir.push_engine(row.t, observer.stats())?;
        let main = observer.main();
        // Cheap enough each second: the series of a step has at most some thousand rows.
        if observer.series.len().is_multiple_of(5) {
            self.stalls = analysis::second_stats(&observer.series, main).stall_seconds;
        }
        let (done, rate) = match main {
            Main::Rows => (row.rows, row.rate),
            Main::Queries => (queries, row.query_rate),
        };
        self.progress.second(&Second {
            t: row.t,
            settling: row.phase == "settle",
            done,
            of: self.step.operations,
            rate,
            p99_ms: row.p99_ms,
            max_ms: row.max_ms,
            memory: row.cgroup_memory.or(row.rss),
            write_bytes: row.write_bytes,
            file_bytes: row.file_bytes,
            debt_bytes: row.debt_bytes,
            stall_seconds: self.stalls,
            activity: row.activity,
        });
        Ok(())
    }
}
