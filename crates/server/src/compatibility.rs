//! Lists what the server supports, from the tables that decide it: the last part of
//! `docs/compatibility.md`.

use std::fmt::Write as _;

use query::vocabulary;

use crate::command::{ADMIN, API, TEST, TRANSACTION};
use crate::commands;
use crate::version::MONGODB;

/// The heading of the generated part of the page; see [`compatibility`].
pub const HEADING: &str = "## What is understood";

/// Stages that only begin and end the pipelines of change streams.
const STREAMS: [&str; 2] = ["$changeStream", "$changeStreamSplitLargeEvent"];

/// Maximum length of a line.
const WIDTH: usize = 100;

/// The stages, those of change streams included.
fn stages() -> Vec<&'static str> {
    let mut names = vocabulary::stages();
    names.extend(STREAMS);
    names.sort_unstable();
    names
}

/// The generated part of the page, from its heading to the end.
#[must_use]
pub fn compatibility() -> String {
    let mut page = format!("{HEADING}\n\n");
    let about = format!(
        "This part is written by `romanesco compatibility` from the tables that decide it. The \
         server presents itself as MongoDB {MONGODB}. For a command, stage or operator that is not \
         listed, it returns the error that MongoDB returns for an unknown one."
    );
    paragraph(&mut page, about.split(' '));
    page.push_str("### Commands\n\n");
    let about = "`api`: part of version 1 of the stable API. `txn`: also inside of transactions. \
                 `admin`: on the database `admin` only. `test`: with `enableTestCommands`.";
    paragraph(&mut page, about.split(' '));
    page.push_str("| command | what it does | |\n| --- | --- | --- |\n");
    let mut rows: Vec<_> = commands::rows().collect();
    rows.sort_by_key(|row| row.name);
    for row in rows {
        let marks = [
            (API, "api"),
            (TRANSACTION, "txn"),
            (ADMIN, "admin"),
            (TEST, "test"),
        ];
        let marks: Vec<&str> = marks
            .into_iter()
            .filter(|(flag, _)| row.has(*flag))
            .map(|(_, mark)| mark)
            .collect();
        // Writing to a string does not fail.
        let _: Result<(), std::fmt::Error> = writeln!(
            page,
            "| `{}` | {} | {} |",
            row.name,
            row.help,
            marks.join(" ")
        );
    }
    page.push('\n');
    for (title, names) in [
        ("Aggregation stages", stages()),
        ("Operators of expressions", vocabulary::expressions()),
        ("Accumulators", vocabulary::accumulators()),
        (
            "Window functions, beside the accumulators",
            vocabulary::window_functions(),
        ),
        ("Query operators", vocabulary::filters()),
        ("Update operators", vocabulary::updates()),
        ("Kinds of index fields", docdb::index::kinds().to_vec()),
        ("Options of indexes", docdb::index::options().to_vec()),
    ] {
        list(&mut page, title, &names);
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn list(page: &mut String, title: &str, names: &[&str]) {
    page.push_str("### ");
    page.push_str(title);
    page.push_str("\n\n");
    let words: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    paragraph(page, words.iter().map(String::as_str));
}

/// Words, wrapped at [`WIDTH`].
fn paragraph<'w>(page: &mut String, words: impl Iterator<Item = &'w str>) {
    let mut line = 0;
    for word in words {
        if line > 0 && WIDTH < line + 1 + word.len() {
            page.push('\n');
            line = 0;
        }
        if line > 0 {
            page.push(' ');
            line += 1;
        }
        page.push_str(word);
        line += word.len();
    }
    page.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_tables_say() {
        // Tests run in the directory of their package; the build directory may belong to another
        // clone.
        let page = std::fs::read_to_string("../../docs/compatibility.md").unwrap();
        let at = page.find(HEADING).expect("the heading");
        assert!(
            page[at..] == compatibility(),
            "docs/compatibility.md is stale: run `romanesco compatibility docs/compatibility.md`"
        );
    }
}
