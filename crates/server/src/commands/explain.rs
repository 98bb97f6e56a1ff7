//! `explain`: how a command would be executed.

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use docdb::limits::DOCUMENT_MAX;
use docdb::{
    AggregateRequest, CountRequest, DeleteStatement, DistinctRequest, FindAndModify, FindRequest,
    UpdateStatement, Verbosity,
};
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::find::{count_request, distinct_request, find_request};
use super::{aggregate, pipeline};
use crate::access::{Asked, Needed};
use crate::arguments::Arguments;
use crate::auth::privilege::Wanted;
use crate::command::{ABANDON, API, Class, Lane, READS};
use crate::request::Call;
use crate::row::Row;
use crate::version::MONGODB;

pub(super) const ROWS: &[Row] =
    &[
        Row::new("explain", explain, "Return the execution plan of a command")
            .lane(Lane::Storage)
            .class(Class::Command)
            .flags(API | READS | ABANDON)
            .fields(&["verbosity"])
            .own(needs),
    ];

/// Maximum bytes of a reply besides the explanation and the command.
const REST: usize = 16 << 10;

/// A command to explain.
struct Explained {
    /// Its collection.
    ns: Namespace,
    /// Its request.
    command: Command,
}

/// The request of a command that can be explained.
enum Command {
    Find(Box<FindRequest>),
    Aggregate(Box<AggregateRequest>),
    Count(Box<CountRequest>),
    Distinct(Box<DistinctRequest>),
    Update(Box<UpdateStatement>),
    Delete(Box<DeleteStatement>),
    FindAndModify(Box<FindAndModify>),
}

impl Explained {
    /// Parse a command to be explained on `database`.
    ///
    /// # Errors
    /// `InvalidNamespace`, `CommandNotFound` for what is not explained; arguments that are not
    /// right.
    fn of(database: &str, body: &RawDocument) -> Result<Explained> {
        let first = body.iter().next().transpose()?;
        let Some((command, target)) = first else {
            return Err(Error::parse("explain command requires a nested object"));
        };
        let command = command.as_str();
        let ns = match (command, target) {
            ("aggregate", target) => aggregate::namespace(target, database)?,
            (_, RawBsonRef::String(collection)) => Namespace::new(database, collection)?,
            _ => {
                let message = "collection name has invalid type";
                return Err(Error::new(Code::INVALID_NAMESPACE, message));
            }
        };
        let arguments = Arguments::of(command, body)?;
        let command = match command {
            "find" => Command::Find(Box::new(find_request(&arguments)?)),
            "aggregate" => Command::Aggregate(Box::new(aggregate::asked(&arguments, true)?)),
            "count" => Command::Count(Box::new(count_request(&arguments)?)),
            "distinct" => Command::Distinct(Box::new(distinct_request(&arguments)?)),
            "update" => Command::Update(Box::new(super::update::explained(&arguments)?)),
            "delete" => Command::Delete(Box::new(super::delete::explained(&arguments)?)),
            "findAndModify" | "findandmodify" => {
                Command::FindAndModify(Box::new(super::find_and_modify::asked(&arguments)?))
            }
            other => {
                let message = format!("Explain failed due to unknown command: {other}");
                return Err(Error::new(Code::COMMAND_NOT_FOUND, message));
            }
        };
        Ok(Explained { ns, command })
    }
}

/// The privileges of an `explain`: those of the explained command.
fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let RawBsonRef::Document(inner) = asked.sent.arguments.target() else {
        return Ok(());
    };
    let explained = Explained::of(asked.sent.database, inner)?;
    let ns = &explained.ns;
    let actions: &[&'static str] = match &explained.command {
        Command::Find(_) | Command::Count(_) | Command::Distinct(_) => &["find"],
        Command::Aggregate(request) => {
            let request = AggregateRequest::clone(request);
            return pipeline::add(asked, (request, ns), false, needed);
        }
        Command::Update(update) if update.upsert => &["update", "insert"],
        Command::Update(_) => &["update"],
        Command::Delete(_) => &["remove"],
        Command::FindAndModify(asked) => match (&asked.update, asked.upsert) {
            (None, _) => &["find", "remove"],
            (Some(_), true) => &["find", "update", "insert"],
            (Some(_), false) => &["find", "update"],
        },
    };
    let on = |action: &&'static str| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    needed.extend(actions.iter().map(on));
    Ok(())
}

fn explain(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let RawBsonRef::Document(inner) = request.target() else {
        let message = "BSON field 'explain.explain' is the wrong type, expected type 'object'";
        return Err(Error::type_mismatch(message));
    };
    let verbosity = match request.arguments().string("verbosity")? {
        None => Verbosity::default(),
        Some(name) => Verbosity::parse(name).ok_or_else(|| {
            Error::bad_value(format!(
                "Enumeration value '{name}' for field 'explain.verbosity' is not a valid value."
            ))
        })?,
    };
    let explained = Explained::of(request.database(), inner)?;
    let explained = RawDocumentBuf::try_from(&run(request, &explained, verbosity)?)?;
    reply.fields(&explained);
    if explained.as_bytes().len() + inner.as_bytes().len() + REST <= DOCUMENT_MAX {
        reply.document("command", inner);
    } else {
        let message = "'command' has been omitted due to BSON size limit for explain";
        reply.string("warning", message);
    }
    let topology = &request.server.topology;
    reply.value(
        "serverInfo",
        &doc! {
            "host": topology.me.as_str(),
            "port": topology.me.rsplit(':').next().and_then(|port| port.parse::<i32>().ok()),
            "version": MONGODB,
            "gitVersion": "romanesco",
        }
        .into(),
    );
    Ok(())
}

/// Explain a command.
fn run(request: &Call<'_>, explained: &Explained, verbosity: Verbosity) -> Result<Document> {
    let ns = &explained.ns;
    request.with_store(|store, op| match &explained.command {
        Command::Find(asked) => store.explain_find(op, ns, asked, verbosity),
        Command::Aggregate(asked) => {
            let read = || Ok(AggregateRequest::clone(asked));
            let asked = pipeline::authorized(request, read)?;
            store.explain_aggregate(op, ns, &asked, verbosity)
        }
        Command::Count(asked) => store.explain_count(op, ns, asked, verbosity),
        Command::Distinct(asked) => store.explain_distinct(op, ns, asked, verbosity),
        Command::Update(asked) => store.explain_update(op, ns, asked, verbosity),
        Command::Delete(asked) => store.explain_delete(op, ns, asked, verbosity),
        Command::FindAndModify(asked) => store.explain_find_and_modify(op, ns, asked, verbosity),
    })
}
