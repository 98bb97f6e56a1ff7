//! `romanesco lab map`.

use std::env;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

use lab::targets;
use lab_map::map::{self, Ink};
use lab_report::{Error, Result};

#[derive(clap::Args)]
#[command(
    after_help = "Example: romanesco lab map /var/lib/mysql/shop/orders.ibd --html orders.html\n\n\
Files are only read, never opened by their engine, locked or written. Each cell is a page; its \
height shows how full the page is."
)]
pub(crate) struct Args {
    /// Store directory, data file, InnoDB tablespace (.ibd), or the address of a server on this
    /// machine (mongodb://HOST:PORT, mysql://USER@HOST)
    #[arg(value_name = "PATH|URI")]
    place: PathBuf,
    /// File of the master key of an encrypted store
    #[arg(long = "encryptionKeyFile", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Also write the map as an HTML page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Use colours even if the output is not a terminal
    #[arg(long, conflicts_with_all = ["plain", "json"])]
    ansi: bool,
    /// Use ASCII characters only
    #[arg(long, conflicts_with = "json")]
    plain: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let map = map::read(&args.path()?, args.key_file.as_deref())?;
    if let Some(path) = &args.html {
        let page = map::page(&map);
        vfs::write_atomic(path, page.as_bytes()).map_err(|e| Error::io("write", path, &e))?;
    }
    if args.json {
        let text = serde_json::to_string(&map).map_err(|e| Error::environment(e.to_string()))?;
        say!("{text}");
    } else if args.html.is_none() || args.ansi || args.plain {
        say!("{}", map::text(&map, args.ink()).trim_end());
    } else if let Some(path) = &args.html {
        say!("{}", path.display());
    }
    Ok(0)
}

impl Args {
    /// The path of the store's files.
    fn path(&self) -> Result<PathBuf> {
        match self.place.to_str().filter(|text| text.contains("://")) {
            Some(uri) => targets::directory(uri),
            None => Ok(self.place.clone()),
        }
    }

    /// How to draw: with colours on a terminal that supports them, unless the user disabled them
    /// (`NO_COLOR`).
    fn ink(&self) -> Ink {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var("TERM").is_ok_and(|term| term == "dumb");
        let bare = set("NO_COLOR") || dumb || !stdout().is_terminal();
        if self.plain || (bare && !self.ansi) {
            return Ink::Plain;
        }
        let deep = env::var("COLORTERM").is_ok_and(|v| v == "truecolor" || v == "24bit");
        if deep { Ink::TrueColour } else { Ink::Colours }
    }
}
