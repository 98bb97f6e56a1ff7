//! Tests of sweeps: runs for each combination of values, one page, resuming and refusals.

use rustix::process::Signal;

use crate::program::{Place, send, wait_for};

/// Two runs of a moment each.
const LINE: &str = "run iibench-classic -t memory --preset smoke --rows 2000 --mem 0 --settle 0 \
                    --time 60 --out out --sweep batch=100,200";

#[test]
fn each_combination_is_a_run_and_one_page_joins_them() {
    let place = Place::new();
    let ran = place
        .lab(&format!("{LINE} --sweep codec=none,fast"))
        .exits(0);
    assert!(
        ran.err.contains("run 4 of 4: batch 200, codec fast"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("inconclusive (batch): 100: 1 repeat"),
        "{}",
        ran.err
    );
    let cells = [
        "001_batch-100_codec-none",
        "002_batch-100_codec-fast",
        "003_batch-200_codec-none",
        "004_batch-200_codec-fast",
    ];
    for cell in cells {
        place.whole(&format!("out/{cell}"));
    }
    let page = place.text("out/report.html").replace("&#x2f;", "/");
    for cell in cells {
        assert!(
            page.contains(&format!("{cell}/report.html")),
            "no link to {cell}"
        );
    }
    assert!(page.contains("iibench-classic by batch and codec: inconclusive"));
    // The commands that read a run read a sweep, or name its runs.
    place.lab("report out -o again.html").exits(0);
    assert_eq!(place.text("again.html").replace("&#x2f;", "/"), page);
    let csv = place.lab("export out").exits(0).out;
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
    assert!(csv.starts_with("batch,codec,target,step,unit"), "{csv}");
    let markdown = place.lab("export out --format md").exits(0).out;
    assert!(
        markdown.contains("| batch | codec | memory |"),
        "{markdown}"
    );
    place
        .lab("export out --format hgrm")
        .refuses(3, &["001_batch-100_codec-none"]);
    place
        .lab("cost out")
        .refuses(3, &["holds a sweep", "out/001_batch-100_codec-none"]);
    place
        .lab("stop out")
        .refuses(3, &["no romanesco works on out"]);
    let watched = place.lab("watch out --once").exits(0).out;
    assert!(
        watched.contains("004_batch-200_codec-fast") && watched.contains("complete"),
        "{watched}"
    );
}

#[test]
fn nothing_is_run_twice() {
    let place = Place::new();
    place.lab(LINE).exits(0);
    place.lab(LINE).refuses(3, &["holds a sweep", "lab resume"]);
    place.lab("resume out").exits(0);
    assert_eq!(place.count("out/001_batch-100", "done"), 1);
}

#[test]
fn an_interrupted_sweep_is_resumed() {
    let place = Place::new();
    let slow = "run iibench-classic -t memory --preset smoke --rows 20000 --mem 0 --settle 0 \
                --rate 2000 --batch 20 --time 2 --out out --sweep threads=1,2";
    let mut running = place.start(slow);
    wait_for("the second run", || {
        let names = place.names("out/002_threads-2/steps");
        names.iter().any(|name| name.ends_with("_load"))
    });
    place.await_step("out/002_threads-2", "_load");
    send(running.pid(), Signal::INT);
    assert_eq!(running.end(), 130);
    let reported = place.text("background.txt");
    assert!(reported.contains("lab resume out"), "{reported}");
    let page = place.text("out/report.html").replace("&#x2f;", "/");
    assert!(
        page.contains("001_threads-1/report.html"),
        "the first run is on the page"
    );
    place.lab("resume out").exits(0);
    place.whole("out/002_threads-2");
    assert_eq!(
        place.count("out/001_threads-1", "done"),
        1,
        "the first run is kept"
    );
}

#[test]
fn mistakes_are_refused_before_anything_is_run() {
    let place = Place::new();
    let of = |more: &str| {
        let line = "run iibench-classic -t memory --preset smoke --out out";
        place.lab(&format!("{line} {more}"))
    };
    of("--sweep cash=1M,2M").refuses(3, &["did you mean \"cache\"?", "volume", "TARGET:OPTION"]);
    of("--sweep cache=16M,90G").refuses(3, &["cache 90G: ", "three quarters"]);
    of("--sweep cache=16M,32M --cache 8M").refuses(3, &["--cache is given and swept"]);
    of("--sweep volume=gp2,gp9").refuses(3, &["gp9", "gp3", "io2"]);
    of("--volume io1").refuses(3, &["io1-5000"]);
    of("--volume gp3 --iops 100").refuses(3, &["--volume gp3 sets --iops as well"]);
    place
        .lab("run all --sweep cache=16M,32M")
        .refuses(3, &["--sweep is for one experiment"]);
    assert!(!place.path("out").exists());
    let plans = of("--sweep volume=gp2,io2-5000 --dry-run").exits(0).out;
    assert!(
        plans.contains("001_volume-io2-5000") && plans.contains("002_volume-gp2"),
        "{plans}"
    );
    let volumes = place.lab("list volumes").exits(0).out;
    assert!(
        volumes.contains("aws-2018-article") && volumes.contains("up to 10"),
        "{volumes}"
    );
}
