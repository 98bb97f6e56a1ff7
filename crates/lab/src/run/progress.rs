//! Events of a run for its observer.

use lab_report::record::{Cell, Manifest, Plan, RunSummary, StepPlan, StepSummary};

/// One second of a step, for display.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Seconds since the step began.
    pub t: f64,
    /// Whether the step is settling, and no longer loading.
    pub settling: bool,
    /// Main operations done in the step.
    pub done: u64,
    /// Main operations that the step should do; 0 if only time limits it.
    pub of: u64,
    /// Main operations per second.
    pub rate: f64,
    /// 99th percentile of their latency in this second, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Longest latency in this second, in milliseconds.
    pub max_ms: Option<f64>,
    /// Memory charged to the cgroup, in bytes.
    pub memory: Option<u64>,
    /// Bytes written to the device in this second.
    pub write_bytes: Option<u64>,
    /// Size of the files, in bytes.
    pub file_bytes: Option<u64>,
    /// Durability debt, in bytes.
    pub debt_bytes: Option<u64>,
    /// Stall seconds so far.
    pub stall_seconds: u64,
    /// The engine's current activity.
    pub activity: String,
}

/// Receives the events of a run, in order.
pub trait Progress {
    /// The run starts or continues.
    fn begin(&mut self, manifest: &Manifest);
    /// A cell is skipped because it was completed before the run was interrupted.
    fn skipped(&mut self, plan: &Plan, cell: Cell);
    /// A cell begins; `index` is its position in the plan, from 0.
    fn cell(&mut self, plan: &Plan, cell: Cell, index: usize);
    /// A step begins.
    fn step(&mut self, plan: &Plan, cell: Cell, step: &StepPlan);
    /// One second passed.
    fn second(&mut self, second: &Second);
    /// The step's result is being checked.
    fn verifying(&mut self);
    /// A step ended.
    fn step_end(&mut self, plan: &Plan, summary: &StepSummary);
    /// A warning for the user.
    fn warning(&mut self, text: &str);
    /// The run ended.
    fn end(&mut self, summary: &RunSummary);
}

/// Discards all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: &Manifest) {}
    fn skipped(&mut self, _: &Plan, _: Cell) {}
    fn cell(&mut self, _: &Plan, _: Cell, _: usize) {}
    fn step(&mut self, _: &Plan, _: Cell, _: &StepPlan) {}
    fn second(&mut self, _: &Second) {}
    fn verifying(&mut self) {}
    fn step_end(&mut self, _: &Plan, _: &StepSummary) {}
    fn warning(&mut self, _: &str) {}
    fn end(&mut self, _: &RunSummary) {}
}
