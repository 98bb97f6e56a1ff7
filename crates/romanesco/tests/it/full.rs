//! A server whose disk is full still starts, and its data can be dropped.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Place;
use crate::servers::Foreign;

/// Size of the disk, in bytes.
const DISK: usize = 160 << 20;

/// A separate file system in memory; unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// Mount the file system; `None` where this user may not mount.
    fn new(directory: &Path) -> Option<Mounted> {
        fs::create_dir(directory).unwrap();
        let size = format!("size={DISK},mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]);
        let output = mount.arg(directory).output();
        let mounted = output.is_ok_and(|output| output.status.success());
        mounted.then(|| Mounted(directory.to_owned()))
    }

    /// Fill the file system until no block is free.
    fn fill(&self) {
        let path = self.0.join(format!("filler-{}", self.count()));
        let mut file = File::create(path).unwrap();
        for size in [1 << 20, 4096, 1] {
            let piece = vec![7; size];
            while file.write_all(&piece).is_ok() {}
        }
    }

    fn count(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // If the mount is still in use, the test has failed, and the files are kept for inspection.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Encode a BSON document from encoded fields.
fn document(fields: &[Vec<u8>]) -> Vec<u8> {
    let inner = fields.concat();
    let length = i32::try_from(inner.len() + 5).unwrap();
    [&length.to_le_bytes(), &inner[..], &[0]].concat()
}

fn field(kind: u8, name: &str, value: &[u8]) -> Vec<u8> {
    [&[kind], name.as_bytes(), &[0], value].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let length = i32::try_from(value.len() + 1).unwrap();
    let value = [&length.to_le_bytes(), value.as_bytes(), &[0]].concat();
    field(2, name, &value)
}

fn int(name: &str, value: i32) -> Vec<u8> {
    field(16, name, &value.to_le_bytes())
}

/// A connection that sends commands and looks for words in the replies.
struct Connection(TcpStream);

impl Connection {
    fn new(server: &Foreign) -> Connection {
        let port = u16::try_from(server.port).unwrap();
        Connection(TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    /// Run a command on `database`; returns whether the reply contains no error.
    fn run(&mut self, database: &str, mut fields: Vec<Vec<u8>>) -> bool {
        fields.push(text("$db", database));
        let body = document(&fields);
        let op_msg = 2_013_i32;
        let length = i32::try_from(16 + 5 + body.len()).unwrap();
        let head = [length, 1, 0, op_msg, 0].map(i32::to_le_bytes).concat();
        self.0
            .write_all(&[&head[..], &[0], &body].concat())
            .unwrap();
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let length = usize::try_from(i32::from_le_bytes(length)).unwrap();
        let mut reply = vec![0; length - 4];
        self.0.read_exact(&mut reply).unwrap();
        let holds = |word: &[u8]| reply.windows(word.len()).any(|part| part == word);
        let refused = holds(b"errmsg") || holds(b"writeErrors");
        if refused {
            // Shown with a failure of the test: the reply contains the reason.
            println!("refused: {}", reply.escape_ascii());
        }
        !refused
    }

    fn insert(&mut self, collection: &str, count: u32) -> bool {
        // Bytes that do not compress.
        let mut state = 88_172_645_463_325_252_u64;
        let mut letters = || -> String {
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                char::from(b'0' + u8::try_from(state % 75).unwrap())
            };
            (0..10_000).map(|_| next()).collect()
        };
        let each = (0..count).map(|n| {
            let inner = document(&[text("x", &letters())]);
            field(3, &n.to_string(), &inner)
        });
        let documents = document(&each.collect::<Vec<_>>());
        let fields = vec![
            text("insert", collection),
            field(4, "documents", &documents),
        ];
        self.run("test", fields)
    }

    fn delete(&mut self, collection: &str, limit: i32) -> bool {
        let delete = document(&[field(3, "q", &document(&[])), int("limit", limit)]);
        let deletes = document(&[field(3, "0", &delete)]);
        let fields = vec![text("delete", collection), field(4, "deletes", &deletes)];
        self.run("test", fields)
    }
}

#[test]
fn a_server_starts_on_a_full_disk_and_data_can_be_dropped() {
    let place = Place::new();
    let Some(disk) = Mounted::new(&place.path("db")) else {
        println!("not run: this user may not mount a file system");
        return;
    };
    fs::write(
        place.path("conf"),
        "storage: {dbPath: db/data, createDbPath: true, cacheSizeGB: 0.0625}\nnet: {port: 0}\n\
         systemLog: {destination: file, path: server.log}\n",
    )
    .unwrap();
    let start = || {
        let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
        command.args(["serve", "--config", "conf"]);
        // Otherwise the port of the previous process would be read from its log.
        let _ = fs::remove_file(place.path("server.log"));
        Foreign::listening(&place, command)
    };
    let mut server = start();
    let mut connection = Connection::new(&server);
    assert!(connection.insert("small", 10));
    // A checkpoint, so that the store has its reserve for a full disk.
    assert!(connection.run("admin", vec![int("fsync", 1)]));
    let mut batches = 0;
    while connection.insert("large", 100) {
        batches += 1;
        assert!(batches * 1_000_000 < 4 * DISK, "the disk does not fill");
    }
    for opening in 0..2 {
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        disk.fill();
        server = start();
        let mut connection = Connection::new(&server);
        assert!(connection.delete("small", 1), "opening {opening}");
    }
    let mut connection = Connection::new(&server);
    assert!(connection.run("test", vec![text("drop", "large")]));
    assert!(connection.run("admin", vec![int("fsync", 1)]));
    assert!(connection.insert("small", 50), "there is room again");
    assert!(connection.delete("small", 0));
}
