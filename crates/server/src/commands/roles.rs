//! Custom roles: `createRole`, `updateRole`, `dropRole`, grants, `rolesInfo`.

use bson::{Bson, Document, RawBsonRef, doc};
use query::{Code, Error, Result};
use wire::Builder;

use super::grants::{self, privileges};
use super::users::{self, shown};
use crate::access::{Asked, Needed, Privilege};
use crate::arguments::Arguments;
use crate::auth::custom::{Name, Role, Roles, collection, key};
use crate::auth::privilege::{Grant, Wanted, joined, without};
use crate::auth::roles as builtin;
use crate::command::{LOOSE, Lane, WRITES};
use crate::own;
use crate::request::{Call, Run};
use crate::row::Row;

const fn row(name: &'static str, run: Run, help: &'static str) -> Row {
    Row::new(name, run, help).lane(Lane::Storage).flags(WRITES)
}

/// The arguments of `createRole` and `updateRole`.
const ROLE: &[&str] = &["privileges", "roles", "authenticationRestrictions"];

pub(super) const ROWS: &[Row] = &[
    row("createRole", create, "Create a role")
        .fields(ROLE)
        .own(grants::create_role),
    row("updateRole", update, "Change a role")
        .fields(ROLE)
        .own(grants::update_role),
    row("dropRole", drop, "Drop a role").privilege(Privilege::Database("dropRole")),
    row(
        "dropAllRolesFromDatabase",
        drop_all,
        "Drop the roles of a database",
    )
    .privilege(Privilege::Database("dropRole")),
    row(
        "grantPrivilegesToRole",
        grant_privileges,
        "Grant privileges to a role",
    )
    .fields(&["privileges"])
    .own(grants::grant_to_role),
    row(
        "revokePrivilegesFromRole",
        revoke_privileges,
        "Revoke privileges from a role",
    )
    .fields(&["privileges"])
    .own(grants::revoke_from_role),
    row("grantRolesToRole", grant_roles, "Grant roles to a role")
        .fields(&["roles"])
        .own(grants::grant_to_role),
    row(
        "revokeRolesFromRole",
        revoke_roles,
        "Revoke roles from a role",
    )
    .fields(&["roles"])
    .own(grants::revoke_from_role),
    Row::new("rolesInfo", info, "Return roles")
        .flags(LOOSE)
        .own(viewed),
    row("invalidateUserCache", invalidate, "Reload users and roles")
        .privilege(Privilege::Cluster("invalidateUserCache")),
];

/// The role that a command names.
fn named(request: &Call<'_>) -> Result<Name> {
    let database = request.database();
    match request.target() {
        RawBsonRef::String("") => Err(Error::bad_value("Role name must be non-empty")),
        RawBsonRef::String(name) if name.contains('\0') => {
            Err(Error::bad_value("Role name cannot contain NULL characters"))
        }
        RawBsonRef::String(name) => Ok((name.to_owned(), database.to_owned())),
        _ => {
            let name = request.name();
            let message =
                format!("BSON field '{name}.{name}' is the wrong type, expected type 'string'");
            Err(Error::type_mismatch(message))
        }
    }
}

fn refused(message: String) -> Error {
    Error::new(Code::INVALID_ROLE_MODIFICATION, message)
}

/// The role that a command changes, which must not be built in.
fn changed(request: &Call<'_>) -> Result<Role> {
    let name = named(request)?;
    let found = request.server.users.roles().get(&name);
    let (role, database) = name;
    match found {
        Some(found) if found.builtin => Err(refused(format!(
            "{role}@{database} is a built-in role and cannot be modified"
        ))),
        Some(found) => Ok(found),
        None => {
            let message = format!("Could not find role: {role}@{database}");
            Err(Error::new(Code::ROLE_NOT_FOUND, message))
        }
    }
}

/// Check that a role outside of `admin` concerns only its own database.
fn within(database: &str, grants: &[Grant], roles: &[Name]) -> Result<()> {
    if database == "admin" {
        return Ok(());
    }
    let own = |grant: &Grant| grant.resource.database() == Some(database);
    if !grants.iter().all(own) {
        return Err(refused(format!(
            "Roles on the '{database}' database cannot be granted privileges that target other \
             databases or the cluster"
        )));
    }
    if roles.iter().any(|(_, of)| of != database) {
        return Err(refused(format!(
            "Roles on the '{database}' database cannot be granted roles from other databases"
        )));
    }
    Ok(())
}

/// Check that a role does not inherit from itself.
fn acyclic(known: &Roles, role: &Name, parts: &[Name]) -> Result<()> {
    for part in parts {
        if known.closure(std::slice::from_ref(part)).contains(role) {
            return Err(refused(format!(
                "Granting {}@{} to {}@{} would introduce a cycle in the role graph.",
                part.0, part.1, role.0, role.1
            )));
        }
    }
    Ok(())
}

fn stored(grants: &[Grant]) -> Bson {
    let documents = grants.iter().map(|grant| grant.to_document().into());
    Bson::Array(documents.collect())
}

fn create(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let _alone = users::alone(request)?;
    let name = named(request)?;
    let (role, database) = &name;
    let arguments = request.arguments();
    let restrictions = users::restrictions(arguments)?;
    arguments.need_array("privileges")?;
    arguments.need_array("roles")?;
    if matches!(database.as_str(), "local" | "$external") {
        let message = format!("Cannot create roles in the {database} database");
        return Err(Error::bad_value(message));
    }
    if builtin::exists(role, database) {
        let message = "Cannot create roles with the same name as a built-in role";
        return Err(Error::bad_value(message));
    }
    let grants = privileges(arguments)?;
    let roles = users::existing(request, arguments)?;
    within(database, &grants, &roles)?;
    acyclic(&request.server.users.roles(), &name, &roles)?;
    let mut document = doc! {
        "_id": key(database, role),
        "role": role,
        "db": database,
        "privileges": stored(&grants),
        "roles": shown(&roles),
    };
    if let Some(restrictions) = restrictions {
        document.insert("authenticationRestrictions", restrictions);
    }
    let done = request.with_store(|store, op| own::insert(store, op, &collection(), &document));
    done.map_err(|error| match error.code {
        Code::DUPLICATE_KEY => {
            let message = format!("Role \"{role}@{database}\" already exists");
            Error::location(51_002, message)
        }
        _ => error,
    })
}

fn set(request: &Call<'_>, role: &Role, fields: Document) -> Result<()> {
    let (name, database) = &role.name;
    let filter = doc! {"_id": key(database, name)};
    let (ns, change) = (collection(), doc! {"$set": fields});
    let n = request.with_store(|store, op| own::change(store, op, &ns, &filter, &change))?;
    match n {
        0 => {
            let message = format!("Could not find role: {name}@{database}");
            Err(Error::new(Code::ROLE_NOT_FOUND, message))
        }
        _ => Ok(()),
    }
}

fn update(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let _alone = users::alone(request)?;
    let role = changed(request)?;
    let arguments = request.arguments();
    let database = request.database();
    let mut fields = Document::new();
    if let Some(restrictions) = users::restrictions(arguments)? {
        fields.insert("authenticationRestrictions", restrictions);
    }
    if arguments.array("privileges")?.is_some() {
        let grants = privileges(arguments)?;
        within(database, &grants, &[])?;
        fields.insert("privileges", stored(&grants));
    }
    if arguments.array("roles")?.is_some() {
        let roles = users::existing(request, arguments)?;
        within(database, &[], &roles)?;
        acyclic(&request.server.users.roles(), &role.name, &roles)?;
        fields.insert("roles", shown(&roles));
    }
    if fields.is_empty() {
        let message = "Must specify at least one field to update in updateRole";
        return Err(Error::bad_value(message));
    }
    set(request, &role, fields)
}

fn grant_privileges(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    grants::some(request, "privileges")?;
    let _alone = users::alone(request)?;
    let role = changed(request)?;
    let arguments = request.arguments();
    let given = privileges(arguments)?;
    within(request.database(), &given, &[])?;
    let grants = joined(role.grants.iter().cloned().chain(given));
    set(request, &role, doc! {"privileges": stored(&grants)})
}

fn revoke_privileges(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    grants::some(request, "privileges")?;
    let _alone = users::alone(request)?;
    let role = changed(request)?;
    let arguments = request.arguments();
    let grants = without(role.grants.clone(), &privileges(arguments)?);
    set(request, &role, doc! {"privileges": stored(&grants)})
}

fn grant_roles(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    grants::some(request, "roles")?;
    let _alone = users::alone(request)?;
    let role = changed(request)?;
    let arguments = request.arguments();
    let given = users::existing(request, arguments)?;
    within(request.database(), &[], &given)?;
    acyclic(&request.server.users.roles(), &role.name, &given)?;
    let mut roles = role.roles.clone();
    roles.extend(given.into_iter().filter(|name| !role.roles.contains(name)));
    set(request, &role, doc! {"roles": shown(&roles)})
}

fn revoke_roles(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    grants::some(request, "roles")?;
    let _alone = users::alone(request)?;
    let role = changed(request)?;
    let arguments = request.arguments();
    let taken = grants::roles(arguments, request.database())?;
    let mut roles = role.roles.clone();
    roles.retain(|name| !taken.contains(name));
    set(request, &role, doc! {"roles": shown(&roles)})
}

/// Drop roles, after removing them from the users and roles that have them.
fn drop_those(request: &Call<'_>, matching: &Document, held: &Document) -> Result<i64> {
    let has = doc! {"roles": {"$elemMatch": held.clone()}};
    let pull = doc! {"$pull": {"roles": held.clone()}};
    let users = crate::auth::users::collection();
    request.with_store(|store, op| {
        for ns in [users, collection()] {
            if store.collection(&ns).is_some() {
                own::change(store, op, &ns, &has, &pull)?;
            }
        }
        own::delete(store, op, &collection(), matching)
    })
}

fn drop(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let _alone = users::alone(request)?;
    let (name, database) = changed(request)?.name;
    let matching = doc! {"_id": key(&database, &name)};
    drop_those(request, &matching, &doc! {"role": name, "db": database}).map(|_| ())
}

fn drop_all(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let _alone = users::alone(request)?;
    let database = request.database();
    // Users keep the built-in roles of the same database.
    let own = request.server.users.roles().of(database);
    let own: Vec<Bson> = own.into_iter().map(|role| role.name.0.into()).collect();
    let held = doc! {"db": database, "role": {"$in": own}};
    let n = drop_those(request, &doc! {"db": database}, &held)?;
    super::update::integer(reply, "n", n);
    Ok(())
}

fn invalidate(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.users.load(&request.server.store)
}

/// The roles that `rolesInfo` names; `None` for all roles of the database.
fn about(arguments: &Arguments<'_>, database: &str) -> Result<Option<Vec<Name>>> {
    users::asked(arguments.need("rolesInfo")?, "rolesInfo", "role", database)
}

/// The privileges of `rolesInfo`: users may view the roles that they have.
fn viewed(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let held = asked.server.users.roles().closure(&asked.user.roles);
    match about(sent.arguments, sent.database)? {
        None => needed.push(sent.on_database("viewRole")),
        Some(roles) => needed.extend(
            roles
                .into_iter()
                .filter(|role| !held.contains(role))
                .map(|(_, database)| Wanted::Database(database, "viewRole")),
        ),
    }
    Ok(())
}

/// A role as `rolesInfo` shows it.
fn described(
    known: &Roles,
    role: &Role,
    (with_privileges, with_restrictions): (bool, bool),
) -> Document {
    let (name, database) = &role.name;
    let inherited = known.closure(&role.roles);
    let mut document = doc! {
        "_id": key(database, name),
        "role": name,
        "db": database,
        "roles": shown(&role.roles),
        "inheritedRoles": shown(&inherited),
        "isBuiltin": role.builtin,
    };
    if with_privileges {
        let all = known.grants(std::slice::from_ref(&role.name));
        document.insert("privileges", stored(&joined(role.grants.iter().cloned())));
        document.insert("inheritedPrivileges", stored(&all));
    }
    if with_restrictions {
        let inherited = known.restricted(std::slice::from_ref(&role.name));
        document.insert("authenticationRestrictions", role.restricted.clone());
        document.insert("inheritedAuthenticationRestrictions", inherited);
    }
    document
}

fn info(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let database = request.database();
    let known = request.server.users.roles();
    let fragment = arguments.get("showPrivileges") == Some(RawBsonRef::String("asUserFragment"));
    let restrictions = arguments.is_on("showAuthenticationRestrictions")?;
    let with_privileges = fragment || arguments.is_on("showPrivileges")?;
    let with = (with_privileges, with_privileges || restrictions);
    let chosen: Vec<Role> = match about(arguments, database)? {
        Some(named) => named.iter().filter_map(|name| known.get(name)).collect(),
        None if fragment => {
            let message = "Cannot get user fragment for all roles in a database";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        None => {
            let mut own = known.of(database);
            if arguments.is_on("showBuiltinRoles")? {
                let names = builtin::OF_DATABASES.iter().chain(builtin::OF_ADMIN);
                let names = names.map(|name| ((*name).to_owned(), database.to_owned()));
                own.extend(names.filter_map(|name| known.get(&name)));
            }
            own
        }
    };
    if fragment {
        let named: Vec<Name> = chosen.into_iter().map(|role| role.name).collect();
        let user = doc! {
            "roles": shown(&named),
            "inheritedRoles": shown(&known.closure(&named)),
            "inheritedPrivileges": stored(&known.grants(&named)),
            "inheritedAuthenticationRestrictions": known.restricted(&named),
        };
        reply.value("userFragment", &Bson::Document(user));
        return Ok(());
    }
    reply.open_array("roles");
    for (i, role) in chosen.iter().enumerate() {
        let document = described(&known, role, with);
        reply.value(&i.to_string(), &Bson::Document(document));
    }
    reply.close();
    Ok(())
}
