//! Prints one JSON object per line on standard output, for programs.

use lab_report::record::{Cell, Manifest, Plan, RunSummary, StepPlan, StepSummary};
use serde_json::{Value, json};

use super::lines::cell_name;
use crate::run::{Progress, Second};

/// JSON lines; every object has a field `event`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

fn print(value: &Value) {
    super::say(&value.to_string());
}

impl Progress for Json {
    fn begin(&mut self, manifest: &Manifest) {
        print(&json!({ "event": "begin", "run": manifest.run, "plan": manifest.plan }));
    }

    fn skipped(&mut self, plan: &Plan, cell: Cell) {
        print(&json!({ "event": "skipped", "cell": cell_name(plan, cell) }));
    }

    fn cell(&mut self, plan: &Plan, cell: Cell, index: usize) {
        let of = plan.cells.len();
        print(&json!({ "event": "cell", "cell": cell_name(plan, cell), "index": index, "of": of }));
    }

    fn step(&mut self, plan: &Plan, cell: Cell, step: &StepPlan) {
        let cell = cell_name(plan, cell);
        print(&json!({ "event": "step", "cell": cell, "step": step.name, "about": step.about }));
    }

    fn second(&mut self, s: &Second) {
        print(&json!({
            "event": "second", "t": s.t, "settling": s.settling, "done": s.done, "of": s.of,
            "rate": s.rate, "p99_ms": s.p99_ms, "max_ms": s.max_ms, "memory": s.memory,
            "write_bytes": s.write_bytes, "file_bytes": s.file_bytes, "debt_bytes": s.debt_bytes,
            "stall_seconds": s.stall_seconds, "activity": s.activity,
        }));
    }

    fn verifying(&mut self) {
        print(&json!({ "event": "verifying" }));
    }

    fn step_end(&mut self, _plan: &Plan, summary: &StepSummary) {
        print(&json!({ "event": "step_end", "summary": summary }));
    }

    fn warning(&mut self, text: &str) {
        print(&json!({ "event": "warning", "text": text }));
    }

    fn end(&mut self, summary: &RunSummary) {
        print(&json!({ "event": "end", "complete": summary.complete, "valid": summary.valid }));
    }
}
