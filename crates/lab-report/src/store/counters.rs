//! The engine's counters of a step, from `engine.csv`, thinned while they are read: a long run has
//! millions of lines.

use std::collections::BTreeMap;
use std::path::Path;

use super::step_dir::ENGINE;
use crate::record::{CounterSeries, EngineCounter, RunRecord};

/// Points kept of a counter: twice as many as a drawing shows. When there are more, every second
/// one is dropped.
const POINTS: usize = 256;

/// Read the counters of every step that is done into the records of a run. Commands that only
/// compare numbers do without them.
pub fn load_counters(path: &Path, run: &mut RunRecord) {
    for step in run.steps.iter_mut().filter(|s| s.summary.is_some()) {
        let file = path.join("steps").join(&step.directory).join(ENGINE);
        step.counters = read(&file);
    }
}

/// The counters of a file, by name; none if there is no file. A line cut off by a crash is skipped.
fn read(file: &Path) -> Vec<CounterSeries> {
    let mut all: BTreeMap<String, Thinned> = BTreeMap::new();
    let lines = csv::Reader::from_path(file).into_iter();
    let rows = lines.flat_map(csv::Reader::into_deserialize::<EngineCounter>);
    for row in rows.filter_map(Result::ok) {
        all.entry(row.counter).or_default().push(row.t, row.value);
    }
    all.into_iter()
        .map(|(counter, thinned)| CounterSeries {
            counter,
            points: thinned.points(),
        })
        .collect()
}

/// Every `stride`th point, and the last one.
#[derive(Default)]
struct Thinned {
    kept: Vec<(f64, u64)>,
    last: Option<(f64, u64)>,
    /// A power of two; 0 before the first point.
    stride: usize,
    seen: usize,
}

impl Thinned {
    fn push(&mut self, t: f64, value: u64) {
        self.stride = self.stride.max(1);
        if self.seen.is_multiple_of(self.stride) {
            self.kept.push((t, value));
        }
        self.seen += 1;
        self.last = Some((t, value));
        if POINTS <= self.kept.len() {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    fn points(mut self) -> Vec<(f64, u64)> {
        let end = self.kept.last().copied();
        self.kept
            .extend(self.last.filter(|last| Some(*last) != end));
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn counters_are_read_by_name_and_a_torn_line_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(ENGINE);
        fs::write(&file, "t,counter,value\n1.0,b,5\n1.0,a,7\n2.0,b,6\n2.0,a").unwrap();
        let all = read(&file);
        let names: Vec<&str> = all.iter().map(|c| c.counter.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(all[0].points, [(1.0, 7)]);
        assert_eq!(all[1].points, [(1.0, 5), (2.0, 6)]);
        assert!(read(&dir.path().join("missing.csv")).is_empty());
    }

    #[test]
    fn a_long_series_keeps_its_first_its_last_and_a_bounded_number_of_points() {
        let mut thinned = Thinned::default();
        for second in 0..100_000_u32 {
            thinned.push(f64::from(second), u64::from(second));
        }
        let points = thinned.points();
        assert!(
            (POINTS / 2..=POINTS).contains(&points.len()),
            "{}",
            points.len()
        );
        assert_eq!(points.first(), Some(&(0.0, 0)));
        assert_eq!(points.last(), Some(&(99_999.0, 99_999)));
        assert!(points.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
