//! The content of the page, without a browser.

use crate::analysis::{main_rates, summarize};
use crate::record::{LoadKind, Main, Others, Preset, RunRecord, StepRecord, StepState};
use crate::report::fixture::{Shape, run};
use crate::report::{ReportError, render};

const HOSTILE: &str = "x</script><script>alert(1)</script>";

fn page(shape: &Shape) -> String {
    render(&run(shape)).expect("the report renders")
}

/// The part of the page between two anchors of sections.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("<section id=\"{id}\"")).expect(id);
    let rest = &page[start..];
    &rest[..rest.find("</section>").unwrap()]
}

/// The elements of the page as text, without data, scripts and styles.
fn markup(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(start) = ["<script", "<style"]
        .iter()
        .filter_map(|t| rest.find(t))
        .min()
    {
        let tag = if rest[start..].starts_with("<script") {
            "</script>"
        } else {
            "</style>"
        };
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[rest.find(tag).unwrap() + tag.len()..];
    }
    out + rest
}

#[test]
fn the_verdict_names_the_cliff_the_stalls_and_the_invalid() {
    let page = page(&Shape::default());
    let verdict = section(&page, "verdict");
    assert!(verdict.contains("rocksdb is faster"), "{verdict}");
    assert!(verdict.contains("lmdb falls off the cliff in load"));
    assert!(verdict.contains("rocksdb stops in load"));
    assert!(verdict.contains("wiredtiger in load may not be used: repeat 1: 17 of 1,000"));
    assert!(verdict.contains("Write amplification in load: "));
    assert!(verdict.contains("95 % interval"));
    assert!(!verdict.contains("uncalibrated") && !verdict.contains("within-run"));
}

#[test]
fn caveats_are_stated_without_a_floor_and_with_one_repeat() {
    let shape = Shape {
        repeats: 1,
        floor: None,
        ..Shape::default()
    };
    let page = page(&shape);
    let verdict = section(&page, "verdict");
    assert!(verdict.contains("uncalibrated") && verdict.contains("within-run"));
    assert!(verdict.contains("lab calibrate"));
}

#[test]
fn a_difference_below_the_floor_is_inconclusive() {
    let shape = Shape {
        floor: Some(20.0),
        ..Shape::default()
    };
    let page = page(&shape);
    let verdict = section(&page, "verdict");
    assert!(
        verdict.contains("the difference is inconclusive"),
        "{verdict}"
    );
    assert!(!verdict.contains("is faster"));
}

#[test]
fn missing_numbers_are_marked_and_invalid_ones_are_grey() {
    let page = page(&Shape::default());
    let summary = section(&page, "summary");
    let at = summary.find("Commit max").unwrap();
    let row = &summary[at..at + summary[at..].find("</tr>").unwrap()];
    assert_eq!(row.matches("n&#x2f;a").count(), 3, "I3: {row}");
    let at = summary.find("Rate, mean").unwrap();
    let row = &summary[at..at + summary[at..].find("</tr>").unwrap()];
    assert_eq!(row.matches("class=\"n invalid\"").count(), 1, "{row}");
    assert!(row.contains("rel good") || row.contains("rel bad"));
}

#[test]
fn limits_not_in_force_are_stated_in_every_section() {
    let capped = markup(&page(&Shape::default()));
    assert!(!capped.contains("class=\"banner\"") && !capped.contains("limits not in force"));
    let shape = Shape {
        enforced: false,
        ..Shape::default()
    };
    let page = markup(&page(&shape));
    assert!(page.contains("class=\"banner\" role=\"alert\""));
    assert!(page.contains("no permission to write the cgroup&#x27;s limit"));
    let sections = page.matches("<section ").count();
    let stated = page.matches("limits not in force</span>").count();
    assert_eq!(stated, sections, "I4: every section");
    assert!(page.contains("NOT enforced"));
    assert!(page.contains("not decided, without a cap"));
}

#[test]
fn names_from_users_cannot_become_markup() {
    let shape = Shape {
        names: ["lmdb", HOSTILE, "b\"onload=\"x"],
        ..Shape::default()
    };
    let page = page(&shape);
    assert!(
        !page.contains("<script>alert"),
        "I2: a name became an element"
    );
    assert!(
        !markup(&page).contains("\"onload=\""),
        "a name left its attribute"
    );
    assert_eq!(
        page.matches("<script").count(),
        page.matches("</script>").count()
    );
    assert!(
        page.contains("it&#x27;\\&#x27;&#x27;s &lt;b&gt;"),
        "the command is quoted"
    );
}

#[test]
fn the_page_loads_nothing_and_is_small() {
    let shape = Shape {
        repeats: 3,
        seconds: 900,
        ..Shape::default()
    };
    let page = page(&shape);
    let megabytes = page.len() as f64 / 1e6;
    println!("3 targets x 3 repeats x 900 s: {megabytes:.2} MB");
    assert!(megabytes < 2.0, "{megabytes} MB");
    let html = markup(&page);
    for forbidden in [
        " src=",
        "url(",
        "@import",
        "<link",
        "href=\"http",
        "href=\"//",
    ] {
        assert!(!html.contains(forbidden), "I1: {forbidden}");
    }
    assert!(page.contains("default-src 'none'"), "I1: the policy");
    assert!(
        page.contains("application/gzip"),
        "such a run is compressed"
    );
}

#[test]
fn query_steps_show_their_queries() {
    let mut record = run(&Shape {
        steps: vec!["qr100"],
        ..Shape::default()
    });
    for step in &mut record.steps {
        step.summary.as_mut().unwrap().main = Main::Queries;
    }
    let page = render(&record).unwrap();
    let verdict = section(&page, "verdict");
    assert!(verdict.contains(" queries&#x2f;s, "), "{verdict}");
    assert!(!verdict.contains("Per row"), "costs per row are of inserts");
    let summary = section(&page, "summary");
    assert!(
        summary.contains("Query p99") && !summary.contains("Commit"),
        "{summary}"
    );
    let step = section(&page, "step-qr100");
    let (rate, queries) = (
        step.find("Rows in the background"),
        step.find("Rate, 1-sec"),
    );
    assert!(
        queries.unwrap() < rate.unwrap(),
        "what is measured comes first"
    );
    assert!(!step.contains("the knee"));
}

#[test]
fn a_mix_is_described_in_one_word() {
    let mut record = run(&Shape {
        steps: vec!["requests"],
        ..Shape::default()
    });
    record.manifest.plan.experiment = "linkbench".to_owned();
    for step in &mut record.manifest.plan.steps {
        step.work = serde_json::json!({ "work": "program", "task": "mix" });
    }
    for step in &mut record.steps {
        step.summary.as_mut().unwrap().main = Main::Queries;
    }
    let page = render(&record).unwrap();
    for (place, text) in [
        ("verdict", " requests&#x2f;s, "),
        ("summary", "Request p99"),
        ("summary", "Cost per request"),
        ("step-requests", "Response times of a request"),
        ("cost", "requests&#x2f;s per $"),
        ("cost", " requests&#x2f;s at the highest rate"),
    ] {
        let part = section(&page, place);
        assert!(part.contains(text), "{text}: {part}");
        for other in ["queries&#x2f;s", "operations&#x2f;s", "ops&#x2f;s"] {
            assert!(!part.contains(other), "{place} has {other}: {part}");
        }
    }
    let text = crate::export::export(&record, crate::export::Format::Markdown).unwrap();
    assert!(text.contains("### requests (requests)"), "{text}");
}

#[test]
fn a_smoke_run_is_marked_first_and_a_short_step_has_no_cliff() {
    let mut record = run(&Shape::default());
    let verdict_of = |record: &RunRecord| section(&render(record).unwrap(), "verdict").to_owned();
    let quick = verdict_of(&record);
    assert!(quick.contains("falls off the cliff") && !quick.contains("A smoke run"));
    record.manifest.plan.preset = Preset::Smoke;
    let smoke = verdict_of(&record);
    assert!(
        smoke.contains("A smoke run shows that everything works"),
        "{smoke}"
    );
    for step in &mut record.steps {
        step.series.truncate(4);
    }
    let short = verdict_of(&record);
    assert!(!short.contains("falls off the cliff"), "{short}");
    assert!(!short.contains("Last tenth against first tenth"), "{short}");
}

#[test]
fn a_missed_rate_makes_a_target_unusable() {
    let mut record = run(&Shape::default());
    for step in &mut record.steps {
        let summary = step.summary.as_mut().unwrap();
        if summary.target == "rocksdb" {
            summary.rate_target = Some(summary.rows as f64 / summary.seconds * 2.0);
            summary.rate_missed = Some(0.5);
        }
    }
    let page = render(&record).unwrap();
    let verdict = section(&page, "verdict");
    assert!(verdict.contains("rocksdb in load may not be used: reached 50.0 % of the rate"));
    assert!(section(&page, "summary").contains("missed its rate"));
}

#[test]
fn many_steps_stay_small_too() {
    let shape = Shape {
        repeats: 3,
        seconds: 60,
        steps: vec![
            "l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000",
        ],
        ..Shape::default()
    };
    let page = page(&shape);
    println!("3 x 3 x 9 steps of 60 s: {:.2} MB", page.len() as f64 / 1e6);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains("id=\"step-l.i0\"") && page.contains("href=\"#step-qr1000\""));
}

#[test]
fn every_link_leads_somewhere_and_no_anchor_is_doubled() {
    let shape = Shape {
        steps: vec!["l.i0", "l.i1"],
        ..Shape::default()
    };
    let html = markup(&page(&shape));
    let mut ids: Vec<&str> = html
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    ids.sort_unstable();
    let doubled: Vec<_> = ids.windows(2).filter(|w| w[0] == w[1]).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    for link in html
        .split("href=\"#")
        .skip(1)
        .filter_map(|r| r.split('"').next())
    {
        assert!(ids.binary_search(&link).is_ok(), "#{link} leads nowhere");
    }
}

#[test]
fn a_run_without_any_finished_step_still_makes_a_page() {
    let mut record: RunRecord = run(&Shape::default());
    record.summary.results.clear();
    record.summary.steps.clear();
    record.summary.complete = false;
    for step in &mut record.steps {
        step.summary = None;
        step.status.state = StepState::Failed;
        step.status.message = Some("the worker was killed".to_owned());
    }
    let page = render(&record).unwrap();
    assert!(page.contains("No step of this run came to its end"));
    assert!(page.contains("the worker was killed"));
}

/// The verdict of a changed run, as text.
fn verdict_of(change: impl FnOnce(&mut RunRecord)) -> String {
    let mut record = run(&Shape::default());
    change(&mut record);
    let rates = |s: &StepRecord| {
        let summary = s.summary.clone()?;
        let rates = main_rates(&s.series, summary.main);
        Some((summary, rates))
    };
    let done: Vec<_> = record.steps.iter().filter_map(rates).collect();
    record.summary = summarize(&record.manifest, &done, true);
    let page = render(&record).unwrap();
    section(&page, "verdict").replace("\u{d7}", "x")
}

#[test]
fn the_headline_names_the_winner_and_what_befell_the_others() {
    let verdict = verdict_of(|_| {});
    assert!(
        verdict.contains("rocksdb is faster than lmdb: "),
        "{verdict}"
    );
    assert!(
        verdict.contains("lmdb falls off the cliff; wiredtiger is invalid."),
        "{verdict}"
    );
    let all_valid = |record: &mut RunRecord| {
        for summary in record.steps.iter_mut().filter_map(|s| s.summary.as_mut()) {
            summary.valid = true;
        }
    };
    let verdict = verdict_of(all_valid);
    assert!(
        verdict.contains("1.02x the rate of wiredtiger; the difference is inconclusive"),
        "{verdict}"
    );
    let verdict = verdict_of(|record| {
        all_valid(record);
        let summaries = record.steps.iter_mut().filter_map(|s| s.summary.as_mut());
        for summary in summaries.filter(|s| s.target == "rocksdb") {
            summary.rate_mean *= 2.0;
        }
    });
    assert!(
        verdict.contains("rocksdb is the fastest: 2.0") && verdict.contains("the next"),
        "{verdict}"
    );
    let verdict = verdict_of(|record| record.manifest.plan.preset = Preset::Smoke);
    assert!(
        verdict.contains("A smoke run names no target as the fastest"),
        "{verdict}"
    );
}

#[test]
fn a_target_stopped_by_time_is_held_against_the_rows_it_wrote() {
    let verdict = verdict_of(|record| {
        record.manifest.plan.steps[0].operations = 4_000_000;
    });
    assert!(
        verdict.contains("lmdb falls off the cliff and was stopped by its time at"),
        "{verdict}"
    );
    assert!(verdict.contains("of 4,000,000 rows"), "{verdict}");
    assert!(verdict.contains("Over the first "), "{verdict}");
    assert!(
        !verdict.contains("rocksdb was stopped"),
        "it ended by its operations"
    );
    let headline = verdict.split("</h1>").next().unwrap();
    assert!(headline.contains(" over the first "), "K2: {headline}");
    let whole = verdict_of(|_| ());
    let headline = whole.split("</h1>").next().unwrap();
    assert!(!headline.contains("over the first"), "{headline}");
}

#[test]
fn a_single_target_is_not_ranked() {
    let mut record = run(&Shape::default());
    record.manifest.plan.targets.truncate(1);
    record.steps.retain(|step| {
        let summary = step.summary.as_ref();
        summary.is_some_and(|s| s.target == "lmdb")
    });
    let rates = |s: &StepRecord| (s.summary.clone().unwrap(), Vec::new());
    let done: Vec<_> = record.steps.iter().map(rates).collect();
    record.summary = summarize(&record.manifest, &done, true);
    let page = markup(&render(&record).unwrap());
    assert!(page.contains(">measured</span>"), "the state of the target");
    assert!(!page.contains("nothing else can be compared"));
    record.manifest.plan.preset = Preset::Smoke;
    let smoke = markup(&render(&record).unwrap());
    assert!(smoke.contains("lmdb ran at") && !smoke.contains("which target is faster"));
    for ranking in [
        "of the fastest",
        ">reference<",
        "Compare with",
        "class=\"rel",
    ] {
        assert!(!page.contains(ranking), "{ranking}");
    }
    let several = markup(&render(&run(&Shape::default())).unwrap());
    assert!(several.contains("of the fastest") && several.contains("Compare with"));
}

#[test]
fn a_disturbed_repeat_is_marked_and_decides_nothing() {
    let mut record = run(&Shape::default());
    let others = |cpu: f64| Others {
        seconds: 60.0,
        seconds_settled: 70.0,
        cpus: 2,
        cpu: Some(cpu),
        ..Others::default()
    };
    for step in &mut record.steps {
        let summary = step.summary.as_mut().unwrap();
        let hit = summary.target == "rocksdb" && summary.repeat == 2;
        summary.others = Some(others(if hit { 0.4 } else { 0.01 }).judged());
    }
    let page = render(&record).unwrap();
    let verdict = section(&page, "verdict");
    assert!(!verdict.contains("is faster"), "{verdict}");
    assert!(
        verdict.contains("Other programs disturbed 1 of "),
        "{verdict}"
    );
    assert!(verdict.contains("other programs used 40 % of the CPU time"));
    assert!(
        verdict.contains("other programs disturbed repeats"),
        "{verdict}"
    );
    let step = section(&page, "step-load");
    assert!(step.contains("disturbed repeat 2 of rocksdb"), "{step}");
    assert_eq!(step.matches("warn prose").count(), 1, "one mark");
    assert!(step.contains("quiet"));
}

#[test]
fn a_failed_target_is_reported_once() {
    let verdict = verdict_of(|record| {
        for step in &mut record.steps {
            if step.directory.contains("wiredtiger") {
                step.summary = None;
                step.status.state = StepState::Failed;
                step.status.message = Some("wiredtiger: out of memory".to_owned());
            }
        }
    });
    let failure = "wiredtiger failed in load in every repeat: out of memory.";
    assert_eq!(verdict.matches(failure).count(), 1, "{verdict}");
    assert!(verdict.contains(">failed</span>"), "{verdict}");
    assert!(!verdict.contains("may not be used"), "{verdict}");
}

#[test]
fn the_generator_alone_wins_nothing() {
    let verdict = verdict_of(|record| {
        record.manifest.plan.targets[1].engine = "null".to_owned();
    });
    assert!(verdict.contains("lmdb ran at"), "K1: {verdict}");
    assert!(verdict.contains("rocksdb keeps nothing: "), "{verdict}");
    assert!(verdict.contains(">ceiling</span>"), "{verdict}");
    assert!(!verdict.contains("rocksdb is fast"), "{verdict}");
}

#[test]
fn a_single_short_repeat_is_inconclusive() {
    let shape = Shape {
        repeats: 1,
        seconds: 4,
        ..Shape::default()
    };
    let page = page(&shape);
    let verdict = section(&page, "verdict");
    assert!(
        verdict.contains("the difference is inconclusive"),
        "{verdict}"
    );
    assert!(verdict.contains(">inconclusive</span>"), "{verdict}");
    assert!(!verdict.contains(">slower<") && !verdict.contains("no cost per row"));
}

#[test]
fn a_single_repeat_has_no_winner_however_far_apart_rates_are() {
    let shape = Shape {
        repeats: 1,
        seconds: 4,
        ..Shape::default()
    };
    let mut record = run(&shape);
    for step in &mut record.steps {
        let winner = step.directory.contains("rocksdb");
        for summary in step.summary.iter_mut().filter(|_| winner) {
            summary.rate_mean *= 20.0;
        }
    }
    for result in &mut record.summary.results {
        if result.target == "rocksdb"
            && let Some(rate) = result.metrics.get_mut("rate_mean")
        {
            *rate = rate.map(|rate| rate * 20.0);
        }
    }
    let page = render(&record).unwrap();
    let verdict = section(&page, "verdict");
    assert!(!verdict.contains("is faster"), "{verdict}");
    assert!(
        verdict.contains("a single repeat shows nothing of the noise between runs"),
        "{verdict}"
    );
    assert!(verdict.contains(">inconclusive<"), "{verdict}");
}

#[test]
fn rates_far_apart_are_drawn_on_a_logarithmic_axis() {
    let far = |share: f64| {
        let mut record = run(&Shape::default());
        for step in &mut record.steps {
            let slow = step.directory.contains("lmdb");
            for row in step.series.iter_mut().filter(|_| slow) {
                row.rate *= share;
            }
        }
        let page = render(&record).unwrap();
        let rate = page.find("id=\"step-load-rate\"").unwrap();
        page[rate..rate + 400].contains("Logarithmic")
    };
    assert!(far(0.01));
    assert!(!far(1.0));
}

#[test]
fn another_schema_is_refused() {
    let mut record = run(&Shape::default());
    record.manifest.schema = 99;
    assert!(matches!(
        render(&record),
        Err(ReportError::Schema { found: 99, .. })
    ));
}

#[test]
fn what_a_rate_costs_that_was_asked_for_is_not_that_of_a_closed_loop() {
    let cost = |held: bool| {
        let mut record = run(&Shape::default());
        if held {
            for step in &mut record.manifest.plan.steps {
                step.load = LoadKind::Open {
                    rate: 5.0,
                    poisson: true,
                };
            }
            for step in &mut record.steps {
                if let Some(summary) = &mut step.summary {
                    summary.rate_target = Some(5.0);
                    summary.latency_ms.p99 = 9000.0;
                }
            }
        }
        section(&render(&record).unwrap(), "cost").to_owned()
    };
    let (closed, open) = (cost(false), cost(true));
    assert!(
        closed.contains("at the highest rate of a closed loop for"),
        "{closed}"
    );
    // A note says so for all.
    assert!(!closed.contains("no open loop repeats it"), "{closed}");
    assert!(
        open.contains("at a rate that was asked for and not kept"),
        "{open}"
    );
    assert!(
        !open.contains("at the highest rate of a closed loop for"),
        "{open}"
    );
    assert!(
        open.contains("below 10 a second stalls are not held against it"),
        "{open}"
    );
}
