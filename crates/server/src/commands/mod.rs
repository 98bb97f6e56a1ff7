//! The commands: a file for each family, a row for each command.

mod aggregate;
mod apply_ops;
mod backup;
mod brief;
mod build;
mod bulk_write;
mod cluster_parameter;
mod concerns;
mod content;
mod current_op;
mod cursor;
mod ddl;
mod delete;
mod diagnose;
mod explain;
mod find;
mod find_and_modify;
mod grants;
pub(crate) mod hello;
mod host;
mod index;
mod insert;
mod kill_sessions;
mod list_sessions;
mod listing;
mod lock;
mod logs;
mod master_key;
mod merge_authz;
mod parameter;
mod pipeline;
mod plans;
mod read_oplog;
mod rebuild;
pub(crate) mod replica_set;
mod roles;
mod sasl;
mod session;
mod status;
mod storage;
mod top;
mod transaction;
mod update;
mod users;
mod write;

use std::collections::HashMap;

use stdx::sync::OnceLock;

pub(crate) use status::{reason, status_document, system_document};

use crate::row::Row;

/// The rows, family by family.
const FAMILIES: &[&[Row]] = &[
    aggregate::ROWS,
    apply_ops::ROWS,
    backup::ROWS,
    build::ROWS,
    bulk_write::ROWS,
    cluster_parameter::ROWS,
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
    master_key::ROWS,
    index::ROWS,
    insert::ROWS,
    kill_sessions::ROWS,
    listing::ROWS,
    lock::ROWS,
    logs::ROWS,
    merge_authz::ROWS,
    parameter::ROWS,
    plans::ROWS,
    read_oplog::ROWS,
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

/// The row of the command with this name.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let make = || {
        let mut index = HashMap::new();
        for row in rows() {
            index.extend(row.names().map(|name| (name, row)));
        }
        index
    };
    INDEX.get_or_init(make).get(name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bson::{Document, RawDocumentBuf, doc};

    use super::*;
    use crate::access::Privilege;
    use crate::command::{
        ADMIN, ANYWHERE, CONTINUES, Commands, ELSEWHERE, ENDS, FIRST_USER, GREETS, Kind, OPEN,
        PLAIN, PROVES, SECRET, SNAPSHOT, STREAMS, TRANSACTION, UNFAILING, WRITE_ERRORS, WRITES,
        Written,
    };
    use crate::request::is_secret;

    /// The names of the commands for which `holds` returns true.
    fn named(holds: impl Fn(&Row) -> bool) -> BTreeSet<&'static str> {
        let rows = rows().filter(|row| holds(row));
        rows.map(|row| row.name).collect()
    }

    fn set(names: &[&'static str]) -> BTreeSet<&'static str> {
        names.iter().copied().collect()
    }

    #[test]
    fn every_name_belongs_to_one_row() {
        let mut seen = std::collections::BTreeMap::new();
        for row in rows() {
            for name in row.names() {
                assert_eq!(seen.insert(name, row.name), None, "{name} twice");
                assert_eq!(find(name).unwrap().name, row.name, "S2");
            }
            assert!(!row.help.is_empty(), "{} has no help", row.name);
        }
        assert!(find("nonsense").is_none(), "S2");
    }

    #[test]
    fn what_runs_before_authentication_shows_no_data() {
        let expected = set(&[
            "authenticate",
            "buildInfo",
            "endSessions",
            "hello",
            "isMaster",
            "logout",
            "ping",
            "saslContinue",
            "saslStart",
        ]);
        assert_eq!(named(|row| row.has(OPEN)), expected);
        assert_eq!(named(|row| row.rule.privilege == Privilege::Open), expected);
    }

    #[test]
    fn commands_whose_arguments_decide_have_a_rule() {
        let without = named(|row| row.rule.privilege == Privilege::Own && row.rule.needs.is_none());
        assert_eq!(without, set(&[]), "A3");
        let beside = named(|row| row.rule.privilege != Privilege::Own && row.rule.needs.is_some());
        assert_eq!(beside, set(&["collMod", "create"]), "their views");
    }

    #[test]
    fn commands_on_admin_are_no_part_of_transactions_but_their_end_and_bulks() {
        let on_admin = named(|row| row.has(ADMIN) && row.has(TRANSACTION));
        let expected = ["abortTransaction", "bulkWrite", "commitTransaction"];
        assert_eq!(on_admin, set(&expected));
    }

    /// N1: what the dispatcher, the connections and the log ask of a command by its flags.
    #[test]
    fn the_table_says_what_sets_commands_apart() {
        let greetings = ["hello", "isMaster"];
        let writes = ["insert", "update", "delete"];
        for (flag, expected) in [
            (ENDS, &["commitTransaction", "abortTransaction"][..]),
            (GREETS, &greetings),
            (ANYWHERE, &["hello", "isMaster", "ping", "buildInfo"]),
            (
                PLAIN,
                &[
                    "hello",
                    "isMaster",
                    "saslStart",
                    "saslContinue",
                    "authenticate",
                    "createUser",
                    "updateUser",
                ],
            ),
            (
                SECRET,
                &[
                    "saslStart",
                    "saslContinue",
                    "authenticate",
                    "createUser",
                    "updateUser",
                ],
            ),
            (PROVES, &["saslContinue", "authenticate"]),
            (FIRST_USER, &["createUser", "replSetInitiate"]),
            (ELSEWHERE, &["aggregate", "applyOps", "bulkWrite"]),
            (
                SNAPSHOT,
                &["find", "aggregate", "distinct", "getMore", "dbHash"],
            ),
            (STREAMS, &["insert", "update", "delete", "bulkWrite"]),
            (WRITE_ERRORS, &writes),
            (CONTINUES, &["getMore"]),
            (UNFAILING, &["configureFailPoint"]),
        ] {
            assert_eq!(named(|row| row.has(flag)), set(expected), "N1: {flag:#x}");
        }
        assert_eq!(
            named(|row| row.writing_stage.is_some()),
            set(&["aggregate"])
        );
        assert_eq!(named(|row| !row.outside_advice.is_empty()), set(&["count"]));
        // A command that always writes needs no function that finds a writing stage.
        assert!(named(|row| row.has(WRITES) && row.writing_stage.is_some()).is_empty());
    }

    #[test]
    fn the_table_says_how_commands_are_counted_and_logged() {
        for (kind, name, op) in [
            (Kind::Query, "find", "query"),
            (Kind::GetMore, "getMore", "getmore"),
            (Kind::Insert, "insert", "insert"),
            (Kind::Update, "update", "update"),
            (Kind::Remove, "delete", "remove"),
        ] {
            assert_eq!(named(|row| row.kind == kind), set(&[name]), "N1");
            assert_eq!(kind.op(), op);
        }
        for (written, name) in [
            (Written::Inserted, "insert"),
            (Written::Updated, "update"),
            (Written::Deleted, "delete"),
            (Written::Bulk, "bulkWrite"),
            (Written::One, "findAndModify"),
        ] {
            assert_eq!(named(|row| row.written == written), set(&[name]), "N1");
        }
    }

    #[test]
    fn messages_with_passwords_or_proofs_are_secret() {
        let commands = Commands::of(rows().map(|row| &row.command));
        let is_secret = |command: Document| {
            let raw = RawDocumentBuf::try_from(&command).unwrap();
            is_secret(&commands, &raw)
        };
        for row in rows().filter(|row| row.has(SECRET)) {
            assert!(is_secret(doc! {row.name: "x", "a": 1}), "{}", row.name);
        }
        assert!(is_secret(doc! {"createUser": "x", "pwd": "secret"}));
        assert!(is_secret(doc! {"hello": 1, "speculativeAuthenticate": {}}));
        assert!(!is_secret(doc! {"hello": 1}));
        assert!(!is_secret(doc! {"insert": "pwd"}));
        // An unknown command is refused, so its arguments are not secret.
        assert!(!is_secret(doc! {"copydbsaslstart": "x", "a": 1}));
        assert!(!is_secret(doc! {}));
    }
}
