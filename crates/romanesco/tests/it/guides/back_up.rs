//! `docs/guides/back-up.md`.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use super::{Guide, documents};
use crate::backup::{DOCUMENTS, fill, ids};
use crate::backup_ended::{end, slow};

const PAGE: &str = include_str!("../../../../../docs/guides/back-up.md");

fn remove(guide: &Guide, names: &[&str]) {
    for name in names {
        let path = guide.path("/backup").join(name);
        match path.is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
}

/// Backups of a server, by the program and by commands, and of a directory.
fn take(guide: &mut Guide) {
    guide.serve("romanesco serve --createDbPath --dbpath var/lib/romanesco");
    fill(guide.port());
    let block = guide.next("sh");
    guide.shell(&block).exits(0);
    assert_eq!(guide.names("/backup"), ["monday", "tuesday.tar"]);
    remove(guide, &["monday", "tuesday.tar"]);
    for command in documents(&guide.next("python")) {
        guide.command(command).unwrap();
    }
    assert_eq!(guide.names("/backup"), ["monday", "tuesday.tar"]);
    guide.stop();
    let block = guide.next("sh");
    guide.shell(&block).exits(0);
    remove(guide, &["cold", "tuesday.tar"]);
}

/// A chain of increments, of which the last one is restored.
fn increments(guide: &mut Guide) {
    guide.serve("romanesco serve --dbpath var/lib/romanesco");
    let block = guide.next("sh");
    guide.shell(&block).exits(0);
    for command in documents(&guide.next("python")) {
        guide.command(command).unwrap();
    }
    let verified = guide.place.run(&["verify-backup", "backup/monday-night"]);
    let verified = verified.exits(0);
    let chain = "an increment on monday-evening on monday-noon on monday";
    assert!(verified.out.contains(chain), "{}", verified.out);
    remove(guide, &["monday-noon", "monday-evening", "monday-night"]);
    guide.stop();
}

/// A kill, and what the next backup needs.
fn after_a_kill(guide: &mut Guide) {
    fs::rename(guide.path("/backup/monday"), guide.path("/backup/kept")).unwrap();
    let from = ["--dbpath", "var/lib/romanesco"];
    end(slow(&guide.place, &from, "backup/monday"), Signal::KILL);
    guide.serve("romanesco serve --dbpath var/lib/romanesco");
    let block = guide.next("sh");
    let (verify, again) = block.split_once('\n').unwrap();
    let refused = guide.shell(verify);
    refused.refuses(1, &["no complete backup", "monday"]);
    let take = again.lines().last().unwrap();
    guide
        .shell(take)
        .refuses(1, &["was killed", "remove what it left"]);
    guide.shell(again).exits(0);
    remove(guide, &["kept"]);
}

/// A server with the settings of the page refuses other places.
fn bounded(guide: &mut Guide) {
    let settings = guide.next("yaml");
    fs::write(guide.place.path("romanesco.yaml"), settings).unwrap();
    guide.serve("romanesco serve --config romanesco.yaml --dbpath var/lib/romanesco");
    let uri = crate::backup::uri(guide.server.as_ref().unwrap());
    let run = |name: &str| guide.place.run(&["backup", "--uri", &uri, name]);
    run("outside").refuses(1, &["backup.rootDir"]);
    run("backup/inside").exits(0);
    remove(guide, &["inside"]);
}

/// The archive of a member of a set, and what is restored with it.
fn to_a_time(guide: &mut Guide) {
    guide.serve("romanesco serve --replSet rs0 --createDbPath --dbpath var/lib/romanesco-set");
    let uri = crate::backup::uri(guide.server.as_ref().unwrap());
    let run = |line: &[&str]| guide.place.run(line).exits(0);
    run(&["backup", "--uri", &uri, "backup/friday"]);
    fill(guide.port());
    let then = crate::restore_to_time::written(guide.port());
    crate::restore_to_time::insert(guide.port(), 0..10);
    let block = guide.next("sh");
    guide
        .shell(&format!("{} --once", block.trim_end()))
        .exits(0);
    guide.stop();
    let time = crate::restore_to_time::to(then);
    let block = guide.next("sh");
    assert!(block.contains("2026-11-23T14:03:00Z"));
    guide
        .shell(&block.replace("2026-11-23T14:03:00Z", &time))
        .exits(0);
    guide.serve("romanesco serve --replSet rs0 --dbpath var/lib/romanesco-then");
    assert_eq!(ids(guide.port()), (0..DOCUMENTS).collect::<Vec<_>>());
    guide.stop();
    let block = guide.next("sh");
    let refused = guide.shell(&block);
    refused.refuses(1, &["no collection test.*"]);
    remove(guide, &["friday", "oplog"]);
}

/// A copy over the network, which is served.
fn cloned(guide: &mut Guide) {
    guide.serve("romanesco serve --dbpath var/lib/romanesco");
    let block = guide.next("sh");
    let (clone, _) = block.split_once("\nromanesco serve").unwrap();
    guide.shell(clone).exits(0);
    guide.serve(block.trim_end());
    assert_eq!(ids(guide.port()), (0..DOCUMENTS).collect::<Vec<_>>());
    guide.stop();
}

/// The command of the service, and the units as systemd reads them.
fn schedule(guide: &mut Guide) {
    let service = guide.next("ini");
    let timer = guide.next("ini");
    let line = service
        .split("ExecStart=")
        .nth(1)
        .expect("it has a command");
    // Lines are continued, and a percent sign is written twice.
    let line = line.replace("\\\n", " ").replace("%%", "%");
    for day in 1..=9 {
        fs::create_dir(guide.path(&format!("/backup/2000-01-0{day}-0300"))).unwrap();
    }
    remove(guide, &["monday"]);
    guide.shell(&line).exits(0);
    let names = guide.names("/backup");
    assert_eq!(names.len(), 7, "{names:?}");
    assert_eq!(names[0], "2000-01-04-0300", "the oldest ones are removed");
    let taken = guide.path("/backup").join(names.last().unwrap());
    assert!(taken.join("backup.manifest").exists(), "{names:?}");
    // If the backup fails, nothing is removed.
    guide.stop();
    fs::create_dir(guide.path("/backup/2000-01-03-0300")).unwrap();
    assert_ne!(guide.shell(&line).code, 0);
    assert_eq!(guide.names("/backup").len(), 8);
    let enable = guide.next("sh");
    assert!(enable.starts_with("systemctl enable --now romanesco-backup.timer"));
    let (units, mut paths) = (guide.path("/etc"), Vec::new());
    for (unit, text) in [("service", service), ("timer", timer)] {
        let path = units.join(format!("romanesco-backup.{unit}"));
        // The user exists after the installation of the package.
        fs::write(&path, text.replace("User=romanesco\n", "")).unwrap();
        paths.push(path);
    }
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(&paths)
        .output();
    match verify {
        Ok(verified) => {
            let said = String::from_utf8_lossy(&verified.stderr);
            let about = said
                .lines()
                .filter(|line| line.contains("romanesco-backup"));
            assert_eq!(about.collect::<Vec<_>>(), [""; 0]);
        }
        Err(_) => println!("systemd-analyze is missing: the units are not verified"),
    }
}

#[test]
fn the_guide_to_backups_is_followed() {
    let mut guide = Guide::new(PAGE);
    take(&mut guide);
    increments(&mut guide);
    after_a_kill(&mut guide);
    bounded(&mut guide);
    let block = guide.next("sh");
    let verified = guide.shell(&block).exits(0);
    assert!(verified.out.contains("complete and unchanged"));
    let block = guide.next("sh");
    let (restore, _) = block.split_once("\nromanesco serve").unwrap();
    guide.shell(restore).exits(0);
    guide.serve(block.trim_end());
    assert_eq!(ids(guide.port()), (0..DOCUMENTS).collect::<Vec<_>>());
    guide.stop();
    to_a_time(&mut guide);
    cloned(&mut guide);
    guide.serve("romanesco serve --dbpath var/lib/romanesco");
    schedule(&mut guide);
    guide.ends();
}
