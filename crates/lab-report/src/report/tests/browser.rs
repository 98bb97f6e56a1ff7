//! A headless browser draws the page and counts what it drew.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::report::fixture::{Shape, run};
use crate::report::render;

/// Numbers that the page reports about itself.
#[derive(Debug, Deserialize)]
struct SelfCheck {
    canvases: u32,
    drawn: u32,
    figures: u32,
    width: u32,
    overflow: i32,
    sideways: Vec<String>,
    errors: Vec<String>,
}

/// The browser, or `None` if its absence is allowed.
fn chromium() -> Option<String> {
    let name = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    if Command::new(&name)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        return Some(name);
    }
    if env::var("ROMANESCO_NO_CHROMIUM").as_deref() == Ok("1") {
        stdx::skip::test(&format!(
            "there is no {name}, and ROMANESCO_NO_CHROMIUM=1 allows that"
        ));
        return None;
    }
    panic!(
        "cannot run {name}: install it with `apt-get install chromium`, name it in $CHROMIUM, or \
         set ROMANESCO_NO_CHROMIUM=1 to go without this test"
    );
}

fn check(browser: &str, page: &Path, profile: &Path) -> SelfCheck {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=8000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--window-size=1280,900")
        .arg(format!("file://{}#selfcheck", page.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let attribute = dom
        .split("data-selfcheck=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_else(|| panic!("the page did not check itself; the browser wrote: {stderr}"));
    serde_json::from_str(&attribute.replace("&quot;", "\"").replace("&amp;", "&")).unwrap()
}

/// A page that shows another one at the width of a telephone and forwards its numbers: windows of a
/// headless browser cannot be that narrow.
const TELEPHONE: &str = "<!doctype html><meta charset=utf-8><script>\
    addEventListener('message', e => { document.documentElement.dataset.selfcheck = e.data; });\
    </script><iframe src='report.html#selfcheck' width=390 height=844></iframe>";

fn draws(shape: &Shape) {
    let Some(browser) = chromium() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.html");
    fs::write(&path, render(&run(shape)).unwrap()).unwrap();
    if let Ok(keep) = env::var("ROMANESCO_REPORT_DIR") {
        let name = if shape.enforced {
            "capped.html"
        } else {
            "uncapped.html"
        };
        fs::copy(&path, Path::new(&keep).join(name)).expect("the page is kept to be looked at");
    }
    let narrow = dir.path().join("telephone.html");
    fs::write(&narrow, TELEPHONE).unwrap();
    for (page, least, most) in [(&path, 1200, 1280), (&narrow, 370, 390)] {
        let profile = dir.path().join(format!("profile-{most}"));
        let found = check(&browser, page, &profile);
        println!("{most} px: {found:?}");
        assert_eq!(found.errors, Vec::<String>::new());
        assert!(
            (least..=most).contains(&found.width),
            "{} px wide",
            found.width
        );
        if page == &path {
            assert_eq!(
                found.sideways,
                Vec::<String>::new(),
                "tables scroll sideways"
            );
        }
        assert!(found.drawn > 0);
        assert_eq!(found.canvases, found.drawn, "blank canvases at {most} px");
        assert_eq!(
            found.canvases, found.figures,
            "missing canvases at {most} px"
        );
        assert!(
            found.overflow <= 0,
            "the page is wider than {} px",
            found.width
        );
    }
}

#[test]
fn a_browser_draws_every_plot() {
    draws(&Shape {
        names: ["lmdb", "x</script><script>alert(1)</script>", "wiredtiger"],
        enforced: false,
        ..Shape::default()
    });
}

#[test]
fn a_browser_draws_compressed_data() {
    draws(&Shape {
        repeats: 3,
        seconds: 900,
        ..Shape::default()
    });
}
