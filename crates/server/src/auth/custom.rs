//! Custom roles, from `admin.system.roles`, and the inheritance of roles.
//!
//! - R1. What a user may do follows roles as deep as they go, each once: documents that were
//!   written past the commands may name each other in a circle.

use std::collections::{HashMap, HashSet};

use bson::{Bson, Document};
use query::Namespace;

use super::privilege::{Grant, joined};
use super::restriction::Restrictions;
use super::roles;

/// The name and database of a role or user.
pub(crate) type Name = (String, String);

#[derive(Debug, Clone)]
pub(crate) struct Role {
    /// Its name and database.
    pub(crate) name: Name,
    /// The roles that it inherits from.
    pub(crate) roles: Vec<Name>,
    /// Its own privileges.
    pub(crate) grants: Vec<Grant>,
    /// The addresses from which users with this role may authenticate.
    pub(crate) restrictions: Restrictions,
    /// The same restrictions in stored form.
    pub(crate) restricted: Vec<Bson>,
    /// Whether it is built in and so cannot be changed.
    pub(crate) builtin: bool,
}

/// Roles by `database.name`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roles(pub(super) HashMap<String, Role>);

pub(crate) fn collection() -> Namespace {
    Namespace {
        db: "admin".to_owned(),
        coll: "system.roles".to_owned(),
    }
}

/// The `_id` of a user or a role.
pub(crate) fn key(database: &str, name: &str) -> String {
    format!("{database}.{name}")
}

/// The roles that a document lists; `None` if the list is invalid.
pub(super) fn listed(document: &Document) -> Option<Vec<Name>> {
    let mut named = Vec::new();
    for role in document.get_array("roles").into_iter().flatten() {
        let role = role.as_document()?;
        let (name, database) = (role.get_str("role").ok()?, role.get_str("db").ok()?);
        named.push((name.to_owned(), database.to_owned()));
    }
    Some(named)
}

impl Role {
    /// The role of a stored document; `None` if the document is invalid. Unknown privileges grant
    /// nothing.
    pub(crate) fn of(document: &Document) -> Option<Role> {
        let (name, database) = (document.get_str("role").ok()?, document.get_str("db").ok()?);
        if document.get_str("_id").ok()? != key(database, name) {
            return None;
        }
        let privileges = document.get_array("privileges").into_iter().flatten();
        let privileges = privileges.filter_map(Bson::as_document);
        Some(Role {
            name: (name.to_owned(), database.to_owned()),
            roles: listed(document)?,
            grants: privileges.filter_map(|p| Grant::of(p).ok()).collect(),
            restrictions: Restrictions::of(document),
            restricted: document
                .get_array("authenticationRestrictions")
                .cloned()
                .unwrap_or_default(),
            builtin: false,
        })
    }
}

impl Roles {
    /// A role, built in or not.
    pub(crate) fn get(&self, (name, database): &Name) -> Option<Role> {
        if roles::exists(name, database) {
            return Some(Role {
                name: (name.clone(), database.clone()),
                roles: Vec::new(),
                grants: roles::grants(name, database),
                restrictions: Restrictions::default(),
                restricted: Vec::new(),
                builtin: true,
            });
        }
        self.0.get(&key(database, name)).cloned()
    }

    /// The roles of a database that are not built in, in order of their names.
    pub(crate) fn of(&self, database: &str) -> Vec<Role> {
        let own = self.0.values().filter(|role| role.name.1 == database);
        let mut own: Vec<Role> = own.cloned().collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        own
    }

    /// Roles with all roles that they inherit, each once, in the order of their discovery. Names of
    /// roles that do not exist are included.
    pub(crate) fn closure(&self, named: &[Name]) -> Vec<Name> {
        let mut seen: HashSet<Name> = HashSet::new();
        let mut found = Vec::new();
        let mut next: Vec<Name> = named.iter().rev().cloned().collect();
        while let Some(name) = next.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            if let Some(role) = self.get(&name) {
                next.extend(role.roles.into_iter().rev());
            }
            found.push(name);
        }
        found
    }

    /// The restrictions of roles and of all roles that they inherit.
    pub(crate) fn restrictions(&self, named: &[Name]) -> Vec<Restrictions> {
        let all = self.closure(named).into_iter();
        let own = all.filter_map(|name| self.get(&name).map(|role| role.restrictions));
        own.filter(|own| !own.is_empty()).collect()
    }

    /// The same in stored form: one list for each role that has restrictions.
    pub(crate) fn restricted(&self, named: &[Name]) -> Vec<Bson> {
        let all = self.closure(named).into_iter();
        let own = all.filter_map(|name| self.get(&name).map(|role| role.restricted));
        let own = own.filter(|own| !own.is_empty());
        own.map(Bson::Array).collect()
    }

    /// The privileges of roles and of all roles that they inherit, one per resource.
    pub(crate) fn grants(&self, named: &[Name]) -> Vec<Grant> {
        let all = self.closure(named);
        joined(
            all.iter()
                .filter_map(|name| self.get(name))
                .flat_map(|role| role.grants),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn role(name: &str, parts: &[&str], action: &str) -> Document {
        let part = |part: &&str| match part.split_once('@') {
            Some((name, db)) => doc! {"role": name, "db": db}.into(),
            None => doc! {"role": *part, "db": "d"}.into(),
        };
        let parts: Vec<Bson> = parts.iter().map(part).collect();
        let resource = doc! {"db": "d", "collection": ""};
        doc! {
            "_id": format!("d.{name}"), "role": name, "db": "d", "roles": parts,
            "privileges": [{"resource": resource, "actions": [action]}],
        }
    }

    /// R1: each role counts once.
    #[test]
    fn roles_inherit_also_around_a_circle() {
        let mut roles = Roles::default();
        for document in [
            role("a", &["b", "read@e"], "insert"),
            role("b", &["c"], "remove"),
            role("c", &["a", "gone"], "update"),
        ] {
            let read = Role::of(&document).unwrap();
            roles
                .0
                .insert(document.get_str("_id").unwrap().to_owned(), read);
        }
        let name = |n: &str, d: &str| (n.to_owned(), d.to_owned());
        let all = roles.closure(&[name("a", "d")]);
        let expected = [
            ("a", "d"),
            ("b", "d"),
            ("c", "d"),
            ("gone", "d"),
            ("read", "e"),
        ];
        assert_eq!(all, expected.map(|(n, d)| name(n, d)));
        let grants = roles.grants(&[name("b", "d")]);
        assert_eq!(grants[0].actions.as_ref(), ["insert", "remove", "update"]);
        assert!(roles.grants(&[name("gone", "d")]).is_empty());
    }
}
