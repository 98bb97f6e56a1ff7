//! A page about the runs of several experiments: the verdict of each, with a link to its report.

use minijinja::value::Serde;
use serde::Serialize;

use super::model::View;
use super::verdict::{self, Verdict};
use super::{CSS, ReportError, templates};
use crate::published;
use crate::record::{RunRecord, SCHEMA};

/// An experiment of the page.
pub struct Part {
    /// Its name: also that of the directory, beside the page, of its run.
    pub name: String,
    /// The question of the experiment, in one line.
    pub about: String,
    /// Its run, or why there is none.
    pub run: Result<Box<RunRecord>, String>,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    about: String,
    failed: String,
    word: &'static str,
    class: &'static str,
    verdict: Option<Verdict>,
    shapes: Vec<String>,
}

#[derive(Serialize)]
struct Page {
    version: &'static str,
    targets: Vec<String>,
    preset: String,
    runs: Vec<Shown>,
    css: &'static str,
}

/// Make the page.
///
/// # Errors
/// As [`super::render`].
pub fn overview(parts: &[Part]) -> Result<String, ReportError> {
    let first = parts.iter().find_map(|p| p.run.as_ref().ok());
    let plan = first.map(|r| &r.manifest.plan);
    let targets = plan.map(|p| p.targets.iter().map(|t| t.name.clone()).collect());
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        targets: targets.unwrap_or_default(),
        preset: plan.map_or(String::new(), |p| p.preset.to_string()),
        runs: parts.iter().map(shown).collect::<Result<_, _>>()?,
        css: CSS,
    };
    let template = templates()?;
    let page = template
        .get_template("overview.html")?
        .render(Serde(&page))?;
    Ok(page)
}

fn shown(part: &Part) -> Result<Shown, ReportError> {
    let mut shown = Shown {
        name: part.name.clone(),
        about: part.about.clone(),
        failed: String::new(),
        word: "valid",
        class: "good",
        verdict: None,
        shapes: Vec::new(),
    };
    let run = match &part.run {
        Ok(run) => run,
        Err(message) => {
            (shown.word, shown.class) = ("no result", "bad");
            shown.failed.clone_from(message);
            return Ok(shown);
        }
    };
    if run.manifest.schema != SCHEMA {
        return Err(ReportError::Schema {
            run: run.manifest.run.clone(),
            found: run.manifest.schema,
        });
    }
    if !run.summary.valid {
        (shown.word, shown.class) = ("invalid", "bad");
    } else if !run.summary.complete {
        (shown.word, shown.class) = ("not complete", "warn");
    }
    let beside = published::beside(run);
    let shapes = beside.iter().flat_map(|b| &b.shapes);
    shown.shapes = shapes.map(published::Shape::text).collect();
    shown.verdict = Some(verdict::verdict(&View::new(run)));
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn every_experiment_has_its_answers_and_its_rates() {
        let part = |name: &str, run| Part {
            name: name.to_owned(),
            about: "a question".to_owned(),
            run,
        };
        let run = fixture::run(&fixture::Shape::default());
        let parts = [
            part("iibench-classic", Ok(Box::new(run))),
            part("tpcc", Err("the disk was full".to_owned())),
        ];
        let page = overview(&parts).unwrap();
        assert!(page.contains("iibench-classic/report.html#step-load"));
        assert!(page.contains("<dl class=\"answers\">"), "no answers");
        assert!(page.contains("the last tenth at "), "no figures");
        assert!(page.contains("the disk was full"));
        if let Ok(keep) = env::var("ROMANESCO_REPORT_DIR") {
            let path = Path::new(&keep).join("overview.html");
            fs::write(path, page).expect("the page is kept to be looked at");
        }
    }
}
