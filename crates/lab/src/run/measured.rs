//! The measurements of one step, from which its summary is made.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kv::EngineStats;
use lab_host::sample::{OsSample, SelfUsage};
use lab_report::analysis;
use lab_report::error::{Error, Result};
use lab_report::record::{Integrity, IntervalRow, Main, SeriesRow, StepPlan, decode_histogram};
use lab_report::store::StepDir;

use super::cell::RunningCell;
use super::exchange::Settling;
use super::observe::Observer;
use super::summary::{Ending, summarize};
use crate::protocol::{Before, Finished};

/// Everything that the summary of a step needs.
pub(super) struct Measured {
    pub main: Main,
    pub stats_before: EngineStats,
    pub stats_after: EngineStats,
    pub first: OsSample,
    pub loaded: OsSample,
    pub end: OsSample,
    pub series: Vec<SeriesRow>,
    pub intervals: Vec<IntervalRow>,
    pub rss_max: Option<u64>,
    pub cgroup_max: Option<u64>,
    pub file_max: u64,
    pub debt: Option<u64>,
    pub finished: Finished,
    pub settled: Settling,
    pub integrity: Integrity,
    pub lab: (Option<SelfUsage>, Option<SelfUsage>),
    /// Numbers specific to the experiment.
    pub extra: BTreeMap<String, f64>,
    /// Warnings for the report.
    pub warnings: Vec<String>,
}

impl Measured {
    pub(super) fn new(
        main: Main,
        mut observer: Observer<'_>,
        (loaded, end): (OsSample, OsSample),
        finished: Finished,
        settled: Settling,
        integrity: Integrity,
        lab: (Option<SelfUsage>, Option<SelfUsage>),
    ) -> Measured {
        Measured {
            main,
            stats_before: observer.stats_before.clone(),
            stats_after: observer.stats().clone(),
            first: observer.first.clone(),
            loaded,
            end,
            series: std::mem::take(&mut observer.series),
            intervals: std::mem::take(&mut observer.intervals),
            rss_max: observer.rss_max,
            cgroup_max: observer.cgroup_max,
            file_max: observer.file_max,
            debt: observer.debt,
            extra: finished.extra.clone(),
            finished,
            settled,
            integrity,
            lab,
            warnings: Vec::new(),
        }
    }

    pub(super) fn keep(
        self,
        running: &mut RunningCell<'_, '_, '_>,
        step: &StepPlan,
        dir: StepDir,
    ) -> Result<()> {
        let histogram = decode(&self.finished.histogram)?;
        let beside = self
            .finished
            .query_histogram
            .as_deref()
            .map(decode)
            .transpose()?;
        let stalls = analysis::stalls(&self.series, self.main);
        let ending = Ending {
            plan: running.plan,
            step,
            target: running.target,
            repeat: running.cell.repeat,
            envelope: &running.record,
            events: running.envelope.memory_events(),
        };
        let summary = summarize(&self, &ending, &histogram, beside.as_ref());
        dir.finish(&summary, &stalls, Some(&histogram), beside.as_ref())?;
        running.before = Before {
            rows: self.finished.live_rows,
            bytes: self.finished.live_bytes,
        };
        running.rates.insert(step.name.clone(), summary.rate_mean);
        running.runner.progress.step_end(running.plan, &summary);
        Ok(())
    }
}

fn decode(text: &str) -> Result<Histogram<u64>> {
    decode_histogram(text).map_err(|e| Error::target(format!("the worker's histogram: {e}")))
}
