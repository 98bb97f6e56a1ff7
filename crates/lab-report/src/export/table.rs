//! The summary as a table.

use crate::analysis::METRICS;
use crate::record::{Operation, Plan, RunSummary, TargetStepSummary};

/// A table for each step: a line for each metric measured on any target, a column for each target.
/// The head of a mix says what its rates and costs count. Intervals stand behind the median:
/// `101 [100, 102]`.
pub(super) fn markdown(plan: &Plan, summary: &RunSummary) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for entry in &summary.results {
        if !steps.contains(&entry.step.as_str()) {
            steps.push(&entry.step);
        }
    }
    let tables = steps.iter().map(|step| {
        let of = |entry: &&TargetStepSummary| entry.step == *step;
        let mix = plan.steps.iter().find(|s| s.name == *step);
        let mix = mix.and_then(|s| Operation::of_mix(&plan.experiment, s));
        let head = match mix {
            Some(operation) => format!("{step} ({})", operation.many),
            None => (*step).to_owned(),
        };
        step_table(
            &head,
            &summary.results.iter().filter(of).collect::<Vec<_>>(),
        )
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn step_table(head: &str, entries: &[&TargetStepSummary]) -> String {
    let names = entries.iter().map(|entry| {
        let note = if entry.valid { "" } else { " (invalid)" };
        escape(&format!("{}{note}", entry.target))
    });
    let mut text = format!("### {}\n\n| metric | unit |", escape(head));
    for name in names {
        text.push_str(&format!(" {name} |"));
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---:|".repeat(entries.len()));
    text.push('\n');
    for metric in METRICS {
        let value = |e: &&TargetStepSummary| e.metrics.get(metric.name).copied().flatten();
        if entries.iter().all(|e| value(e).is_none()) {
            continue;
        }
        text.push_str(&format!("| {} | {} |", metric.name, metric.unit));
        for entry in entries {
            text.push_str(&format!(" {} |", cell(entry, metric.name)));
        }
        text.push('\n');
    }
    text
}

fn cell(entry: &TargetStepSummary, metric: &str) -> String {
    let Some(value) = entry.metrics.get(metric).copied().flatten() else {
        return "-".to_owned();
    };
    match entry.estimates.get(metric) {
        Some(e) if e.low < e.high => {
            format!("{} [{}, {}]", round(value), round(e.low), round(e.high))
        }
        _ => round(value),
    }
}

/// Rounded to at least four digits for reading; the other formats have all digits.
fn round(value: f64) -> String {
    let digits = match value.abs() {
        size if size < 10.0 => 3,
        size if size < 100.0 => 2,
        size if size < 1000.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A text as the cell of a table in Markdown.
pub(super) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use crate::export::{Format, export};
    use crate::fixture::{run, step};

    #[test]
    fn tables_have_a_line_for_each_target_and_step() {
        let steps = vec![
            step("a|b", 1, 100.0),
            step("a|b", 2, 102.0),
            step("c", 1, 7.25),
        ];
        let run = run("r", &["a|b", "c"], 2, steps);
        let tsv = export(&run, Format::Tsv).unwrap();
        let lines: Vec<Vec<&str>> = tsv.lines().map(|l| l.split('\t').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|l| l.len() == 5 + 37));
        assert_eq!(lines[0][7], "rate_mean");
        assert_eq!((lines[1][7], lines[2][7]), ("101", "7.25"));
        let csv = export(&run, Format::Csv).unwrap();
        assert_eq!(csv, tsv.replace('\t', ","));
        let markdown = export(&run, Format::Markdown).unwrap();
        assert!(
            markdown.contains("| metric | unit | a\\|b | c (invalid) |"),
            "{markdown}"
        );
        assert!(
            markdown.contains("| rate_mean | 1/s | 101 [89.06, 114.5] | 7.25 |"),
            "{markdown}"
        );
        assert!(!markdown.contains("query_rate"), "{markdown}");
    }
}
