//! The command `bulkWrite`: parses, authorizes and runs its statements.
//!
//! - B1. Statements take effect in their order; neighbours that insert into one collection are one
//!   batch of the storage, which does not change the order that clients see.
//! - B2. The error of one statement is reported in its place; an error of the server or of the
//!   transaction is the error of the command.

use std::collections::HashSet;
use std::sync::Arc;

use bson::{RawBsonRef, RawDocument, Uuid};
use docdb::{InsertOptions, Op, Store};
use query::value::uuid_raw;
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::outcome::Outcome;
use super::statement::{Action, Statement};
use crate::access::is_allowed;
use crate::arguments::Arguments;
use crate::auth::privilege::Wanted;
use crate::command::{
    ADMIN, API, Class, ELSEWHERE, Lane, RETRYABLE, STREAMS, TRANSACTION, WRITES, Written,
};
use crate::commands::find::variables;
use crate::commands::write::{retried, statements};
use crate::commands::{cursor, listing};
use crate::request::{Call, outside_of_server};
use crate::row::Row;

/// The command itself checks the privileges of its statements.
pub(in crate::commands) const ROWS: &[Row] = &[Row::new(
    "bulkWrite",
    bulk_write,
    "Insert, update and delete documents in several collections",
)
.lane(Lane::Storage)
.class(Class::Write)
.written(Written::Bulk)
.flags(ADMIN | API | WRITES | TRANSACTION | RETRYABLE | STREAMS | ELSEWHERE)
.fields(&[
    "ops",
    "nsInfo",
    "ordered",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "let",
    "errorsOnly",
    "cursor",
])];

/// Errors that end the command and not only one statement.
const WHOLE: &[Code] = &[
    Code::INTERNAL_ERROR,
    Code::LOCK_TIMEOUT,
    Code::MAX_TIME_MS_EXPIRED,
    Code::SHUTDOWN_IN_PROGRESS,
    Code::WRITE_CONFLICT,
    Code::TRANSACTION_TOO_OLD,
    Code::NO_SUCH_TRANSACTION,
    Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
    Code::INTERRUPTED_AT_SHUTDOWN,
    Code::INTERRUPTED,
    Code::OUT_OF_DISK_SPACE,
];

/// A namespace of `nsInfo`.
struct Target {
    ns: Namespace,
    /// The UUID that the collection must have.
    uuid: Option<Uuid>,
}

/// The namespaces of `nsInfo`.
fn targets(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Vec<Target>> {
    let listed = match call.message().sequence("nsInfo") {
        Some(listed) => listed,
        None => {
            arguments.need_array("nsInfo")?;
            arguments.documents("nsInfo")?.unwrap_or_default()
        }
    };
    let mut targets = Vec::new();
    for target in listed {
        let fields = Arguments::of("NamespaceInfoEntry", target)?;
        fields.only(&[
            "ns",
            "collectionUUID",
            "encryptionInformation",
            "isTimeseriesNamespace",
        ])?;
        let name = fields.need_string("ns")?;
        let ns = Namespace::parse(name).map_err(|_| {
            let message = format!("Invalid namespace specified for bulkWrite: '{name}'");
            Error::new(Code::INVALID_NAMESPACE, message)
        })?;
        let uuid = fields.get("collectionUUID").map(uuid).transpose()?;
        targets.push(Target { ns, uuid });
    }
    Ok(targets)
}

fn uuid(value: RawBsonRef<'_>) -> Result<Uuid> {
    uuid_raw(value).ok_or_else(|| {
        let message = "BSON field 'NamespaceInfoEntry.collectionUUID' must be a UUID";
        Error::type_mismatch(message)
    })
}

/// Check that the client may run all statements; otherwise none is run.
fn authorize(call: &Call<'_>, targets: &[Target], statements: &[Statement<'_>]) -> Result<()> {
    let bypass = call.arguments().is_on("bypassDocumentValidation")?;
    let mut needs: HashSet<(usize, &'static str)> = HashSet::new();
    for statement in statements {
        for need in statement.needs() {
            needs.insert((statement.target, *need));
        }
        if bypass {
            needs.insert((statement.target, "bypassDocumentValidation"));
        }
    }
    let on = |(target, action): (usize, &'static str)| {
        let ns = &targets.get(target)?.ns;
        Some(Wanted::Collection(ns.db.clone(), ns.coll.clone(), action))
    };
    let needs: Option<Vec<Wanted>> = needs.into_iter().map(on).collect();
    let needs = needs.filter(|needs| needs.iter().all(|wanted| is_allowed(call, wanted)));
    match needs {
        Some(needs) => {
            call.needs.get_or_init(|| Arc::new(needs));
            Ok(())
        }
        None => {
            let message = "not authorized on admin to execute command bulkWrite";
            Err(Error::new(Code::UNAUTHORIZED, message))
        }
    }
}

/// The execution of the statements.
struct Run<'a, 'c> {
    call: &'a Call<'c>,
    store: &'a Store,
    op: &'a Op<'a>,
    targets: &'a [Target],
    options: InsertOptions,
    outcome: Outcome,
}

impl Run<'_, '_> {
    /// Run the statements of one batch, the first of which is number `at` (B1).
    fn group(&mut self, at: usize, group: &[Statement<'_>]) -> Result<()> {
        let Some(first) = group.first() else {
            return Ok(());
        };
        let Some(Target { ns, uuid }) = self.targets.get(first.target) else {
            return Ok(());
        };
        let mut numbered = self.op.clone();
        numbered.collection_uuid = *uuid;
        if let Some(session) = &mut numbered.session
            && session.txn_number.is_some()
        {
            session.stmt_ids = Some((at..at + group.len()).map(|i| session.stmt(i)).collect());
        }
        let done = docdb::check_user_write(ns).and_then(|()| match &first.action {
            Action::Insert(_) => self.insert(&numbered, ns, at, group),
            Action::Update(_) | Action::Delete(_) => self.change(&numbered, ns, at, first),
        });
        let Err(error) = done else {
            return Ok(());
        };
        if WHOLE.contains(&error.code) {
            return Err(error);
        }
        // An error such as an invalid name or a view applies to all statements. Unless it ends the
        // command, the other statements get the same error.
        let updates = matches!(first.action, Action::Update(_));
        let reported = if self.ends() { 1 } else { group.len() };
        for i in at..at + reported {
            self.outcome.failed(i, &error, updates);
        }
        if self.op.transaction.is_some() {
            self.call.doom();
        }
        Ok(())
    }

    /// Whether a failure ends the command.
    fn ends(&self) -> bool {
        self.options.ordered || self.op.transaction.is_some()
    }

    fn insert(
        &mut self,
        op: &Op<'_>,
        ns: &Namespace,
        at: usize,
        group: &[Statement<'_>],
    ) -> Result<()> {
        let inserts = group.iter().filter_map(Statement::document);
        let documents: Vec<&RawDocument> = inserts.collect();
        let metrics = &self.call.server.metrics;
        metrics.ops.insert.size(documents.len());
        let done = self.store.insert(op, ns, &documents, self.options)?;
        metrics.documents.inserted.add(i64::from(done.n));
        let mut errors = done.errors.iter().peekable();
        for i in 0..documents.len() {
            match errors.next_if(|failed| failed.index == i) {
                None => self.outcome.inserted(at + i),
                Some(failed) => {
                    self.outcome.failed(at + i, &failed.error, false);
                    if self.options.ordered {
                        break;
                    }
                }
            }
        }
        self.outcome.retried.extend(done.retried);
        Ok(())
    }

    fn change(
        &mut self,
        op: &Op<'_>,
        ns: &Namespace,
        at: usize,
        statement: &Statement<'_>,
    ) -> Result<()> {
        let metrics = &self.call.server.metrics;
        let ordered = self.options.ordered;
        let (errors, retried) = match &statement.action {
            Action::Insert(_) => (Vec::new(), Vec::new()),
            Action::Update(update) => {
                metrics.ops.update.one();
                let one = std::slice::from_ref(update.as_ref());
                let bypass = self.options.bypass_validation;
                let done = self.store.update(op, ns, one, ordered, bypass)?;
                metrics.documents.updated.add(done.n_modified);
                if done.errors.is_empty() {
                    let upserted = done.upserted.first().map(|(_, id)| id);
                    self.outcome.updated(at, done.n, done.n_modified, upserted);
                }
                (done.errors, done.retried)
            }
            Action::Delete(delete) => {
                metrics.ops.delete.one();
                let one = std::slice::from_ref(delete.as_ref());
                let done = self.store.delete(op, ns, one, ordered)?;
                metrics.documents.deleted.add(done.n);
                if done.errors.is_empty() {
                    self.outcome.deleted(at, done.n);
                }
                (done.errors, done.retried)
            }
        };
        self.outcome.retried.extend(retried);
        match errors.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(()),
        }
    }
}

fn understand<'a>(
    call: &'a Call<'_>,
    arguments: &Arguments<'a>,
    targets: usize,
) -> Result<Vec<Statement<'a>>> {
    let variables = variables(arguments)?;
    let parsed: Vec<Statement<'a>> = statements(call, arguments, "ops")?
        .into_iter()
        .map(|op| Statement::parse(op, targets, variables.as_ref()))
        .collect::<Result<_>>()?;
    let retryable = call.generic.txn_number.is_some() && !call.generic.in_transaction;
    if retryable && parsed.iter().any(Statement::is_multi) {
        let message = "Cannot use retryable writes with multi=true";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    Ok(parsed)
}

fn bulk_write(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let targets = targets(call, arguments)?;
    if call.generic.in_transaction {
        for Target { ns, .. } in &targets {
            outside_of_server(&ns.db, &ns.coll)?;
        }
    }
    let statements = understand(call, arguments, targets.len())?;
    authorize(call, &targets, &statements)?;
    let options = InsertOptions {
        ordered: arguments.boolean("ordered")?.unwrap_or(true),
        bypass_validation: arguments.is_on("bypassDocumentValidation")?,
        keep_zero_timestamps: arguments.is_on("bypassEmptyTsReplacement")?,
    };
    let batch_size = listing::batch_size(arguments)?;
    let errors_only = arguments.is_on("errorsOnly")?;
    let (outcome, batch) = call.with_store(|store, op| {
        let mut run = Run {
            call,
            store,
            op,
            targets: &targets,
            options,
            outcome: Outcome {
                errors_only,
                ..Outcome::default()
            },
        };
        let together = op.transaction.is_none();
        let mut at = 0;
        for group in statements.chunk_by(|a, b| together && a.joins(b)) {
            run.group(at, group)?;
            at += group.len();
            if run.outcome.failed > 0 && run.ends() {
                break;
            }
        }
        let mut outcome = run.outcome;
        let ns = Namespace {
            db: "admin".to_owned(),
            coll: "$cmd.bulkWrite".to_owned(),
        };
        let items = std::mem::take(&mut outcome.items);
        Ok((outcome, store.open_list(op, &ns, items, batch_size)?))
    })?;
    call.server.metrics.user_errors.size(outcome.failed);
    cursor::answer_list(call, reply, &batch);
    outcome.sums(reply);
    retried(call, reply, &outcome.retried);
    Ok(())
}
