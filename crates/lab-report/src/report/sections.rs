//! The sections around the steps: what was tested, stalls, environment, method.

use serde::Serialize;
use serde_json::Value;

use crate::analysis::{escaped, limits_of_caps, second_stats};
use crate::record::{EnvelopeRecord, Operation, Plan, StepPlan, StepSummary};

use super::metrics::Shown;
use super::model::{CellView, View};
use super::tables::{Cell, Column, Table};
use crate::format;

/// A fact: its name and its value.
pub(crate) type Fact = (String, String);

/// Section 2.
#[derive(Debug, Serialize)]
pub(crate) struct Tested {
    pub(crate) facts: Vec<Fact>,
    /// `cached`, `I/O-bound`, or that it is unknown.
    pub(crate) class: String,
    pub(crate) ratio: String,
    pub(crate) envelopes: Vec<Table>,
    pub(crate) fairness: Table,
    pub(crate) notes: Vec<(String, Vec<String>)>,
    pub(crate) ours: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// What was tested.
pub(crate) fn tested(view: &View<'_>) -> Tested {
    let (class, ratio) = data_class(view);
    let records = || view.run.targets.iter();
    let facts = facts(view).into_iter();
    Tested {
        facts: facts.map(|(k, v)| (k.to_owned(), v)).collect(),
        class,
        ratio,
        envelopes: envelopes(view),
        fairness: fairness(view),
        notes: records()
            .filter(|t| !t.notes.is_empty())
            .map(|t| (t.name.clone(), t.notes.clone()))
            .collect(),
        ours: records()
            .filter(|t| t.ours)
            .map(|t| t.name.clone())
            .collect(),
        warnings: warnings(view),
    }
}

fn facts(view: &View<'_>) -> [(&'static str, String); 15] {
    let plan = &view.run.manifest.plan;
    let largest = |of: fn(&StepSummary) -> u64| {
        let steps = view.run.summary.steps.iter();
        steps.map(of).max().unwrap_or(0)
    };
    let steps: Vec<&str> = plan.steps.iter().map(|s| s.name.as_str()).collect();
    let memory = plan.limits.memory;
    let planned = plan.data_bytes as f64;
    [
        ("Experiment", plan.experiment.clone()),
        ("Preset", plan.preset.to_string()),
        ("Steps", steps.join(", ")),
        ("Rows, largest step", format::count(largest(|s| s.rows))),
        (
            "Live data, measured",
            format::bytes(largest(|s| s.live_bytes) as f64),
        ),
        ("Live data, planned", format::bytes(planned)),
        (
            "Memory cap",
            memory.map_or("none".to_owned(), |m| m.to_string()),
        ),
        ("Engine cache", plan.cache.to_string()),
        ("Clients", plan.clients.to_string()),
        ("Repeats", plan.repeats.to_string()),
        ("Durability", durability(plan)),
        ("Compression class", plan.codec.to_string()),
        ("Direct I/O asked", yes(plan.direct_io)),
        ("Engine threads", plan.threads.to_string()),
        ("Seed", plan.seed.to_string()),
    ]
}

fn durability(plan: &Plan) -> String {
    let own = |s: &StepPlan| s.setting.durability.is_some();
    if plan.steps.iter().any(own) {
        return "as each step says".to_owned();
    }
    plan.durability.name().to_owned()
}

fn warnings(view: &View<'_>) -> Vec<String> {
    let mut warnings = view.run.host_warnings.clone();
    if view.targets.iter().any(|t| escaped(view.run, t.name)) {
        warnings.extend(limits_of_caps(view.run));
    }
    for warning in view.run.steps.iter().flat_map(|s| &s.envelope.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    warnings
}

/// Whether the data fit in memory, and the ratio data : cache : cap.
fn data_class(view: &View<'_>) -> (String, String) {
    let plan = &view.run.manifest.plan;
    let live = view.run.summary.steps.iter().map(|s| s.live_bytes).max();
    let data = live.filter(|v| *v > 0).unwrap_or(plan.data_bytes) as f64;
    let cache = plan.cache.0 as f64;
    let cap = super::plots::memory_cap(view);
    let part = |v: f64| format::number(v / cache.max(1.0));
    let ratio = format!(
        "{} : 1 : {}",
        part(data),
        cap.map_or("no cap".to_owned(), part)
    );
    let class = match cap {
        _ if data <= cache => "cached",
        Some(cap) if data > cap => "I/O-bound",
        Some(_) => "cached (by the page cache)",
        None => "cached or I/O-bound: not decided, without a cap the page cache may hold all",
    };
    (class.to_owned(), ratio)
}

/// One table for each different envelope.
fn envelopes(view: &View<'_>) -> Vec<Table> {
    let mut kinds: Vec<(&EnvelopeRecord, Vec<&str>)> = Vec::new();
    for step in &view.run.steps {
        match kinds.iter_mut().find(|(e, _)| *e == &step.envelope) {
            Some((_, steps)) => steps.push(&step.directory),
            None => kinds.push((&step.envelope, vec![&step.directory])),
        }
    }
    let alone = kinds.len() == 1;
    kinds
        .into_iter()
        .enumerate()
        .map(|(i, (envelope, steps))| {
            let word = if envelope.enforced {
                "enforced"
            } else {
                "NOT enforced"
            };
            let whose = if alone {
                "all steps".to_owned()
            } else {
                steps.join(", ")
            };
            let mut table = Table::new(
                format!("envelope-{i}"),
                format!("Limits: {}, {word} ({whose})", envelope.mode),
            )
            .texts(&["limit"])
            .numbers(&["requested", "in force"])
            .texts(&["note"]);
            for line in &envelope.lines {
                let text = |v: Option<u64>| limit_text(&line.limit, v);
                let missing = line.requested.is_some() && line.requested != line.effective;
                let effective = Cell::num(text(line.effective));
                table.push(vec![
                    Cell::text(&line.limit),
                    Cell::num(text(line.requested)),
                    if missing {
                        effective.class("bad")
                    } else {
                        effective
                    },
                    Cell::text(&line.note),
                ]);
            }
            table
        })
        .collect()
}

fn limit_text(limit: &str, value: Option<u64>) -> String {
    match value {
        None => "none".to_owned(),
        Some(v) if limit.contains("memory") => stdx::ByteSize(v).to_string(),
        Some(v) if limit.ends_with("B/s") => format!("{}/s", format::bytes(v as f64)),
        Some(v) => format::count(v),
    }
}

fn fairness(view: &View<'_>) -> Table {
    let mut table = Table::new("fairness", "The targets and where they differ").texts(&[
        "target",
        "engine",
        "version",
        "licence",
        "a commit",
        "compression",
        "direct I/O",
        "torn pages",
        "cache",
        "options changed",
    ]);
    for (i, target) in view.targets.iter().enumerate() {
        let name = Cell::target(target.name, view.color(i));
        let Some(record) = target.record else {
            let mut row = vec![name];
            row.extend((0..9).map(|_| Cell::text(format::MISSING).class("na")));
            table.push(row);
            continue;
        };
        let changed: Vec<String> = record
            .options
            .iter()
            .filter(|(k, _)| record.changed.contains(k))
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        let changed = if changed.is_empty() {
            "none".to_owned()
        } else {
            changed.join(", ")
        };
        let (kind, clause) = record.torn_pages();
        let owner = if record.ours { "our own engine" } else { "" };
        table.push(vec![
            name.sub(owner),
            Cell::text(&record.engine),
            Cell::text(&record.version),
            Cell::text(&record.license),
            Cell::text(&record.durability),
            Cell::text(&record.compression),
            Cell::text(yes(record.direct_io)),
            Cell::text(kind).sub(clause).class("prose"),
            match record.cache_bytes {
                0 => Cell::text(format::MISSING).class("na"),
                bytes => Cell::text(stdx::ByteSize(bytes).to_string()),
            },
            Cell::text(changed),
        ]);
    }
    table
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// Maximum number of stalls in the list; the data contain all of them.
const STALLS_MAX: usize = 200;

/// Section 5: the stalls of all repeats, the longest first.
pub(crate) fn stalls(view: &View<'_>) -> Table {
    let mut table = Table::new("stall-list", "")
        .texts(&["target", "step"])
        .numbers(&["repeat", "from s", "length s", "lowest rate/s"])
        .texts(&["cause, most likely first"]);
    let mut all: Vec<_> = view
        .steps
        .iter()
        .flat_map(|s| s.cells.iter().map(move |c| (s, c)))
        .flat_map(|(s, c)| c.record.stalls.iter().map(move |stall| (s, c, stall)))
        .collect();
    all.sort_by(|a, b| b.2.seconds.total_cmp(&a.2.seconds));
    table.caption = if all.len() > STALLS_MAX {
        format!("The {STALLS_MAX} longest of {} stalls", all.len())
    } else {
        "Stalls, the longest first".to_owned()
    };
    for (step, cell, stall) in all.into_iter().take(STALLS_MAX) {
        let causes = if stall.causes.is_empty() {
            Cell::text("nothing was seen").class("na")
        } else {
            Cell::text(stall.causes.join("; "))
        };
        table.push(vec![
            Cell::target(view.name(cell.target), view.color(cell.target)),
            Cell::text(&step.plan.name),
            Cell::num(cell.repeat.to_string()),
            Cell::num(format::fixed(stall.start, 0)),
            Cell::num(format::fixed(stall.seconds, 0)),
            Cell::number(stall.rate_min),
            causes,
        ]);
    }
    table
}

/// Section 6.
#[derive(Debug, Serialize)]
pub(crate) struct Environment {
    pub(crate) host: Table,
    pub(crate) params: Table,
    pub(crate) options: Vec<Table>,
    pub(crate) discarded: Table,
}

/// The machine, the experiment's parameters, and every option of every target.
pub(crate) fn environment(view: &View<'_>) -> Environment {
    let flat = |id: &str, caption: &str, value: &Value| {
        let mut table = Table::new(id, caption).texts(&["fact", "value"]);
        flatten("", value, &mut table);
        table
    };
    let mut discarded =
        Table::new("discarded", "Steps discarded, failed or unfinished").texts(&["step", "reason"]);
    let lost = view
        .run
        .discarded
        .iter()
        .map(|(d, r)| (d.as_str(), r.clone()));
    let failed = view.failed.iter().map(|f| (f.directory, f.reason.clone()));
    for (directory, reason) in lost.chain(failed) {
        discarded.push(vec![Cell::text(directory), Cell::text(reason)]);
    }
    let options = view.run.targets.iter().enumerate().map(|(i, target)| {
        let caption = format!("Options of {}", target.name);
        let mut table = Table::new(format!("options-{i}"), caption).texts(&[
            "option",
            "in force",
            "differs from the default",
        ]);
        for (name, value) in &target.options {
            let changed = target.changed.contains(name);
            let differs = Cell::text(if changed { "changed" } else { "" });
            table.push(vec![
                Cell::text(name),
                Cell::text(value).class("code"),
                if changed {
                    differs.class("warn")
                } else {
                    differs
                },
            ]);
        }
        table
    });
    Environment {
        host: flat("host", "The machine", &view.run.manifest.host),
        params: flat(
            "params",
            "Parameters of the experiment",
            &view.run.manifest.plan.params,
        ),
        options: options.collect(),
        discarded,
    }
}

/// JSON as rows of path and value.
fn flatten(path: &str, value: &Value, table: &mut Table) {
    let join = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                flatten(&join(key), inner, table);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, inner) in items.iter().enumerate() {
                flatten(&join(&i.to_string()), inner, table);
            }
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(plain).collect();
            push_fact(path, words.join(", "), table);
        }
        Value::Null => push_fact(path, format::MISSING.to_owned(), table),
        other => push_fact(path, plain(other), table),
    }
}

fn push_fact(path: &str, text: String, table: &mut Table) {
    if !path.is_empty() {
        table.push(vec![Cell::text(path), Cell::text(text).class("code")]);
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Above this share of the CPU, the client may limit the result.
const CLIENT_SHARE: f64 = 0.25;

/// Section 7, as far as it has numbers.
#[derive(Debug, Serialize)]
pub(crate) struct Method {
    pub(crate) clients: Table,
    pub(crate) client_warning: bool,
    pub(crate) sources: String,
    pub(crate) floors: Table,
    pub(crate) grouping: usize,
    pub(crate) closed: bool,
    /// The limits of caps on this machine; empty if caps apply to everything.
    pub(crate) caps: String,
}

/// The cost of measuring, the source of device numbers, and noise floors.
pub(crate) fn method(view: &View<'_>, grouping: usize) -> Method {
    let mut clients = Table::new("measuring-cost", "Cost of measuring, and steadiness")
        .texts(&["target", "step"])
        .numbers(&[
            "repeat",
            "client CPU",
            "lab CPU",
            "lab memory",
            "rows checked",
        ])
        .texts(&["device bytes from", "steady"]);
    let mut client_warning = false;
    let mut sources: Vec<&str> = Vec::new();
    for step in &view.steps {
        for cell in &step.cells {
            let s = cell.summary;
            let cpu = cpu_of_both(view, cell);
            let of_cpu = |seconds: f64| {
                let share = cpu.map(|cpu| format::percent(seconds / cpu));
                Cell::num(share.unwrap_or(format::MISSING.to_owned()))
            };
            let high = cpu.is_some_and(|cpu| s.client_cpu_seconds / cpu > CLIENT_SHARE);
            client_warning |= high;
            if !sources.contains(&s.device_source.as_str()) {
                sources.push(&s.device_source);
            }
            let client = of_cpu(s.client_cpu_seconds);
            let checked = if s.integrity.checked {
                format::count(s.integrity.rows_found)
            } else {
                format::MISSING.to_owned()
            };
            clients.push(vec![
                Cell::target(view.name(cell.target), view.color(cell.target)),
                Cell::text(&step.plan.name),
                Cell::num(cell.repeat.to_string()),
                if high { client.class("warn") } else { client },
                of_cpu(s.lab_cpu_seconds),
                Cell::num(format::bytes(s.lab_rss_bytes as f64)),
                Cell::num(checked),
                Cell::text(&s.device_source),
                Cell::text(steady(cell)),
            ]);
        }
    }
    Method {
        clients,
        client_warning,
        sources: sources.join(", "),
        floors: floors(view),
        grouping,
        closed: view
            .steps
            .iter()
            .any(|s| matches!(s.plan.load, crate::record::LoadKind::Closed)),
        caps: limits_of_caps(view.run).unwrap_or_default(),
    }
}

/// The CPU of both sides of a cell: a server's own CPU, and that of its client.
fn cpu_of_both(view: &View<'_>, cell: &CellView<'_>) -> Option<f64> {
    let s = cell.summary;
    let beside = if view.server(cell.target) {
        s.client_cpu_seconds
    } else {
        0.0
    };
    s.cpu_seconds.map(|cpu| (cpu + beside).max(1e-9))
}

/// Whether the rate of a cell reached a steady state.
fn steady(cell: &CellView<'_>) -> &'static str {
    match second_stats(&cell.record.series, cell.summary.main).steady {
        Some(true) => "yes",
        Some(false) => "no",
        None => "too short to say",
    }
}

fn floors(view: &View<'_>) -> Table {
    let mut table = Table::new("noise", "A/A noise floors of this host").texts(&["metric"]);
    table.columns.push(Column {
        label: "floor".to_owned(),
        number: true,
        title: "relative difference of two runs of the same thing".to_owned(),
        swatch: None,
    });
    for (name, floor) in &view.run.noise {
        let label = Shown::named(name).map_or(name.clone(), |m| m.label(Operation::ROW));
        table.push(vec![Cell::text(label), Cell::num(format::percent(*floor))]);
    }
    table
}
