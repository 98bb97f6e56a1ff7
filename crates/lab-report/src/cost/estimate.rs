//! Estimates dollars for each target, step, volume and mode from the records of a run.
//!
//! ```text
//! GB            live GB (or --size) * max(space amplification * 1.3, largest size seen / live)
//! operations/s  provisioned: the caps of the run on reads and writes, together
//!               required:    1.2 * max(P95 over the seconds of the load, all of the step and of
//!                            its settling by the seconds of the load)
//! MB/s          in the same way
//! ```
//!
//! An operation is at most 256 KiB, as volumes count them. What settling did is spread over the
//! load: work that is put off must be done at the pace at which it comes to be owed.

use serde::{Deserialize, Serialize};

use super::crossover::{Leaders, leaders};
use super::model::{Requirement, price};
use crate::analysis::{NOT_REPEATED, main_rates, median, not_sustained, quantile, sustained};
use crate::record::experiment::repeatable;
use crate::record::{
    LoadKind, Main, Operation, Prices, RunRecord, StepPlan, StepRecord, StepSummary,
    TargetStepSummary, Volume,
};

/// Hours and seconds of a month.
const MONTH_HOURS: f64 = 730.0;
const MONTH_SECONDS: f64 = MONTH_HOURS * 3600.0;

/// The largest operation that volumes count as one.
const OPERATION_BYTES: f64 = 256.0 * 1024.0;

/// Free space, as a fraction of the files.
const HEADROOM: f64 = 0.3;

/// Free I/O capacity, as a fraction of what is required.
const SLACK: f64 = 0.2;

/// Options of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostOptions {
    /// Estimate for live data of this size in bytes: only the size is extrapolated.
    pub size: Option<u64>,
    /// Copies of everything.
    pub replicas: u32,
    /// Maximum p99 latency of a sustainable rate, in milliseconds; `None` for that of the plan.
    pub p99_ms: Option<f64>,
}

impl Default for CostOptions {
    fn default() -> CostOptions {
        CostOptions {
            size: None,
            replicas: 1,
            p99_ms: None,
        }
    }
}

/// The I/O capacity that is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The caps of the run.
    Provisioned,
    /// The I/O that the run used, plus a fifth.
    Required,
}

impl Mode {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Provisioned => "provisioned",
            Mode::Required => "required",
        }
    }
}

/// The cost of one target in one step on one kind of volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostLine {
    /// The target.
    pub target: String,
    /// The step.
    pub step: String,
    /// The operation that its rates count, such as `transactions`; empty in records of older
    /// programs.
    #[serde(default)]
    pub operation: String,
    /// The kind of volume.
    pub volume: String,
    /// The I/O capacity that is paid for.
    pub mode: Mode,
    /// Main operations per second: the median over the repeats.
    pub rate: f64,
    /// Ends of its 95 % interval, where there is one.
    pub rate_interval: Option<(f64, f64)>,
    /// The highest open-loop rate with the latency kept and no stall; `None`: not measured, or not
    /// kept.
    pub sustainable: Option<f64>,
    /// Why there is no sustainable rate.
    #[serde(default)]
    pub sustainable_reason: Option<String>,
    /// The requirements on the volume.
    pub required: Option<Requirement>,
    /// Number of volumes.
    pub volumes: Option<u32>,
    /// GB bought.
    pub gb: Option<f64>,
    /// Dollars per month for storage.
    pub storage: Option<f64>,
    /// Dollars per month in all.
    pub total: Option<f64>,
    /// Main operations per second for a dollar a month.
    pub rate_per_dollar: Option<f64>,
    /// The same for the dollars of storage alone.
    pub rate_per_storage_dollar: Option<f64>,
    /// Sustainable operations per second for a dollar a month: the headline.
    pub sustainable_per_dollar: Option<f64>,
    /// Dollars for a million main operations at `rate`.
    pub dollars_per_million: Option<f64>,
    /// Dollars of wear per month at `rate`; `None` if the buyer does not pay for it, or if unknown.
    pub wear: Option<f64>,
    /// Why it has no price.
    pub reason: Option<String>,
}

/// The estimate for a run: `cost.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// [`crate::record::SCHEMA`].
    pub schema: u32,
    /// The run.
    pub run: String,
    /// The prices.
    pub prices: Prices,
    /// The options of the estimate.
    pub options: CostOptions,
    /// A line for each target, step, volume and mode; without targets that keep nothing on disk.
    pub lines: Vec<CostLine>,
    /// Who does the most for a dollar as more operations are paid for; empty without steps that
    /// have caps of their own, and where clients were held to a rate.
    #[serde(default)]
    pub leaders: Vec<Leaders>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Cost {
    /// Whether any step was repeated in an open loop; if none was, one note says so for all.
    #[must_use]
    pub(crate) fn repeated(&self) -> bool {
        let not = |l: &CostLine| l.sustainable_reason.as_deref() == Some(NOT_REPEATED);
        !self.lines.iter().all(not)
    }
}

/// Price a run.
#[must_use]
pub fn estimate(run: &RunRecord, prices: &Prices, options: &CostOptions) -> Cost {
    let p99_ms = options.p99_ms.unwrap_or(run.manifest.plan.p99_ms);
    let rates = sustained(run, p99_ms);
    let mut lines = Vec::new();
    for result in &run.summary.results {
        let plan = &run.manifest.plan;
        let step = plan.steps.iter().find(|s| s.name == result.step);
        // Open loops at a share of a rate are priced with the step whose work they repeat.
        let own = step.is_some_and(|s| s.setting.share.is_none());
        if !own || !result.valid || !keeps(result) {
            continue;
        }
        let mut best = rates.iter();
        let best = best.find(|s| s.target == result.target && s.of == result.step);
        let best = match not_sustained(run, &rates, &result.target, &result.step) {
            None => best.and_then(|s| s.best).ok_or_else(String::new),
            Some(reason) => Err(reason),
        };
        let subject = Subject::new(run, result, best, options);
        for volume in &prices.volumes {
            for mode in [Mode::Required, Mode::Provisioned] {
                lines.push(subject.line(prices, volume, mode, options));
            }
        }
    }
    Cost {
        schema: crate::record::SCHEMA,
        run: run.manifest.run.clone(),
        prices: prices.clone(),
        options: CostOptions {
            p99_ms: Some(p99_ms),
            ..*options
        },
        notes: notes(run, prices, options.size, p99_ms),
        leaders: match run.manifest.plan.held() {
            true => Vec::new(),
            false => leaders(&lines),
        },
        lines,
    }
}

/// Whether a target stores its data in files.
fn keeps(result: &TargetStepSummary) -> bool {
    metric(result, "file_bytes").is_some_and(|b| b >= 65_536.0)
        && metric(result, "live_bytes").is_some_and(|b| b > 0.0)
}

fn metric(result: &TargetStepSummary, name: &str) -> Option<f64> {
    result.metrics.get(name).copied().flatten()
}

/// One target in one step: the common part of its lines.
struct Subject<'a> {
    result: &'a TargetStepSummary,
    operation: Operation,
    rate: f64,
    interval: Option<(f64, f64)>,
    /// Or the reason why there is none.
    sustainable: Result<f64, String>,
    gb: f64,
    used: Option<(f64, f64)>,
    caps: (Option<f64>, Option<f64>),
    /// Whether the limits of the run were in force.
    enforced: bool,
    written_per_second: Option<f64>,
}

impl<'a> Subject<'a> {
    fn new(
        run: &'a RunRecord,
        result: &'a TargetStepSummary,
        sustainable: Result<f64, String>,
        options: &CostOptions,
    ) -> Subject<'a> {
        let records: Vec<(&StepRecord, &StepSummary)> = valid(run, result).collect();
        let plan = &run.manifest.plan;
        // A step may have its own caps.
        let step = plan.steps.iter().find(|s| s.name == result.step);
        let limits = match step.map(|s| &s.setting) {
            Some(own) => plan.limits.within(own.iops, own.bandwidth),
            None => plan.limits,
        };
        let both = |a: Option<u64>, b: Option<u64>| Some(a? as f64 + b? as f64);
        let per_repeat = |of: fn(&StepRecord, &StepSummary) -> Option<f64>| {
            let values: Vec<f64> = records.iter().filter_map(|(r, s)| of(r, s)).collect();
            median(&values)
        };
        let operations = per_repeat(|r, s| Some(used(r, s)?.0));
        let megabytes = per_repeat(|r, s| Some(used(r, s)?.1));
        let estimate = result.estimates.get("rate_mean");
        let main = records.first().map_or(Main::Rows, |(_, s)| s.main);
        Subject {
            result,
            operation: step.map_or(Operation::ROW, |s| Operation::of(&plan.experiment, s, main)),
            rate: metric(result, "rate_mean").unwrap_or(0.0),
            interval: estimate.map(|e| (e.low, e.high)),
            sustainable,
            gb: gigabytes(result, &records, options.size),
            used: operations.zip(megabytes),
            caps: (
                both(limits.read_iops, limits.write_iops),
                both(limits.read_bps, limits.write_bps).map(|b| b / 1e6),
            ),
            enforced: records.iter().all(|(r, _)| r.envelope.enforced),
            written_per_second: per_repeat(|_, s| {
                (s.seconds > 0.0).then_some(s.device_write_bytes? as f64 / s.seconds)
            }),
        }
    }

    fn required(&self, mode: Mode) -> Result<Requirement, String> {
        let nothing = "the device's counters were not to be had: see device_source";
        let (iops, mb) = match mode {
            Mode::Required => self.used.ok_or(nothing)?,
            Mode::Provisioned => {
                let iops = self.caps.0.ok_or("the run had no caps on operations")?;
                if !self.enforced {
                    return Err("the caps of the run were not in force".to_owned());
                }
                let used = self.used.map_or(0.0, |u| u.1);
                (iops, self.caps.1.unwrap_or(used))
            }
        };
        Ok(Requirement {
            gb: self.gb,
            iops,
            mb,
        })
    }

    fn line(
        &self,
        prices: &Prices,
        volume: &Volume,
        mode: Mode,
        options: &CostOptions,
    ) -> CostLine {
        let required = self.required(mode);
        let priced = required.clone().and_then(|r| price(volume, &r));
        let copies = f64::from(options.replicas.max(1));
        let instance = prices.instance.dollars_per_hour * MONTH_HOURS;
        let storage = priced.as_ref().ok().map(|p| p.dollars * copies);
        let total = storage.map(|s| s + instance * copies);
        let per = |rate: Option<f64>, dollars: Option<f64>| {
            let dollars = dollars.filter(|d| *d > 0.0)?;
            Some(rate? / dollars)
        };
        let rate = Some(self.rate);
        let wear = (volume.tb_written > 0.0)
            .then_some(self.written_per_second)
            .flatten();
        CostLine {
            target: self.result.target.clone(),
            step: self.result.step.clone(),
            operation: self.operation.many.to_owned(),
            volume: volume.name.clone(),
            mode,
            rate: self.rate,
            rate_interval: self.interval,
            sustainable: self.sustainable.clone().ok(),
            sustainable_reason: self.sustainable.clone().err(),
            required: required.ok(),
            volumes: priced.as_ref().ok().map(|p| p.volumes),
            gb: priced.as_ref().ok().map(|p| p.gb * copies),
            storage,
            total,
            rate_per_dollar: per(rate, total),
            rate_per_storage_dollar: per(rate, storage),
            sustainable_per_dollar: per(self.sustainable.clone().ok(), total),
            dollars_per_million: total
                .filter(|_| self.rate > 0.0)
                .map(|t| t / (self.rate * MONTH_SECONDS) * 1e6),
            wear: wear.map(|b| b * MONTH_SECONDS / 1e12 * volume.tb_written * copies),
            reason: priced.err(),
        }
    }
}

/// The size of the volume that a target needs after a step, in GB, and the rate of the step; `None`
/// if it keeps no data on disk, or has no valid result.
#[must_use]
pub fn size_and_rate(run: &RunRecord, target: &str, step: &str) -> Option<(f64, f64)> {
    let mut results = run.summary.results.iter();
    let result = results.find(|r| r.target == target && r.step == step)?;
    if !result.valid || !keeps(result) {
        return None;
    }
    let records: Vec<(&StepRecord, &StepSummary)> = valid(run, result).collect();
    Some((
        gigabytes(result, &records, None),
        metric(result, "rate_mean")?,
    ))
}

/// The valid repeats of a result.
fn valid<'a>(
    run: &'a RunRecord,
    result: &'a TargetStepSummary,
) -> impl Iterator<Item = (&'a StepRecord, &'a StepSummary)> {
    let all = run.steps.iter();
    let all = all.filter_map(|r| Some((r, r.summary.as_ref()?)));
    all.filter(|(_, s)| s.valid && s.target == result.target && s.step == result.step)
}

/// Operations and MB per second of a step that was measured; `None` without device counters.
fn used(record: &StepRecord, summary: &StepSummary) -> Option<(f64, f64)> {
    let load: Vec<_> = record
        .series
        .iter()
        .filter(|r| r.phase != "settle")
        .collect();
    let whole = main_rates(&record.series, summary.main).len();
    let seconds: Option<Vec<(f64, f64)>> = load
        .iter()
        .take(whole)
        .map(|r| {
            let bytes = (r.read_bytes? + r.write_bytes?) as f64;
            let ios = (r.read_ios? + r.write_ios?) as f64;
            Some((ios.max(bytes / OPERATION_BYTES), bytes / 1e6))
        })
        .collect();
    let seconds = seconds?;
    let p95 = |values: Vec<f64>| quantile(&values, 0.95).unwrap_or(0.0);
    let length = summary.seconds.max(1e-9);
    let bytes = (summary.device_read_bytes? + summary.device_write_bytes?) as f64;
    let ios = (summary.device_read_ios? + summary.device_write_ios?) as f64;
    let all = (
        ios.max(bytes / OPERATION_BYTES) / length,
        bytes / 1e6 / length,
    );
    let operations = p95(seconds.iter().map(|s| s.0).collect()).max(all.0);
    let megabytes = p95(seconds.iter().map(|s| s.1).collect()).max(all.1);
    Some((operations * (1.0 + SLACK), megabytes * (1.0 + SLACK)))
}

fn gigabytes(
    result: &TargetStepSummary,
    records: &[(&StepRecord, &StepSummary)],
    size: Option<u64>,
) -> f64 {
    let live = metric(result, "live_bytes").unwrap_or(0.0).max(1.0);
    let settled = metric(result, "file_bytes").unwrap_or(0.0) / live * (1.0 + HEADROOM);
    let most = records.iter().map(|(_, s)| s.file_bytes_max).max();
    let most = most.unwrap_or(0) as f64 / live;
    size.map_or(live, |s| s as f64) * settled.max(most) / 1e9
}

fn notes(run: &RunRecord, prices: &Prices, size: Option<u64>, p99_ms: f64) -> Vec<String> {
    let mut notes = prices.notes.clone();
    if let Some(size) = size {
        let size = stdx::ByteSize(size);
        notes.push(format!(
            "An extrapolation: the size alone is taken as {size}; rates and input and output are \
             those of the run."
        ));
    }
    let plan = &run.manifest.plan;
    let open = |s: &StepPlan| matches!(s.load, LoadKind::Open { .. });
    if !plan.steps.iter().any(open) {
        let advice = match repeatable(plan) {
            true => " Measure those with --rate auto.",
            false => "",
        };
        notes.push(format!(
            "No step had an open loop: the rates are the highest of a closed loop, not ones that \
             can be sustained at a p99 of {p99_ms} ms.{advice}"
        ));
    }
    if plan.held() {
        notes.push(
            "The load ran at a fixed rate (--rate), which is not the highest the targets sustain: \
             operations per dollar are those at this rate and do not show which target does the \
             most for a dollar."
                .to_owned(),
        );
    }
    let shared = run
        .summary
        .steps
        .iter()
        .any(|s| s.device_source == "device");
    if shared {
        notes.push(
            "Input and output are those of the whole device: anything else that used it is paid \
             for here."
                .to_owned(),
        );
    }
    notes.push(format!(
        "The rates are those of the machine of the run; that a {} would reach them is assumed.",
        prices.instance.name
    ));
    notes
}
