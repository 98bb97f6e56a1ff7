//! Summarizes a step.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kv::EngineStats;
use lab_host::envelope::MemoryEvents;
use lab_host::sample::{OsDelta, PressureTotals};
use lab_report::analysis;
use lab_report::record::{
    Busiest, Ended, EnvelopeLine, EnvelopeRecord, Integrity, LoadKind, Main, Operation, Others,
    Plan, QuerySummary, SCHEMA, StepPlan, StepSummary, TargetSpec, Work,
};
use lab_report::store::reason_name;

use super::measured::Measured;
use super::observe::source_name;
use crate::load::latency_of;
use crate::targets::{self, Kind};

/// Minimum share of the requested rate; a step below it missed its target (Callaghan's rule).
const RATE_SHARE_MIN: f64 = 0.95;

/// Minimum CPU seconds for which the generator's share is meaningful: the kernel counts in
/// hundredths of a second.
const CPU_TOLD_MIN: f64 = 0.5;

/// The properties of a step that its summary needs, apart from its measurements.
pub(super) struct Ending<'a> {
    pub plan: &'a Plan,
    pub step: &'a StepPlan,
    pub target: &'a TargetSpec,
    pub repeat: u32,
    pub envelope: &'a EnvelopeRecord,
    pub events: Option<MemoryEvents>,
}

impl Ending<'_> {
    /// The unit of the rate of the step's main operation.
    fn counts(&self, main: Main) -> &'static str {
        Operation::of(&self.plan.experiment, self.step, main).per_second
    }
}

pub(super) fn summarize(
    m: &Measured,
    ending: &Ending<'_>,
    histogram: &Histogram<u64>,
    beside: Option<&Histogram<u64>>,
) -> StepSummary {
    let total = m.end.since(&m.first);
    let faults = faults(&m.finished.wrong, &m.integrity);
    let mut summary = StepSummary {
        schema: SCHEMA,
        target: ending.target.name.clone(),
        repeat: ending.repeat,
        step: ending.step.name.clone(),
        main: m.main,
        rate_target: rate_target(ending.step),
        latency_ms: latency_of(histogram),
        queries: queries(m, histogram, beside),
        intervals: m.intervals.clone(),
        integrity: m.integrity.clone(),
        valid: faults.is_empty(),
        invalid_reason: (!faults.is_empty()).then(|| faults.join("; ")),
        rate_missed: rate_missed(m, ending),
        extra: extra(m),
        others: others(m, &total),
        warnings: warnings(m, ending, &total),
        ..StepSummary::default()
    };
    rates(&mut summary, m);
    input_output(&mut summary, m, &total);
    costs(&mut summary, m, &total);
    summary
}

fn rates(summary: &mut StepSummary, m: &Measured) {
    let f = &m.finished;
    let seconds = analysis::second_stats(&m.series, m.main);
    let done = match m.main {
        Main::Rows => f.rows,
        Main::Queries => f.queries,
    };
    summary.ended = f.ended;
    summary.rows = f.rows;
    summary.rows_deleted = f.rows_deleted;
    summary.seconds = f.seconds;
    summary.rate_mean = if f.seconds > 0.0 {
        done as f64 / f.seconds
    } else {
        0.0
    };
    summary.rate_first_tenth = f.rate_first_tenth;
    summary.rate_last_tenth = f.rate_last_tenth;
    summary.worst_second = seconds.worst;
    summary.median_second = seconds.median;
    summary.stall_seconds = seconds.stall_seconds;
}

fn input_output(summary: &mut StepSummary, m: &Measured, total: &OsDelta) {
    let f = &m.finished;
    let settle = m.end.since(&m.loaded);
    summary.device_write_bytes = total.device.map(|d| d.write_bytes);
    summary.device_read_bytes = total.device.map(|d| d.read_bytes);
    summary.device_write_ios = total.device.map(|d| d.writes);
    summary.device_read_ios = total.device.map(|d| d.reads);
    summary.device_source = source_name(total.device_source);
    summary.process_write_bytes = total.process_io.map(|io| io.write_bytes);
    summary.written_by_reason = by_reason(&m.stats_before, &m.stats_after);
    summary.logical_bytes = f.logical_bytes;
    summary.live_bytes = f.live_bytes;
    summary.file_bytes = m.end.data.map_or(0, |d| d.allocated_bytes);
    summary.file_bytes_max = m.file_max;
    summary.debt_bytes = m.debt;
    summary.settle_seconds = m.settled.seconds;
    summary.settle_cut = m.settled.cut;
    summary.settle_unknown = m.settled.unknown;
    summary.settle_write_bytes = settle.device.map(|d| d.write_bytes);
}

fn costs(summary: &mut StepSummary, m: &Measured, total: &OsDelta) {
    summary.cpu_seconds = cpu(total);
    summary.cpu_system_seconds = total.cpu_system_s.unwrap_or(0.0);
    summary.client_cpu_seconds = m.finished.client_cpu_seconds;
    summary.lab_cpu_seconds = m.lab.0.zip(m.lab.1).map_or(0.0, |(a, b)| b.cpu_s - a.cpu_s);
    summary.lab_rss_bytes = m.lab.1.and_then(|u| u.rss_peak_bytes).unwrap_or(0);
    summary.switches = total.switches.map(|s| s.voluntary + s.involuntary);
    summary.rss_max = m.rss_max;
    summary.cgroup_memory_max = m.cgroup_max;
}

/// What other programs did: processor time over the load, bytes also while it settled.
fn others(m: &Measured, total: &OsDelta) -> Option<Others> {
    let load = m.loaded.since(&m.first);
    let machine = load.machine.clone()?;
    let seconds = load.elapsed.as_secs_f64();
    let share = |pressure: Option<PressureTotals>| {
        pressure.map(|p| (p.some_us as f64 / 1e6 / seconds.max(1e-9)).min(1.0))
    };
    let others = Others {
        seconds,
        seconds_settled: total.elapsed.as_secs_f64(),
        cpus: machine.cpus,
        steal: machine.steal,
        cpu: machine.cpu,
        busiest: machine.busiest.map(|(name, cpu)| Busiest { name, cpu }),
        bytes: total.machine.as_ref().and_then(|m| m.bytes),
        device_bytes: total.device.map(|d| d.read_bytes + d.write_bytes),
        psi_cpu: share(load.pressure.cpu),
        psi_io: share(load.pressure.io),
        psi_memory: share(load.pressure.memory),
        disturbed: Vec::new(),
    };
    Some(others.judged())
}

/// CPU seconds of the measured process; `None` if the process was not visible.
fn cpu(delta: &OsDelta) -> Option<f64> {
    Some(delta.cpu_user_s? + delta.cpu_system_s?)
}

fn rate_target(step: &StepPlan) -> Option<f64> {
    if let LoadKind::Open { rate, .. } = step.load {
        return Some(rate);
    }
    match serde_json::from_value(step.work.clone()) {
        Ok(Work::Query { write_rate, .. }) => (0.0 < write_rate).then_some(write_rate),
        _ => None,
    }
}

fn queries(
    m: &Measured,
    histogram: &Histogram<u64>,
    beside: Option<&Histogram<u64>>,
) -> Option<QuerySummary> {
    let histogram = match m.main {
        Main::Queries => Some(histogram),
        Main::Rows => beside,
    }?;
    let f = &m.finished;
    Some(QuerySummary {
        queries: f.queries,
        rate_mean: if f.seconds > 0.0 {
            f.queries as f64 / f.seconds
        } else {
            0.0
        },
        entries: f.query_entries,
        latency_ms: latency_of(histogram),
    })
}

fn by_reason(before: &EngineStats, after: &EngineStats) -> BTreeMap<String, u64> {
    let grown = after.written.iter().map(|count| {
        let bytes = count
            .bytes
            .saturating_sub(before.written_bytes(count.reason));
        (reason_name(count.reason), bytes)
    });
    grown.collect()
}

/// Names of engine counters that count syncs.
const SYNCS: [&str; 2] = ["log_syncs", "fsyncs"];

/// Names of engine counters that count events of pages or buckets.
const PAGES: [&str; 4] = ["splits", "merges", "merge_attempts", "reorganizations"];

/// The numbers specific to the experiment, and the engine's counts of syncs, splits and merges
/// where it has them.
fn extra(m: &Measured) -> BTreeMap<String, f64> {
    let mut all = m.extra.clone();
    let of = |stats: &EngineStats, name: &str| stats.counters.get(name).copied();
    for name in SYNCS.into_iter().chain(PAGES) {
        // The names of InnoDB's counters include the object.
        let own = format!("index_page_{name}");
        let of = |stats| of(stats, name).or_else(|| of(stats, &own));
        if let Some(after) = of(&m.stats_after) {
            let before = of(&m.stats_before).unwrap_or(0);
            all.insert(name.to_owned(), after.saturating_sub(before) as f64);
        }
    }
    if let Some(bytes) = of(&m.stats_after, targets::TABLE_BYTES) {
        all.insert(targets::TABLE_BYTES.to_owned(), bytes as f64);
    }
    all
}

/// The reasons why the numbers are invalid.
fn faults(wrong: &[String], integrity: &Integrity) -> Vec<String> {
    let wrong = wrong.iter().map(|w| format!("wrong answer: {w}"));
    let integrity = integrity.faults.iter().map(|w| format!("integrity: {w}"));
    wrong.chain(integrity).collect()
}

/// Limits that were requested and are not in force.
fn uncapped(envelope: &EnvelopeRecord) -> Vec<String> {
    let missing = |line: &&EnvelopeLine| line.requested.is_some() && line.effective.is_none();
    let lines = envelope.lines.iter().filter(missing);
    let mut all: Vec<String> = lines
        .map(|line| format!("{} was not capped: {}", line.limit, line.note))
        .collect();
    if all.is_empty() && !envelope.enforced {
        all.push("the limits asked for were not all enforced".to_owned());
    }
    all
}

/// Number of rows that may be missing from an open-loop load because its last transactions were not
/// due yet.
fn rows_not_due(plan: &Plan, step: &StepPlan) -> f64 {
    let batch = match serde_json::from_value(step.work.clone()) {
        Ok(Work::Load { batch, .. } | Work::Query { batch, .. }) => batch,
        _ => 0,
    };
    f64::from(batch) * f64::from(plan.clients)
}

/// Whether the requested rate counts operations; if not, it counts rows.
fn is_mix(m: &Measured, step: &StepPlan) -> bool {
    matches!(m.main, Main::Queries) && matches!(step.load, LoadKind::Open { .. })
}

/// The share of the requested rate that was reached, if it is below [`RATE_SHARE_MIN`].
fn rate_missed(m: &Measured, ending: &Ending<'_>) -> Option<f64> {
    let f = &m.finished;
    let rate = rate_target(ending.step)?;
    if is_mix(m, ending.step) {
        // The share of the operations that were due. With random gaps, their number differs from
        // the rate times the duration.
        let done = f.queries as f64;
        let share = done / (done + f.behind as f64).max(1.0);
        return (share < RATE_SHARE_MIN).then_some(share);
    }
    let asked = rate * f.seconds;
    let most = f.rows as f64 + rows_not_due(ending.plan, ending.step);
    (most < asked * RATE_SHARE_MIN).then(|| f.rows as f64 / asked)
}

/// A warning if the load generator used a large share of the visible CPU time.
fn client_share(m: &Measured, ending: &Ending<'_>, total: &OsDelta) -> Option<String> {
    let (client, server) = (m.finished.client_cpu_seconds, cpu(total)?);
    let embedded = matches!(targets::kind(ending.target), Ok(Kind::Embedded(_)));
    let all = if embedded { server } else { server + client };
    if all < CPU_TOLD_MIN || ending.target.engine == "null" || client <= all * 0.25 {
        return None;
    }
    let share = (client / all * 100.0).min(100.0);
    Some(if embedded {
        format!("the load generator took {share:.0} % of the worker's CPU")
    } else {
        format!("the driver and the load generator took {share:.0} % of the CPU of both sides")
    })
}

fn warnings(m: &Measured, ending: &Ending<'_>, total: &OsDelta) -> Vec<String> {
    let mut all = uncapped(ending.envelope);
    all.extend(m.warnings.iter().cloned());
    let f = &m.finished;
    if f.ended == Ended::Time && ending.step.operations > 0 {
        let of = ending.step.operations;
        all.push(format!(
            "its time was up after {} of {of} operations",
            f.rows.max(f.queries)
        ));
    }
    if m.settled.unknown {
        all.push("the server does not say what work it owes: it was not settled".to_owned());
    }
    if m.settled.cut {
        let max = ending.plan.settle_max;
        all.push(format!(
            "settling was cut off after {max:.0} s: background work was still owed"
        ));
    }
    if rate_missed(m, ending).is_some() {
        let (done, what) = match is_mix(m, ending.step) {
            true => (f.queries, ending.counts(Main::Queries)),
            false => (f.rows, ending.counts(Main::Rows)),
        };
        let rate = done as f64 / f.seconds.max(1e-9);
        let target = rate_target(ending.step).unwrap_or(0.0);
        all.push(format!("{rate:.0} {what} done of {target:.0} asked for"));
    }
    all.extend(client_share(m, ending, total));
    if let Some(kills) = ending
        .events
        .as_ref()
        .and_then(|e| e.oom_kills)
        .filter(|&k| k > 0)
    {
        all.push(format!(
            "the kernel killed {kills} processes at the memory limit"
        ));
    }
    all
}
