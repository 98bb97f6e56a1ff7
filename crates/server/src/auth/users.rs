//! The users, as `admin.system.users` has them: in MongoDB's shape on the disk, whole in memory,
//! and the roles of `admin.system.roles` with them.
//!
//! They are asked for at each command, also by threads that must not wait for storage.
//!
//! - U1. After every command that may have written, the versions of both collections are compared
//!   with those that were read, which costs no input or output. Only when one differs are the
//!   collections read again, and only users whose documents differ are computed again; all of them
//!   when a role differs.
//! - U2. When they cannot be read, what was known stays, with its old versions: the next command
//!   that writes, and housekeeping, try again.
//! - T1. A command that changes users or roles computes what it writes from what it has read (the
//!   roles that a user has, the privileges of a role). While it has the turn no other such command
//!   writes, so that none restores what another has revoked. The turn is taken before any latch of
//!   storage, and held until the command has written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use docdb::{ContentVersion, Op, Store};
use kv::Durability;
use query::{Error, Namespace, Result};
use stdx::sync::{Mutex, MutexGuard, OnceLock, RwLock};
use zeroize::Zeroize as _;

use super::custom::{self, Name, Role, Roles, key};
use super::privilege::{Grant, Wanted};
use super::restriction::Restrictions;
use super::scram::{Credential, Mechanism};
use crate::metrics::Counter;
use crate::own;

/// Interval at which a command that waits for the turn checks whether it must end.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    /// The database the name belongs to.
    pub(crate) database: String,
    /// Tells a user from a later one of the same name.
    pub(crate) id: Option<Bson>,
    pub(crate) roles: Vec<Name>,
    /// The roles including inherited ones, as `$$USER_ROLES` shows them.
    pub(crate) shown: Arc<Bson>,
    /// The privileges of the roles, including inherited ones.
    pub(crate) grants: Vec<Grant>,
    /// The addresses from which the user may authenticate, according to the user and to each role.
    pub(crate) restrictions: Vec<Restrictions>,
    /// The credentials, by mechanism.
    pub(crate) credentials: Vec<(Mechanism, Credential)>,
    /// The stored document.
    stored: Stored,
}

/// A stored document that contains keys, which are overwritten when it is dropped.
#[derive(Debug, Clone)]
struct Stored(RawDocumentBuf);

impl Drop for Stored {
    fn drop(&mut self) {
        std::mem::take(&mut self.0).into_bytes().zeroize();
    }
}

/// The versions of the two collections whose content is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Versions {
    users: Option<ContentVersion>,
    roles: Option<ContentVersion>,
}

impl Versions {
    fn of(store: &Store) -> Versions {
        // Built once, because they are needed after every write.
        static NAMES: OnceLock<[Namespace; 2]> = OnceLock::new();
        let [users, roles] = NAMES.get_or_init(|| [collection(), custom::collection()]);
        Versions {
            users: store.content_version(users),
            roles: store.content_version(roles),
        }
    }
}

#[derive(Default)]
struct Known {
    users: HashMap<String, Arc<User>>,
    roles: Arc<Roles>,
    versions: Versions,
}

/// All users, and the roles they may have.
#[derive(Default)]
pub(crate) struct Users {
    known: RwLock<Arc<Known>>,
    /// Held while the collections are read, so that an older read does not replace a newer one.
    /// Lookups do not wait for it.
    reading: Mutex<()>,
    /// The turn: held by a command that changes users or roles (T1).
    changes: Mutex<()>,
    /// The user that the members of the replica set are to each other; it is not stored.
    system: OnceLock<Arc<User>>,
    /// Number of times that the collections were read.
    pub(crate) reads: Counter,
    /// Number of users whose privileges were computed from their documents.
    pub(crate) computed: Counter,
}

pub(crate) fn collection() -> Namespace {
    Namespace {
        db: "admin".to_owned(),
        coll: "system.users".to_owned(),
    }
}

impl Users {
    /// Read them all again, whether or not they have changed.
    ///
    /// # Errors
    /// Those of storage; the users stay as they were known.
    pub(crate) fn load(&self, store: &Store) -> Result<()> {
        let _reading = self.reading.lock();
        self.read(store, &Known::default())
    }

    /// Read what has changed since the last read (U1).
    ///
    /// # Errors
    /// Those of storage; the users stay as they were known.
    pub(crate) fn refresh(&self, store: &Store) -> Result<()> {
        if self.known.read().versions == Versions::of(store) {
            return Ok(());
        }
        let _reading = self.reading.lock();
        let known = Arc::clone(&self.known.read());
        // Another thread may have read the collections in the meantime.
        match known.versions == Versions::of(store) {
            true => Ok(()),
            false => self.read(store, &known),
        }
    }

    /// Let no other command change users or roles, and read those that were changed before.
    ///
    /// # Errors
    /// Those of storage; when the operation ends while it waits.
    pub(crate) fn alone(&self, store: &Store, op: &Op<'_>) -> Result<MutexGuard<'_, ()>> {
        let turn = self.turn(op)?;
        self.refresh(store)?;
        Ok(turn)
    }

    /// Wait for the turn.
    ///
    /// # Errors
    /// When the operation is killed or reaches its time limit.
    fn turn(&self, op: &Op<'_>) -> Result<MutexGuard<'_, ()>> {
        loop {
            if let Some(turn) = self.changes.try_lock_for(LOOK) {
                return Ok(turn);
            }
            op.check()?;
        }
    }

    /// Read both collections; reuse the users of `before` that are unchanged.
    fn read(&self, store: &Store, before: &Known) -> Result<()> {
        self.reads.one();
        // Read the versions first: later writes produce other versions.
        let versions = Versions::of(store);
        let same_roles = before.versions.roles == versions.roles && versions.roles.is_some();
        let roles = match same_roles {
            true => Arc::clone(&before.roles),
            false => Arc::new(read_roles(store)?),
        };
        let no_roles = roles.0.is_empty() && before.roles.0.is_empty();
        let keeps = same_roles || no_roles;
        let mut users = HashMap::new();
        let op = Op::new(Durability::Interval);
        own::visit(store, &op, &collection(), &doc! {}, &mut |document| {
            let id = document.get_str("_id").unwrap_or_default();
            let old = before.users.get(id).filter(|user| {
                let stored = &user.stored.0;
                keeps && stored.as_bytes() == document.as_bytes()
            });
            let user = match old {
                Some(user) => Some(Arc::clone(user)),
                None => {
                    self.computed.one();
                    User::of(document, &roles)?.map(Arc::new)
                }
            };
            if let Some(user) = user {
                users.insert(key(&user.database, &user.name), user);
            }
            Ok(())
        })?;
        *self.known.write() = Arc::new(Known {
            users,
            roles,
            versions,
        });
        Ok(())
    }

    pub(crate) fn get(&self, database: &str, name: &str) -> Option<Arc<User>> {
        let system = self
            .system
            .get()
            .filter(|user| user.name == name && user.database == database);
        if let Some(user) = system {
            return Some(Arc::clone(user));
        }
        self.known.read().users.get(&key(database, name)).cloned()
    }

    /// Let the members of the replica set authenticate as a user with all privileges.
    ///
    /// # Errors
    /// A password that SASLprep does not take; no random salt.
    pub(crate) fn set_system(&self, (database, name): (&str, &str), password: &str) -> Result<()> {
        let mechanism = Mechanism::Sha256;
        let salt = random(mechanism.salt_bytes())?;
        let rounds = mechanism.iterations();
        let credential = mechanism.credential(name, password, salt, rounds)?;
        let document = doc! {
            "user": name, "db": database,
            "roles": [{"role": "__system", "db": "admin"}],
            "credentials": {mechanism.name(): stored(&credential)},
        };
        let raw = RawDocumentBuf::try_from(&document)?;
        if let Some(user) = User::of(&raw, &Roles::default())? {
            // Only the first call has an effect.
            drop(self.system.set(Arc::new(user)));
        }
        Ok(())
    }

    /// All users, in the order of their `_id`.
    pub(crate) fn list(&self) -> Vec<Arc<User>> {
        let known = Arc::clone(&self.known.read());
        let mut list: Vec<(&String, &Arc<User>)> = known.users.iter().collect();
        list.sort_by_key(|(key, _)| *key);
        list.into_iter().map(|(_, user)| Arc::clone(user)).collect()
    }

    pub(crate) fn roles(&self) -> Arc<Roles> {
        Arc::clone(&self.known.read().roles)
    }

    /// Whether there are no users.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.read().users.is_empty()
    }
}

fn read_roles(store: &Store) -> Result<Roles> {
    let op = Op::new(Durability::Interval);
    let mut roles = Roles::default();
    for document in own::find(store, &op, &custom::collection(), &Document::new())? {
        if let Some(role) = Role::of(&document) {
            roles.0.insert(key(&role.name.1, &role.name.0), role);
        }
    }
    Ok(roles)
}

fn bytes(document: &RawDocument, name: &str) -> Option<Vec<u8>> {
    BASE64.decode(document.get_str(name).ok()?).ok()
}

fn credential(document: &RawDocument) -> Option<Credential> {
    let iterations = document.get("iterationCount").ok().flatten()?;
    let iterations = match iterations {
        RawBsonRef::Int32(n) => u32::try_from(n).ok()?,
        RawBsonRef::Int64(n) => u32::try_from(n).ok()?,
        _ => return None,
    };
    Some(Credential {
        iterations,
        salt: bytes(document, "salt")?,
        stored_key: bytes(document, "storedKey")?.into(),
        server_key: bytes(document, "serverKey")?.into(),
    })
}

/// The stored form of a credential.
pub(crate) fn stored(credential: &Credential) -> Document {
    doc! {
        "iterationCount": i32::try_from(credential.iterations).unwrap_or(i32::MAX),
        "salt": BASE64.encode(&credential.salt),
        "storedKey": BASE64.encode(credential.stored_key.as_slice()),
        "serverKey": BASE64.encode(credential.server_key.as_slice()),
    }
}

impl User {
    /// The user of a stored document; `None` if the document is invalid.
    ///
    /// # Errors
    /// Bytes that are no BSON.
    pub(crate) fn of(stored: &RawDocument, known: &Roles) -> Result<Option<User>> {
        let mut credentials = Vec::new();
        if let Ok(all) = stored.get_document("credentials") {
            for mechanism in Mechanism::ALL {
                let found = all.get_document(mechanism.name()).ok();
                let found = found.and_then(credential);
                credentials.extend(found.map(|credential| (mechanism, credential)));
            }
        }
        let document = without_credentials(stored)?;
        let named = document.get_str("user").ok();
        let named = named.zip(document.get_str("db").ok());
        let Some(((name, database), roles)) = named.zip(custom::listed(&document)) else {
            return Ok(None);
        };
        let shown = known.closure(&roles).into_iter().map(|(role, db)| {
            Bson::Document(doc! {"_id": key(&db, &role), "role": role, "db": db})
        });
        let shown = Arc::new(Bson::Array(shown.collect()));
        let grants = known.grants(&roles);
        let mut restrictions = vec![Restrictions::of(&document)];
        restrictions.extend(known.restrictions(&roles));
        Ok(Some(User {
            id: document.get("userId").cloned(),
            name: name.to_owned(),
            database: database.to_owned(),
            roles,
            shown,
            grants,
            restrictions,
            credentials,
            stored: Stored(stored.to_owned()),
        }))
    }

    /// The stored document without the credentials.
    ///
    /// # Errors
    /// Bytes that are no BSON.
    pub(crate) fn document(&self) -> Result<Document> {
        without_credentials(&self.stored.0)
    }

    /// The credentials in stored form, if there are any.
    ///
    /// # Errors
    /// Bytes that are no BSON.
    pub(crate) fn stored_credentials(&self) -> Result<Option<Bson>> {
        let credentials = self.stored.0.get("credentials")?;
        Ok(credentials.map(Bson::try_from).transpose()?)
    }

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

    /// The user's credential for a mechanism.
    pub(crate) fn credential(&self, mechanism: Mechanism) -> Option<Credential> {
        let found = self.credentials.iter().find(|(kind, _)| *kind == mechanism);
        found.map(|(_, credential)| credential.clone())
    }
}

/// A stored user document without the credentials: owned values are not overwritten when dropped.
fn without_credentials(stored: &RawDocument) -> Result<Document> {
    let mut document = Document::new();
    for field in stored {
        let (name, value) = field?;
        if name != "credentials" {
            document.insert(name.as_str(), Bson::try_from(value)?);
        }
    }
    Ok(document)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;

    use query::Code;

    use super::*;

    /// T1.
    #[test]
    fn one_command_at_a_time_has_the_turn() {
        let users = Users::default();
        let op = Op::new(Durability::None);
        let held = users.turn(&op).unwrap();
        let mut killed = Op::new(Durability::None);
        killed.killed = Arc::new(AtomicI32::new(Code::INTERRUPTED.0));
        let refused = users.turn(&killed).err().map(|error| error.code);
        assert_eq!(refused, Some(Code::INTERRUPTED), "T1");
        drop(held);
        drop(users.turn(&op).unwrap());
        drop(users.turn(&op).unwrap());
    }
}
