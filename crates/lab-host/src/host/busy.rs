//! Measures the CPU use of other processes.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Duration of the measurement: 25 ticks of the kernel's 10 ms accounting.
const WATCH: Duration = Duration::from_millis(250);

/// The share of a core, in percent, above which a process is reported.
const BUSY_PERCENT: f64 = 10.0;

/// A process that used the processor while the facts were collected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyProcess {
    /// Process id.
    pub pid: u32,
    /// Short name of the process; arguments are omitted, because they may contain secrets.
    pub name: String,
    /// CPU use of the process, in percent of one core.
    pub cpu_percent: f64,
}

/// A measurement in progress: the first sample of all processes.
#[derive(Debug)]
pub(super) struct Watch {
    begin: Instant,
    before: HashMap<u32, (String, u64)>,
}

impl Watch {
    pub(super) fn start() -> Watch {
        Watch {
            begin: stdx::time::now(),
            before: read_all(),
        }
    }

    /// Wait until the measurement is over and return the busy processes, busiest first.
    pub(super) fn finish(self) -> Vec<BusyProcess> {
        stdx::time::sleep(WATCH.saturating_sub(self.begin.elapsed()));
        let seconds = self.begin.elapsed().as_secs_f64();
        let after = read_all();
        compare(&self.before, &after, seconds)
    }
}

fn compare(
    before: &HashMap<u32, (String, u64)>,
    after: &HashMap<u32, (String, u64)>,
    seconds: f64,
) -> Vec<BusyProcess> {
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut busy = Vec::new();
    for (pid, (name, now)) in after {
        if *pid == std::process::id() {
            continue;
        }
        let then = before.get(pid).map_or(0, |(_, ticks)| *ticks);
        let cpu_percent = now.saturating_sub(then) as f64 / per_second / seconds * 100.0;
        if cpu_percent > BUSY_PERCENT && before.contains_key(pid) {
            busy.push(BusyProcess {
                pid: *pid,
                name: name.clone(),
                cpu_percent,
            });
        }
    }
    busy.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    busy
}

/// Name and ticks of every process.
fn read_all() -> HashMap<u32, (String, u64)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse(&stat)?))
    })
    .collect()
}

/// The name and the ticks in user and kernel mode of a `/proc/PID/stat`.
fn parse(stat: &str) -> Option<(String, u64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    // Fields 14 and 15 of proc(5); the first field after the name is number 3.
    let mut ticks = tail
        .split_ascii_whitespace()
        .skip(11)
        .map(str::parse::<u64>);
    let user = ticks.next()?.ok()?;
    let system = ticks.next()?.ok()?;
    Some((name.to_owned(), user.saturating_add(system)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_hostile_names_parse() {
        let stat = "15 (a) (b)) S 1 2 3 0 -1 4194304 95 0 7 0 250 50 0 0 20 0 31";
        assert_eq!(parse(stat), Some(("a) (b)".to_owned(), 300)));
        assert_eq!(parse("15 (a) S 1"), None);
    }

    #[test]
    fn the_busy_are_named_busiest_first_and_newcomers_are_not() {
        let look = |ticks: [u64; 3]| {
            let entry = |(i, t): (u32, u64)| (u32::MAX - i, (format!("p{i}"), t));
            (0..3).zip(ticks).map(entry).collect::<HashMap<_, _>>()
        };
        let mut before = look([0, 100, 100]);
        before.remove(&u32::MAX);
        let after = look([50, 120, 190]);
        let names: Vec<String> = compare(&before, &after, 1.0)
            .into_iter()
            .map(|b| b.name)
            .collect();
        assert_eq!(names, ["p2", "p1"]);
    }
}
