//! The command line of `romanesco serve`. Its flags come from the table of settings: each sets a
//! setting of the configuration file and overrides it.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use server::{Config, Setting, Standing, Takes};

/// Identifiers of the flags that set no single setting.
const CONFIG: &str = "config";
const ENGINE_OPTION: &str = "engineOption";
const SET_PARAMETER: &str = "setParameter";
const SHUTDOWN: &str = "shutdown";
const SUPERVISED: &str = "supervised";
const VERBOSE: &str = "verbose";

/// The most that `-v` can be repeated.
const MOST_VERBOSE: u8 = 5;

/// The part of `--help` after the flags.
const AFTER: &str = "Exit codes: 0 clean shutdown, 1 another error, 2 invalid configuration or \
command line, 48 an address cannot be listened on, 100 the data cannot be opened.

Example: romanesco serve --dbpath /var/lib/romanesco --storageEngine betree --port 27017";

/// What the command line says.
pub(crate) struct Args {
    config: Option<PathBuf>,
    /// Names of settings and values, in the order of the table.
    given: Vec<(&'static str, String)>,
    engine_options: Vec<String>,
    parameters: Vec<String>,
    verbose: u8,
    /// End the server of the data directory instead of starting one.
    pub(super) shutdown: bool,
    /// Start after a line on standard input, and end when the parent process ends.
    pub(super) supervised: bool,
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let path = clap::value_parser!(PathBuf);
        let own = Arg::new(CONFIG).short('f').long(CONFIG).value_name("FILE");
        let own = own.value_parser(path);
        let pairs = |id: &'static str, help: &'static str| {
            let pair = Arg::new(id).long(id).value_name("NAME=VALUE").help(help);
            pair.action(ArgAction::Append)
        };
        let verbose = Arg::new(VERBOSE).short('v').long(VERBOSE);
        let verbose = verbose.action(ArgAction::Count);
        let shutdown = Arg::new(SHUTDOWN).long(SHUTDOWN);
        let shutdown = shutdown.action(ArgAction::SetTrue);
        let supervised = Arg::new(SUPERVISED).long(SUPERVISED);
        let supervised = supervised.action(ArgAction::SetTrue).hide(true);
        command
            .version(crate::VERSION)
            .arg(own.help("Read settings from this YAML file (mongod's format)"))
            .args(server::settings().flat_map(flags))
            .arg(pairs(
                ENGINE_OPTION,
                "Set a storage engine option; can be repeated",
            ))
            .arg(pairs(
                SET_PARAMETER,
                "Set a server parameter; can be repeated",
            ))
            .arg(verbose.help("Log more; can be repeated up to five times"))
            .arg(shutdown.help("End the server that uses the data directory"))
            .arg(supervised)
            .after_help(AFTER)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}

/// The flags of a setting. Those that do nothing are not listed by `--help`.
fn flags(setting: &'static Setting) -> impl Iterator<Item = Arg> {
    setting.flags.iter().map(|flag| {
        let mut help = flag.about.unwrap_or(setting.about).to_owned();
        let takes_value = matches!(flag.takes, Takes::Value(_));
        if takes_value && !setting.default.is_empty() {
            help.push_str(&format!(" [default: {}]", setting.default));
        }
        let arg = Arg::new(flag.long).long(flag.long).help(help);
        let arg = arg.hide(setting.standing() != Standing::Used);
        let arg = match flag.takes {
            Takes::Value(word) => arg.value_name(word).action(ArgAction::Set),
            Takes::Nothing(_) => arg.action(ArgAction::SetTrue),
        };
        // A name of the set makes no sense for a server without one.
        let arg = match flag.long {
            "replSet" => arg.conflicts_with("standalone"),
            _ => arg,
        };
        match flag.alias {
            Some(alias) => arg.alias(alias),
            None => arg,
        }
    })
}

impl clap::FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        let list = |id: &str| {
            let values = matches.get_many::<String>(id);
            values.into_iter().flatten().cloned().collect()
        };
        let mut given = Vec::new();
        for setting in server::settings() {
            for flag in setting.flags {
                let value = match flag.takes {
                    Takes::Value(_) => matches.get_one::<String>(flag.long).cloned(),
                    Takes::Nothing(sets) => matches.get_flag(flag.long).then(|| sets.to_owned()),
                };
                given.extend(value.map(|value| (setting.name, value)));
            }
        }
        Ok(Args {
            config: matches.get_one::<PathBuf>(CONFIG).cloned(),
            given,
            engine_options: list(ENGINE_OPTION),
            parameters: list(SET_PARAMETER),
            verbose: matches.get_count(VERBOSE),
            shutdown: matches.get_flag(SHUTDOWN),
            supervised: matches.get_flag(SUPERVISED),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args {
    /// The settings of the file and of the command line, and every error in them.
    pub(super) fn config(&self) -> (Config, Vec<String>) {
        let mut config = Config {
            arguments: std::env::args().collect(),
            commit: env!("ROMANESCO_COMMIT"),
            ..Config::default()
        };
        let mut errors = Vec::new();
        if let Some(path) = &self.config {
            errors.extend(config.read(path).err().into_iter().flatten());
        }
        for (name, value) in &self.given {
            errors.extend(config.set(name, value).err());
        }
        if 0 < self.verbose {
            let level = self.verbose.min(MOST_VERBOSE).to_string();
            errors.extend(config.set("systemLog.verbosity", &level).err());
        }
        for (prefix, pairs) in [
            ("setParameter", &self.parameters),
            ("storage.engineOptions", &self.engine_options),
        ] {
            for pair in pairs {
                let set = match pair.split_once('=') {
                    Some((name, value)) => config.set(&format!("{prefix}.{name}"), value),
                    None => Err(format!("{prefix}: {pair:?} is not of the form NAME=VALUE")),
                };
                errors.extend(set.err());
            }
        }
        (config, errors)
    }
}
