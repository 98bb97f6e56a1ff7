//! The table: medians, and how many times faster betree is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What was measured, by step and engine.
#[derive(Default)]
pub(crate) struct Table {
    /// Steps in the order of the run.
    steps: Vec<String>,
    values: BTreeMap<(String, String), Vec<f64>>,
}

impl Table {
    /// Add a value of `engine`.
    pub(crate) fn add(&mut self, engine: &str, step: &str, value: f64) {
        if !self.steps.iter().any(|known| known == step) {
            self.steps.push(step.to_owned());
        }
        let key = (step.to_owned(), engine.to_owned());
        self.values.entry(key).or_default().push(value);
    }

    /// The median of what an engine did in a step.
    fn median(&self, engine: &str, step: &str) -> Option<f64> {
        let mut values = self
            .values
            .get(&(step.to_owned(), engine.to_owned()))?
            .clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// The table. A peer's cell has its rate and, in brackets, betree's divided by it; where betree
    /// is behind (or takes more space) the cell is bold.
    pub(crate) fn markdown(&self, engines: &[String]) -> String {
        let mut text = format!("| per second | {} |\n|---|", engines.join(" | "));
        text += &"---:|".repeat(engines.len());
        text.push('\n');
        for step in &self.steps {
            let _ = write!(text, "| {step} |");
            let smaller_wins = step.starts_with("bytes");
            let ours = self.median("betree", step);
            for engine in engines {
                let cell = match (self.median(engine, step), ours) {
                    (None, _) => "-".to_owned(),
                    (Some(value), Some(ours)) if engine != "betree" && 0.0 < value => {
                        let ratio = ours / value;
                        let behind = if smaller_wins {
                            1.0 < ratio
                        } else {
                            ratio < 1.0
                        };
                        let mark = if behind { "**" } else { "" };
                        format!("{mark}{} ({ratio:.2}){mark}", rate(value))
                    }
                    (Some(value), _) => rate(value),
                };
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
        text
    }
}

/// A rate with three digits that count.
fn rate(value: f64) -> String {
    match value {
        v if 1e6 <= v => format!("{:.2}M", v / 1e6),
        v if 1e5 <= v => format!("{:.0}k", v / 1e3),
        v if 1e3 <= v => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_betree_loses_are_bold() {
        let mut table = Table::default();
        for (engine, step, value) in [
            ("betree", "reads", 100.0),
            ("other", "reads", 300.0),
            ("other", "reads", 200.0),
            ("other", "reads", 100.0),
            ("betree", "bytes on disk", 50.0),
            ("other", "bytes on disk", 100.0),
        ] {
            table.add(engine, step, value);
        }
        let text = table.markdown(&["betree".to_owned(), "other".to_owned()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "| per second | betree | other |",
                "|---|---:|---:|",
                "| reads | 100 | **200 (0.50)** |",
                "| bytes on disk | 50 | 100 (0.50) |",
            ]
        );
    }
}
