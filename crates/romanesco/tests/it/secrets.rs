//! Passwords and keys do not stay in the memory of a server. The memory of the process is read from
//! outside, so that blocks that were freed and stacks count, too.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use bson::{Document, RawDocumentBuf, doc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Digest as _;
use memchr::memmem::Finder;
use mongodb::options::{ClientOptions, Credential};
use mongodb::sync::Client;

use crate::program::Place;
use crate::servers::Foreign;

/// What must not be found, or must, and its name.
type Mark = (String, Vec<u8>);

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

/// The marks that the memory of a process has; `None` if this process may not read it.
fn found(pid: u32, marks: &[Mark]) -> Option<Vec<&str>> {
    let longest = marks.iter().map(|(_, bytes)| bytes.len()).max()?;
    let finders: Vec<(&str, Finder<'_>)> = marks
        .iter()
        .map(|(name, bytes)| (name.as_str(), Finder::new(bytes)))
        .collect();
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut names: Vec<&str> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    for line in maps.lines() {
        // `start-end perms offset dev inode path`: what can be written, and is no file.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let private = fields.get(1).is_some_and(|perms| perms.starts_with("rw"));
        let is_file = fields.get(5).is_some_and(|path| path.starts_with('/'));
        let (start, end) = fields[0].split_once('-').unwrap();
        let [mut at, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        // Consecutive chunks overlap, so that a mark at an edge is found.
        while private && !is_file && at < end {
            let wanted = CHUNK.min(usize::try_from(end - at).unwrap());
            let Ok(read) = memory.read_at(&mut chunk[..wanted], at) else {
                break;
            };
            for (name, finder) in &finders {
                if finder.find(&chunk[..read]).is_some() && !names.contains(name) {
                    names.push(name);
                }
            }
            at += match read <= longest {
                true => CHUNK as u64,
                false => (read - longest) as u64,
            };
        }
    }
    Some(names)
}

/// Letters and digits that occur nowhere else.
fn secret(number: u64, what: &str) -> String {
    let half = |at: u64| stdx::rng::mix64(stdx::hash::hash64(what.as_bytes()) ^ (number * 2 + at));
    format!("{:016x}{:016x}", half(0), half(1))
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// What a password is turned into, and could be used in its place.
fn derived(user: &str, password: &str, stored: &Document) -> [Vec<u8>; 3] {
    let digest = md5::Md5::digest(format!("{user}:mongo:{password}"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let of = stored.get_document("SCRAM-SHA-256").unwrap();
    let salt = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        of.get_str("salt").unwrap(),
    );
    let rounds = u32::try_from(of.get_i32("iterationCount").unwrap()).unwrap();
    let salted =
        pbkdf2::pbkdf2_hmac_array::<sha2::Sha256, 32>(password.as_bytes(), &salt.unwrap(), rounds);
    let client = hmac(&salted, b"Client Key");
    [hex.into_bytes(), salted.to_vec(), client]
}

fn connect(port: u64, user: Option<(&str, &str)>) -> Client {
    let uri = format!("mongodb://127.0.0.1:{port}/?directConnection=true&authSource=admin");
    let mut options = ClientOptions::parse(uri).run().unwrap();
    options.credential = user.map(|(name, password)| {
        Credential::builder()
            .username(name.to_owned())
            .password(password.to_owned())
            .source("admin".to_owned())
            .build()
    });
    Client::with_options(options).unwrap()
}

fn admin(client: &Client, command: Document) -> Document {
    client.database("admin").run_command(command).run().unwrap()
}

/// Send a message in pieces, so that it is not received at once; returns when it is answered.
fn send_slowly(stream: &mut TcpStream, message: &[u8]) {
    stream.set_nodelay(true).unwrap();
    for piece in message.chunks(3000) {
        stream.write_all(piece).unwrap();
        // The server reads the piece before the next one arrives, or after: both must be safe.
        std::thread::yield_now();
    }
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let length = usize::try_from(i32::from_le_bytes(length)).unwrap();
    stream.read_exact(&mut vec![0; length - 4]).unwrap();
}

/// `createUser`, refused for the missing privilege, in a message: its password is received all the
/// same. With `long`, the message outgrows the first buffer.
fn create_user(password: &str, long: bool) -> Vec<u8> {
    let data = if long {
        "x".repeat(40_000)
    } else {
        String::new()
    };
    let command = doc! {
        "createUser": "refused", "pwd": password, "customData": {"data": data}, "roles": [],
        "$db": "admin",
    };
    let parts = wire::Parts {
        request_id: 1,
        response_to: 0,
        flags: 0,
    };
    wire::encode(parts, &RawDocumentBuf::try_from(&command).unwrap(), &[])
}

/// A key file of its own, and the key.
fn key_file(place: &Place, number: u64) -> (String, Vec<u8>, String) {
    let key: Vec<u8> = secret(number, "key").into_bytes();
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &key);
    let path = place.path(&format!("key{number}"));
    fs::write(&path, format!("{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    (path.to_str().unwrap().to_owned(), key, text)
}

#[test]
fn passwords_and_keys_do_not_stay_in_memory() {
    let place = Place::new();
    let (first, second) = (key_file(&place, 1), key_file(&place, 2));
    let line = format!(
        "--auth --enableEncryption --encryptionKeyFile {} --cacheSizeGB 0.0625",
        first.0
    );
    let server = Foreign::start(&place, &line);
    let mut gone: Vec<Mark> = vec![
        ("text of the first key".to_owned(), first.2.into_bytes()),
        ("text of the second key".to_owned(), second.2.into_bytes()),
        ("first key".to_owned(), first.1),
    ];
    let name = |number: u64| format!("planted-user-{number}");
    let mut root = connect(server.port, None);
    for number in 0..4 {
        let (user, password) = (name(number), secret(number, "password"));
        let mut make = doc! {"createUser": &user, "pwd": &password, "roles": ["root"]};
        make.insert(
            "mechanisms",
            ["SCRAM-SHA-1", "SCRAM-SHA-256"].map(str::to_owned).to_vec(),
        );
        admin(&root, make);
        root = connect(server.port, Some((&user, &password)));
        // The login that is proven by the password.
        let shown = admin(&root, doc! {"usersInfo": &user, "showCredentials": true});
        let shown = shown.get_array("users").unwrap()[0].as_document().unwrap();
        let stored = shown.get_document("credentials").unwrap();
        let kinds = ["digest", "salted password", "client key"];
        for (kind, bytes) in kinds.iter().zip(derived(&user, &password, stored)) {
            gone.push((format!("{kind} of {user}"), bytes));
        }
        gone.push((format!("password of {user}"), password.into_bytes()));
        let next = secret(number, "next password");
        admin(&root, doc! {"updateUser": &user, "pwd": &next});
        gone.push((format!("next password of {user}"), next.into_bytes()));
        root = connect(server.port, Some((&user, &secret(number, "next password"))));
    }
    for (number, long) in [(10, false), (11, true), (12, true)] {
        let password = secret(number, "refused");
        let message = create_user(&password, long);
        let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(server.port).unwrap()));
        send_slowly(stream.as_mut().unwrap(), &message);
        gone.push((format!("refused password {number}"), password.into_bytes()));
        let password = secret(number, "compressed");
        let message = create_user(&password, long);
        let message = wire::compress::compress(&message, wire::Compressor::Snappy).unwrap();
        send_slowly(stream.as_mut().unwrap(), &message);
        gone.push((
            format!("compressed password {number}"),
            password.into_bytes(),
        ));
    }
    admin(
        &root,
        doc! {"rotateMasterKey": 1, "encryptionKeyFile": &second.0},
    );
    // What must be found shows that the memory is read.
    let mut marks = gone.clone();
    marks.push(("a user".to_owned(), name(3).into_bytes()));
    marks.push(("the key in use".to_owned(), second.1));
    match found(server.child.id(), &marks) {
        Some(found) => assert_eq!(found, ["a user", "the key in use"]),
        None => stdx::skip::test("this process may not read the memory of its child"),
    }
}
