//! Clients on the same machine: Unix sockets, several addresses; what they set and read of the
//! log.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use bson::doc;

use crate::client::{Client, Site};

/// A server with the Unix socket of its port and one with another name, in a directory.
fn served(sockets: &Path, more: &[(&str, &str)]) -> (Site, [PathBuf; 2]) {
    let named = sockets.join("named.sock");
    let site = Site::with(|config| {
        let addresses = format!("localhost,{}", named.display());
        let own = [
            ("net.unixDomainSocket.enabled", "true"),
            ("net.unixDomainSocket.pathPrefix", sockets.to_str().unwrap()),
            ("net.unixDomainSocket.filePermissions", "0770"),
            ("net.bindIp", &addresses),
        ];
        for (name, value) in own.iter().chain(more) {
            config.set(name, value).unwrap();
        }
    });
    let usual = format!("mongodb-{}.sock", site.address().port());
    let usual = sockets.join(usual);
    (site, [usual, named])
}

#[test]
fn a_unix_socket_serves_as_an_address_does_and_is_removed_at_the_end() {
    let sockets = tempfile::tempdir().unwrap();
    let (site, paths) = served(sockets.path(), &[]);
    for path in &paths {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o770);
        let mut client = Client::over(UnixStream::connect(path).unwrap());
        let reply = client.ok("admin", doc! {"whatsmyuri": 1});
        assert_eq!(reply.get_str("you").unwrap(), "anonymous unix socket");
        let reply = client.ok("admin", doc! {"hello": 1});
        assert_eq!(reply.get_str("me").unwrap(), site.address().to_string());
    }
    site.stop();
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn a_client_of_a_unix_socket_can_create_the_first_user() {
    let sockets = tempfile::tempdir().unwrap();
    let (_site, paths) = served(sockets.path(), &[("security.authorization", "enabled")]);
    let mut client = Client::over(UnixStream::connect(&paths[0]).unwrap());
    let user = doc! {"createUser": "u", "pwd": "p", "roles": ["root"]};
    client.ok("admin", user);
    let (code, _) = client.fails("admin", doc! {"whatsmyuri": 1});
    assert_eq!(code, 13);
}

#[test]
fn the_verbosity_of_components_is_shown_and_set() {
    let site = Site::with(|config| {
        config
            .set("systemLog.component.storage.verbosity", "2")
            .unwrap();
    });
    let mut client = site.client();
    let asked = doc! {"getParameter": 1, "logComponentVerbosity": 1};
    let all = client.ok("admin", asked.clone());
    let all = all.get_document("logComponentVerbosity").unwrap();
    assert_eq!(all.get_i32("verbosity").unwrap(), 0);
    let level = |name: &str| {
        all.get_document(name)
            .unwrap()
            .get_i32("verbosity")
            .unwrap()
    };
    assert_eq!((level("storage"), level("command")), (2, -1));
    // As `db.setLogLevel(1, "command")` and `db.setLogLevel(3)` send it.
    let set = doc! {"setParameter": 1, "logComponentVerbosity": {"command": {"verbosity": 1}}};
    let was = client.ok("admin", set);
    assert_eq!(was.get_document("was").unwrap(), all);
    let lines = |client: &mut Client| {
        let log = client.ok("admin", doc! {"getLog": "global"});
        log.get_array("log")
            .unwrap()
            .iter()
            .any(|line| line.to_string().contains("marked"))
    };
    client.ok("test", doc! {"ping": 1, "comment": "marked"});
    assert!(lines(&mut client), "every command is logged");
    client.ok(
        "admin",
        doc! {"setParameter": 1, "logComponentVerbosity": {"verbosity": 3}},
    );
    let level = client.ok("admin", doc! {"getParameter": 1, "logLevel": 1});
    assert_eq!(level.get_i32("logLevel").unwrap(), 3);
    let wrong = doc! {"setParameter": 1, "logComponentVerbosity": {"coffee": {"verbosity": 1}}};
    let refused = client.run("admin", wrong);
    assert!(
        refused.get_str("errmsg").unwrap().contains("coffee"),
        "{refused}"
    );
}

#[test]
fn dashboards_find_the_primary_by_both_names() {
    let site = Site::new();
    let status = site.client().ok("admin", doc! {"serverStatus": 1});
    let set = status.get_document("repl").unwrap();
    assert!(set.get_bool("ismaster").unwrap() && set.get_bool("isWritablePrimary").unwrap());
}
