//! `oltp-read-only`: the read-only transactions of sysbench by increasing numbers of clients.

use lab_report::record::{Preset, Setting, StepPlan, Task};

use super::programmed::{NO_ROWS, no_steps, step};
use super::{Experiment, Programmed, Sizes};
use crate::workload::oltp::Params;
use crate::workload::program::Spec;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "oltp-read-only",
    about: "read-only transactions (10 points, 4 ranges of 100 rows) by 1 to 2048 clients",
    source: "Percona's article on encryption at rest (sysbench oltp_read_only, 20 tables of 10 M \
             rows, 1 to 2048 threads)",
    params: NO_ROWS,
    fixed: &[],
    sizes,
    steps: no_steps,
    program: Some(Programmed {
        variants: &["read-only"],
        clients: 4,
        direct: false,
        cut: false,
        spec,
        steps,
        capped: None,
        crowded: Some(by),
    }),
};

/// Number of clients of each step.
pub(crate) const CLIENTS: [u32; 6] = [1, 4, 16, 64, 256, 2048];

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(4000, 128, 32, 300.0, 1.0),
        // A server uses almost a megabyte for each client.
        Preset::Quick => of(1_600_000, 384, 64, 900.0, 8.0),
        Preset::Standard => of(10_000_000, 2048, 256, 7200.0, 60.0),
        Preset::Published => of(200_000_000, 8 << 10, 5 << 10, 86_400.0, 300.0),
    }
}

fn tables(sizes: &Sizes) -> u64 {
    if sizes.rows < 100_000_000 { 4 } else { 20 }
}

fn spec(sizes: &Sizes, _variant: &str, seed: u64) -> Spec {
    let tables = tables(sizes);
    Spec::Oltp(Params {
        seed,
        tables,
        rows: sizes.rows / tables,
    })
}

fn steps(sizes: &Sizes, variant: &str) -> Vec<StepPlan> {
    // The highest number of clients that is meaningful for this number of rows.
    let most = match sizes.rows {
        ..100_000 => 4,
        100_000..5_000_000 => 256,
        _ => 2048,
    };
    let few: Vec<u32> = CLIENTS.into_iter().filter(|n| *n <= most).collect();
    by(sizes, variant, &few)
}

/// The steps of a run: the load, and the transactions with each of these numbers of clients.
fn by(sizes: &Sizes, _variant: &str, clients: &[u32]) -> Vec<StepPlan> {
    let tables = tables(sizes);
    let about = format!("load {tables} tables of {} rows", sizes.rows / tables);
    let fill = Task::Fill { tables: 0 };
    let load = Setting {
        clients: Some(2),
        ..Setting::default()
    };
    let mut steps = vec![step("load", about, fill, sizes.load_seconds, load)];
    for clients in clients {
        let setting = Setting {
            clients: Some(*clients),
            ..Setting::default()
        };
        let about = match clients {
            1 => "read-only transactions by one client".to_owned(),
            many => format!("read-only transactions by {many} clients"),
        };
        let name = format!("clients-{clients}");
        steps.push(step(&name, about, Task::MIX, sizes.query_seconds, setting));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(preset: Preset) -> Vec<StepPlan> {
        steps(&sizes(preset), "")
    }

    #[test]
    fn clients_grow_from_one() {
        let steps = steps(&sizes(Preset::Quick), "");
        let clients: Vec<Option<u32>> = steps.iter().skip(1).map(|s| s.setting.clients).collect();
        assert_eq!(
            clients,
            CLIENTS[..5].iter().copied().map(Some).collect::<Vec<_>>()
        );
        assert_eq!(steps_of(Preset::Standard).len(), 1 + CLIENTS.len());
    }
}
