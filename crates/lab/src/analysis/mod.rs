//! stub
use crate::record::{Main, Manifest, RunSummary, SCHEMA, SeriesRow, Stall, StepSummary};
/// stub
#[derive(Default)]
pub struct SecondStats {
    /// s
    pub worst: f64,
    /// s
    pub median: f64,
    /// s
    pub stall_seconds: u64,
}
/// stub
pub fn stalls(_: &[SeriesRow], _: Main) -> Vec<Stall> {
    Vec::new()
}
/// stub
pub fn second_stats(_: &[SeriesRow], _: Main) -> SecondStats {
    SecondStats::default()
}
/// stub
pub fn main_rates(_: &[SeriesRow], _: Main) -> Vec<f64> {
    Vec::new()
}
/// stub
pub fn summarize(m: &Manifest, steps: &[(StepSummary, Vec<f64>)], complete: bool) -> RunSummary {
    RunSummary {
        schema: SCHEMA,
        run: m.run.clone(),
        experiment: m.plan.experiment.clone(),
        complete,
        valid: true,
        results: vec![],
        steps: steps.iter().map(|s| s.0.clone()).collect(),
    }
}
/// stub
pub fn summary_table(_: &RunSummary) -> String {
    String::new()
}
/// stub
pub fn noise_floor(_: &[StepSummary]) -> std::collections::BTreeMap<String, f64> {
    Default::default()
}
