//! The users, as `admin.system.users` has them: in MongoDB's shape on the disk, whole in memory,
//! and the roles of `admin.system.roles` with them.
//!
//! They are few and asked for at each command, also by threads that must not wait for storage.
//! Whatever wrote to the collection makes them read anew.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::{Bson, Document, doc};
use docdb::{Op, Store};
use kv::Durability;
use query::{Error, Namespace, Result};
use stdx::sync::{Mutex, RwLock};

use super::custom::{self, Name, Role, Roles};
use super::privilege::Grant;
use super::restriction::Restrictions;
use super::scram::{Credential, Mechanism};
use crate::state::own;

/// A user.
#[derive(Debug, Clone)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    /// The database the name belongs to.
    pub(crate) database: String,
    /// Tells a user from a later one of the same name.
    pub(crate) id: Option<Bson>,
    /// Roles.
    pub(crate) roles: Vec<Name>,
    /// The roles and those they inherit, as `$$USER_ROLES` shows them.
    pub(crate) shown: Arc<Bson>,
    /// What the roles grant, with what they inherit.
    pub(crate) grants: Vec<Grant>,
    /// From where they may authenticate, by themselves and by each role.
    pub(crate) restrictions: Vec<Restrictions>,
    /// What proves it.
    pub(crate) credentials: Vec<(Mechanism, Credential)>,
    /// The document.
    pub(crate) document: Document,
}

/// What is known.
#[derive(Default)]
struct Known {
    users: HashMap<String, Arc<User>>,
    roles: Arc<Roles>,
}

/// All users, and the roles they may have.
#[derive(Default)]
pub(crate) struct Users {
    known: RwLock<Arc<Known>>,
    /// Held by whoever reads, so that what was read last is known; those who ask do not wait.
    turn: Mutex<()>,
}

/// The collection.
pub(crate) fn collection() -> Namespace {
    Namespace {
        db: "admin".to_owned(),
        coll: "system.users".to_owned(),
    }
}

/// `_id` of a user.
pub(crate) fn key(database: &str, name: &str) -> String {
    format!("{database}.{name}")
}

impl Users {
    /// Read them all anew.
    ///
    /// # Errors
    /// Those of storage; the users stay as they were known.
    pub(crate) fn load(&self, store: &Store) -> Result<()> {
        let _turn = self.turn.lock();
        let op = Op::new(Durability::Interval);
        let all = |ns: Namespace| own::find(store, &op, &ns, &Document::new());
        let mut roles = Roles::default();
        for document in all(custom::collection())? {
            if let Some(role) = Role::of(&document) {
                roles.0.insert(key(&role.name.1, &role.name.0), role);
            }
        }
        let mut users = HashMap::new();
        for document in all(collection())? {
            if let Some(user) = User::of(document, &roles) {
                users.insert(key(&user.database, &user.name), Arc::new(user));
            }
        }
        *self.known.write() = Arc::new(Known {
            users,
            roles: Arc::new(roles),
        });
        Ok(())
    }

    /// A user.
    pub(crate) fn get(&self, database: &str, name: &str) -> Option<Arc<User>> {
        self.known.read().users.get(&key(database, name)).cloned()
    }

    /// All, in order of their `_id`.
    pub(crate) fn list(&self) -> Vec<Arc<User>> {
        let known = Arc::clone(&self.known.read());
        let mut list: Vec<(&String, &Arc<User>)> = known.users.iter().collect();
        list.sort_by_key(|(key, _)| *key);
        list.into_iter().map(|(_, user)| Arc::clone(user)).collect()
    }

    /// The roles.
    pub(crate) fn roles(&self) -> Arc<Roles> {
        Arc::clone(&self.known.read().roles)
    }

    /// Whether there are no users.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.read().users.is_empty()
    }
}

fn bytes(document: &Document, name: &str) -> Option<Vec<u8>> {
    BASE64.decode(document.get_str(name).ok()?).ok()
}

fn credential(document: &Document) -> Option<Credential> {
    let iterations = match document.get("iterationCount")? {
        Bson::Int32(n) => u32::try_from(*n).ok()?,
        Bson::Int64(n) => u32::try_from(*n).ok()?,
        _ => return None,
    };
    Some(Credential {
        iterations,
        salt: bytes(document, "salt")?,
        stored_key: bytes(document, "storedKey")?.into(),
        server_key: bytes(document, "serverKey")?.into(),
    })
}

/// A credential as it is stored.
pub(crate) fn stored(credential: &Credential) -> Document {
    doc! {
        "iterationCount": i32::try_from(credential.iterations).unwrap_or(i32::MAX),
        "salt": BASE64.encode(&credential.salt),
        "storedKey": BASE64.encode(credential.stored_key.as_slice()),
        "serverKey": BASE64.encode(credential.server_key.as_slice()),
    }
}

impl User {
    /// The user of a document; `None` when it is none.
    pub(crate) fn of(document: Document, known: &Roles) -> Option<User> {
        let name = document.get_str("user").ok()?.to_owned();
        let database = document.get_str("db").ok()?.to_owned();
        let mut credentials = Vec::new();
        if let Ok(all) = document.get_document("credentials") {
            for mechanism in Mechanism::ALL {
                let found = all.get_document(mechanism.name()).ok();
                let found = found.and_then(credential);
                credentials.extend(found.map(|credential| (mechanism, credential)));
            }
        }
        let roles = custom::listed(&document)?;
        let shown = known.closure(&roles).into_iter().map(|(role, db)| {
            Bson::Document(doc! {"_id": key(&db, &role), "role": role, "db": db})
        });
        let shown = Arc::new(Bson::Array(shown.collect()));
        let grants = known.grants(&roles);
        let mut restrictions = vec![Restrictions::of(&document)];
        restrictions.extend(known.restrictions(&roles));
        Some(User {
            id: document.get("userId").cloned(),
            name,
            database,
            roles,
            shown,
            grants,
            restrictions,
            credentials,
            document,
        })
    }
}

/// Random bytes of the operating system.
///
/// # Errors
/// When it has none.
pub(crate) fn random(count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the system gives no random bytes: {error}");
        Error::new(query::Code::INTERNAL_ERROR, message)
    })?;
    Ok(bytes)
}
