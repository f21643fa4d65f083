//! `--color`: whether text for people is coloured.
//!
//! The flag is searched before the command line is parsed, so that it also applies to help and error texts.

use std::ffi::{OsStr, OsString};

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always, even in pipes and files and if NO_COLOR is set
    Always,
    /// Nowhere
    Never,
}

/// The global option `--color`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ColorArgs {
    /// Colour text for people: on a terminal without NO_COLOR, always, or never
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        hide_possible_values = true
    )]
    #[arg(help = "Use colours: auto (on a terminal, unless NO_COLOR is set), always, never [default: auto]")]
    #[arg(hide_default_value = true, display_order = 900)]
    color: When,
}

/// Applies the `--color` found in `arguments`. Invalid values are reported later, when the arguments are parsed.
pub(crate) fn choose(arguments: impl IntoIterator<Item = OsString>) {
    match asked(arguments) {
        None | Some(When::Auto) => {}
        Some(When::Always) => ColorChoice::Always.write_global(),
        Some(When::Never) => ColorChoice::Never.write_global(),
    }
}

/// The last valid `--color WHEN` or `--color=WHEN` among the options.
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
    fn the_last_color_option_counts() {
        let asked = |line: &str| asked(line.split(' ').map(OsString::from));
        assert_eq!(asked("mayhap plan"), None);
        assert_eq!(asked("mayhap --color always plan"), Some(When::Always));
        assert_eq!(asked("mayhap plan --color=never --color always"), Some(When::Always));
        assert_eq!(asked("mayhap plan --color=never --color purple"), Some(When::Never));
        assert_eq!(asked("mayhap check filter -- --color=never"), None);
        assert_eq!(asked("mayhap plan --color"), None);
    }
}
