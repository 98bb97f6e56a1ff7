//! `romanesco lab run --sweep`: runs an experiment once for each combination of values, and writes
//! one page that joins the runs.

use std::path::{Path, PathBuf};

use lab::run::{Begin, Interrupt};
use lab_report::record::{RunSummary, SCHEMA, Sweep, SweepCell};
use lab_report::{Error, ErrorKind, Result, store};

use super::{Show, report};

/// Parameters of a sweep besides its plans.
pub(super) struct Means<'a> {
    /// The directory of the sweep.
    pub(super) out: &'a Path,
    /// This program, which also serves as the worker.
    pub(super) program: PathBuf,
    pub(super) force: bool,
    pub(super) show: Show,
}

/// The record of a new sweep.
pub(super) fn record(
    experiment: &str,
    plan: lab::experiment::SweepPlan,
    command: Vec<String>,
    prices: Option<String>,
) -> Sweep {
    Sweep {
        schema: SCHEMA,
        created: store::now_text(),
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("ROMANESCO_COMMIT").to_owned(),
        command,
        experiment: experiment.to_owned(),
        targets: plan.targets,
        axes: plan.axes,
        cells: plan.cells,
        prices,
    }
}

impl Means<'_> {
    /// Run the cells of a sweep that are not complete. If one fails, the others still run.
    pub(super) fn run(&self, sweep: &Sweep, interrupt: &Interrupt) -> Result<u8> {
        for cell in &sweep.cells {
            lab::run::own_mounts(&cell.plan)?;
        }
        let mut code = 0;
        for (at, cell) in sweep.cells.iter().enumerate() {
            if !self.show.json && !self.show.quiet {
                let values = sweep.axes.iter().zip(sweep.texts(cell));
                let values: Vec<String> = values
                    .map(|(axis, text)| format!("{} {text}", axis.name))
                    .collect();
                let (number, all) = (at + 1, sweep.cells.len());
                note!("run {number} of {all}: {}", values.join(", "));
            }
            match self.one(sweep, cell, interrupt) {
                Ok(summary) if summary.complete && summary.valid => {}
                Ok(_) => code = 2,
                Err(e) if e.kind() == ErrorKind::Interrupted => {
                    self.page()?;
                    return Err(Error::interrupted(format!(
                        "interrupted; continue with `romanesco lab resume {}`",
                        self.out.display()
                    )));
                }
                Err(e) => {
                    note!("{}: {}", cell.directory, e.message);
                    code = 2;
                }
            }
        }
        self.conclude()?;
        Ok(code)
    }

    fn one(&self, sweep: &Sweep, cell: &SweepCell, interrupt: &Interrupt) -> Result<RunSummary> {
        let out = self.out.join(&cell.directory);
        let mut display = self.show.display();
        let summary = if out.join(store::MANIFEST).exists() {
            lab::run::resume(&out, self.program.clone(), display.as_mut(), interrupt)
        } else {
            let begin = Begin {
                out: &out,
                command: sweep.command.clone(),
                commit: env!("ROMANESCO_COMMIT").to_owned(),
                program: self.program.clone(),
                force: self.force,
                prices: sweep.prices.clone(),
            };
            lab::run::run(cell.plan.clone(), begin, display.as_mut(), interrupt)
        }?;
        drop(display);
        report::write(&out, None)?;
        Ok(summary)
    }

    fn page(&self) -> Result<PathBuf> {
        report::write(self.out, None)
    }

    /// Write the page and print what the series of rates show.
    fn conclude(&self) -> Result<()> {
        let path = self.page()?;
        if self.show.json {
            say!("{}", serde_json::json!({ "event": "report", "path": path }));
            return Ok(());
        }
        if self.show.quiet {
            return Ok(());
        }
        let record = store::load_with(self.out, lab::run::load)?;
        for line in lab_report::sweep::findings(&record) {
            note!("{line}");
        }
        note!("report of the sweep: {}", path.display());
        Ok(())
    }
}
