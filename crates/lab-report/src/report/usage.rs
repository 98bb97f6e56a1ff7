//! Utilisation, saturation and errors of a step: of the processor, of memory and of the disk, by
//! target and repeat, and what other programs did meanwhile.
//!
//! - U1. A repeat is marked by what its record says: disturbed with the reasons, quiet, too short
//!   to judge, or not recorded.
//! - U2. Saturation is pressure (PSI) of the whole machine: the share of the load in which some
//!   task waited for the resource.

use crate::format;
use crate::record::{JUDGED_SECONDS, SeriesRow, StepSummary};

use super::model::{CellView, StepView, View};
use super::tables::{Cell, Table};

/// Repeats of all steps together up to which each has a row.
const CELLS_MOST: usize = 60;

/// The table; `None` where no repeat is done.
pub(crate) fn usage(view: &View<'_>, step: &StepView<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("{}-usage", step.id),
        "Utilisation, saturation and errors; and other programs on the machine",
    )
    .texts(&["target"])
    .numbers(&[
        "repeat",
        "CPU, cores",
        "CPU waits",
        "memory",
        "memory waits",
        "disk bytes/s",
        "disk waits",
        "errors",
        "others' CPU",
        "others' I/O",
    ])
    .texts(&["machine"]);
    table.class = "usage".to_owned();
    // With many repeats and steps only the shown repeats and the disturbed ones have a row.
    let all: usize = view.steps.iter().map(|s| s.cells.len()).sum();
    let few = all <= CELLS_MOST;
    for cell in &step.cells {
        if few || cell.shown || !cell.summary.disturbed().is_empty() {
            table.push(row(view, cell));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn row(view: &View<'_>, cell: &CellView<'_>) -> Vec<Cell> {
    let s = cell.summary;
    let others = s.others.as_ref();
    let mean = |of: fn(&SeriesRow) -> Option<f64>| {
        let load = cell.record.series.iter().filter(|r| r.phase != "settle");
        let values: Vec<f64> = load.filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let share = |value: Option<f64>| match value {
        Some(value) => Cell::num(format::percent(value)),
        None => Cell::num(format::MISSING),
    };
    let fixed = |value: Option<f64>, digits| match value {
        Some(value) => Cell::num(format::fixed(value, digits)),
        None => Cell::num(format::MISSING),
    };
    let bytes = |value: Option<f64>| match value {
        Some(value) => Cell::num(format::bytes(value)),
        None => Cell::num(format::MISSING),
    };
    let moved = mean(|r| Some((r.read_bytes? + r.write_bytes?) as f64));
    let operations = mean(|r| Some((r.read_ios? + r.write_ios?) as f64));
    let memory = s.cgroup_memory_max.or(s.rss_max);
    let cpus = others.map_or(String::new(), |o| format!("of {}", o.cpus));
    let limit = view.run.manifest.plan.limits.memory;
    let limit = limit.map_or(String::new(), |m| format!("of {m}"));
    let steal = others.and_then(|o| o.steal);
    let steal = steal.map_or(String::new(), |s| format!("steal {}", format::percent(s)));
    let errors: u64 = cell.record.series.iter().map(|r| r.errors).sum();
    vec![
        Cell::target(view.name(cell.target), view.color(cell.target)),
        Cell::num(cell.repeat.to_string()),
        fixed(mean(|r| r.cpu), 2).sub(cpus),
        share(others.and_then(|o| o.psi_cpu)),
        bytes(memory.map(|m| m as f64)).sub(limit),
        share(others.and_then(|o| o.psi_memory)),
        bytes(moved)
            .sub(operations.map_or(String::new(), |o| format!("{} I/O/s", format::number(o)))),
        share(others.and_then(|o| o.psi_io)),
        Cell::num(format::count(errors)),
        share(others.and_then(|o| o.cpu)).sub(steal),
        bytes(others.and_then(|o| o.bytes).map(|b| b as f64)),
        mark(s),
    ]
}

/// U1.
fn mark(s: &StepSummary) -> Cell {
    match &s.others {
        None => Cell::text("not recorded").class("na"),
        Some(o) if !o.disturbed.is_empty() => Cell::text("disturbed")
            .sub(o.disturbed.join("; "))
            .class("warn prose"),
        Some(o) if o.seconds < JUDGED_SECONDS => Cell::text("too short to judge").class("na"),
        Some(_) => Cell::text("quiet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Others;
    use crate::report::fixture::{self, Shape};

    #[test]
    fn each_repeat_is_marked_by_what_its_record_says() {
        let with = |others: Option<Others>| {
            mark(&StepSummary {
                others,
                ..StepSummary::default()
            })
        };
        assert_eq!(
            with(None).text,
            "not recorded",
            "U1: runs of earlier versions"
        );
        let of = |seconds: f64, cpu: f64| {
            let others = Others {
                seconds,
                cpu: Some(cpu),
                ..Others::default()
            };
            with(Some(others.judged()))
        };
        assert_eq!(of(30.0, 0.01).text, "quiet");
        assert_eq!(of(1.0, 0.9).text, "too short to judge");
        let disturbed = of(30.0, 0.4);
        assert_eq!(disturbed.text, "disturbed", "U1");
        assert_eq!(disturbed.sub, "other programs used 40 % of the CPU time");
    }

    #[test]
    fn every_repeat_of_a_step_has_its_row() {
        let run = fixture::run(&Shape::default());
        let view = View::new(&run);
        let step = &view.steps[0];
        let table = usage(&view, step).unwrap();
        assert_eq!(table.rows.len(), step.cells.len());
        assert!(table.rows.iter().all(|r| r[11].text == "not recorded"));
        let unknown = table.rows.iter().all(|r| r[3].text == format::MISSING);
        assert!(unknown, "U2: without a record there is no pressure");
    }
}
