//! Whether a client may run a command: the rule of its row, or its own rule where the command is
//! about more than what it names first.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocument};
use query::{Code, Error, Namespace, Result};
use wire::Message;

use super::pipeline;
use super::privilege::Wanted;
use super::users::User;
use crate::commands;
use crate::dispatch::row::{Privilege, Row};
use crate::dispatch::{Arguments, Request};
use crate::server::Server;
use crate::state::Client;

/// A command before it is a request.
pub(crate) struct Asked<'a> {
    /// Its row.
    pub(crate) row: &'static Row,
    /// Its database.
    pub(crate) database: &'a str,
    /// Its arguments.
    pub(crate) body: &'a RawDocument,
    /// What it came in, which may hold arguments beside the body.
    pub(crate) message: Option<&'a Message>,
}

/// The user a client is now; `None` when it is nobody, or one that was dropped.
pub(crate) fn user(server: &Server, client: &Client) -> Option<Arc<User>> {
    let identity = client.state.lock().identity.clone()?;
    let user = server.users.get(&identity.database, &identity.name)?;
    (user.id == identity.id).then_some(user)
}

/// Check that a client may run a command.
///
/// # Errors
/// `Unauthorized`; arguments that cannot be understood.
pub(crate) fn authorize(server: &Server, client: &Client, asked: &Asked<'_>) -> Result<()> {
    let row = asked.row;
    if !server.config.authorization || row.privilege == Privilege::Open {
        return Ok(());
    }
    let Some(user) = user(server, client) else {
        let first = row.name == "createUser" && asked.database == "admin";
        if first && is_excepted(server, client) {
            return Ok(());
        }
        let message = format!("Command {} requires authentication", row.name);
        return Err(Error::new(Code::UNAUTHORIZED, message));
    };
    let allowed =
        rule(server, &user, asked)?.is_some_and(|wanted| wanted.iter().all(|w| user.may(w)));
    match allowed {
        true => Ok(()),
        false => Err(refusal(row.name, asked.database)),
    }
}

/// The first user is made by whoever is on this machine.
fn is_excepted(server: &Server, client: &Client) -> bool {
    client.peer.ip().is_loopback()
        && server.users.is_empty()
        && server.parameters.is_on("enableLocalhostAuthBypass")
}

fn refusal(command: &str, database: &str) -> Error {
    let message = format!("not authorized on {database} to execute command {command}");
    Error::new(Code::UNAUTHORIZED, message)
}

/// Whether the client of a request may do something; everything without authorization.
pub(crate) fn is_allowed(request: &Request, wanted: &Wanted) -> bool {
    !request.server.config.authorization
        || user(&request.server, &request.client).is_some_and(|user| user.may(wanted))
}

/// What a command needs; `None` when there is no rule for it.
///
/// # Errors
/// Arguments that are not right.
pub(crate) fn rule(server: &Server, user: &User, asked: &Asked<'_>) -> Result<Option<Vec<Wanted>>> {
    let (row, database) = (asked.row, asked.database);
    let first = asked.body.iter().next().transpose()?;
    let target = first.map(|(_, value)| value);
    let name = target.and_then(RawBsonRef::as_str).unwrap_or_default();
    let on = |action| Wanted::Collection(database.to_owned(), name.to_owned(), action);
    let mut wanted = match row.privilege {
        Privilege::Open | Privilege::Authenticated => Vec::new(),
        Privilege::Collection(action) => vec![on(action)],
        Privilege::Database(action) => vec![Wanted::Database(database.to_owned(), action)],
        // What may be seen is chosen by the command.
        Privilege::Cluster("listDatabases") => Vec::new(),
        Privilege::Cluster(action) => vec![Wanted::Cluster(action)],
        Privilege::Own => match own(server, user, asked, name)? {
            Some(wanted) => wanted,
            None => return Ok(None),
        },
    };
    let arguments = Arguments::of(row.name, asked.body)?;
    if matches!(row.name, "create" | "collMod") {
        view(row, &arguments, database, &mut wanted)?;
    }
    let bypass = arguments.get("bypassDocumentValidation");
    if bypass.is_some_and(|value| crate::dispatch::arguments::switch(value) != Some(false)) {
        wanted.push(on("bypassDocumentValidation"));
    }
    Ok(Some(wanted))
}

/// Who makes a view reads what it shows. Who changes one says all it is: half of it would be
/// joined with what others may read.
fn view(
    row: &Row,
    arguments: &Arguments<'_>,
    database: &str,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    let (on, stages) = (arguments.get("viewOn"), arguments.get("pipeline"));
    if row.name == "collMod" && on.is_some() != stages.is_some() {
        let message = "Must specify both 'viewOn' and 'pipeline' when modifying a view";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let Some(on) = arguments.string("viewOn")? else {
        return Ok(());
    };
    wanted.push(Wanted::Collection(
        database.to_owned(),
        on.to_owned(),
        "find",
    ));
    if let Some(stages) = arguments.array("pipeline")? {
        pipeline::needs(database, on, stages, 0, wanted)?;
    }
    Ok(())
}

fn aggregate(arguments: &Arguments<'_>, database: &str, name: &str) -> Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let stages = arguments.need_array("pipeline")?;
    // Without a collection the first stage makes the documents, and has its own rule.
    let first = stages.into_iter().next().transpose()?;
    let first = first.and_then(RawBsonRef::as_document);
    let made = match first.and_then(|stage| stage.iter().next()).transpose()? {
        Some((stage, _)) => matches!(
            stage.as_str(),
            "$collStats" | "$indexStats" | "$planCacheStats" | "$currentOp" | "$listLocalSessions"
        ),
        None => false,
    };
    if !name.is_empty() && !made {
        wanted.push(Wanted::Collection(
            database.to_owned(),
            name.to_owned(),
            "find",
        ));
    }
    pipeline::needs(database, name, stages, 0, &mut wanted)?;
    Ok(wanted)
}

/// The rules of commands that are about more than what they name first.
fn own(server: &Server, user: &User, asked: &Asked<'_>, name: &str) -> Result<Option<Vec<Wanted>>> {
    let database = asked.database;
    let arguments = Arguments::of(asked.row.name, asked.body)?;
    let on = |action| Wanted::Collection(database.to_owned(), name.to_owned(), action);
    let wanted = match asked.row.name {
        "aggregate" => aggregate(&arguments, database, name)?,
        "explain" => match arguments.get("explain") {
            Some(RawBsonRef::Document(inner)) => explained(inner, database)?,
            _ => Vec::new(),
        },
        "update" => {
            let apart = asked
                .message
                .and_then(|message| message.sequence("updates"));
            updates(&arguments, apart)?
                .iter()
                .copied()
                .map(on)
                .collect()
        }
        "findAndModify" => changes(&arguments)?.iter().copied().map(on).collect(),
        // Everybody sees what they do themselves.
        "currentOp" if commands::current_op::is_own(&arguments)? => Vec::new(),
        "currentOp" => vec![Wanted::Cluster("inprog")],
        "listCollections" if commands::listing::is_own(&arguments)? => Vec::new(),
        "listCollections" => vec![Wanted::Database(database.to_owned(), "listCollections")],
        // A cursor is ended by who opened it.
        "killCursors" => Vec::new(),
        "renameCollection" => rename(&arguments)?,
        "dataSize" => {
            let ns = Namespace::parse(name)?;
            vec![Wanted::Collection(ns.db, ns.coll, "find")]
        }
        "cloneCollectionAsCapped" => {
            let to = arguments.need_string("toCollection")?;
            let into = |action| Wanted::Collection(database.to_owned(), to.to_owned(), action);
            vec![on("find"), into("insert"), into("convertToCapped")]
        }
        _ => return of_users(server, user, asked, &arguments),
    };
    Ok(Some(wanted))
}

/// The rules of commands about users and roles. Who gives a role or a privilege must be allowed to
/// where it holds.
fn of_users(
    server: &Server,
    user: &User,
    asked: &Asked<'_>,
    arguments: &Arguments<'_>,
) -> Result<Option<Vec<Wanted>>> {
    let (name, database) = (asked.row.name, asked.database);
    let here = |action| vec![Wanted::Database(database.to_owned(), action)];
    let (mut wanted, action) = match name {
        "createUser" => (here("createUser"), "grantRole"),
        "createRole" => (here("createRole"), "grantRole"),
        "updateRole" => (vec![Wanted::Everywhere("revokeRole")], "grantRole"),
        "grantRolesToUser" => (Vec::new(), "grantRole"),
        "revokeRolesFromUser" => (Vec::new(), "revokeRole"),
        "grantRolesToRole" | "grantPrivilegesToRole" => (here("grantRole"), "grantRole"),
        "revokeRolesFromRole" | "revokePrivilegesFromRole" => (here("revokeRole"), "revokeRole"),
        "updateUser" => return update_user(arguments, database).map(Some),
        "usersInfo" => return commands::users::viewed(user, arguments, database).map(Some),
        "rolesInfo" => {
            let known = server.users.roles();
            return commands::roles::viewed(user, &known, arguments, database).map(Some);
        }
        "applyOps" => return commands::apply_ops::needed(server, user, arguments).map(Some),
        "_mergeAuthzCollections" => return commands::merge_authz::needed(arguments).map(Some),
        _ => return Ok(None),
    };
    granted(arguments, database, action, &mut wanted)?;
    if arguments.get("authenticationRestrictions").is_some() {
        wanted.extend(here("setAuthenticationRestriction"));
    }
    commands::roles::given(arguments, action, &mut wanted)?;
    Ok(Some(wanted))
}

/// What the statements of an `update` need: only those that may insert need that as well. They
/// come in the body or apart from it.
fn updates(
    arguments: &Arguments<'_>,
    apart: Option<Vec<&RawDocument>>,
) -> Result<&'static [&'static str]> {
    let statements = match apart {
        Some(statements) => statements,
        None => arguments.documents("updates")?.unwrap_or_default(),
    };
    for statement in statements {
        if Arguments::of("update.updates", statement)?.is_on("upsert")? {
            return Ok(&["update", "insert"]);
        }
    }
    Ok(&["update"])
}

/// What a `findAndModify` needs.
fn changes(arguments: &Arguments<'_>) -> Result<&'static [&'static str]> {
    Ok(
        match (arguments.is_on("remove")?, arguments.is_on("upsert")?) {
            (true, _) => &["find", "remove"],
            (false, true) => &["find", "update", "insert"],
            (false, false) => &["find", "update"],
        },
    )
}

fn explained(inner: &RawDocument, database: &str) -> Result<Vec<Wanted>> {
    let Some((command, target)) = inner.iter().next().transpose()? else {
        return Ok(Vec::new());
    };
    let name = target.as_str().unwrap_or_default();
    if command.as_str() == "aggregate" {
        return aggregate(&Arguments::of("aggregate", inner)?, database, name);
    }
    // Writes need what they need when they are done; what is not explained is refused by the
    // command.
    let actions: &[&'static str] = match command.as_str() {
        "update" => updates(&Arguments::of("update", inner)?, None)?,
        "delete" => &["remove"],
        "findAndModify" | "findandmodify" => changes(&Arguments::of("findAndModify", inner)?)?,
        _ => &["find"],
    };
    let on =
        |action: &&'static str| Wanted::Collection(database.to_owned(), name.to_owned(), action);
    Ok(actions.iter().map(on).collect())
}

fn rename(arguments: &Arguments<'_>) -> Result<Vec<Wanted>> {
    let from = Namespace::parse(arguments.need_string("renameCollection")?)?;
    let to = Namespace::parse(arguments.need_string("to")?)?;
    let on = |ns: &Namespace, action| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    let mut wanted = if from.db == to.db {
        let action = "renameCollectionSameDB";
        vec![on(&from, action), on(&to, action)]
    } else {
        vec![
            on(&from, "find"),
            on(&from, "dropCollection"),
            on(&to, "insert"),
            on(&to, "createIndex"),
            on(&to, "createCollection"),
        ]
    };
    if arguments.is_on("dropTarget")? {
        wanted.push(on(&to, "dropCollection"));
    }
    Ok(wanted)
}

/// An action on the database of each role that is listed.
fn granted(
    arguments: &Arguments<'_>,
    database: &str,
    action: &'static str,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    for (_, role_database) in commands::users::roles(arguments, database)? {
        wanted.push(Wanted::Database(role_database, action));
    }
    Ok(())
}

fn update_user(arguments: &Arguments<'_>, database: &str) -> Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let of = |action| Wanted::Database(database.to_owned(), action);
    if arguments.get("customData").is_some() {
        wanted.push(of("changeCustomData"));
    }
    if arguments.get("roles").is_some() {
        wanted.push(Wanted::Everywhere("revokeRole"));
        granted(arguments, database, "grantRole", &mut wanted)?;
    }
    if arguments.get("authenticationRestrictions").is_some() {
        wanted.push(of("setAuthenticationRestriction"));
    }
    // Mechanisms without a password leave credentials out: a change of them as well.
    if wanted.is_empty() || arguments.get("pwd").is_some() || arguments.get("mechanisms").is_some()
    {
        wanted.push(of("changePassword"));
    }
    Ok(wanted)
}

impl User {
    /// Whether a role of this user allows something.
    pub(crate) fn may(&self, wanted: &Wanted) -> bool {
        self.grants.iter().any(|grant| grant.allows(wanted))
    }

    /// Whether a role of this user allows any action on a collection.
    pub(crate) fn may_anything(&self, database: &str, collection: &str) -> bool {
        let on = |action: &'static str| {
            Wanted::Collection(database.to_owned(), collection.to_owned(), action)
        };
        let mut grants = self.grants.iter();
        grants.any(|grant| grant.actions.iter().any(|action| grant.allows(&on(action))))
    }
}
