//! The report of a run: one HTML file that needs no network.
//!
//! Data flow: [`RunRecord`] -> `model` (targets, steps, the repeat to show) -> `verdict`,
//! `matrix`, `steps`, `sections` (plain data) -> the templates in `assets/`. Numbers are compared
//! in [`crate::analysis`] and nowhere else; the browser only draws.
//!
//! I1: nothing in the page is loaded from elsewhere (its content security policy forbids it).
//! I2: every text of a record is escaped: by the templates, by [`svg::escape`], or by `data`.
//! I3: a number that was not measured is `n/a`, never empty and never zero.
//! I4: every section names the limits that are not in force.

mod compare;
mod cost;
mod counters;
mod data;
mod kinds;
mod maps;
mod matrix;
mod metrics;
mod model;
mod overview;
mod plots;
mod published;
mod sections;
mod spread;
mod steps;
pub mod svg;
mod sweep;
mod tables;
mod usage;
mod verdict;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::record::{Manifest, RunRecord, SCHEMA};

use model::View;

pub use overview::{Part, overview};
pub use sweep::sweep;

/// Why a report could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The run was written by another version.
    #[error(
        "run {run:?} has schema {found}, this program reads {SCHEMA}; make the report with the lab \
         version that made the run"
    )]
    Schema {
        /// The run.
        run: String,
        /// Its schema.
        found: u32,
    },
    /// A template failed: a fault of this program.
    #[error("the report's template failed: {0}")]
    Template(#[from] minijinja::Error),
    /// Records that are no JSON: a fault of this program.
    #[error("the records cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Compressing the data failed.
    #[error("the report's data cannot be compressed: {0}")]
    Compress(#[from] std::io::Error),
}

const TEMPLATES: [(&str, &str); 9] = [
    ("report.html", include_str!("../../assets/report.html")),
    ("overview.html", include_str!("../../assets/overview.html")),
    ("sweep.html", include_str!("../../assets/sweep.html")),
    ("macros.html", include_str!("../../assets/macros.html")),
    ("step.html", include_str!("../../assets/step.html")),
    (
        "published.html",
        include_str!("../../assets/published.html"),
    ),
    ("maps.html", include_str!("../../assets/maps.html")),
    ("cost.html", include_str!("../../assets/cost.html")),
    ("method.html", include_str!("../../assets/method.html")),
];
/// The style sheet of reports, and of other pages that look like them.
pub const CSS: &str = include_str!("../../assets/report.css");
const JS: &str = include_str!("../../assets/report.js");
const UPLOT_CSS: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_JS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENSE: &str = include_str!("../../assets/uplot/LICENSE");

/// A place the navigation leads to.
#[derive(Serialize)]
struct Place {
    id: String,
    label: String,
    inner: bool,
}

/// Everything the templates see.
#[derive(Serialize)]
struct Page<'a> {
    manifest: &'a Manifest,
    command: String,
    complete: bool,
    uncapped: Vec<String>,
    nav: Vec<Place>,
    verdict: verdict::Verdict,
    tested: sections::Tested,
    matrices: Vec<matrix::Matrix>,
    steps: Vec<steps::StepPart>,
    published: Option<published::PublishedPart>,
    cost: cost::CostPart,
    maps: Option<maps::MapsPart>,
    stalls: tables::Table,
    environment: sections::Environment,
    method: sections::Method,
    data: String,
    gzip: bool,
    palette: String,
    css: &'static str,
    js: &'static str,
    uplot_css: &'static str,
    uplot_js: &'static str,
    uplot_license: &'static str,
}

/// Makes the report of a run as one HTML text.
///
/// # Errors
///
/// [`ReportError::Schema`] when the run was written by another version of the lab; the other kinds
/// are faults of this program.
pub fn render(run: &RunRecord) -> Result<String, ReportError> {
    if run.manifest.schema != SCHEMA {
        return Err(ReportError::Schema {
            run: run.manifest.run.clone(),
            found: run.manifest.schema,
        });
    }
    let view = View::new(run);
    let (parts, numbers): (Vec<_>, Vec<_>) = view
        .steps
        .iter()
        .enumerate()
        .map(|(i, step)| steps::part(&view, step, i))
        .unzip();
    let drawings = parts.iter().map(steps::StepPart::drawn_bytes).sum();
    let packed = data::pack(&data::document(&view, &numbers)?, drawings)?;
    let page = Page {
        manifest: &run.manifest,
        command: shell(&run.manifest.command),
        complete: run.summary.complete,
        uncapped: view.uncapped(),
        nav: places(&parts, &view),
        verdict: verdict::verdict(&view),
        tested: sections::tested(&view),
        matrices: view
            .steps
            .iter()
            .map(|s| matrix::matrix(&view, s))
            .collect(),
        steps: parts,
        published: published::part(&view),
        cost: cost::part(&view),
        maps: maps::part(&view),
        stalls: sections::stalls(&view),
        environment: sections::environment(&view),
        method: sections::method(&view, data::grouping(&view)),
        data: packed.text,
        gzip: packed.gzip,
        palette: serde_json::to_string(&svg::PALETTE)?,
        css: CSS,
        js: JS,
        uplot_css: UPLOT_CSS,
        uplot_js: UPLOT_JS,
        uplot_license: UPLOT_LICENSE,
    };
    let template = templates()?;
    let page = template.get_template("report.html")?.render(Serde(&page))?;
    Ok(page)
}

fn templates() -> Result<Environment<'static>, ReportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

fn places(steps: &[steps::StepPart], view: &View<'_>) -> Vec<Place> {
    let place = |id: &str, label: &str, inner: bool| Place {
        id: id.to_owned(),
        label: label.to_owned(),
        inner,
    };
    let mut all = vec![
        place("verdict", "Verdict", false),
        place("tested", "What was tested", false),
        place("summary", "Summary", false),
    ];
    if crate::published::beside(view.run).is_some() {
        all.push(place("published", "Beside what was published", false));
    }
    if !steps.is_empty() {
        all.push(place("steps", "Steps", false));
    }
    all.extend(steps.iter().map(|s| place(&s.id, &s.name, true)));
    all.extend([
        place("cost", "Cost", false),
        place("stalls", "Stalls", false),
    ]);
    if view.run.steps.iter().any(|step| step.map.is_some()) {
        all.push(place("maps", "Maps", false));
    }
    all.extend([
        place("environment", "Environment", false),
        place("method", "Method and limits", false),
        place("raw", "Raw data", false),
    ]);
    all
}

/// A command line as one would type it.
fn shell(words: &[String]) -> String {
    let plain = |w: &String| {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
        !w.is_empty() && w.chars().all(safe)
    };
    let quoted: Vec<String> = words
        .iter()
        .map(|w| {
            if plain(w) {
                w.clone()
            } else {
                format!("'{}'", w.replace('\'', "'\\''"))
            }
        })
        .collect();
    quoted.join(" ")
}
