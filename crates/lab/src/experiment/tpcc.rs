//! `tpcc`: TPC-C without waits, first uncapped and then under ever lower caps on I/O operations.

use lab_report::record::{Preset, Setting, StepPlan, Task};

use super::programmed::{NO_ROWS, no_steps, step};
use super::{Experiment, Programmed, Sizes};
use crate::workload::program::Spec;
use crate::workload::tpcc::{Params, Payload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "tpcc",
    about: "TPC-C transactions under lower and lower caps on I/O operations; rate against cost",
    source: "Percona's articles on MyRocks and InnoDB under IOPS caps of 2018 (sysbench-tpcc, 5000 \
             warehouses); TPC-C specification 5.11",
    params: NO_ROWS,
    fixed: &[],
    sizes,
    steps: no_steps,
    program: Some(Programmed {
        variants: &["spec", "percona"],
        clients: 8,
        direct: true,
        cut: false,
        spec,
        steps,
        capped: Some(within),
        crowded: None,
    }),
};

/// The I/O caps in operations per second, in descending order.
pub(crate) const CAPS: [u64; 5] = [5000, 2000, 1000, 500, 250];

/// Customers per warehouse: the presets count customers as rows.
const WAREHOUSE: u64 = 30_000;

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(1000, 128, 32, 300.0, 1.0),
        Preset::Quick => of(4 * WAREHOUSE, 192, 48, 900.0, 12.0),
        Preset::Standard => of(12 * WAREHOUSE, 384, 128, 7200.0, 120.0),
        Preset::Published => of(5000 * WAREHOUSE, 72 << 10, 54 << 10, 10.0 * 86_400.0, 900.0),
    }
}

fn spec(sizes: &Sizes, variant: &str, seed: u64) -> Spec {
    let payload = match variant {
        "percona" => Payload::Percona,
        _ => Payload::Spec,
    };
    Spec::Tpcc(Params::of(seed, sizes.rows, payload))
}

fn steps(sizes: &Sizes, variant: &str) -> Vec<StepPlan> {
    // Small runs use two caps, which suffice to test the procedure; five caps give a curve.
    let caps = if sizes.rows < WAREHOUSE {
        &CAPS[..1]
    } else {
        &CAPS[..]
    };
    within(sizes, variant, caps)
}

/// The steps: the load, the mix at its maximum rate, and the mix under each of the caps.
fn within(sizes: &Sizes, variant: &str, caps: &[u64]) -> Vec<StepPlan> {
    let warehouses = (sizes.rows / WAREHOUSE).max(1);
    let load = step(
        "load",
        match warehouses {
            1 => format!("load one warehouse, texts as by {variant}"),
            n => format!("load {n} warehouses, texts as by {variant}"),
        },
        Task::Fill { tables: 0 },
        sizes.load_seconds,
        Setting::default(),
    );
    let mix = |name: &str, about: String, iops| {
        let setting = Setting {
            iops,
            ..Setting::default()
        };
        step(name, about, Task::MIX, sizes.query_seconds, setting)
    };
    let about = "the five transactions, I/O as fast as it goes".to_owned();
    let mut steps = vec![load, mix("no-cap", about, None)];
    steps.extend(caps.iter().map(|cap| {
        let about = format!("the five transactions at {cap} I/O operations a second");
        mix(&format!("iops-{cap}"), about, Some(*cap))
    }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_come_after_the_load_and_tighten() {
        let steps = steps(&sizes(Preset::Quick), "spec");
        let caps: Vec<Option<u64>> = steps.iter().map(|s| s.setting.iops).collect();
        assert_eq!(
            caps,
            [
                None,
                None,
                Some(5000),
                Some(2000),
                Some(1000),
                Some(500),
                Some(250)
            ]
        );
        assert!(steps[0].settle && !steps[1].settle);
        let Spec::Tpcc(params) = spec(&sizes(Preset::Quick), "percona", 1) else {
            unreachable!("it is TPC-C");
        };
        assert_eq!((params.warehouses, params.payload), (4, Payload::Percona));
    }
}
