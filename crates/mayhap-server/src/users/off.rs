//! Commands that nobody may run, whoever he is.

use mayhap_command::{Command, Run, table};

use super::category;

/// Off unless they are enabled. `RESTORE` is not among them: what it loads passes the checks of every other filter that is loaded. `FLUSHALL`,
/// `KEYS`, `SHUTDOWN` and `CONFIG SET` are what programs and people expect to work; `disable` or a user's `-@dangerous` takes them away.
pub(crate) const UNLESS_ENABLED: [&str; 1] = ["debug"];

/// Commands that nobody may run.
#[derive(Clone, Debug)]
pub(crate) struct Off {
    /// By the number of the command.
    off: Vec<Option<&'static str>>,
    of_engine: bool,
}

const BY_DEFAULT: &str = "The server allows it with --enable.";
const BY_WORD: &str = "The server was told to --disable it.";

impl Off {
    /// What is off, given the names of commands and the categories, with their `@`, that are to be enabled and disabled.
    pub(crate) fn new(enable: &[String], disable: &[String]) -> Self {
        let why = |command: &'static Command| match () {
            () if disable.iter().any(|word| names(word, command)) => Some(BY_WORD),
            () if UNLESS_ENABLED.contains(&command.name)
                && !enable.iter().any(|word| names(word, command)) =>
            {
                Some(BY_DEFAULT)
            }
            () => None,
        };
        let off: Vec<Option<&'static str>> = table::all().map(why).collect();
        let of_engine =
            table::all().zip(&off).any(|(row, off)| off.is_some() && !matches!(row.run, Run::Server(_)));
        Self { off, of_engine }
    }

    /// Is any command off that the engine runs?
    pub(crate) const fn any_of_engine(&self) -> bool {
        self.of_engine
    }

    /// Why it is off, if it is.
    pub(crate) fn why(&self, command: &'static Command) -> Option<&'static str> {
        table::number(command).and_then(|number| self.off.get(number).copied()).flatten()
    }
}

/// Is it a command, or a category that can be turned off? Those a client needs to come in are not.
pub(crate) fn is_known(word: &str) -> bool {
    match word.strip_prefix('@') {
        Some(category) => {
            category::find(category.as_bytes()).is_some_and(|category| category != "connection")
        }
        None => table::find(word.as_bytes())
            .is_some_and(|command| !matches!(command.name, "auth" | "hello" | "quit" | "reset")),
    }
}

fn names(word: &str, command: &Command) -> bool {
    match word.strip_prefix('@') {
        Some(category) => {
            let for_strangers = matches!(command.name, "auth" | "hello" | "quit" | "reset");
            category::of_command(command).any(|one| one.eq_ignore_ascii_case(category)) && !for_strangers
        }
        None => command.name.eq_ignore_ascii_case(word),
    }
}
