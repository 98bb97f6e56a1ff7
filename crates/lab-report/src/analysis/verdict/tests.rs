//! Tests of the parent module.

use super::*;
use crate::analysis::METRICS;
use crate::fixture::standard_normal;
use stdx::Rng;

const TERMS: Terms = Terms {
    floor: 0.02,
    error: 0.05,
    single: false,
};

fn sample(repeats: &[f64]) -> Sample {
    Sample {
        repeats: repeats.to_vec(),
        seconds: Vec::new(),
    }
}

fn named(name: &str) -> Metric {
    Metric::named(name).unwrap()
}

#[test]
fn a_clear_shift_is_found_and_equality_needs_evidence() {
    let base = sample(&[100.0, 101.0, 102.0]);
    let faster = judge(&sample(&[130.0, 131.0, 133.0]), &base, TERMS);
    assert_eq!(faster.difference, Difference::Above);
    let mean = |values: [f64; 3]| values.iter().product::<f64>().cbrt();
    let ratio = mean([130.0, 131.0, 133.0]) / mean([100.0, 101.0, 102.0]);
    assert!(
        (faster.ratio.unwrap() - ratio).abs() < 1e-9,
        "V1: geometric means"
    );
    assert!(1.25 < faster.low.unwrap() && faster.high.unwrap() < 1.35);
    assert_eq!(faster.p_value, None);
    // The interval leaves out 1, but the effect is below the floor.
    let near = judge(&sample(&[104.0, 104.1, 104.2]), &sample(&[101.0; 3]), {
        Terms {
            floor: 0.05,
            ..TERMS
        }
    });
    assert!(1.0 < near.low.unwrap());
    assert_eq!(
        near.difference,
        Difference::None,
        "V2: the floor, V3: within 5 %"
    );
    // Beyond the floor, but uncertain.
    let wide = judge(&sample(&[90.0, 120.0, 150.0]), &base, TERMS);
    assert!(wide.low.unwrap() < 1.0 && 1.0 < wide.high.unwrap());
    assert_eq!(wide.difference, Difference::Unknown, "V4");
    let equal = judge(&base, &base, TERMS);
    assert_eq!(equal.difference, Difference::None, "V3");
    // The same medians, too much noise to call them equal.
    let noisy = sample(&[90.0, 101.0, 113.0]);
    assert_eq!(
        judge(&noisy, &base, TERMS).difference,
        Difference::Unknown,
        "V4"
    );
}

#[test]
fn a_base_of_zero_is_judged_by_ranges_with_enough_repeats() {
    let zero = |repeats| sample(&vec![0.0; repeats]);
    assert_eq!(
        judge(&zero(3), &zero(3), TERMS).difference,
        Difference::None
    );
    let few = judge(&sample(&[1.0, 2.0, 3.0]), &zero(3), TERMS);
    assert_eq!(
        (few.difference, few.ratio),
        (Difference::Unknown, None),
        "V5: chance separates 3 repeats in 10 % of the cases"
    );
    let found = judge(&sample(&[1.0, 2.0, 3.0, 4.0]), &zero(4), TERMS);
    assert_eq!(found.difference, Difference::Above, "V5: 2 of 70 orders");
    let wide = judge(&sample(&[0.0, 2.0, 3.0, 4.0]), &zero(4), TERMS);
    assert_eq!(wide.difference, Difference::Unknown, "V5: they overlap");
    let one = judge(&sample(&[1.0]), &zero(4), TERMS);
    assert_eq!(one.difference, Difference::Unknown);
    assert!((separated_by_chance(3, 3) - 0.1).abs() < 1e-12);
    assert!((separated_by_chance(2, 3) - 0.2).abs() < 1e-12);
}

#[test]
fn a_single_repeat_is_judged_only_where_accepted_and_by_its_seconds() {
    let accepted = Terms {
        single: true,
        ..TERMS
    };
    let (new, base) = (sample(&[200.0]), sample(&[100.0]));
    let found = judge(&new, &base, accepted);
    assert_eq!(found.difference, Difference::Unknown, "no interval");
    assert!(found.single);
    assert_eq!(found.ratio, Some(2.0));
    let seconds = |rate: f64| Sample {
        repeats: vec![rate],
        seconds: (0..40)
            .map(|i| rate * (0.95 + 0.01 * f64::from(i % 11)))
            .collect(),
    };
    let found = judge(&seconds(200.0), &seconds(100.0), accepted);
    assert_eq!(found.difference, Difference::Above);
    assert!(found.single, "V6: marked");
    assert!(found.low.unwrap() < 2.0 && 2.0 < found.high.unwrap());
    let same = judge(&seconds(100.0), &seconds(100.0), accepted);
    assert_eq!(same.difference, Difference::None);
    let refused = judge(&seconds(200.0), &seconds(100.0), TERMS);
    assert_eq!(refused.difference, Difference::Unknown, "V6");
}

#[test]
fn words_follow_the_direction_of_the_metric() {
    let found = |difference| Judgement {
        difference,
        ..judge(&sample(&[1.0, 1.0]), &sample(&[1.0, 1.0]), TERMS)
    };
    let word = |name, difference| word(&named(name), &found(difference));
    assert_eq!(word("rate_mean", Difference::Above), Some(Verdict::Faster));
    assert_eq!(word("rate_mean", Difference::Below), Some(Verdict::Slower));
    assert_eq!(
        word("latency_p99_ms", Difference::Above),
        Some(Verdict::Worse)
    );
    assert_eq!(word("flatness", Difference::Above), Some(Verdict::Better));
    assert_eq!(word("rows", Difference::Above), None);
    assert_eq!(
        word("seconds", Difference::None),
        Some(Verdict::NoDifference)
    );
    assert_eq!(
        word("seconds", Difference::Unknown),
        Some(Verdict::Inconclusive)
    );
    let missing = judge(&sample(&[]), &sample(&[1.0, 1.0]), TERMS);
    assert_eq!(super::word(&named("seconds"), &missing), None);
    let text = serde_json::to_string(&Verdict::NoDifference).unwrap();
    assert_eq!(text, format!("\"{}\"", Verdict::NoDifference));
}

#[test]
fn the_error_is_divided_between_what_is_judged_together() {
    let mut family = Family::default();
    for metric in &METRICS {
        family.add(metric);
        family.add(metric);
    }
    assert_eq!(family.rates, 4);
    let judged = METRICS.iter().filter(|m| m.better != Better::Neither);
    assert_eq!(family.others, 2 * (judged.count() - 2 - RESTATED.len()));
    assert!((family.error(&named("rate_mean")) - 0.02 / 4.0).abs() < 1e-12);
    let (others, error) = (family.others as f64, family.error(&named("rss_max")));
    assert!((error * others - 0.02).abs() < 1e-12);
    assert!(RESTATED.iter().all(|name| Metric::named(name).is_some()));
}

fn noisy(rng: &mut Rng, rate: f64, sigma: f64, repeats: usize) -> Sample {
    let values = (0..repeats).map(|_| rate * (1.0 + sigma * standard_normal(rng)));
    sample(&values.collect::<Vec<_>>())
}

/// Number of comparisons, of 400, with each outcome: a difference, none, inconclusive.
fn outcomes(shift: f64, sigma: f64, repeats: usize, terms: Terms) -> [usize; 3] {
    let mut rng = Rng::new(7);
    let mut counts = [0; 3];
    for _ in 0..400 {
        let base = noisy(&mut rng, 1000.0, sigma, repeats);
        let new = noisy(&mut rng, 1000.0 * shift, sigma, repeats);
        counts[match judge(&new, &base, terms).difference {
            Difference::Above | Difference::Below => 0,
            Difference::None => 1,
            Difference::Unknown => 2,
        }] += 1;
    }
    counts
}

#[test]
fn equal_targets_are_not_called_different_and_a_shift_is_found() {
    // Of 26 metrics judged together, in a report of one step and one pair.
    let one_of_many = Terms {
        error: TOGETHER / 2.0 / 26.0,
        ..TERMS
    };
    for sigma in [0.01, 0.03, 0.10] {
        for repeats in [3, 5] {
            let [different, ..] = outcomes(1.0, sigma, repeats, one_of_many);
            // A wrong verdict on any of 26 metrics in 1 of 20 reports: 0.8 of 400.
            assert!(different <= 3, "{sigma} {repeats}: {different}");
            let [different, ..] = outcomes(
                1.0,
                sigma,
                repeats,
                Terms {
                    floor: 0.0,
                    ..TERMS
                },
            );
            assert!(different <= 30, "{sigma} {repeats}: {different} of 400");
        }
    }
    let rate = Terms {
        error: 0.025,
        ..TERMS
    };
    // The power of few repeats, for a rate that is judged alone.
    for (shift, sigma, repeats) in [
        (0.95, 0.01, 3),
        (0.85, 0.03, 3),
        (0.97, 0.01, 5),
        (0.91, 0.03, 5),
    ] {
        let [found, ..] = outcomes(shift, sigma, repeats, rate);
        assert!(350 <= found, "{shift} {sigma} {repeats}: {found} of 400");
    }
    for shift in [0.95, 0.9, 0.8] {
        let [found, ..] = outcomes(shift, 0.01, 5, rate);
        assert!(380 <= found, "{shift}: {found} of 400");
        // With much noise it is not found, but it is not denied either.
        let [_, denied, _] = outcomes(shift, 0.10, 5, rate);
        assert_eq!(denied, 0, "{shift}");
    }
    let [_, equal, unknown] = outcomes(1.0, 0.01, 5, rate);
    assert!(360 <= equal && equal + unknown <= 400, "{equal} {unknown}");
}
