//! Comparisons and checks as text for a terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::check::{Check, CheckLine, Outcome};
use super::compare::{Comparison, ComparisonRow, Pair};

/// An interval whose ends differ by this factor says nothing, whatever its digits.
const WIDE: f64 = 100.0;

/// The text of a missing number.
const NOTHING: &str = "-";

impl Comparison {
    /// Tables for people: absolute numbers, the ratio with its interval, and the verdict.
    #[must_use]
    pub fn render(&self) -> String {
        let mut parts: Vec<String> = self.pairs.iter().map(pair).collect();
        parts.push(
            "Ratios are of geometric means over the repeats; their intervals hold all together \
             with a probability of 96 %."
                .to_owned(),
        );
        if !self.warnings.is_empty() {
            let lines: Vec<String> = self.warnings.iter().map(|w| format!("- {w}")).collect();
            parts.push(format!("Mind that\n{}", lines.join("\n")));
        }
        parts.join("\n\n")
    }
}

fn pair(pair: &Pair) -> String {
    let head = format!(
        "{}: {} ({}) against {} ({})",
        pair.step,
        pair.target,
        repeats(pair.repeats),
        pair.base,
        repeats(pair.base_repeats)
    );
    let with_p = pair.rows.iter().any(|row| row.p_value.is_some());
    let mut names = vec![
        "metric",
        "unit",
        &pair.base,
        &pair.target,
        "ratio",
        "interval",
    ];
    if with_p {
        names.push("p");
    }
    names.push("verdict");
    let mut table = table(&names);
    for row in &pair.rows {
        table.add_row(line(row, with_p));
    }
    align(&mut table, &[2, 3, 4, 5]);
    match (&pair.invalid, &pair.disturbed) {
        (Some(why), _) => format!("{head}\ninvalid: {why}\n{table}"),
        (None, Some(why)) => format!("{head}\ninconclusive: {why}\n{table}"),
        (None, None) => format!("{head}\n{table}"),
    }
}

fn repeats(n: u32) -> String {
    if n == 1 {
        "1 repeat".to_owned()
    } else {
        format!("{n} repeats")
    }
}

fn line(row: &ComparisonRow, with_p: bool) -> Vec<String> {
    let interval = row.low.zip(row.high).map(|(low, high)| {
        let within = if row.within_run { " within run" } else { "" };
        if high / low < WIDE {
            format!("{low:.3} to {high:.3}{within}")
        } else {
            format!("too wide{within}")
        }
    });
    let mut cells = vec![
        row.metric.clone(),
        row.unit.clone(),
        number(row.base, &row.unit),
        number(row.value, &row.unit),
        or_nothing(row.ratio.map(|r| format!("x{r:.3}"))),
        or_nothing(interval),
    ];
    if with_p {
        cells.push(or_nothing(row.p_value.map(|p| format!("{p:.3}"))));
    }
    cells.push(or_nothing(row.verdict.map(|v| v.to_string())));
    cells
}

impl Check {
    /// A table for people: each rule on each target and step, and the outcome.
    #[must_use]
    pub fn render(&self) -> String {
        let names = [
            "target", "step", "rule", "base", "run", "change", "interval", "verdict",
        ];
        let mut table = table(&names);
        for line in &self.lines {
            table.add_row(check_line(line));
        }
        align(&mut table, &[3, 4, 5, 6]);
        let mut text = table.to_string();
        for note in &self.notes {
            text.push_str(&format!("\n- {note}"));
        }
        let disturbed = self.lines.iter().any(|line| line.disturbed);
        if disturbed {
            text.push_str(
                "\n- other programs disturbed repeats, so their rules are inconclusive: run them \
                 again on a machine that does nothing else",
            );
        } else if self.outcome() == Outcome::Inconclusive {
            text.push_str(
                "\n- the intervals are too wide to decide: repeat both runs more often \
                 (--repeats 5 or more), on a machine that does nothing else",
            );
        }
        text.push_str(&format!(
            "\n{} against {}: {}",
            self.run,
            self.base,
            self.outcome()
        ));
        text
    }
}

fn check_line(line: &CheckLine) -> Vec<String> {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let interval = line.low.zip(line.high);
    let interval = interval.map(|(low, high)| format!("{} to {}", percent(low), percent(high)));
    let mut verdict = line.verdict.to_string();
    if line.single_repeat {
        verdict.push_str(" (single repeat)");
    }
    vec![
        line.target.clone(),
        line.step.clone(),
        line.rule.clone(),
        number(line.old, &line.unit),
        number(line.new, &line.unit),
        or_nothing(line.change.map(|c| percent(1.0 + c))),
        or_nothing(interval),
        verdict,
    ]
}

fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    // Tables are pasted into issues and posts: Markdown reads well as it is.
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head.iter().copied());
    table
}

fn align(table: &mut Table, numbers: &[usize]) {
    for &place in numbers {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

/// A number as people read it: bytes in powers of 1024, anything else with about four digits.
fn number(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value else {
        return NOTHING.to_owned();
    };
    if unit == "bytes" && 1024.0 <= value {
        const NAMES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        let mut scaled = value / 1024.0;
        let mut names = NAMES.iter();
        let mut name = names.next();
        while 1024.0 <= scaled {
            let Some(next) = names.next() else { break };
            scaled /= 1024.0;
            name = Some(next);
        }
        return format!("{} {}", digits(scaled), name.unwrap_or(&""));
    }
    digits(value)
}

fn digits(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        format!("{value}")
    } else if 1000.0 <= size {
        format!("{value:.0}")
    } else if 100.0 <= size {
        format!("{value:.1}")
    } else if 10.0 <= size {
        format!("{value:.2}")
    } else if 0.001 <= size {
        format!("{value:.3}")
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Better, Verdict};

    #[test]
    fn numbers_read_well() {
        let cases = [
            (Some(1536.0), "bytes", "1.500 KiB"),
            (Some(3.0 * 1024.0 * 1024.0), "bytes", "3 MiB"),
            (Some(12.0), "bytes", "12"),
            (Some(123_456.7), "1/s", "123457"),
            (Some(123.45), "ms", "123.5"),
            (Some(12.345), "ms", "12.35"),
            (Some(1.5), "ratio", "1.500"),
            (Some(0.000_012), "1", "1.20e-5"),
            (Some(0.0), "1", "0"),
            (None, "1", "-"),
        ];
        for (value, unit, text) in cases {
            assert_eq!(number(value, unit), text);
        }
    }

    #[test]
    fn an_interval_that_says_nothing_has_no_digits() {
        let row = |high| ComparisonRow {
            metric: "rss_max".to_owned(),
            unit: "bytes".to_owned(),
            better: Better::Lower,
            base: Some(1.0),
            value: Some(1.5),
            ratio: Some(1.5),
            low: Some(0.5),
            high: Some(high),
            within_run: false,
            p_value: None,
            floor: 0.02,
            verdict: Some(Verdict::Inconclusive),
        };
        assert_eq!(line(&row(2.0), false)[5], "0.500 to 2.000");
        assert_eq!(line(&row(80.0), false)[5], "too wide");
    }
}
