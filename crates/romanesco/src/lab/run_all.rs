//! `romanesco lab run all`: runs every experiment, one after the other, and writes one page about
//! all of them.

use std::path::{Path, PathBuf};

use lab::display;
use lab::experiment::{Experiment, Settings, experiments, plan, tour};
use lab::run::{Begin, Interrupt};
use lab_report::record::Plan;
use lab_report::report::{Part, overview};
use lab_report::{Error, ErrorKind, Result, store};

use super::{Show, report};

/// The settings common to all runs.
pub(super) struct All {
    /// The directory for the runs' directories and the summary page.
    pub(super) out: PathBuf,
    pub(super) command: Vec<String>,
    pub(super) program: PathBuf,
    pub(super) prices: Option<String>,
    pub(super) force: bool,
    pub(super) dry_run: bool,
    pub(super) show: Show,
}

impl All {
    /// Run all experiments. If one fails, the others still run; an existing run is resumed.
    pub(super) fn run(&self, settings: &Settings, interrupt: &Interrupt) -> Result<u8> {
        let plans = self.plans(settings)?;
        if self.dry_run {
            for plan in &plans {
                say!("{}\n", display::plan_text(plan));
            }
            return Ok(0);
        }
        for plan in &plans {
            lab::run::own_mounts(plan)?;
        }
        let mut parts = Vec::new();
        let mut code = 0;
        for (experiment, plan) in experiments().iter().zip(plans) {
            let run = match self.one(experiment, plan, interrupt) {
                Ok(run) => {
                    if !(run.summary.complete && run.summary.valid) {
                        code = 2;
                    }
                    Ok(Box::new(run))
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => return Err(e),
                Err(e) => {
                    note!("{}: {}", experiment.name, e.message);
                    code = 2;
                    Err(e.message)
                }
            };
            parts.push(Part {
                name: experiment.name.to_owned(),
                about: experiment.about.to_owned(),
                run,
            });
        }
        let page = overview(&parts).map_err(|e| Error::environment(e.to_string()))?;
        let path = self.out.join(store::REPORT);
        vfs::write_atomic(&path, page.as_bytes()).map_err(|e| Error::io("write", &path, &e))?;
        if self.show.json {
            say!("{}", serde_json::json!({ "event": "report", "path": path }));
        } else if !self.show.quiet {
            note!("report over all experiments: {}", path.display());
        }
        Ok(code)
    }

    /// The plans of all experiments, made in advance so that a setting that an experiment refuses
    /// is reported before the first one starts.
    fn plans(&self, settings: &Settings) -> Result<Vec<Plan>> {
        let each = experiments().iter().map(|experiment| {
            let mut settings = tour(experiment, settings.clone());
            // Each experiment gets its own directory below the given one.
            settings.data_dir = settings.data_dir.map(|dir| dir.join(experiment.name));
            plan(experiment, &settings, &self.out.join(experiment.name))
        });
        each.collect()
    }

    fn one(
        &self,
        experiment: &Experiment,
        plan: Plan,
        interrupt: &Interrupt,
    ) -> Result<lab_report::record::RunRecord> {
        let out: &Path = &self.out.join(experiment.name);
        let mut display = self.show.display();
        if out.join(store::MANIFEST).exists() {
            lab::run::resume(out, self.program.clone(), display.as_mut(), interrupt)?;
        } else {
            let begin = Begin {
                out,
                command: self.command.clone(),
                commit: env!("ROMANESCO_COMMIT").to_owned(),
                program: self.program.clone(),
                force: self.force,
                prices: self.prices.clone(),
            };
            lab::run::run(plan, begin, display.as_mut(), interrupt)?;
        }
        drop(display);
        report::write(out, None)?;
        lab::run::load(out)
    }
}
