//! The guides are followed as they stand. Of those to backups and to encryption, every block of
//! commands, of settings and of units is used, in the order of the page. Paths of the machine
//! become paths in the directory of the test, and the port that of its server.

mod back_up;
mod encrypt;
mod own_workload;

use std::fs;
use std::path::Path;

use mongodb::bson::Document;
use rustix::process::{Pid, Signal, kill_process};

use crate::backup::client;
use crate::program::{Place, Ran, finish};
use crate::servers::Foreign;

/// The directories that the guides use.
const DIRECTORIES: [&str; 3] = ["/var/lib", "/etc/romanesco", "/backup"];
const ADDRESS: &str = "mongodb://127.0.0.1:27017";

/// A page, whose blocks are used one after another.
struct Guide {
    place: Place,
    /// Language and text of each block that is left.
    blocks: Vec<(String, String)>,
    server: Option<Foreign>,
}

/// The fenced blocks of a page, with their languages.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (None, Some((_, text))) => text.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "every block ends");
    blocks
}

impl Guide {
    fn new(page: &str) -> Guide {
        let place = Place::new();
        for directory in DIRECTORIES {
            fs::create_dir_all(place.path(&directory[1..])).unwrap();
        }
        let blocks = blocks(page);
        Guide {
            place,
            blocks,
            server: None,
        }
    }

    /// The next block of the page, which has this language.
    #[track_caller]
    fn next(&mut self, language: &str) -> String {
        assert!(
            !self.blocks.is_empty(),
            "the page has another {language} block"
        );
        let (found, text) = self.blocks.remove(0);
        assert_eq!(found, language, "the next block is:\n{text}");
        self.here(&text)
    }

    /// What a block says for the directory of the test.
    fn here(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for directory in DIRECTORIES {
            let here = self.path(directory);
            text = text.replace(directory, here.to_str().unwrap());
        }
        match &self.server {
            Some(server) => text.replace(ADDRESS, &crate::backup::uri(server)),
            None => text,
        }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.place.path(path.trim_start_matches('/'))
    }

    /// The names in a directory of the page.
    fn names(&self, directory: &str) -> Vec<String> {
        self.place.names(directory.trim_start_matches('/'))
    }

    /// Run commands as a shell does, and end at the first one that fails.
    fn shell(&self, text: &str) -> Ran {
        let program = Path::new(env!("CARGO_BIN_EXE_romanesco")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = self.place.outside("sh");
        command.args(["-euc", text]);
        command.env("PATH", format!("{}:{path}", program.display()));
        finish(command)
    }

    /// Start a server with the arguments of the last line of a block, on a port of its own.
    fn serve(&mut self, text: &str) {
        let line = text.lines().last().unwrap();
        let arguments = line
            .strip_prefix("romanesco serve ")
            .expect("it starts a server");
        self.stop();
        // A log of a server before has its port.
        let _ = fs::remove_file(self.place.path("server.log"));
        let mut command = self.place.outside(env!("CARGO_BIN_EXE_romanesco"));
        command.arg("serve").args(arguments.split_whitespace());
        let own = "--port 0 --logpath server.log --cacheSizeGB 0.0625";
        command.args(own.split_whitespace());
        self.server = Some(Foreign::listening(&self.place, command));
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
            assert!(server.child.wait().unwrap().success());
        }
    }

    fn port(&self) -> u64 {
        self.server.as_ref().expect("a server runs").port
    }

    /// Run a command document on the server.
    fn command(&self, command: Document) -> mongodb::error::Result<Document> {
        client(self.port())
            .database("admin")
            .run_command(command)
            .run()
    }

    /// All of the page was used.
    fn ends(self) {
        assert_eq!(self.blocks, [], "blocks that no test uses");
    }
}

/// The documents in a block of Python or JavaScript: each outermost pair of braces.
fn documents(text: &str) -> Vec<Document> {
    let (mut depth, mut found) = (0, Vec::<String>::new());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if depth == 0 && c == '{' {
            found.push(String::new());
        }
        depth += i32::from(c == '{');
        let Some(json) = found.last_mut().filter(|_| 0 < depth) else {
            continue;
        };
        depth -= i32::from(c == '}');
        let mut word = String::from(c);
        match c {
            '\'' | '"' => {
                let inside: String = rest.by_ref().take_while(|next| *next != c).collect();
                json.push_str(&format!("{inside:?}"));
            }
            c if c.is_ascii_alphanumeric() => {
                while let Some(next) = rest.next_if(|n| n.is_ascii_alphanumeric() || *n == '_') {
                    word.push(next);
                }
                let literal = c.is_ascii_digit() || ["true", "false"].contains(&&*word);
                match literal {
                    true => json.push_str(&word.replace('_', "")),
                    false => json.push_str(&format!("{word:?}")),
                }
            }
            _ => json.push(c),
        }
    }
    let parse =
        |json: &String| serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"));
    found.iter().map(parse).collect()
}

#[test]
fn commands_of_both_languages_are_read() {
    let text = "client.run({\"a\": 1, \"b\": 100_000})\ndb.run({ c: true, d: 'x y', e: { f: 2 } })";
    let found: Vec<String> = documents(text).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "{ \"a\": 1, \"b\": 100000 }",
            "{ \"c\": true, \"d\": \"x y\", \"e\": { \"f\": 2 } }"
        ]
    );
}
