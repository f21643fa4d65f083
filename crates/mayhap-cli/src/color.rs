//! `--color`: whether what people read is coloured.
//!
//! Looked for before anything else is read of the command line, so that help and error keep to it, too.

use std::ffi::{OsStr, OsString};

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless the variable NO_COLOR is set
    #[default]
    Auto,
    /// Also in pipes and files, and whatever NO_COLOR says
    Always,
    /// Nowhere
    Never,
}

/// For every verb.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ColorArgs {
    /// Colour what people read: on a terminal that has not NO_COLOR set, always, or never
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        hide_possible_values = true
    )]
    #[arg(help = "Colours: auto (on a terminal, unless NO_COLOR is set), always, never")]
    #[arg(hide_default_value = true, display_order = 900)]
    color: When,
}

/// Colours from here on as `arguments` ask for. What is wrong with them is told when they are read.
pub(crate) fn choose(arguments: impl IntoIterator<Item = OsString>) {
    match asked(arguments) {
        None | Some(When::Auto) => {}
        Some(When::Always) => ColorChoice::Always.write_global(),
        Some(When::Never) => ColorChoice::Never.write_global(),
    }
}

/// The last `--color WHEN` or `--color=WHEN` that is an option.
fn asked(arguments: impl IntoIterator<Item = OsString>) -> Option<When> {
    let mut asked = None;
    let mut arguments = arguments.into_iter().skip(1).take_while(|argument| argument != "--");
    let when = |text: &OsStr| When::from_str(text.to_str()?, false).ok();
    while let Some(argument) = arguments.next() {
        asked = if argument == "--color" {
            arguments.next().and_then(|text| when(&text)).or(asked)
        } else {
            let text = argument.to_str().and_then(|text| text.strip_prefix("--color="));
            text.and_then(|text| when(OsStr::new(text))).or(asked)
        };
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_counts_and_only_as_an_option() {
        let asked = |line: &str| asked(line.split(' ').map(OsString::from));
        assert_eq!(asked("mayhap plan"), None);
        assert_eq!(asked("mayhap --color always plan"), Some(When::Always));
        assert_eq!(asked("mayhap plan --color=never --color always"), Some(When::Always));
        assert_eq!(asked("mayhap plan --color=never --color purple"), Some(When::Never));
        assert_eq!(asked("mayhap check filter -- --color=never"), None);
        assert_eq!(asked("mayhap plan --color"), None);
    }
}
