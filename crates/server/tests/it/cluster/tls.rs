//! Encrypted connections between members.

use bson::doc;
use server::{ClusterAuth, TlsMode};

use super::{KEY, Set, insert};
use crate::auth::log_in;
use crate::certificates::Authority;
use crate::client::await_so;
use crate::tls::{Greeting, settings};

/// The lines of a server's log.
fn log(set: &Set, i: usize) -> String {
    let reply = set.client(i).ok("admin", doc! {"getLog": "global"});
    let lines = reply.get_array("log").unwrap();
    let lines = lines.iter().map(|line| line.as_str().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn members_that_accept_only_tls_reach_each_other() {
    let authority = Authority::new("roots");
    let certificate = authority.server(4000);
    let (tls, key) = (
        settings(TlsMode::Required, &certificate, Some(&authority)),
        KEY,
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, key).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).unwrap();
    let set = Set::adjusted(2, move |_, config| {
        config.tls = tls.clone();
        config.key_file = Some(path.clone());
        config.authorization = true;
    });
    let greeting = Greeting::new(&authority).shows(&certificate);
    let client = |i: usize| greeting.connect(set.site(i).address()).unwrap();
    let mut first = client(0);
    first.ok("admin", doc! {"replSetInitiate": set.config(1, |_, _| {})});
    await_so("a primary", || {
        let hello = first.ok("admin", doc! {"hello": 1});
        hello.get_bool("isWritablePrimary").unwrap()
    });
    first.ok(
        "admin",
        doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]},
    );
    assert!(
        log_in(&mut first, "admin", "root", "secret")
            .get_bool("done")
            .unwrap()
    );
    // The second one is needed for the majority.
    first.ok("test", insert(1));
    let mut second = client(1);
    await_so("the user", || {
        let reply = log_in(&mut second, "admin", "root", "secret");
        reply.get_bool("done").unwrap_or(false)
    });
}

#[test]
fn a_member_with_a_wrong_certificate_is_refused_and_named() {
    let (authority, other) = (Authority::new("roots"), Authority::new("other roots"));
    let good = settings(
        TlsMode::Preferred,
        &authority.server(4000),
        Some(&authority),
    );
    let mut wrong = good.clone();
    wrong.certificate_key_file = Some(other.server(4000).path);
    let spoiled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let spoils = std::sync::Arc::clone(&spoiled);
    let mut set = Set::adjusted(3, move |i, config| {
        let is_wrong = i == 2 && spoils.load(std::sync::atomic::Ordering::Relaxed);
        config.tls = if is_wrong {
            wrong.clone()
        } else {
            good.clone()
        };
    });
    // Plain clients are accepted in this mode; members encrypt.
    set.client(0)
        .ok("admin", doc! {"replSetInitiate": set.config(1, |_, _| {})});
    let primary = set.primary();
    let mut all = insert(1);
    all.insert("writeConcern", doc! {"w": 3});
    set.client(primary).ok("test", all);
    let folder = set.stop(2);
    spoiled.store(true, std::sync::atomic::Ordering::Relaxed);
    set.resume(2, folder);
    let reached = set.primary_but(Some(2));
    set.client(reached).ok("test", insert(2));
    let host = set.host(2);
    await_so("the line of the log", || {
        let text = log(&set, reached);
        let mut lines = text.lines();
        lines.any(|line| {
            line.contains("A member is not reached")
                && line.contains(&host)
                && line.contains("UnknownIssuer")
        })
    });
    // The others refuse it as a client, too.
    await_so("the reason at the other side", || {
        log(&set, reached).contains("SSLHandshakeFailed")
    });
    let status = set
        .client(reached)
        .ok("admin", doc! {"replSetGetStatus": 1});
    assert!(status.to_string().contains("TLS handshake"), "{status}");
    let folder = set.stop(2);
    spoiled.store(false, std::sync::atomic::Ordering::Relaxed);
    set.resume(2, folder);
    set.await_documents(2, "c", &[1, 2]);
}

#[test]
fn members_recognize_each_other_by_their_certificates() {
    let authority = Authority::new("roots");
    let (member, stranger) = (authority.member("shop"), authority.member("office"));
    let right = settings(TlsMode::Preferred, &member, Some(&authority));
    let left = settings(TlsMode::Preferred, &stranger, Some(&authority));
    let set = Set::adjusted(3, move |i, config| {
        config.tls = if i == 2 { left.clone() } else { right.clone() };
        config.cluster_auth = ClusterAuth::X509;
        config.authorization = true;
    });
    let mut two = set.config(1, |_, _| {});
    let all = two.clone();
    two.get_array_mut("members").unwrap().truncate(2);
    let mut first = set.client(0);
    let (code, message) = first.fails("admin", doc! {"replSetInitiate": all});
    assert_eq!(code, 74);
    assert!(message.contains("Authentication failed"), "{message}");
    first.ok("admin", doc! {"replSetInitiate": two});
    await_so("a primary", || {
        let hello = set.hello(0);
        hello.get_bool("isWritablePrimary").unwrap()
    });
    first.ok(
        "admin",
        doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]},
    );
    log_in(&mut first, "admin", "root", "secret");
    first.ok("test", insert(1));
    // A client with the certificate of a member is one; another one is an unknown user.
    let proves = doc! {"authenticate": 1, "mechanism": "MONGODB-X509"};
    let address = set.site(0).address();
    let mut as_member = Greeting::new(&authority)
        .shows(&member)
        .connect(address)
        .unwrap();
    as_member.ok("$external", proves.clone());
    as_member.ok("admin", doc! {"replSetProbe": 1, "set": "rs0"});
    let mut other = Greeting::new(&authority)
        .shows(&stranger)
        .connect(address)
        .unwrap();
    assert_eq!(other.fails("$external", proves).0, 18);
    // There is no key to log in with.
    let reply = log_in(&mut set.client(0), "local", "__system", KEY);
    assert_eq!(reply.get_i32("code").unwrap(), 18, "{reply}");
}
