//! The dashboards and alert rules in `dashboards/`: every metric and label that they name exists in
//! the output of a server under load, and is used as its type demands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bson::doc;

use crate::client::Site;
use crate::prometheus::ask;

/// Labels that Prometheus adds to every sample.
const TARGET: &[&str] = &["job", "instance"];

/// Labels with a value for each collection, index or command: a chart shows the largest only.
const MANY: &[&str] = &["collection", "index", "command"];

/// Words of PromQL that are no metrics.
const WORDS: &[&str] = &[
    "and",
    "by",
    "changes",
    "deriv",
    "histogram_quantile",
    "ignoring",
    "increase",
    "on",
    "or",
    "predict_linear",
    "rate",
    "sum",
    "topk",
    "unless",
    "without",
];

/// What a server reports: the type of each metric, and the labels of its samples with their values.
#[derive(Default)]
struct Reported {
    kinds: BTreeMap<String, String>,
    labels: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

/// A selector of an expression: a metric, its matchers, and whether a range follows.
#[derive(Debug)]
struct Selector {
    metric: String,
    matchers: Vec<(String, String, String)>,
    ranged: bool,
}

fn folder() -> PathBuf {
    Path::new("../../dashboards").to_owned()
}

impl Reported {
    fn parse(text: &str) -> Reported {
        let mut reported = Reported::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                reported.kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (sample, _) = line.rsplit_once(' ').unwrap();
                let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
                let known = reported.labels.entry(name.to_owned()).or_default();
                for (label, _, value) in matchers(labels.trim_end_matches('}')) {
                    known.entry(label).or_default().insert(value);
                }
            }
        }
        reported
    }

    /// The type of a metric, also of a part of a histogram.
    fn kind(&self, metric: &str) -> Option<&str> {
        let whole = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| metric.strip_suffix(part))
            .and_then(|of| self.kinds.get(of))
            .filter(|kind| *kind == "histogram");
        self.kinds.get(metric).or(whole).map(String::as_str)
    }

    /// What is wrong with an expression.
    fn problems(&self, expr: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let selectors = selectors(expr);
        if selectors.is_empty() {
            problems.push("names no metric".to_owned());
        }
        for selector in &selectors {
            problems.extend(self.problem(selector, expr));
        }
        let of_all: BTreeSet<&str> = selectors
            .iter()
            .filter_map(|selector| self.labels.get(&selector.metric))
            .flat_map(|labels| labels.keys().map(String::as_str))
            .collect();
        // A metric without samples on this machine has unknown labels.
        let known = selectors
            .iter()
            .all(|s| self.labels.contains_key(&s.metric));
        for label in grouped(expr) {
            if known && !TARGET.contains(&label.as_str()) && !of_all.contains(label.as_str()) {
                problems.push(format!("groups by {label}, which no metric has"));
            }
            if MANY.contains(&label.as_str()) && !expr.contains("topk(") {
                problems.push(format!("groups by {label} without topk"));
            }
        }
        let shows_all = !expr.contains("sum ") && of_all.iter().any(|l| MANY.contains(l));
        if shows_all && !expr.contains("topk(") {
            problems.push("shows a line for each collection or index".to_owned());
        }
        problems
    }

    fn problem(&self, selector: &Selector, expr: &str) -> Option<String> {
        let metric = selector.metric.as_str();
        if metric == "up" {
            return None;
        }
        let Some(kind) = self.kind(metric) else {
            return Some(format!("{metric} does not exist"));
        };
        let counts = kind == "counter" || kind == "histogram";
        let over_time = ["deriv(", "predict_linear(", "changes("];
        let gauge_over_time = over_time.iter().any(|function| expr.contains(function));
        if counts && !selector.ranged {
            return Some(format!("{metric} is a {kind} and has no rate"));
        }
        if !counts && selector.ranged && !gauge_over_time {
            return Some(format!("{metric} is a {kind} and has a rate"));
        }
        if metric.ends_with("_bucket") && !(expr.contains("histogram_quantile") && by_le(expr)) {
            return Some(format!(
                "{metric} is not used by histogram_quantile with le"
            ));
        }
        let known = self.labels.get(metric)?;
        selector
            .matchers
            .iter()
            .find_map(|(label, operator, value)| {
                if TARGET.contains(&label.as_str()) {
                    return None;
                }
                let Some(values) = known.get(label) else {
                    return Some(format!("{metric} has no label {label}"));
                };
                let named = value.split('|');
                let missing: Vec<&str> = named.filter(|value| !values.contains(*value)).collect();
                let exact = operator == "=" || operator == "=~";
                (exact && !missing.is_empty())
                    .then(|| format!("{metric} has no {label} {}", missing.join(", ")))
            })
    }
}

fn by_le(expr: &str) -> bool {
    grouped(expr).iter().any(|label| label == "le")
}

/// The labels of all `by (..)`.
fn grouped(expr: &str) -> Vec<String> {
    let lists = expr
        .split("by (")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    let labels = lists.flat_map(|(list, _)| list.split(','));
    labels.map(|label| label.trim().to_owned()).collect()
}

/// `name="value"`, separated by commas; also with other operators.
fn matchers(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, tail)) = rest.split_once(['=', '!']) {
        let operator_end = tail.find('"').unwrap();
        let operator = &rest[name.len()..name.len() + 1 + operator_end];
        let tail = &tail[operator_end + 1..];
        let end = tail.find('"').unwrap();
        let name = name.trim().trim_start_matches(',').trim();
        let (value, after) = tail.split_at(end);
        found.push((name.to_owned(), operator.to_owned(), value.to_owned()));
        rest = &after[1..];
    }
    found
}

/// The selectors of an expression.
fn selectors(expr: &str) -> Vec<Selector> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let begin = &rest[at..];
        let length = begin.find(|c| !is_name(c)).unwrap_or(begin.len());
        let (name, mut after) = begin.split_at(length);
        if WORDS.contains(&name) {
            // The labels of a grouping follow it in parentheses.
            let lists = ["by", "ignoring", "on", "without"];
            if lists.contains(&name) {
                after = after.split_once(')').unwrap().1;
            }
            rest = after;
            continue;
        }
        let mut matched = Vec::new();
        if let Some(inside) = after.strip_prefix('{') {
            let (inside, tail) = inside.split_once('}').unwrap();
            matched = matchers(inside);
            after = tail;
        }
        let ranged = after.starts_with('[');
        if ranged {
            after = after.split_once(']').unwrap().1;
        }
        found.push(Selector {
            metric: name.to_owned(),
            matchers: matched,
            ranged,
        });
        rest = after;
    }
    found
}

/// What a server reports that has done some of everything.
fn reported() -> Reported {
    let site = Site::with(|config| config.prometheus_port = Some(0));
    let mut client = site.client();
    let documents: Vec<_> = (0..100).map(|n| doc! {"_id": n, "a": n}).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let index = doc! {"key": {"a": 1}, "name": "a_1"};
    client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    client.ok("test", doc! {"find": "c", "filter": {"a": 7}});
    client.ok(
        "test",
        doc! {"update": "c", "updates": [{"q": {"a": 7}, "u": {"$inc": {"a": 1}}}]},
    );
    client.ok(
        "test",
        doc! {"delete": "c", "deletes": [{"q": {"a": 8}, "limit": 1}]},
    );
    client.fails("test", doc! {"find": "c", "filter": {"$nothing": 1}});
    Reported::parse(&ask(&site, "GET /metrics HTTP/1.1").1)
}

/// The expressions of a dashboard with the titles of their panels.
fn expressions(dashboard: &serde_json::Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let of = |panel: &serde_json::Value| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().expect("targets").clone();
        targets.into_iter().map(move |target| {
            let expr = target["expr"].as_str().expect("an expression");
            (title.clone(), expr.to_owned())
        })
    };
    panels.iter().flat_map(of).collect()
}

/// The dashboards with the names of their files.
fn dashboards() -> Vec<(String, serde_json::Value)> {
    let paths = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|is| is == "json"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).unwrap())
    };
    paths.map(read).collect()
}

#[test]
fn dashboards_name_metrics_that_exist() {
    let reported = reported();
    let mut problems = Vec::new();
    let mut count = 0;
    let mut uids = BTreeSet::new();
    for (place, dashboard) in dashboards() {
        let uid = dashboard["uid"].as_str().unwrap().to_owned();
        assert!(uids.insert(uid), "{place}: its uid is taken");
        for (title, expr) in expressions(&dashboard) {
            count += 1;
            let found = reported.problems(&expr);
            problems.extend(found.iter().map(|what| format!("{place}: {title}: {what}")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(60 < count, "{count} expressions");
    assert_eq!(uids.len(), 4);
}

/// The expressions of the alert rules. `promtool` checks their syntax; here only lines are read.
fn alerts() -> Vec<(String, String)> {
    let text = fs::read_to_string(folder().join("alerts.yaml")).unwrap();
    let rules = text.split("- alert: ").skip(1);
    let expr = |rule: &str| {
        let (name, rest) = rule.split_once('\n').unwrap();
        let expr = rest.split_once("expr:").unwrap().1;
        let ends = ["\n        for:", "\n        labels:"];
        let end = ends.iter().filter_map(|end| expr.find(end)).min().unwrap();
        (name.to_owned(), expr[..end].replace(">-", ""))
    };
    rules.map(expr).collect()
}

#[test]
fn alerts_name_metrics_that_exist() {
    let reported = reported();
    let alerts = alerts();
    for (name, expr) in &alerts {
        let problems = reported.problems(expr);
        assert!(problems.is_empty(), "{name}: {}", problems.join("; "));
    }
    assert!(10 < alerts.len(), "{} alerts", alerts.len());
    let tests = fs::read_to_string(folder().join("alerts_test.yaml")).unwrap();
    for (name, _) in &alerts {
        assert!(
            tests.contains(&format!("alertname: {name}\n")),
            "{name} has no test"
        );
    }
}

/// Run promtool, which must succeed. Returns false if this machine has none.
fn promtool(arguments: [&str; 3]) -> bool {
    let mut promtool = Command::new("promtool");
    let Ok(output) = promtool.args(arguments).current_dir(folder()).output() else {
        stdx::skip::test("promtool is missing (Debian: prometheus)");
        return false;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    true
}

#[test]
fn alerts_fire_as_their_tests_say() {
    let _ran = promtool(["check", "rules", "alerts.yaml"])
        && promtool(["test", "rules", "alerts_test.yaml"]);
}

/// Each expression becomes a recording rule, which promtool parses.
#[test]
fn expressions_of_dashboards_are_valid() {
    let all = dashboards();
    let rules = all.iter().flat_map(|(_, dashboard)| expressions(dashboard));
    let rules = rules.enumerate().map(|(number, (_, expr))| {
        let expr = expr.replace("$__rate_interval", "5m");
        serde_json::json!({"record": format!("dashboard:{number}"), "expr": expr})
    });
    let rules: Vec<serde_json::Value> = rules.collect();
    let file = serde_json::json!({"groups": [{"name": "dashboards", "rules": rules}]});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    fs::write(&path, file.to_string()).unwrap();
    let _ran = promtool(["check", "rules", path.to_str().unwrap()]);
}

#[test]
fn wrong_expressions_are_found() {
    let reported = Reported::parse(
        "# TYPE bytes_total counter\nbytes_total{reason=\"a\"} 1\n\
         # TYPE open gauge\nopen 1\n\
         # TYPE size gauge\nsize{collection=\"c\"} 1\n\
         # TYPE time histogram\ntime_bucket{le=\"1\"} 1\ntime_sum 1\ntime_count 1\n",
    );
    for right in [
        "sum by (reason) (rate(bytes_total{job=\"$job\",reason=~\"a\"}[5m]))",
        "open / open{instance=~\"$instance\"}",
        "topk(10, size)",
        "histogram_quantile(0.99, sum by (le) (rate(time_bucket[5m])))",
    ] {
        assert!(reported.problems(right).is_empty(), "{right}");
    }
    for wrong in [
        "nothing_total",
        "bytes_total",
        "rate(open[5m])",
        "size",
        "rate(bytes_total{reason=\"b\"}[5m])",
        "rate(bytes_total{cause=\"a\"}[5m])",
        "sum by (cause) (rate(bytes_total[5m]))",
        "sum by (collection) (size)",
        "histogram_quantile(0.99, sum by (reason) (rate(time_bucket[5m])))",
        "1 + 2",
    ] {
        assert!(!reported.problems(wrong).is_empty(), "{wrong}");
    }
}
