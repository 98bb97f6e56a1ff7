//! Text shared by all displays.

use lab_report::record::{LoadKind, Main, Operation, Plan, StepPlan, StepSummary, TargetSpec};
use stdx::ByteSize;
use stdx::units::{count, seconds};

use crate::run::{Second, unsupported};
use crate::targets::{self, Kind};

/// A plan as text: its steps, and the space and time it needs.
#[must_use]
pub fn plan_text(plan: &Plan) -> String {
    let mut lines = vec![format!(
        "{} ({}), {} target{} x {} repeat{}, seed {}",
        plan.experiment,
        plan.preset,
        plan.targets.len(),
        plural(plan.targets.len()),
        plan.repeats,
        plural(plan.repeats as usize),
        plan.seed
    )];
    let targets: Vec<&str> = plan.targets.iter().map(|t| t.name.as_str()).collect();
    lines.push(format!("  targets    {}", targets.join(", ")));
    lines.push(format!("  limits     {}", limits(plan)));
    for target in &plan.targets {
        lines.extend(server_text(target));
        lines.extend(unsupported_text(plan, target));
    }
    lines.push(format!(
        "  engine     cache {}, durability {}, codec {}, direct I/O {}, {} background threads",
        plan.cache,
        plan.durability,
        plan.codec,
        if plan.direct_io { "on" } else { "off" },
        plan.threads
    ));
    lines.push(format!(
        "  data       {} logical at the largest ({:.1} x the memory cap), in {}",
        ByteSize(plan.data_bytes),
        ratio(plan),
        plan.data_dir.display()
    ));
    lines.push(format!(
        "  disk       about {} needed at once",
        ByteSize(plan.disk_bytes)
    ));
    let at_most: f64 = plan.steps.iter().map(|s| s.seconds_max).sum();
    lines.push(format!(
        "  time       about {} in all; at most {} of load per target and repeat, then settling and \
         checks",
        seconds(plan.seconds_estimate),
        seconds(at_most)
    ));
    lines.push(format!("  clients    {}", plan.clients));
    lines.push("  steps".to_owned());
    let steps = plan.steps.iter();
    lines.extend(steps.map(|step| step_text(&plan.experiment, step)));
    lines.join("\n")
}

/// Lines about the steps that a target does not support: one line for each reason.
fn unsupported_text(plan: &Plan, target: &TargetSpec) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for step in &plan.steps {
        let Some(why) = unsupported(plan, target, step) else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, steps)) => steps.push(&step.name),
            None => reasons.push((why, vec![&step.name])),
        }
    }
    let line = |(why, steps): (String, Vec<&str>)| {
        let of = match steps.len() {
            all if all == plan.steps.len() => String::new(),
            _ => format!("{}: ", steps.join(", ")),
        };
        format!("  {}: n/a: {of}{why}", target.name)
    };
    reasons.into_iter().map(line).collect()
}

/// Lines about a step.
fn step_text(experiment: &str, step: &StepPlan) -> String {
    let pace = match step.load {
        LoadKind::Closed => String::new(),
        LoadKind::Open { .. } if step.setting.share.is_some() => String::new(),
        LoadKind::Open { rate, .. } => {
            let what = Operation::of_mix(experiment, step).unwrap_or(Operation::ROW);
            let what = what.per_second;
            format!(", open loop at {} {what}", count(rate))
        }
    };
    let settle = if step.settle { ", then settle" } else { "" };
    let limit = seconds(step.seconds_max);
    format!(
        "    {:<7} {}{pace}; at most {limit}{settle}",
        step.name, step.about
    )
}

/// Line about a target that is a server.
fn server_text(target: &TargetSpec) -> Option<String> {
    let name = &target.name;
    match targets::kind(target).ok()? {
        Kind::Embedded(_) => None,
        Kind::Managed(_) | Kind::Private(_) => Some(format!(
            "  {name}: a server started within these limits; the driver is outside of them"
        )),
        Kind::Foreign(_) => Some(format!(
            "  {name}: not managed: NO limit is around it; cache, codec and threads are its own, \
             and what it does not tell reads n/a"
        )),
    }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn ratio(plan: &Plan) -> f64 {
    let memory = plan.limits.memory.map_or(f64::NAN, |m| m.bytes() as f64);
    plan.data_bytes as f64 / memory
}

fn limits(plan: &Plan) -> String {
    let l = &plan.limits;
    let mut parts = Vec::new();
    parts.push(match l.memory {
        Some(memory) => format!("memory {memory} (engine cache and page cache together)"),
        None => "memory not capped".to_owned(),
    });
    for (name, value) in [("read IOPS", l.read_iops), ("write IOPS", l.write_iops)] {
        parts.extend(value.map(|v| format!("{name} {v}")));
    }
    for (name, value) in [("read", l.read_bps), ("write", l.write_bps)] {
        parts.extend(value.map(|v| format!("{name} {}/s", ByteSize(v))));
    }
    parts.join(", ")
}

/// The line that reports the result of a step.
#[must_use]
pub fn step_line(plan: &Plan, s: &StepSummary) -> String {
    if let Some(why) = &s.unsupported {
        return format!("{} r{} {:<6} n/a: {why}", s.target, s.repeat, s.step);
    }
    let done = match s.main {
        Main::Rows => s.rows,
        Main::Queries => s.queries.as_ref().map_or(0, |q| q.queries),
    };
    let step = plan.steps.iter().find(|step| step.name == s.step);
    let operation = step.map(|step| Operation::of(&plan.experiment, step, s.main));
    let what = operation.map_or("1/s", |o| o.per_second);
    let one = operation.map_or("operation", |o| o.one);
    let per = |bytes: Option<u64>| match bytes {
        Some(bytes) => format!("{:.0} B", bytes as f64 / done.max(1) as f64),
        None => "n/a".to_owned(),
    };
    let cpu = s.cpu_seconds.map_or("n/a".to_owned(), |cpu| {
        format!("{:.1} us/{one}", cpu * 1e6 / done.max(1) as f64)
    });
    let settle = if s.settle_unknown {
        "n/a".to_owned()
    } else {
        seconds(s.settle_seconds)
    };
    let validity = match &s.invalid_reason {
        None if s.disturbed().is_empty() => String::new(),
        None => format!("  DISTURBED: {}", s.disturbed().join("; ")),
        Some(reason) => format!("  INVALID: {reason}"),
    };
    format!(
        "{} r{} {:<6} {:>8} {what}, first tenth {}, last tenth {}, worst second {}, p99 {:.1} ms, \
         max {:.0} ms, stalls {} s, written {}/{one}, cpu {cpu}, files {}, settle \
         {settle}{validity}",
        s.target,
        s.repeat,
        s.step,
        count(s.rate_mean),
        count(s.rate_first_tenth),
        count(s.rate_last_tenth),
        count(s.worst_second),
        s.latency_ms.p99,
        s.latency_ms.max,
        s.stall_seconds,
        per(s.device_write_bytes),
        ByteSize(s.file_bytes),
    )
}

/// The line that reports one second of a step.
pub(super) fn second_line(s: &Second) -> String {
    let mut parts = vec![format!("{:>7}/s", count(s.rate))];
    if s.settling {
        parts = vec!["settling".to_owned()];
    }
    if let (Some(p99), Some(max)) = (s.p99_ms, s.max_ms) {
        parts.push(format!("p99 {p99:.1} ms max {max:.0} ms"));
    }
    if let Some(memory) = s.memory {
        parts.push(format!("mem {}", ByteSize(memory)));
    }
    if let Some(written) = s.write_bytes {
        parts.push(format!("write {}/s", ByteSize(written)));
    }
    if let Some(size) = s.file_bytes {
        parts.push(format!("files {}", ByteSize(size)));
    }
    if let Some(debt) = s.debt_bytes {
        parts.push(format!("debt {}", ByteSize(debt)));
    }
    if s.stall_seconds > 0 {
        parts.push(format!("stalls {} s", s.stall_seconds));
    }
    if !s.activity.is_empty() {
        parts.push(s.activity.clone());
    }
    parts.join("  ")
}

/// Estimated remaining seconds of a step, from its progress so far.
pub(super) fn eta(s: &Second, seconds_max: f64) -> f64 {
    let by_time = (seconds_max - s.t).max(0.0);
    if s.of == 0 || s.done == 0 || s.t <= 0.0 {
        return by_time;
    }
    let left = s.of.saturating_sub(s.done) as f64;
    (left / (s.done as f64 / s.t)).min(by_time)
}
