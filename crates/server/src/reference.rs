//! Lists all settings, from the table that decides them: the last part of `docs/configuration.md`.

use std::fmt::Write as _;

use crate::config::{Setting, Standing, Takes, all, foreign_parameters};

/// The heading from which on the page is written by [`reference()`].
pub const REFERENCE_HEADING: &str = "## All settings";

/// The part of the page, from its heading to the end.
#[must_use]
pub fn reference() -> String {
    let mut page = format!("{REFERENCE_HEADING}\n\n");
    page.push_str("This part is written by `romanesco settings` from the table of settings.\n\n");
    page.push_str("### Settings of this server\n\n");
    page.push_str("| setting | flag | default | meaning |\n| --- | --- | --- | --- |\n");
    for row in all().filter(|row| row.standing() == Standing::Used) {
        let flags: Vec<String> = row.flags.iter().map(shown).collect();
        let default = match row.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        let cells = [
            &format!("`{}`", row.name),
            &flags.join(" "),
            &default,
            row.about,
        ];
        line(&mut page, &cells);
    }
    let lists: [(&str, Vec<&Setting>); 2] = [
        ("settings", all().collect()),
        ("parameters", foreign_parameters().collect()),
    ];
    for (what, rows) in lists {
        let ignored = rows.iter().filter_map(|row| match row.standing() {
            Standing::Ignored(why) => Some((row.name, why)),
            _ => None,
        });
        let title = format!("Ignored {what}, with a line in the log");
        section(&mut page, &title, ignored);
        let refused = rows.iter().filter_map(|row| match row.standing() {
            Standing::Refused(why) => Some((row.name, why)),
            _ => None,
        });
        section(&mut page, &format!("Refused {what}"), refused);
    }
    page
}

fn section(
    page: &mut String,
    title: &str,
    rows: impl Iterator<Item = (&'static str, &'static str)>,
) {
    page.push_str(&format!("\n### {title}\n\n| name | why |\n| --- | --- |\n"));
    for (name, why) in rows {
        line(page, &[&format!("`{name}`"), why]);
    }
}

fn shown(flag: &crate::config::Flag) -> String {
    match flag.takes {
        Takes::Value(word) => format!("`--{} {word}`", flag.long),
        Takes::Nothing(_) => format!("`--{}`", flag.long),
    }
}

fn line(page: &mut String, cells: &[&str]) {
    // Writing to a string does not fail.
    let _: Result<(), std::fmt::Error> = writeln!(page, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_settings_of_the_table() {
        // Tests run in their package's folder; the folder of the build may be of another clone.
        let page = std::fs::read_to_string("../../docs/configuration.md").unwrap();
        let at = page.find(REFERENCE_HEADING).expect("the heading");
        assert!(
            page[at..] == reference(),
            "docs/configuration.md is stale: run `romanesco settings docs/configuration.md`"
        );
    }
}
