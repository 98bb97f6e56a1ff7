//! `backup` and `restore` by root, of the store of a server that runs as another user.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::backup::{DOCUMENTS, fill, ids};
use crate::backup_ended::{end, slow};
use crate::program::{Place, is_root};
use crate::servers::Foreign;

/// A user that owns nothing on most machines.
const OTHER: u32 = 65_534;

fn give(path: &Path) {
    chown(path, Some(OTHER), Some(OTHER)).unwrap();
}

fn owner(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

/// A directory for files of both users; `None` if this user is not root.
fn place() -> Option<Place> {
    if !is_root() {
        stdx::skip::test("only root can give files to another user");
        return None;
    }
    let place = Place::new();
    give(&place.path("."));
    // The other user need not be able to read the directory of the program.
    fs::copy(
        env!("CARGO_BIN_EXE_romanesco"),
        place.path("the romanesco program"),
    )
    .unwrap();
    Some(place)
}

/// Start a server as the other user.
fn serve(place: &Place, engine: &str, dbpath: &str) -> Foreign {
    let _ = fs::remove_file(place.path("server.log"));
    let program = place.path("the romanesco program");
    let mut command = place.outside(program.to_str().unwrap());
    let line = format!(
        "serve --storageEngine {engine} --dbpath {dbpath} --port 0 --logpath server.log \
         --cacheSizeGB 0.0625"
    );
    command.args(line.split_whitespace()).uid(OTHER).gid(OTHER);
    Foreign::listening(place, command)
}

/// Make a store of the other user.
fn store(place: &Place, engine: &str) {
    fs::create_dir(place.path("db")).unwrap();
    give(&place.path("db"));
    let mut server = serve(place, engine, "db");
    fill(server.port);
    // The next opening reads the log and makes new files.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    for lock in ["LOCK", "lock.mdb"] {
        // The engine has one of them, or both.
        let _ = fs::remove_file(place.path("db").join(lock));
    }
}

/// Assert that everything in a directory belongs to the other user but `kept`.
fn check(place: &Place, dbpath: &str, kept: &[&str]) {
    assert_eq!(owner(&place.path(dbpath)), OTHER);
    let names = place.names(dbpath);
    assert!(kept.len() < names.len(), "{names:?}");
    for name in names {
        let expected = if kept.contains(&&*name) { 0 } else { OTHER };
        let path = place.path(dbpath).join(&name);
        assert_eq!(owner(&path), expected, "{}", path.display());
    }
}

#[test]
fn a_backup_by_root_leaves_the_directory_to_the_server_of_another() {
    for engine in lab::targets::defaults() {
        let Some(place) = place() else {
            return;
        };
        store(&place, engine);
        // What root had in the directory before is not given away, and no link to a file of root.
        for name in ["db/notes", "aim", "second"] {
            fs::write(place.path(name), b"of root").unwrap();
        }
        let from = ["--dbpath", "db"];
        let child = slow(&place, &from, "copy");
        symlink(place.path("aim"), place.path("db/link")).unwrap();
        fs::hard_link(place.path("second"), place.path("db/second")).unwrap();
        fs::create_dir(place.path("db/folder")).unwrap();
        fs::write(place.path("db/folder/inside"), b"new").unwrap();
        end(child, Signal::TERM).refuses(1, &["ended by a signal"]);
        check(&place, "db", &["notes", "link", "second"]);
        check(&place, "db/folder", &[]);
        for name in ["aim", "second"] {
            assert_eq!(owner(&place.path(name)), 0, "{name}");
        }
        for name in ["notes", "link", "second"] {
            fs::remove_file(place.path("db").join(name)).unwrap();
        }
        fs::remove_dir_all(place.path("db/folder")).unwrap();
        place.run(&["backup", "--dbpath", "db", "copy"]).exits(0);
        place.run(&["verify-backup", "copy"]).exits(0);
        check(&place, "db", &[]);
        let server = serve(&place, engine, "db");
        assert_eq!(ids(server.port), (0..DOCUMENTS).collect::<Vec<_>>());
    }
}

#[test]
fn a_restore_by_root_gives_the_store_to_the_owner_of_the_directory() {
    for engine in lab::targets::defaults() {
        let Some(place) = place() else {
            return;
        };
        store(&place, engine);
        place.run(&["backup", "--dbpath", "db", "copy"]).exits(0);
        let restore = |target| place.run(&["restore", "copy", "--dbpath", target]);
        fs::create_dir(place.path("new")).unwrap();
        give(&place.path("new"));
        // It could put anything there.
        fs::create_dir(place.path("new.restoring")).unwrap();
        give(&place.path("new.restoring"));
        restore("new").refuses(1, &["belongs to another user", "new.restoring"]);
        fs::remove_dir(place.path("new.restoring")).unwrap();
        restore("new").exits(0);
        check(&place, "new", &[]);
        let mut server = serve(&place, engine, "new");
        assert_eq!(ids(server.port), (0..DOCUMENTS).collect::<Vec<_>>());
        kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
        server.child.wait().unwrap();
        // A directory that root makes is of root.
        restore("other").exits(0);
        assert_eq!(owner(&place.path("other")), 0);
    }
}
