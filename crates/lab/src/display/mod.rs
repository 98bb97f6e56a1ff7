//! Shows a run: bars on a terminal, plain lines when piped, one JSON object per line with `--json`.

mod bars;
mod json;
mod lines;
mod text;

pub use bars::Bars;
pub use json::Json;
pub use lines::Lines;
pub use text::{plan_text, step_line};

use std::io::{IsTerminal, Write, stderr, stdout};

use crate::run::{Progress, Silent};

/// How to show a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bars on a terminal; plain lines if the output is piped.
    Auto,
    /// JSON lines on standard output.
    Json,
    /// No output.
    Quiet,
}

/// Print text and a newline on standard output. A closed pipe (`| head`) is no error.
pub fn say(text: &str) {
    let mut out = stdout().lock();
    // Printing fails if the reader has closed the pipe; the work itself continues.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Print a line on standard error; a closed pipe is no error.
pub fn note(text: &str) {
    // As in `say`.
    let _ = writeln!(stderr(), "{text}");
}

/// The display for a style.
#[must_use]
pub fn display(style: Style) -> Box<dyn Progress> {
    match style {
        Style::Json => Box::new(Json),
        Style::Quiet => Box::new(Silent),
        Style::Auto if stderr().is_terminal() => Box::new(Bars::new()),
        Style::Auto => Box::new(Lines::default()),
    }
}
