//! What a client without a password can learn by trying names and passwords.

use bson::{Bson, Document, doc};

use crate::auth::{FAILED, as_user, guarded, log_in, start, text};
use crate::client::{Client, Site};

/// The server's replies to a name before authentication.
fn asked(client: &mut Client, database: &str, user: &str) -> Document {
    let mut first = start(user);
    first.insert("db", database);
    let greeting = doc! {"hello": 1, "saslSupportedMechs": format!("{database}.{user}"),
    "speculativeAuthenticate": first};
    client.ok("admin", greeting)
}

/// The salt and the number of iterations in a challenge.
fn salt(client: &mut Client, database: &str, user: &str) -> (String, String) {
    let challenge = text(&client.ok(database, start(user)));
    let mut parts = challenge.split(',').skip(1).map(str::to_owned);
    (parts.next().unwrap(), parts.next().unwrap())
}

#[test]
fn names_of_users_and_others_are_answered_alike() {
    let site = guarded();
    let shape = |database: &str, user: &str| {
        let reply = asked(&mut site.client(), database, user);
        let challenge = text(reply.get_document("speculativeAuthenticate").unwrap());
        let parts: Vec<usize> = challenge.split(',').map(str::len).collect();
        let keys: Vec<String> = reply.keys().cloned().collect();
        let known = reply.get_array("saslSupportedMechs").unwrap().clone();
        (keys, known, parts)
    };
    let known = shape("test", "reader");
    assert_eq!(known.1.len(), 2);
    for (database, user) in [
        ("admin", "root"),
        ("test", "no.such"),
        ("no such", "reader"),
        ("admin", "reader"),
    ] {
        assert_eq!(shape(database, user), known, "{database}.{user}");
    }
}

#[test]
fn salts_stay_the_same_and_belong_to_a_database_and_a_name() {
    let site = guarded();
    let names = [
        ("test", "reader"),
        ("test", "nobody"),
        ("other", "nobody"),
        ("other", "reader"),
        ("admin", "nobody"),
    ];
    let salts = |site: &Site| {
        names.map(|(database, user)| {
            let one = salt(&mut site.client(), database, user);
            assert_eq!(one, salt(&mut site.client(), database, user));
            one
        })
    };
    let before = salts(&site);
    for (n, (salt, rounds)) in before.iter().enumerate() {
        assert_eq!(*rounds, before[0].1);
        assert!(before[..n].iter().all(|(other, _)| other != salt));
    }
    let site = Site::try_in(site.stop(), |config| config.authorization = true).unwrap();
    assert_eq!(salts(&site), before, "the same after a restart");
    // Another server has other salts.
    let other = guarded();
    let (salt, _) = salt(&mut other.client(), "test", "nobody");
    assert_ne!(salt, before[1].0);
}

/// L1: an attempt waits before it is checked.
#[test]
fn failed_logins_delay_the_next_ones_and_do_not_prevent_them() {
    let site = guarded();
    for user in ["reader", "nobody"] {
        for _ in 0..4 {
            let reply = log_in(&mut site.client(), "test", user, "wrong");
            assert_eq!(reply.get_i32("code").unwrap(), FAILED, "{reply}");
        }
    }
    let mut root = as_user(&site, "admin", "root");
    let status = root.ok("admin", doc! {"serverStatus": 1});
    let security = status.get_document("security").unwrap();
    let authentication = security.get_document("authentication").unwrap();
    assert_eq!(authentication.get("failed"), Some(&Bson::Int64(8)));
    // Three failures are not delayed; the last delay was that of root.
    assert_eq!(authentication.get("delayed"), Some(&Bson::Int64(5)));
}
