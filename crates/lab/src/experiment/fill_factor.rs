//! `fill-factor`: the fill of pages after a table is rebuilt, and how it changes while rows are
//! inserted and deleted at random. A completely full page must split at once; a page with free
//! space makes the file larger from the start.

use lab_report::record::experiment::fill_factor::{FILLS, ROUNDS, name};
use lab_report::record::{LoadKind, Preset, Setting, StepPlan, Work};

use super::{Experiment, Fixed, Params, Sizes};
use crate::workload::iibench::{Payload, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fill-factor",
    about: "load at random, rebuild at each fill factor, then exchange rows and count splits",
    source: "the article on InnoDB's fill factor and page merges (2 M rows keyed by a hash, \
             rebuilt, then 400 rounds of 10 k inserts and 10 k deletes)",
    program: None,
    params: Params {
        shape: Shape::Hashed,
        payload: PAYLOAD,
        batch: 100,
        queries: 0.0,
        indexes: 0,
    },
    fixed: &[Fixed::Rate],
    sizes,
    steps,
};

/// `char(160)`, as in the scaled procedure.
const PAYLOAD: Payload = Payload {
    min: 160,
    max: 160,
    constant: 50,
};

/// Fill factors that runs with fewer rows than [`FEW`] measure.
const FILLS_FEW: [u8; 2] = [75, 100];
const FEW: u64 = 100_000;

/// Number of rows that the rounds exchange for each loaded row: the published procedure loads 2 M
/// rows and exchanges 4 M; other runs exchange enough to show the rise of splits.
pub(crate) const EXCHANGED: f64 = 2.0;
const EXCHANGED_SCALED: f64 = 0.3;

fn sizes(preset: Preset) -> Sizes {
    let of = |rows, memory_mib, cache_mib, load_seconds| Sizes {
        exchanged: match preset {
            Preset::Published => EXCHANGED,
            _ => EXCHANGED_SCALED,
        },
        ..Sizes::once(rows, memory_mib, cache_mib, load_seconds, 0.0)
    };
    match preset {
        Preset::Smoke => of(20_000, 128, 32, 5.0),
        Preset::Quick => of(400_000, 256, 128, 60.0),
        Preset::Standard => of(2_000_000, 512, 256, 600.0),
        Preset::Published => of(2_000_000, 4096, 2048, 86_400.0),
    }
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let fills: &[u8] = if sizes.rows < FEW { &FILLS_FEW } else { &FILLS };
    // The first store has no fill factor set, which every engine supports.
    let all = std::iter::once(None).chain(fills.iter().copied().map(Some));
    all.flat_map(|fill| of_fill(fill, sizes, params)).collect()
}

/// Number of rows that one round exchanges.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the rows; saturates"
)]
fn share(sizes: &Sizes) -> u64 {
    let all = sizes.rows as f64 * sizes.exchanged;
    ((all / f64::from(ROUNDS)).round() as u64).max(1)
}

fn of_fill(fill: Option<u8>, sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let at = fill.map_or(String::new(), |fill| format!(", pages filled to {fill} %"));
    let load = |deletes| Work::Load {
        batch: params.batch,
        indexes: false,
        deletes,
        interval_rows: (sizes.rows / 10).max(1),
        queries: None,
    };
    let step = |step: &str, about: String, work: &Work, operations, map| StepPlan {
        name: name(step, fill),
        about,
        work: serde_json::to_value(work).expect("plain data"),
        operations,
        seconds_max: sizes.load_seconds,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting {
            fresh: step == "load",
            fill,
            map,
            ..Setting::default()
        },
    };
    let rows = sizes.rows;
    let about = format!("insert {rows} rows whose keys are a hash of their number{at}");
    // The store is also drawn after the load, for engines that have no rebuild.
    let mut steps = vec![step("load", about, &load(false), rows, fill.is_none())];
    let about = format!("rewrite the rows into their best form{at}");
    steps.push(step("rebuild", about, &Work::Rebuild, rows, true));
    let share = share(sizes);
    for round in 1..=ROUNDS {
        let about = format!("insert {share} rows at random and delete as many{at}");
        let name = format!("round{round}");
        steps.push(step(&name, about, &load(true), share, round == ROUNDS));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fill_factor_begins_afresh_and_is_drawn_before_and_after() {
        let steps = steps(&sizes(Preset::Quick), &EXPERIMENT.params);
        assert_eq!(steps.len(), (1 + FILLS.len()) * 5);
        let names: Vec<&str> = steps
            .iter()
            .skip(5)
            .take(5)
            .map(|s| s.name.as_str())
            .collect();
        let expected = [
            "load-75",
            "rebuild-75",
            "round1-75",
            "round2-75",
            "round3-75",
        ];
        assert_eq!(names, expected);
        assert!(steps.iter().step_by(5).all(|s| s.setting.fresh));
        assert_eq!(steps.iter().filter(|s| s.setting.map).count(), 15);
        assert!(steps.iter().take(5).all(|s| s.setting.fill.is_none()));
    }

    #[test]
    fn the_published_preset_exchanges_as_many_rows_as_the_article() {
        let exchanged = |preset| {
            let steps = steps(&sizes(preset), &EXPERIMENT.params);
            let rounds = steps.iter().take(5).skip(2);
            (
                steps[0].operations,
                rounds.map(|s| s.operations).sum::<u64>(),
            )
        };
        assert_eq!(exchanged(Preset::Quick), (400_000, 120_000));
        let (rows, rounds) = exchanged(Preset::Published);
        assert_eq!(rows, 2_000_000);
        assert!((3_999_990..=4_000_010).contains(&rounds), "{rounds}");
    }
}
