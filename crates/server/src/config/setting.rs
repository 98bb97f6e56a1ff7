//! What a setting is: its name in the file, the flags that set it, its default and its effect.
//!
//! One table of settings ([`all`](super::all)) makes the command line, the configuration file and
//! the page about both.

use super::server::Config;
use super::value::{boolean, within};

/// Applies a value to the configuration.
pub(super) type Set = fn(&mut Config, &str) -> Result<(), String>;

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the file, with dots.
    pub name: &'static str,
    /// What it sets, without the default: the help of its flags.
    pub about: &'static str,
    /// Its default as text, empty where it has none.
    pub default: &'static str,
    /// The flags that set it.
    pub flags: &'static [Flag],
    pub(super) effect: Effect,
}

/// A flag of the command line that sets a setting.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without `--`.
    pub long: &'static str,
    /// Another name, which `--help` does not list.
    pub alias: Option<&'static str>,
    /// What follows it.
    pub takes: Takes,
    /// Its help, where that of the setting does not fit.
    pub about: Option<&'static str>,
}

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A value, shown as this word.
    Value(&'static str),
    /// Nothing: the flag sets this value.
    Nothing(&'static str),
}

/// What a setting does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effect {
    /// It changes the server.
    Used(Set),
    /// It is accepted, checked and does nothing, for this reason.
    Idle(Form, &'static str),
    /// Only values that ask for nothing are accepted, for this reason.
    Refused(Form, &'static str),
}

/// The values a setting without effect can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A switch; `false` asks for nothing.
    Switch,
    /// A switch; `true` asks for nothing.
    On,
    /// A number.
    Number,
    /// Any text.
    Text,
}

/// How a setting is treated, for the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It changes the server.
    Used,
    /// It does nothing, for this reason.
    Ignored(&'static str),
    /// The server does not start with it, for this reason.
    Refused(&'static str),
}

impl Setting {
    pub(super) const fn used(name: &'static str, about: &'static str, set: Set) -> Setting {
        Setting::new(name, about, Effect::Used(set))
    }

    pub(super) const fn idle(name: &'static str, form: Form, why: &'static str) -> Setting {
        Setting::new(name, why, Effect::Idle(form, why))
    }

    pub(super) const fn refused(name: &'static str, form: Form, why: &'static str) -> Setting {
        Setting::new(name, why, Effect::Refused(form, why))
    }

    const fn new(name: &'static str, about: &'static str, effect: Effect) -> Setting {
        Setting {
            name,
            about,
            default: "",
            flags: &[],
            effect,
        }
    }

    pub(super) const fn default(mut self, default: &'static str) -> Setting {
        self.default = default;
        self
    }

    pub(super) const fn flags(mut self, flags: &'static [Flag]) -> Setting {
        self.flags = flags;
        self
    }

    /// How it is treated.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.effect {
            Effect::Used(_) => Standing::Used,
            Effect::Idle(_, why) => Standing::Ignored(why),
            Effect::Refused(_, why) => Standing::Refused(why),
        }
    }

    /// Apply a value.
    ///
    /// # Errors
    /// A value that it cannot have, or that asks for what is not supported.
    pub(super) fn apply(&self, config: &mut Config, value: &str) -> Result<(), String> {
        match self.effect {
            Effect::Used(set) => set(config, value),
            Effect::Idle(form, why) => {
                if form.asks(value)? {
                    config.does_nothing(self.name, why);
                }
                Ok(())
            }
            Effect::Refused(form, why) => match form.asks(value)? {
                true => Err(why.to_owned()),
                false => Ok(()),
            },
        }
    }
}

impl Flag {
    pub(super) const fn value(long: &'static str, word: &'static str) -> Flag {
        Flag::new(long, Takes::Value(word))
    }

    pub(super) const fn switch(long: &'static str, sets: &'static str) -> Flag {
        Flag::new(long, Takes::Nothing(sets))
    }

    const fn new(long: &'static str, takes: Takes) -> Flag {
        Flag {
            long,
            alias: None,
            takes,
            about: None,
        }
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Flag {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn about(mut self, about: &'static str) -> Flag {
        self.about = Some(about);
        self
    }
}

impl Form {
    /// Whether a value asks for something.
    ///
    /// # Errors
    /// A value of another form.
    fn asks(self, value: &str) -> Result<bool, String> {
        match self {
            Form::Switch => boolean(value),
            Form::On => boolean(value).map(|on| !on),
            Form::Number => within(value, 0.0, f64::MAX).map(|_| true),
            Form::Text => Ok(true),
        }
    }
}
