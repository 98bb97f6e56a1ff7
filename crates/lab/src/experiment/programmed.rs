//! The common code of experiments whose workload declares its own tables.

use lab_report::error::{Error, Result};
use lab_report::record::{Limits, LoadKind, Setting, StepPlan, Task, Work};

use super::{Params, Settings, Sizes};
use crate::workload::iibench::{Payload, Shape};
use crate::workload::program::Spec;

/// What an experiment whose workload declares its own tables has instead of rows of the insert
/// benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Programmed {
    /// Names of the variants of the workload (`--variant`), the default first.
    pub variants: &'static [&'static str],
    /// Default number of clients.
    pub clients: u32,
    /// Whether data files use direct I/O by default, where an engine supports it.
    pub direct: bool,
    /// Whether a load that ends early at its time limit is still useful. If not, `--time` does not
    /// limit the load.
    pub cut: bool,
    /// The workload of a variant, for a seed.
    pub spec: fn(&Sizes, &str, u64) -> Spec,
    /// The steps of a variant.
    pub steps: fn(&Sizes, &str) -> Vec<StepPlan>,
    /// Only if the steps differ in their caps: returns the steps for the caps of `--iops`, in
    /// descending order. In other experiments `--iops` is one cap for all steps.
    pub capped: Option<Capped>,
    /// Only if the steps differ in their number of clients: returns the steps for the numbers of
    /// `--clients`, in ascending order. In other experiments `--clients` is one number for all
    /// steps.
    pub crowded: Option<Crowded>,
}

/// Returns the steps of a variant for the requested caps.
pub type Capped = fn(&Sizes, &str, &[u64]) -> Vec<StepPlan>;

/// Returns the steps of a variant for the requested numbers of clients.
pub type Crowded = fn(&Sizes, &str, &[u32]) -> Vec<StepPlan>;

/// Maximum number of clients of a step.
const CLIENTS_MAX: u32 = 2048;

/// Maximum number of caps of one run.
const CAPS_MAX: usize = 32;

/// Placeholder for the parameters of the insert benchmark.
pub(super) const NO_ROWS: Params = Params {
    shape: Shape::Classic,
    payload: Payload::CLASSIC,
    batch: 1,
    queries: 0.0,
    indexes: 0,
};

/// Used where steps of the insert benchmark are required: such an experiment has none of these
/// steps.
pub(super) fn no_steps(_sizes: &Sizes, _params: &Params) -> Vec<StepPlan> {
    Vec::new()
}

/// The requested variant; `None` for experiments without variants.
pub(super) fn variant(
    name: &str,
    programmed: Option<&Programmed>,
    settings: &Settings,
) -> Result<&'static str> {
    let variants = programmed.map_or(&[][..], |p| p.variants);
    let Some(asked) = &settings.variant else {
        return Ok(variants.first().copied().unwrap_or_default());
    };
    if let Some(found) = variants.iter().find(|v| **v == asked.as_str()) {
        return Ok(found);
    }
    if variants.len() < 2 {
        return Err(Error::usage(format!(
            "{name} has no variants: leave --variant out"
        )));
    }
    Err(Error::usage(lab_report::error::unknown(
        "variant", asked, variants,
    )))
}

/// Reject settings of the insert benchmark's rows, because they would have no effect.
pub(super) fn check(name: &str, settings: &Settings) -> Result<()> {
    let set = [
        ("--payload", settings.payload.is_some()),
        ("--index-shape", settings.shape.is_some()),
        ("--batch", settings.batch.is_some()),
        ("--queries", settings.queries.is_some()),
    ];
    match set.into_iter().find(|(_, set)| *set) {
        Some((flag, _)) => Err(Error::usage(format!(
            "{flag} is a setting of the insert benchmark; {name} has tables of its own: leave it \
             out, here and in lab.toml"
        ))),
        None => Ok(()),
    }
}

/// The caps of the steps, in descending order, from `--iops`.
pub(super) fn caps(name: &str, asked: &[(u64, u64)]) -> Result<Vec<u64>> {
    let fault = |text: String| Err(Error::usage(format!("--iops: {text}")));
    if let Some((reads, writes)) = asked.iter().find(|(reads, writes)| reads != writes) {
        return fault(format!(
            "a step of {name} allows as many writes as reads: say {reads} or {writes} in place of \
             {reads}/{writes}"
        ));
    }
    let mut caps: Vec<u64> = asked.iter().map(|(reads, _)| *reads).collect();
    caps.sort_unstable_by(|a, b| b.cmp(a));
    if let Some(twice) = caps.windows(2).find(|pair| pair.first() == pair.last()) {
        return fault(format!("{} is there twice", twice.first().unwrap_or(&0)));
    }
    if CAPS_MAX < caps.len() {
        return fault(format!("{} caps; at most {CAPS_MAX}", caps.len()));
    }
    for cap in &caps {
        // Each cap is in force in one step, so check each like the limits of a run.
        let limits = Limits::default().within(Some(*cap), None);
        limits.check().map_err(|e| Error::usage(e.to_string()))?;
    }
    Ok(caps)
}

/// The numbers of clients of the steps, in ascending order, from `--clients`.
pub(super) fn crowds(asked: &[u32]) -> Result<Vec<u32>> {
    let mut crowds = asked.to_vec();
    crowds.sort_unstable();
    if let Some(wrong) = crowds.iter().find(|n| !(1..=CLIENTS_MAX).contains(*n)) {
        return Err(Error::usage(format!(
            "--clients {wrong}: use 1 to {CLIENTS_MAX}"
        )));
    }
    if let Some([twice, _]) = crowds.array_windows().find(|[a, b]| a == b) {
        return Err(Error::usage(format!("--clients: {twice} is there twice")));
    }
    Ok(crowds)
}

/// A closed-loop step that runs a task.
pub(super) fn step(
    name: &str,
    about: String,
    task: Task,
    seconds_max: f64,
    setting: Setting,
) -> StepPlan {
    StepPlan {
        name: name.to_owned(),
        about,
        work: serde_json::to_value(Work::Program(task)).expect("plain data"),
        operations: 0,
        seconds_max,
        load: LoadKind::Closed,
        settle: matches!(task, Task::Fill { .. }),
        setting,
    }
}
