//! The commands and their flags as data, from which other interfaces are made.

use crate::arguments::command;
use clap::{Arg, ArgAction, Command};

/// A command that computes, such as `fit ridge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The words after `mercer`.
    pub path: Vec<String>,
    /// One line of help.
    pub about: String,
    /// All that `mercer help` says below the flags.
    pub more: String,
    /// The flags.
    pub flags: Vec<Flag>,
}

/// A flag or positional argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The name without dashes, such as `test-labels`.
    pub name: String,
    /// What stands before its value: `--test-labels`; nothing for a positional argument.
    pub dashed: Option<String>,
    /// One line of help.
    pub help: String,
    /// The name of its value, such as `FILE[:KEY]`; none for a switch.
    pub value: Option<String>,
    /// Whether a value may be left out: `--flag` alone means something.
    pub optional_value: bool,
    /// The character between several values, if a value is a list.
    pub delimiter: Option<char>,
    /// Whether the flag may be repeated.
    pub repeated: bool,
    /// Whether the flag must be given.
    pub required: bool,
    /// The defaults, as texts.
    pub defaults: Vec<String>,
    /// All possible values, if they are few.
    pub choices: Vec<Choice>,
}

/// A possible value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// As it is written.
    pub name: String,
    /// What it means.
    pub help: String,
}

/// All commands that have no subcommands, in the order of the help.
///
/// ```
/// let commands = mercer_cli::describe();
/// let ridge = commands.iter().find(|command| command.path == ["fit", "ridge"]).unwrap();
/// assert!(ridge.flags.iter().any(|flag| flag.name == "penalty"));
/// ```
pub fn describe() -> Vec<Described> {
    let mut root = command();
    root.build();
    let mut found = Vec::new();
    collect(&root, &mut Vec::new(), &mut found);
    found
}

fn collect(command: &Command, path: &mut Vec<String>, found: &mut Vec<Described>) {
    let own = |command: &&Command| command.get_name() != "help";
    if !path.is_empty() && command.get_subcommands().filter(own).count() == 0 {
        found.push(described(command, path.clone()));
    }
    for sub in command.get_subcommands().filter(own) {
        path.push(sub.get_name().to_owned());
        collect(sub, path, found);
        path.pop();
    }
}

fn described(command: &Command, path: Vec<String>) -> Described {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let is_help = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
    Described {
        about: text(command.get_about()),
        more: text(command.get_after_long_help().or(command.get_after_help())),
        flags: command.get_arguments().filter(|arg| !is_help(arg)).map(flag).collect(),
        path,
    }
}

fn flag(arg: &Arg) -> Flag {
    let takes = arg.get_action().takes_values();
    let names = arg.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let name = arg.get_long().map_or_else(|| arg.get_id().to_string(), str::to_owned);
    let choice = |value: &clap::builder::PossibleValue| Choice {
        name: value.get_name().to_owned(),
        help: value.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    let many = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
    Flag {
        dashed: arg.get_long().map(|long| format!("--{long}")),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        value: takes.then(|| names.unwrap_or_else(|| name.to_uppercase())),
        optional_value: takes && arg.get_num_args().is_some_and(|count| count.min_values() == 0),
        delimiter: arg.get_value_delimiter().filter(|_| takes),
        repeated: takes && (many || matches!(arg.get_action(), ArgAction::Append)),
        required: arg.is_required_set(),
        defaults: arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect(),
        choices: if takes { arg.get_possible_values().iter().map(choice).collect() } else { Vec::new() },
        name,
    }
}
