//! Every command of `docs/articles.md` is planned by the program itself, so that none becomes
//! outdated.

use crate::program::Place;

const PAGE: &str = include_str!("../../../../docs/articles.md");

/// The rows of the page's tables, by cell.
fn rows() -> Vec<Vec<&'static str>> {
    let tables = PAGE.lines().filter(|line| line.starts_with("| "));
    let rows = tables.filter(|line| !line.starts_with("| figure or table "));
    rows.map(|line| {
        line.split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']))
            .collect()
    })
    .collect()
}

#[test]
fn every_row_has_a_state_and_every_command_can_be_planned() {
    let place = Place::new();
    let rows = rows();
    assert!(rows.len() >= 37, "{} rows", rows.len());
    for row in rows {
        let [figure, state, command, differs] = row[..] else {
            panic!("not four cells: {row:?}");
        };
        assert!(
            ["whole", "in part", "not yet"].contains(&state),
            "{figure}: {state}"
        );
        assert!(!differs.is_empty(), "{figure}");
        if command == "none" {
            assert_eq!(state, "not yet", "{figure}: no command");
            continue;
        }
        let line = command.trim_matches('`');
        let line = line.strip_prefix("romanesco lab ").expect(line);
        let plan = place.lab(&format!("{line} --dry-run")).exits(0).out;
        assert!(
            plan.contains("plan") || plan.contains("steps"),
            "{line}: {plan}"
        );
    }
}

#[test]
fn every_article_of_the_program_is_on_the_page_and_none_else() {
    let names: Vec<&str> = lab::experiment::articles().iter().map(|a| a.name).collect();
    for name in &names {
        assert!(
            PAGE.contains(&format!("--as {name} ")),
            "{name} is not on the page"
        );
    }
    for part in PAGE.split("--as ").skip(1) {
        let name = part.split([' ', '`']).next().unwrap();
        assert!(name == "NAME" || names.contains(&name), "{name}");
    }
}

#[test]
fn articles_are_listed_and_refuse_what_they_set() {
    let place = Place::new();
    let listed = place.lab("list articles").exits(0).out;
    assert!(
        listed.contains("callaghan-2014") && listed.contains("24 March 2014"),
        "{listed}"
    );
    let of = |more: &str| place.lab(&format!("run --as callaghan-2014 -t memory {more}"));
    of("--durability none --dry-run").refuses(3, &["callaghan-2014 sets --durability itself"]);
    place
        .lab("run tpcc --as callaghan-2014 --dry-run")
        .refuses(3, &["iibench-classic, not tpcc"]);
    place
        .lab("run --as calaghan-2014 --dry-run")
        .refuses(3, &["did you mean \"callaghan-2014\"?"]);
    let plan = of("--scale 0.001 --dry-run").exits(0).out;
    assert!(plan.contains("insert 2000000 rows"), "{plan}");
}
