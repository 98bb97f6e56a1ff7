//! Showing a run: bars on a terminal, plain lines when piped, one JSON object a line with `--json`.

mod bars;
mod json;
mod lines;
mod text;

pub use bars::Bars;
pub use json::Json;
pub use lines::Lines;
pub use text::{plan_text, step_line};

use std::io::{IsTerminal, stderr};

use crate::run::{Progress, Silent};

/// How to show a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bars where there is a terminal, else lines.
    Auto,
    /// JSON lines on standard output.
    Json,
    /// Nothing.
    Quiet,
}

/// The display of that style.
#[must_use]
pub fn display(style: Style) -> Box<dyn Progress> {
    match style {
        Style::Json => Box::new(Json),
        Style::Quiet => Box::new(Silent),
        Style::Auto if stderr().is_terminal() => Box::new(Bars::new()),
        Style::Auto => Box::new(Lines::default()),
    }
}
