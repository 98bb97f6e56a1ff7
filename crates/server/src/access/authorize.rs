//! Whether a client may run a command: the rule of its row, or its own rule where the command is
//! about more than what it names first.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocument};
use query::pipeline::Access;
use query::{Code, Error, Namespace, Result};
use wire::Message;

use super::pipeline;
use super::privilege::Wanted;
use super::users::User;
use crate::commands;
use crate::commands::explain::{self, Explained};
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

/// Check that a client may run a command. Gives what was needed for it; none when nothing was
/// asked for but a user.
///
/// # Errors
/// `Unauthorized`; arguments that cannot be understood.
pub(crate) fn authorize(
    server: &Server,
    client: &Client,
    asked: &Asked<'_>,
) -> Result<Option<Vec<Wanted>>> {
    let row = asked.row;
    if !server.config.authorization || row.privilege == Privilege::Open {
        return Ok(None);
    }
    let Some(user) = user(server, client) else {
        let first = row.name == "createUser" && asked.database == "admin";
        if first && is_excepted(server, client) {
            return Ok(None);
        }
        let message = format!("Command {} requires authentication", row.name);
        return Err(Error::new(Code::UNAUTHORIZED, message));
    };
    let mut wanted = Vec::new();
    let ruled = rule(server, &user, asked, &mut wanted);
    // What was understood before an error is needed all the same: who may not run the command
    // learns nothing of what is wrong with it.
    match (wanted.iter().all(|w| user.may(w)), ruled) {
        (true, Ok(true)) => Ok((row.privilege != Privilege::Authenticated).then_some(wanted)),
        (true, Err(error)) => Err(error),
        (false, _) | (true, Ok(false)) => Err(refusal(row.name, asked.database)),
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

/// Add what a command needs; whether there is a rule for it. It is computed from the values that
/// the command works with, by the functions that read them for it.
///
/// # Errors
/// Arguments that are not right. What was added before is needed all the same.
pub(crate) fn rule(
    server: &Server,
    user: &User,
    asked: &Asked<'_>,
    wanted: &mut Vec<Wanted>,
) -> Result<bool> {
    let (row, database) = (asked.row, asked.database);
    let first = asked.body.iter().next().transpose()?;
    let target = first.map_or(RawBsonRef::Null, |(_, value)| value);
    let name = target.as_str().unwrap_or_default();
    let on = |action| Wanted::Collection(database.to_owned(), name.to_owned(), action);
    match row.privilege {
        Privilege::Open | Privilege::Authenticated => {}
        Privilege::Collection(action) => wanted.push(on(action)),
        Privilege::Database(action) => wanted.push(Wanted::Database(database.to_owned(), action)),
        // What may be seen is chosen by the command.
        Privilege::Cluster("listDatabases") => {}
        Privilege::Cluster(action) => wanted.push(Wanted::Cluster(action)),
        Privilege::Own => {
            if !own(server, user, asked, target, wanted)? {
                return Ok(false);
            }
        }
    }
    let arguments = Arguments::of(row.name, asked.body)?;
    let view = match row.name {
        "create" => commands::ddl::created(&arguments)?,
        "collMod" => commands::ddl::modified(&arguments)?,
        _ => None,
    };
    // Who makes a view reads what it shows.
    if let Some(view) = view {
        pipeline::needs(&view.accesses(database)?, false, wanted)?;
    }
    // Commands that write elsewhere than to what they name first add this themselves.
    let elsewhere = matches!(row.name, "aggregate" | "applyOps" | "bulkWrite");
    if !elsewhere && bypasses(&arguments) {
        wanted.push(on("bypassDocumentValidation"));
    }
    Ok(true)
}

/// Whether a command asks for writes that a validator refuses. What is no switch is refused later.
pub(crate) fn bypasses(arguments: &Arguments<'_>) -> bool {
    let bypass = arguments.get("bypassDocumentValidation");
    bypass.is_some_and(|value| crate::dispatch::arguments::switch(value) != Some(false))
}

fn aggregate(
    arguments: &Arguments<'_>,
    (target, database): (RawBsonRef<'_>, &str),
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    let ns = commands::aggregate::namespace(target, database)?;
    let asked = commands::aggregate::asked(arguments, true);
    match asked.and_then(|asked| pipeline::of_request(&asked, &ns)) {
        Ok(accesses) => pipeline::needs(&accesses, bypasses(arguments), wanted),
        Err(error) => {
            if !ns.is_collectionless() {
                pipeline::needs(&[Access::Read(ns)], false, wanted)?;
            }
            Err(error)
        }
    }
}

/// The rules of commands that are about more than what they name first.
fn own(
    server: &Server,
    user: &User,
    asked: &Asked<'_>,
    target: RawBsonRef<'_>,
    wanted: &mut Vec<Wanted>,
) -> Result<bool> {
    let database = asked.database;
    let name = target.as_str().unwrap_or_default();
    let arguments = Arguments::of(asked.row.name, asked.body)?;
    let on = |action| Wanted::Collection(database.to_owned(), name.to_owned(), action);
    match asked.row.name {
        "aggregate" => aggregate(&arguments, (target, database), wanted)?,
        "explain" => {
            if let RawBsonRef::Document(inner) = target {
                explained(&Explained::of(database, inner)?, wanted)?;
            }
        }
        "update" => {
            let apart = asked
                .message
                .and_then(|message| message.sequence("updates"));
            wanted.push(on("update"));
            if upserts(&arguments, apart)? {
                wanted.push(on("insert"));
            }
        }
        "findAndModify" => wanted.extend(changes(&arguments)?.iter().copied().map(on)),
        // Everybody sees what they do themselves.
        "currentOp" if commands::current_op::is_own(&arguments)? => {}
        "currentOp" => wanted.push(Wanted::Cluster("inprog")),
        "listCollections" if commands::listing::is_own(&arguments)? => {}
        "listCollections" => {
            wanted.push(Wanted::Database(database.to_owned(), "listCollections"));
        }
        // The command looks whose the cursors are.
        "killCursors" => {}
        "renameCollection" => rename(user, name, &arguments, wanted)?,
        "dataSize" => {
            let ns = Namespace::parse(name)?;
            wanted.push(Wanted::Collection(ns.db, ns.coll, "find"));
        }
        "cloneCollectionAsCapped" => {
            let to = arguments.need_string("toCollection")?;
            let into = |action| Wanted::Collection(database.to_owned(), to.to_owned(), action);
            wanted.extend([on("find"), into("insert"), into("convertToCapped")]);
        }
        _ => match of_users(server, user, asked, &arguments)? {
            Some(more) => wanted.extend(more),
            None => return Ok(false),
        },
    }
    Ok(true)
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

/// Whether a statement of an `update` may insert. They come in the body or apart from it.
fn upserts(arguments: &Arguments<'_>, apart: Option<Vec<&RawDocument>>) -> Result<bool> {
    let statements = match apart {
        Some(statements) => statements,
        None => arguments.documents("updates")?.unwrap_or_default(),
    };
    for statement in statements {
        if Arguments::of("update.updates", statement)?.is_on("upsert")? {
            return Ok(true);
        }
    }
    Ok(false)
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

/// Writes need what they need when they are done.
fn explained(explained: &Explained, wanted: &mut Vec<Wanted>) -> Result<()> {
    let ns = &explained.ns;
    let actions: &[&'static str] = match &explained.asked {
        explain::Asked::Find(_) | explain::Asked::Count(_) | explain::Asked::Distinct(_) => {
            &["find"]
        }
        explain::Asked::Aggregate(asked) => {
            return pipeline::needs(&pipeline::of_request(asked, ns)?, false, wanted);
        }
        explain::Asked::Update(update) if update.upsert => &["update", "insert"],
        explain::Asked::Update(_) => &["update"],
        explain::Asked::Delete(_) => &["remove"],
        explain::Asked::FindAndModify(asked) => match (&asked.update, asked.upsert) {
            (None, _) => &["find", "remove"],
            (Some(_), true) => &["find", "update", "insert"],
            (Some(_), false) => &["find", "update"],
        },
    };
    let on = |action: &&'static str| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    wanted.extend(actions.iter().map(on));
    Ok(())
}

fn rename(
    user: &User,
    from: &str,
    arguments: &Arguments<'_>,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    let from = Namespace::parse(from)?;
    let to = Namespace::parse(arguments.need_string("to")?)?;
    let on = |ns: &Namespace, action| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    if from.db == to.db {
        let action = "renameCollectionSameDB";
        wanted.extend([on(&from, action), on(&to, action)]);
        // A rename must not give a user a collection to read that they could not read before.
        if user.may(&on(&to, "find")) {
            wanted.push(on(&from, "find"));
        }
    } else {
        wanted.extend([
            on(&from, "find"),
            on(&from, "dropCollection"),
            on(&to, "insert"),
            on(&to, "createIndex"),
            on(&to, "createCollection"),
        ]);
    }
    if arguments.is_on("dropTarget")? {
        wanted.push(on(&to, "dropCollection"));
    }
    Ok(())
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
