//! The price of a run as text for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::crossover::Leaders;
use super::estimate::{Cost, CostLine, Mode};

const HEAD: [&str; 15] = [
    "target",
    "step",
    "volume",
    "I/O",
    "unit",
    "rate",
    "sustained",
    "GB",
    "IOPS",
    "storage $",
    "total $",
    "rate per $",
    "storage only",
    "sustained per $",
    "$ per million",
];

/// The table of a cost, its prices and its notes.
#[must_use]
pub fn render(cost: &Cost) -> String {
    let prices = &cost.prices;
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEAD);
    for line in &cost.lines {
        table.add_row(row(line));
    }
    for place in 5..HEAD.len() {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!(
        "prices {} of {} ({}; {}); {} at {} dollars an hour, {}\n{table}\n",
        prices.name,
        prices.date,
        prices.region,
        prices.source,
        prices.instance.name,
        prices.instance.dollars_per_hour,
        prices.instance.terms,
    );
    let reasons = reasons(cost);
    let leaders: Vec<String> = cost.leaders.iter().map(Leaders::sentence).collect();
    for note in leaders.iter().chain(&cost.notes).chain(&reasons) {
        text.push_str("  ");
        text.push_str(note);
        text.push('\n');
    }
    if cost.lines.is_empty() {
        text.push_str("  Nothing to price: no target has a valid step with data on disk.\n");
    }
    text
}

/// What has no price and no sustained rate, and why: each once.
fn reasons(cost: &Cost) -> Vec<String> {
    let prices = cost.lines.iter().filter_map(|line| {
        let reason = line.reason.as_ref()?;
        let (mode, volume) = (line.mode.name(), &line.volume);
        Some(format!("n/a: {mode} on {volume}: {reason}"))
    });
    let repeated = cost.repeated();
    let rates = cost.lines.iter().filter(|_| repeated).filter_map(|line| {
        let reason = line.sustainable_reason.as_ref()?;
        let (target, step) = (&line.target, &line.step);
        Some(format!(
            "n/a: sustained rate of {target} in {step}: {reason}"
        ))
    });
    let mut reasons: Vec<String> = Vec::new();
    for reason in prices.chain(rates) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

fn row(line: &CostLine) -> Vec<String> {
    let number = |value: Option<f64>| crate::format::maybe(value);
    let mode = match line.mode {
        Mode::Provisioned => "provisioned",
        Mode::Required => "required",
    };
    let volume = match line.volumes {
        Some(n) if n > 1 => format!("{n} x {}", line.volume),
        _ => line.volume.clone(),
    };
    vec![
        line.target.clone(),
        line.step.clone(),
        volume,
        mode.to_owned(),
        format!("{}/s", line.operation),
        number(Some(line.rate)),
        number(line.sustainable),
        number(line.gb),
        number(line.required.map(|r| r.iops)),
        number(line.storage),
        number(line.total),
        number(line.rate_per_dollar),
        number(line.rate_per_storage_dollar),
        number(line.sustainable_per_dollar),
        number(line.dollars_per_million),
    ]
}
