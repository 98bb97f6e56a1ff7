//! The commands: a file for each family, a row for each command.

pub(crate) mod aggregate;
pub(crate) mod apply_ops;
mod build;
mod bulk_write;
mod concerns;
mod content;
pub(crate) mod current_op;
mod cursor;
pub(crate) mod ddl;
mod delete;
mod diagnose;
pub(crate) mod explain;
mod find;
mod find_and_modify;
pub(crate) mod hello;
mod host;
mod index;
mod insert;
mod kill_sessions;
pub(crate) mod listing;
mod lock;
mod logs;
pub(crate) mod merge_authz;
mod parameter;
mod plans;
mod rebuild;
mod replica_set;
pub(crate) mod roles;
mod sasl;
mod session;
mod status;
mod storage;
mod top;
mod transaction;
mod update;
pub(crate) mod users;
mod write;

use std::collections::HashMap;

use stdx::sync::OnceLock;

use crate::dispatch::Row;

pub(crate) use aggregate::written;
pub(crate) use status::reason;

/// The rows, family by family.
const FAMILIES: &[&[Row]] = &[
    aggregate::ROWS,
    apply_ops::ROWS,
    build::ROWS,
    bulk_write::ROWS,
    concerns::ROWS,
    content::ROWS,
    current_op::ROWS,
    cursor::ROWS,
    ddl::ROWS,
    delete::ROWS,
    diagnose::ROWS,
    explain::ROWS,
    find::ROWS,
    find_and_modify::ROWS,
    hello::ROWS,
    host::ROWS,
    index::ROWS,
    insert::ROWS,
    kill_sessions::ROWS,
    listing::ROWS,
    lock::ROWS,
    logs::ROWS,
    merge_authz::ROWS,
    parameter::ROWS,
    plans::ROWS,
    rebuild::ROWS,
    replica_set::ROWS,
    roles::ROWS,
    sasl::ROWS,
    session::ROWS,
    status::ROWS,
    storage::ROWS,
    top::ROWS,
    transaction::ROWS,
    update::ROWS,
    users::ROWS,
];

/// The rows, in order of the families.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Names of the commands, without aliases.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    rows().map(|row| row.name)
}

/// The command of a name.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let make = || {
        let mut index = HashMap::new();
        for row in rows() {
            for name in row.aliases.iter().chain([&row.name]) {
                index.insert(*name, row);
            }
        }
        index
    };
    INDEX.get_or_init(make).get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::row::{ADMIN, Privilege, TRANSACTION};

    #[test]
    fn every_name_belongs_to_one_row() {
        let mut seen = std::collections::BTreeMap::new();
        for row in rows() {
            for name in row.aliases.iter().chain([&row.name]) {
                assert_eq!(seen.insert(*name, row.name), None, "{name} twice");
                assert_eq!(find(name).unwrap().name, row.name);
            }
            assert!(!row.help.is_empty(), "{} has no help", row.name);
        }
        assert!(find("nonsense").is_none());
    }

    #[test]
    fn what_runs_before_authentication_tells_nothing_of_data() {
        let open: Vec<&str> = rows()
            .filter(|row| row.privilege == Privilege::Open)
            .map(|row| row.name)
            .collect();
        let expected = ["buildInfo", "ping", "hello", "isMaster"];
        for name in open {
            let sasl = name.starts_with("sasl")
                || matches!(name, "authenticate" | "logout" | "endSessions");
            assert!(
                sasl || expected.contains(&name),
                "{name} is open to everybody"
            );
        }
    }

    #[test]
    fn commands_on_admin_are_no_part_of_transactions_but_their_end_and_bulks() {
        for row in rows().filter(|row| row.has(ADMIN) && row.has(TRANSACTION)) {
            assert!(
                matches!(
                    row.name,
                    "commitTransaction" | "abortTransaction" | "bulkWrite"
                ),
                "{}",
                row.name
            );
        }
    }
}
