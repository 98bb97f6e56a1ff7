//! The roles and privileges that commands about users and roles list, and the privileges that a
//! user needs to grant or revoke them.

use std::collections::HashSet;

use bson::RawBsonRef;
use query::repeated::tree;
use query::{Error, Result};

use crate::access::{Asked, Needed};
use crate::arguments::Arguments;
use crate::auth::custom::Name;
use crate::auth::privilege::{Grant, Wanted, joined};
use crate::request::Call;

/// The roles that an argument lists, as name and database.
///
/// # Errors
/// A value that is no role.
pub(super) fn roles(arguments: &Arguments<'_>, database: &str) -> Result<Vec<Name>> {
    let mut listed: Vec<Name> = Vec::new();
    // Privileges are computed before they are checked: any user may send a long list.
    let mut seen: HashSet<Name> = HashSet::new();
    let Some(array) = arguments.array("roles")? else {
        return Ok(listed);
    };
    for role in array {
        let role = match role? {
            RawBsonRef::String(name) => (name.to_owned(), database.to_owned()),
            RawBsonRef::Document(role) => {
                let role = Arguments::of("roles", role)?;
                role.only(&["role", "db"])?;
                let (name, database) = (role.need_string("role")?, role.need_string("db")?);
                (name.to_owned(), database.to_owned())
            }
            _ => {
                let message = "Role names must be either strings or objects";
                return Err(Error::bad_value(message));
            }
        };
        if seen.insert(role.clone()) {
            listed.push(role);
        }
    }
    Ok(listed)
}

/// Check that a list of roles or privileges to grant or revoke exists and is not empty.
///
/// # Errors
/// `BadValue` for an empty one.
pub(super) fn some(request: &Call<'_>, name: &str) -> Result<()> {
    if request.arguments().need_array(name)?.is_empty() {
        let command = request.command.name;
        let message = format!("{command} command requires a non-empty \"{name}\" array");
        return Err(Error::bad_value(message));
    }
    Ok(())
}

/// The privileges that an argument lists, one per resource.
///
/// # Errors
/// A value that is no privilege.
pub(super) fn privileges(arguments: &Arguments<'_>) -> Result<Vec<Grant>> {
    let mut grants = Vec::new();
    for privilege in arguments.array("privileges")?.into_iter().flatten() {
        let RawBsonRef::Document(privilege) = privilege? else {
            return Err(Error::parse("a privilege must be an object"));
        };
        grants.push(Grant::of(&tree("privileges", privilege)?)?);
    }
    Ok(joined(grants))
}

/// Require an action on the database of each listed role.
fn roles_need(
    arguments: &Arguments<'_>,
    database: &str,
    action: &'static str,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    for (_, role_database) in roles(arguments, database)? {
        wanted.push(Wanted::Database(role_database, action));
    }
    Ok(())
}

/// Require an action on the database of each listed privilege.
fn privileges_need(
    arguments: &Arguments<'_>,
    action: &'static str,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    for grant in privileges(arguments)? {
        let database = grant.resource.database().unwrap_or("admin");
        wanted.push(Wanted::Database(database.to_owned(), action));
    }
    Ok(())
}

/// Require the privileges of a command that grants or revokes roles or privileges: `own`, and
/// `action` on the database of each.
fn change(
    asked: &Asked<'_>,
    needed: &mut Needed,
    own: Vec<Wanted>,
    action: &'static str,
) -> Result<()> {
    let sent = &asked.sent;
    let mut wanted = own;
    roles_need(sent.arguments, sent.database, action, &mut wanted)?;
    if sent.arguments.get("authenticationRestrictions").is_some() {
        wanted.push(sent.on_database("setAuthenticationRestriction"));
    }
    privileges_need(sent.arguments, action, &mut wanted)?;
    needed.extend(wanted);
    Ok(())
}

/// `createUser`.
pub(super) fn create_user(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(
        asked,
        needed,
        vec![asked.sent.on_database("createUser")],
        "grantRole",
    )
}

/// `createRole`.
pub(super) fn create_role(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(
        asked,
        needed,
        vec![asked.sent.on_database("createRole")],
        "grantRole",
    )
}

/// `updateRole`.
pub(super) fn update_role(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(
        asked,
        needed,
        vec![Wanted::Everywhere("revokeRole")],
        "grantRole",
    )
}

/// `grantRolesToUser`.
pub(super) fn grant_to_user(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(asked, needed, Vec::new(), "grantRole")
}

/// `revokeRolesFromUser`.
pub(super) fn revoke_from_user(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(asked, needed, Vec::new(), "revokeRole")
}

/// `grantRolesToRole` and `grantPrivilegesToRole`.
pub(super) fn grant_to_role(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(
        asked,
        needed,
        vec![asked.sent.on_database("grantRole")],
        "grantRole",
    )
}

/// `revokeRolesFromRole` and `revokePrivilegesFromRole`.
pub(super) fn revoke_from_role(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    change(
        asked,
        needed,
        vec![asked.sent.on_database("revokeRole")],
        "revokeRole",
    )
}

/// `updateUser`: one action for each changed part of the user.
pub(super) fn update_user(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let arguments = sent.arguments;
    let mut wanted = Vec::new();
    // Users may have the privilege to change their own data or password.
    let is_own = sent.collection() == asked.user.name && sent.database == asked.user.database;
    let change = |own: &'static str, any: &'static str| {
        let own = sent.on_database(own);
        match is_own && asked.user.may(&own) {
            true => own,
            false => sent.on_database(any),
        }
    };
    if arguments.get("customData").is_some() {
        wanted.push(change("changeOwnCustomData", "changeCustomData"));
    }
    if arguments.get("roles").is_some() {
        wanted.push(Wanted::Everywhere("revokeRole"));
        roles_need(arguments, sent.database, "grantRole", &mut wanted)?;
    }
    if arguments.get("authenticationRestrictions").is_some() {
        wanted.push(sent.on_database("setAuthenticationRestriction"));
    }
    // A change of the mechanisms removes credentials, so it counts as a change of them.
    if wanted.is_empty() || arguments.get("pwd").is_some() || arguments.get("mechanisms").is_some()
    {
        wanted.push(change("changeOwnPassword", "changePassword"));
    }
    needed.extend(wanted);
    Ok(())
}
