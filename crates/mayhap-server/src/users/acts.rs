//! Sets of commands: one bit per command and per subcommand.

use mayhap_command::server::Subcommand;
use mayhap_command::{Command, table};

use super::category;

/// A command, or one of its subcommands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Command(&'static Command),
    Subcommand(&'static Command, &'static Subcommand),
}

impl Act {
    /// The command or subcommand that these words of a request run.
    pub(crate) fn of(command: &'static Command, words: &[&[u8]]) -> Self {
        let word = words.get(1).copied().unwrap_or_default();
        match command.subcommand(word) {
            Some(row) => Self::Subcommand(command, row),
            None => Self::Command(command),
        }
    }

    /// Finds one by a name such as `config` or `config|get`.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        let mut parts = name.splitn(2, |byte| *byte == b'|');
        let command = table::find(parts.next()?)?;
        let Some(word) = parts.next() else { return Some(Self::Command(command)) };
        match Self::of(command, &[name, word]) {
            found @ Self::Subcommand(..) => Some(found),
            Self::Command(_) => None,
        }
    }

    /// The name in rules and refusals.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Command(command) => command.name.to_owned(),
            Self::Subcommand(command, row) => format!("{}|{}", command.name, row.name),
        }
    }
}

/// A set of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acts {
    commands: Vec<bool>,
    subcommands: Vec<bool>,
}

impl Acts {
    /// The set of all commands, or the empty set.
    pub(crate) fn all(yes: bool) -> Self {
        Self {
            commands: vec![yes; table::all().count()],
            subcommands: vec![yes; table::subcommands().count()],
        }
    }

    /// Whether all commands are in the set.
    pub(crate) fn is_all(&self) -> bool {
        self.commands.iter().chain(&self.subcommands).all(|yes| *yes)
    }

    pub(crate) fn has_command(&self, command: &'static Command) -> bool {
        table::number(command).and_then(|number| self.commands.get(number)).copied().unwrap_or(false)
    }

    pub(crate) fn has(&self, act: Act) -> bool {
        match act {
            Act::Command(command) => self.has_command(command),
            Act::Subcommand(_, row) => number(row).is_some_and(|number| self.subcommands[number]),
        }
    }

    /// Adds or removes a command, with all its subcommands.
    pub(crate) fn set(&mut self, act: Act, yes: bool) {
        match act {
            Act::Command(command) => {
                if let Some(place) = table::number(command).and_then(|number| self.commands.get_mut(number)) {
                    *place = yes;
                }
                for ((of, _), place) in table::subcommands().zip(&mut self.subcommands) {
                    if std::ptr::eq(of, command) {
                        *place = yes;
                    }
                }
            }
            Act::Subcommand(_, row) => {
                if let Some(number) = number(row) {
                    self.subcommands[number] = yes;
                }
            }
        }
    }

    /// Adds all commands that a category allows, or removes all commands in it.
    pub(crate) fn set_category(&mut self, category: &'static str, yes: bool) {
        for command in table::all() {
            let subcommands = command.traits.subcommands;
            for row in subcommands {
                if category::of_subcommand(command, row).any(|one| one == category) {
                    self.set(Act::Subcommand(command, row), yes);
                }
            }
            let is_in = category::of_command(command).any(|one| one == category);
            let kept_back = yes && !category::shown(command).any(|one| one == category);
            if is_in && !kept_back {
                match (!subcommands.is_empty(), table::number(command)) {
                    (true, Some(number)) => self.commands[number] = yes,
                    (true, None) => {}
                    (false, _) => self.set(Act::Command(command), yes),
                }
            }
        }
    }
}

fn number(row: &Subcommand) -> Option<usize> {
    table::subcommands().position(|(_, one)| std::ptr::eq(one, row))
}
