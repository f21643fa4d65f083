//! Commands that are disabled for all users.

use mayhap_command::{Command, Run, table};

use super::category;

/// Commands that are disabled for all users.
#[derive(Clone, Debug)]
pub(crate) struct Off {
    /// The reason for each command, by its number.
    off: Vec<Option<&'static str>>,
    of_engine: bool,
}

const BY_DEFAULT: &str = "The server allows it with --enable.";
const BY_WORD: &str = "The server was told to --disable it.";

impl Off {
    /// Computes the disabled commands. `enable` and `disable` hold names of commands, and categories with
    /// their `@`.
    pub(crate) fn new(enable: &[String], disable: &[String]) -> Self {
        let why = |command: &'static Command| match () {
            () if disable.iter().any(|word| names(word, command)) => Some(BY_WORD),
            // `RESTORE` is not off: its payload passes the same checks as every other loaded filter. `FLUSHALL`,
            // `KEYS`, `SHUTDOWN` and `CONFIG SET` are not either, because programs and people expect them;
            // `disable` or `-@dangerous` for a user removes them.
            () if command.traits.off_by_default && !enable.iter().any(|word| names(word, command)) => {
                Some(BY_DEFAULT)
            }
            () => None,
        };
        let off: Vec<Option<&'static str>> = table::all().map(why).collect();
        let of_engine =
            table::all().zip(&off).any(|(row, off)| off.is_some() && !matches!(row.run, Run::Server(_)));
        Self { off, of_engine }
    }

    /// Whether a command of the engine is disabled.
    pub(crate) const fn any_of_engine(&self) -> bool {
        self.of_engine
    }

    /// The reason why a command is disabled, if it is.
    pub(crate) fn why(&self, command: &'static Command) -> Option<&'static str> {
        table::number(command).and_then(|number| self.off.get(number).copied()).flatten()
    }
}

/// Whether the word is a command or a category that can be disabled. Commands that clients need to
/// authenticate cannot.
pub(crate) fn is_known(word: &str) -> bool {
    match word.strip_prefix('@') {
        Some(category) => {
            category::find(category.as_bytes()).is_some_and(|category| category != "connection")
        }
        None => table::find(word.as_bytes()).is_some_and(|command| !command.traits.needs_no_authentication),
    }
}

fn names(word: &str, command: &Command) -> bool {
    match word.strip_prefix('@') {
        Some(category) => {
            category::of_command(command).any(|one| one.eq_ignore_ascii_case(category))
                && !command.traits.needs_no_authentication
        }
        None => command.name.eq_ignore_ascii_case(word),
    }
}
