//! Users: `createUser`, `updateUser`, `dropUser`, grants, `usersInfo`.

use std::collections::HashSet;

use bson::{Binary, Bson, Document, RawBsonRef, RawDocumentBuf, doc};
use query::filter::Filter;
use query::repeated::value_tree;
use query::settings::Settings;
use query::{Code, Error, Result};
use stdx::sync::MutexGuard;
use wire::Builder;

use super::grants;
use crate::access::{Asked, Needed, Privilege, still_authorized};
use crate::arguments::Arguments;
use crate::auth::custom::{Name, Roles, key};
use crate::auth::privilege::Wanted;
use crate::auth::scram::Mechanism;
use crate::auth::users::{collection, random, stored};
use crate::auth::{Restrictions, User};
use crate::command::{FIRST_USER, LOOSE, Lane, PLAIN, SECRET, WRITES};
use crate::own;
use crate::request::{Call, Run};
use crate::row::Row;

/// The arguments of `createUser` and `updateUser`.
const USER: &[&str] = &[
    "pwd",
    "customData",
    "roles",
    "digestPassword",
    "mechanisms",
    "authenticationRestrictions",
];

const fn row(name: &'static str, run: Run, help: &'static str) -> Row {
    Row::new(name, run, help).lane(Lane::Storage).flags(WRITES)
}

pub(super) const ROWS: &[Row] = &[
    row("createUser", create, "Create a user")
        .flags(PLAIN | SECRET | FIRST_USER)
        .fields(USER)
        .own(grants::create_user),
    row("updateUser", update, "Change a user")
        .flags(PLAIN | SECRET)
        .fields(USER)
        .own(grants::update_user),
    row("dropUser", drop, "Drop a user").privilege(Privilege::Database("dropUser")),
    row(
        "dropAllUsersFromDatabase",
        drop_all,
        "Drop the users of a database",
    )
    .privilege(Privilege::Database("dropUser")),
    row("grantRolesToUser", grant, "Grant roles to a user")
        .fields(&["roles"])
        .own(grants::grant_to_user),
    row("revokeRolesFromUser", revoke, "Revoke roles from a user")
        .fields(&["roles"])
        .own(grants::revoke_from_user),
    Row::new("usersInfo", info, "Return users")
        .lane(Lane::Storage)
        .flags(LOOSE)
        .own(viewed),
];

/// Let no other command change users or roles until the guard is dropped. The client must still be
/// authorized then, so that it does not restore a role that it lost while it waited.
///
/// # Errors
/// Those of [`crate::auth::Users::alone`]; `Unauthorized`.
pub(super) fn alone<'a>(request: &'a Call<'_>) -> Result<MutexGuard<'a, ()>> {
    let users = &request.server.users;
    let turn = request.with_store(|store, op| users.alone(store, op))?;
    still_authorized(request)?;
    Ok(turn)
}

/// The roles that an argument lists, each of which must exist.
///
/// # Errors
/// `RoleNotFound`; what is no role.
pub(super) fn existing(request: &Call<'_>, arguments: &Arguments<'_>) -> Result<Vec<Name>> {
    let listed = grants::roles(arguments, request.database())?;
    let known = request.server.users.roles();
    for name in &listed {
        if known.get(name).is_none() {
            let message = format!("Could not find role: {}@{}", name.0, name.1);
            return Err(Error::new(Code::ROLE_NOT_FOUND, message));
        }
    }
    Ok(listed)
}

/// The roles as an array of documents.
pub(super) fn shown(roles: &[Name]) -> Bson {
    let roles = roles.iter();
    let roles = roles.map(|(role, db)| doc! {"role": role.as_str(), "db": db.as_str()});
    Bson::Array(roles.map(Bson::Document).collect())
}

/// The mechanisms that an argument lists; all by default.
fn mechanisms(arguments: &Arguments<'_>) -> Result<Vec<Mechanism>> {
    let Some(array) = arguments.array("mechanisms")? else {
        return Ok(Mechanism::ALL.to_vec());
    };
    let mut named = Vec::new();
    for name in array {
        let name = name?.as_str().unwrap_or_default();
        let mechanism = Mechanism::of_name(name)
            .ok_or_else(|| Error::bad_value(format!("Unknown auth mechanism '{name}'")))?;
        named.push(mechanism);
    }
    if named.is_empty() {
        return Err(Error::bad_value("mechanisms field must not be empty"));
    }
    Ok(named)
}

fn credentials(
    request: &Call<'_>,
    arguments: &Arguments<'_>,
    user: &str,
) -> Result<Option<Document>> {
    let Some(password) = arguments.string("pwd")? else {
        if arguments.get("mechanisms").is_some() {
            let message = "mechanisms field can only be given together with a password";
            return Err(Error::bad_value(message));
        }
        return Ok(None);
    };
    if password.is_empty() {
        return Err(Error::bad_value("Password cannot be empty"));
    }
    if arguments.boolean("digestPassword")? == Some(false) {
        let message = "Use of SCRAM-SHA-256 requires undigested passwords";
        return Err(Error::bad_value(message));
    }
    let mut credentials = Document::new();
    for mechanism in mechanisms(arguments)? {
        let salt = random(mechanism.salt_bytes())?;
        let rounds = request.server.scram_rounds(mechanism);
        let made = mechanism.credential(user, password, salt, rounds)?;
        credentials.insert(mechanism.name(), stored(&made));
    }
    Ok(Some(credentials))
}

/// The address restrictions that an argument lists, after validation.
///
/// # Errors
/// What is none.
pub(super) fn restrictions(arguments: &Arguments<'_>) -> Result<Option<Bson>> {
    let Some(given) = arguments.array("authenticationRestrictions")? else {
        return Ok(None);
    };
    let mut list = Vec::new();
    for restriction in given {
        list.push(value_tree("authenticationRestrictions", restriction?)?);
    }
    Restrictions::parse(&list)?;
    Ok(Some(Bson::Array(list)))
}

/// The user that a command names.
fn named<'a>(request: &'a Call<'_>) -> Result<&'a str> {
    match request.target() {
        RawBsonRef::String("") => Err(Error::bad_value(
            "User document needs 'user' field to be non-empty",
        )),
        RawBsonRef::String(name) if name.contains('\0') => {
            Err(Error::bad_value("Username cannot contain NULL characters"))
        }
        RawBsonRef::String(name) => Ok(name),
        _ => {
            let name = request.name();
            let message =
                format!("BSON field '{name}.{name}' is the wrong type, expected type 'string'");
            Err(Error::type_mismatch(message))
        }
    }
}

fn not_found(name: &str, database: &str) -> Error {
    let message = format!("Could not find user \"{name}\" for db \"{database}\"");
    Error::new(Code::USER_NOT_FOUND, message)
}

fn create(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let (name, database) = (named(request)?, request.database());
    let arguments = request.arguments();
    let restrictions = restrictions(arguments)?;
    let custom_data = arguments.tree("customData")?;
    arguments.need_array("roles")?;
    // Digests take long: other commands change users meanwhile.
    let credentials = match (database, credentials(request, arguments, name)?) {
        ("$external", None) => doc! {"external": true},
        ("$external", Some(_)) => {
            let message = "Cannot set the password for users defined on the '$external' database";
            return Err(Error::bad_value(message));
        }
        (_, Some(credentials)) => credentials,
        (_, None) => {
            let message = "Must provide a 'pwd' field for all user documents, except those with \
                 '$external' as the user's source db";
            return Err(Error::bad_value(message));
        }
    };
    let _alone = alone(request)?;
    let roles = existing(request, arguments)?;
    let mut user = doc! {
        "_id": key(database, name),
        "userId": Bson::Binary(Binary::from(bson::Uuid::new())),
        "user": name,
        "db": database,
        "credentials": credentials,
        "roles": shown(&roles),
    };
    if let Some(data) = custom_data {
        user.insert("customData", data);
    }
    if let Some(restrictions) = restrictions {
        user.insert("authenticationRestrictions", restrictions);
    }
    let done = request.with_store(|store, op| own::insert(store, op, &collection(), &user));
    done.map_err(|error| match error.code {
        Code::DUPLICATE_KEY => {
            let message = format!("User \"{name}@{database}\" already exists");
            Error::location(51_003, message)
        }
        _ => error,
    })
}

/// Update the stored document of a user.
fn change(request: &Call<'_>, name: &str, change: Document) -> Result<()> {
    let database = request.database();
    let filter = doc! {"_id": key(database, name)};
    let ns = collection();
    let n = request.with_store(|store, op| own::change(store, op, &ns, &filter, &change))?;
    match n {
        0 => Err(not_found(name, database)),
        _ => Ok(()),
    }
}

fn update(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let name = named(request)?;
    let arguments = request.arguments();
    let mut set = Document::new();
    if let Some(restrictions) = restrictions(arguments)? {
        set.insert("authenticationRestrictions", restrictions);
    }
    if let Some(credentials) = credentials(request, arguments, name)? {
        set.insert("credentials", credentials);
    }
    let has_roles = arguments.array("roles")?.is_some();
    if let Some(data) = arguments.tree("customData")? {
        set.insert("customData", data);
    }
    if set.is_empty() && !has_roles {
        let message = "Must specify at least one field to update in updateUser";
        return Err(Error::bad_value(message));
    }
    let _alone = alone(request)?;
    if has_roles {
        set.insert("roles", shown(&existing(request, arguments)?));
    }
    change(request, name, doc! {"$set": set})
}

fn user_of(request: &Call<'_>, name: &str) -> Result<std::sync::Arc<User>> {
    let database = request.database();
    let user = request.server.users.get(database, name);
    user.ok_or_else(|| not_found(name, database))
}

fn grant(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    grants::some(request, "roles")?;
    let _alone = alone(request)?;
    let name = named(request)?;
    let mut roles = user_of(request, name)?.roles.clone();
    let arguments = request.arguments();
    for role in existing(request, arguments)? {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    change(request, name, doc! {"$set": {"roles": shown(&roles)}})
}

fn revoke(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    grants::some(request, "roles")?;
    let _alone = alone(request)?;
    let name = named(request)?;
    let mut kept = user_of(request, name)?.roles.clone();
    let arguments = request.arguments();
    let taken = grants::roles(arguments, request.database())?;
    kept.retain(|role| !taken.contains(role));
    change(request, name, doc! {"$set": {"roles": shown(&kept)}})
}

fn delete(request: &Call<'_>, filter: &Document) -> Result<i64> {
    let ns = collection();
    request.with_store(|store, op| own::delete(store, op, &ns, filter))
}

fn drop(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let _alone = alone(request)?;
    let (name, database) = (named(request)?, request.database());
    match delete(request, &doc! {"_id": key(database, name)})? {
        0 => Err(not_found(name, database)),
        _ => Ok(()),
    }
}

fn drop_all(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let _alone = alone(request)?;
    let n = delete(request, &doc! {"db": request.database()})?;
    super::update::integer(reply, "n", n);
    Ok(())
}

/// The users that `usersInfo` shows.
enum About {
    Database,
    AllDatabases,
    Named(HashSet<Name>),
}

fn about(arguments: &Arguments<'_>, database: &str) -> Result<About> {
    match arguments.need("usersInfo")? {
        RawBsonRef::Document(all) if all.get("forAllDBs")?.is_some() => Ok(About::AllDatabases),
        value => Ok(match asked(value, "usersInfo", "user", database)? {
            Some(users) => About::Named(users.into_iter().collect()),
            None => About::Database,
        }),
    }
}

/// The users or roles (`kind`) that `usersInfo` or `rolesInfo` names, as one value or a list, each
/// a name or a document; `None` if it names none.
///
/// # Errors
/// What is neither.
pub(super) fn asked(
    value: RawBsonRef<'_>,
    command: &str,
    kind: &str,
    database: &str,
) -> Result<Option<Vec<Name>>> {
    let one = |value: RawBsonRef<'_>| match value {
        RawBsonRef::String(name) => Ok((name.to_owned(), database.to_owned())),
        RawBsonRef::Document(named) => {
            let named = Arguments::of(command, named)?;
            let (name, database) = (named.need_string(kind)?, named.need_string("db")?);
            Ok((name.to_owned(), database.to_owned()))
        }
        _ => {
            let message = format!("{command}: a {kind} is a name or a document");
            Err(Error::bad_value(message))
        }
    };
    match value {
        RawBsonRef::Array(list) => {
            let all = list.into_iter().map(|named| one(named?));
            all.collect::<Result<_>>().map(Some)
        }
        value @ (RawBsonRef::String(_) | RawBsonRef::Document(_)) => Ok(Some(vec![one(value)?])),
        _ => Ok(None),
    }
}

/// The privileges of `usersInfo`: users may view themselves, without their credentials.
fn viewed(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let (sent, user) = (&asked.sent, asked.user);
    let credentials = sent.arguments.is_on("showCredentials")?;
    match about(sent.arguments, sent.database)? {
        About::Database => needed.push(sent.on_database("viewUser")),
        About::AllDatabases => needed.push(Wanted::Everywhere("viewUser")),
        About::Named(users) => needed.extend(
            users
                .into_iter()
                .filter(|(name, db)| credentials || *name != user.name || *db != user.database)
                .map(|(_, database)| Wanted::Database(database, "viewUser")),
        ),
    }
    Ok(())
}

/// The parts of users that `usersInfo` shows.
struct Shown {
    credentials: bool,
    privileges: bool,
    custom_data: bool,
    restrictions: bool,
}

/// A user as `usersInfo` shows it.
fn described(known: &Roles, user: &User, with: &Shown) -> Result<Document> {
    let mut document = user.document()?;
    let kinds = user.credentials.iter();
    let kinds: Vec<Bson> = kinds.map(|(kind, _)| kind.name().into()).collect();
    document.insert("mechanisms", kinds);
    if let (true, Some(secret)) = (with.credentials, user.stored_credentials()?) {
        document.insert("credentials", secret);
    }
    if !with.custom_data {
        document.remove("customData");
    }
    if with.privileges {
        let inherited = known.closure(&user.roles);
        document.insert("inheritedRoles", shown(&inherited));
        let grants = user.grants.iter().map(|grant| grant.to_document().into());
        document.insert("inheritedPrivileges", Bson::Array(grants.collect()));
    }
    let own = document.remove("authenticationRestrictions");
    if with.privileges || with.restrictions {
        let mut inherited = known.restricted(&user.roles);
        let own = own.unwrap_or_else(|| Bson::Array(Vec::new()));
        if own.as_array().is_some_and(|own| !own.is_empty()) {
            inherited.insert(0, own.clone());
        }
        document.insert("authenticationRestrictions", own);
        document.insert("inheritedAuthenticationRestrictions", inherited);
    }
    Ok(document)
}

fn info(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let database = request.database();
    let about = about(arguments, database)?;
    let with = Shown {
        credentials: arguments.is_on("showCredentials")?,
        privileges: arguments.is_on("showPrivileges")?,
        custom_data: arguments.boolean("showCustomData")?.unwrap_or(true),
        restrictions: arguments.is_on("showAuthenticationRestrictions")?,
    };
    let filter = arguments.document("filter")?;
    let filter = filter.map(|filter| Filter::parse(filter, &Settings::default()));
    let filter = filter.transpose()?;
    if (with.privileges || with.restrictions) && !matches!(about, About::Named(_)) {
        let message = "Privilege or restriction details require exact-match usersInfo queries";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let known = request.server.users.roles();
    reply.open_array("users");
    let mut count = 0;
    for user in request.server.users.list() {
        let chosen = match &about {
            About::AllDatabases => true,
            About::Database => user.database == database,
            About::Named(users) => users.contains(&(user.name.clone(), user.database.clone())),
        };
        if !chosen {
            continue;
        }
        let document = described(&known, &user, &with)?;
        if let Some(filter) = &filter
            && !filter.matches(&RawDocumentBuf::try_from(&document)?)?
        {
            continue;
        }
        reply.value(&count.to_string(), &Bson::Document(document));
        count += 1;
    }
    reply.close();
    Ok(())
}
