//! The guide to runs of the laboratory on an own workload: its settings, and its commands as a
//! reader would copy them, with fewer rows.

use std::env;
use std::fs;
use std::path::Path;

use super::blocks;
use crate::program::{Place, finish};

const OWN_WORKLOAD: &str = include_str!("../../../../../docs/guides/own-workload.md");

/// The blocks of the page in `language`, in order.
fn in_language(language: &str) -> Vec<String> {
    let all = blocks(OWN_WORKLOAD).into_iter();
    let wanted = all.filter(|(found, _)| found == language);
    wanted.map(|(_, text)| text).collect()
}

#[test]
fn the_commands_of_the_guide_to_an_own_workload_work_in_its_order() {
    let place = Place::new();
    let settings = in_language("toml");
    assert_eq!(settings.len(), 1);
    fs::write(place.path("lab.toml"), &settings[0]).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_romanesco"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let mut commands = Vec::new();
    for block in in_language("sh") {
        commands.extend(block.lines().map(str::to_owned));
    }
    for line in &commands {
        let mut command = place.outside("sh");
        command.args(["-c", line]).env("PATH", &path);
        // Variables win over the file of the guide: fewer rows, and no limits, which need root.
        let small = [
            ("LAB_ROWS", "2000"),
            ("LAB_MEM", "0"),
            ("LAB_CACHE", "16M"),
            ("LAB_SETTLE", "1"),
            ("LAB_TIME", "5"),
            ("LAB_REPEATS", "2"),
            ("LAB_PRESET", "smoke"),
        ];
        command.envs(small);
        let ran = finish(command);
        let expected: &[i32] = match line.split_whitespace().nth(2) {
            // It names what this machine lacks.
            Some("doctor") => &[0, 2],
            // A verdict on speed, whatever it is.
            Some("check") => &[0, 1, 4],
            _ => &[0],
        };
        let text = format!("{line}\n{}\n{}", ran.out, ran.err);
        assert!(
            expected.contains(&ran.code),
            "exit code {}: {text}",
            ran.code
        );
        assert!(!text.contains("panicked"), "{text}");
    }
    for run in ["mine", "busy", "served", "again"] {
        place.whole(run);
    }
    assert_eq!(commands.len(), 8);
}
