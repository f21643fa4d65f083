//! Parses the syntax line of a command into a tree of arguments, for `COMMAND DOCS`.
//!
//! ```text
//! key error_rate capacity [EXPANSION expansion] [NONSCALING] ITEMS item [item ...]
//! └key┘└ numbers ───────┘ └ token, optional ──┘ └ token ───┘ └ token, multiple ──┘
//! ```
//!
//! * Words in capitals are tokens, and the word after a token is its value. Every other word is an argument; its name determines its
//!   type.
//! * `[…]` is optional. `[item ...]` after `item` means that it may be repeated.
//! * `a|b` is a choice between two words. `[a x | b y]` is a choice between the parts that `|` separates.

/// An argument, or a group of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The token before it, or the token that it is.
    pub token: Option<String>,
    /// May it be omitted?
    pub optional: bool,
    /// May it be repeated?
    pub multiple: bool,
    /// The parts of a choice or a block.
    pub arguments: Vec<Argument>,
}

/// The type of an argument, in the terms of `COMMAND DOCS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A key.
    Key,
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A number with a fraction.
    Double,
    /// A token without a value.
    PureToken,
    /// One of several arguments.
    OneOf,
    /// Several arguments in a row.
    Block,
}

impl Kind {
    /// The name that `COMMAND DOCS` uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// The token before items.
const ITEMS: &str = "ITEMS";

/// Parses `syntax` into arguments.
#[must_use]
pub fn arguments(syntax: &str) -> Vec<Argument> {
    let spaced = syntax.replace('[', " [ ").replace(']', " ] ");
    sequence(&mut spaced.split_whitespace())
}

/// Parses up to the end or to a closing bracket.
fn sequence<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<Argument> {
    let (mut choices, mut now) = (Vec::new(), Vec::<Argument>::new());
    while let Some(word) = words.next() {
        match word {
            "]" => break,
            "[" => optional(sequence(words), &mut now),
            "|" => choices.push(std::mem::take(&mut now)),
            "..." => {
                if let Some(last) = now.last_mut() {
                    last.multiple = true;
                }
            }
            word => value_or_token(word, &mut now),
        }
    }
    if choices.is_empty() {
        return now;
    }
    choices.push(now);
    vec![choice(choices.into_iter().filter_map(together).collect())]
}

/// Adds the content of a bracket: a repetition of the argument before it, or something optional.
fn optional(inside: Vec<Argument>, now: &mut Vec<Argument>) {
    let many = inside.last().is_some_and(|last| last.multiple);
    if let (true, [first, ..], Some(before)) = (many, &inside[..], now.last_mut())
        && before.name == first.name
    {
        before.multiple = true;
        // RedisBloom documents this token as a separate argument.
        if before.token.as_deref() == Some(ITEMS) {
            before.token = None;
            now.insert(now.len() - 1, single(ITEMS));
        }
        return;
    }
    if let Some(argument) = together(inside) {
        now.push(Argument { optional: true, ..argument });
    }
}

fn value_or_token(word: &str, now: &mut Vec<Argument>) {
    let argument = match word.split_once('|') {
        Some(_) => choice(word.split('|').map(single).collect()),
        None => single(word),
    };
    match now.last_mut() {
        // The word after a token is its value.
        Some(token)
            if token.kind == Kind::PureToken && argument.kind != Kind::PureToken && !token.optional =>
        {
            *token = Argument { token: token.token.take(), ..argument };
        }
        _ => now.push(argument),
    }
}

fn single(word: &str) -> Argument {
    let is_token = !word.chars().any(|letter| letter.is_ascii_lowercase());
    Argument {
        name: word.to_ascii_lowercase(),
        kind: if is_token { Kind::PureToken } else { kind_of(word) },
        token: is_token.then(|| word.to_owned()),
        optional: false,
        multiple: false,
        arguments: Vec::new(),
    }
}

/// The type of the argument with this name.
fn kind_of(name: &str) -> Kind {
    match name {
        "key" | "name" | "source" | "destination" | "newkey" | "newname" | "destkey" => Kind::Key,
        "capacity" | "expansion" | "bucketsize" | "maxiterations" | "iterator" | "count" | "cursor"
        | "offset" | "seconds" | "milliseconds" | "start" | "end" | "bit" | "n" | "index" => Kind::Integer,
        "error" | "error_rate" | "ratio" | "rate" | "fpr" => Kind::Double,
        _ => Kind::String,
    }
}

fn choice(arguments: Vec<Argument>) -> Argument {
    // A choice between pure tokens has the name that RedisBloom gives it.
    let are_words = arguments.iter().all(|argument| argument.kind == Kind::PureToken);
    Argument {
        name: if are_words { "single_value" } else { "choice" }.to_owned(),
        kind: Kind::OneOf,
        token: None,
        optional: false,
        multiple: false,
        arguments,
    }
}

/// Combines several arguments into one block.
fn together(mut arguments: Vec<Argument>) -> Option<Argument> {
    if arguments.len() <= 1 {
        return arguments.pop();
    }
    let name = format!("{}-block", arguments[0].name);
    Some(Argument { name, kind: Kind::Block, token: None, optional: false, multiple: false, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws arguments as `name:kind`, with the token before it, `?` for optional, `*` for repeated, and parts in brackets.
    fn drawn(arguments: &[Argument]) -> String {
        let draw = |argument: &Argument| {
            let token = argument.token.as_ref().map(|token| format!("{token} ")).unwrap_or_default();
            let parts = match argument.arguments.is_empty() {
                true => String::new(),
                false => format!("({})", drawn(&argument.arguments)),
            };
            let (optional, multiple) = (argument.optional, argument.multiple);
            let marks = format!("{}{}", if optional { "?" } else { "" }, if multiple { "*" } else { "" });
            format!("{token}{}:{}{parts}{marks}", argument.name, argument.kind.name())
        };
        arguments.iter().map(draw).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn syntax_lines_parse_into_trees() {
        for (syntax, tree) in [
            ("", ""),
            ("key item [item ...]", "key:key, item:string*"),
            (
                "key error_rate capacity [EXPANSION expansion] [NONSCALING]",
                "key:key, error_rate:double, capacity:integer, EXPANSION expansion:integer?, \
                 NONSCALING nonscaling:pure-token?",
            ),
            (
                "key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]",
                "key:key, CAPACITY capacity:integer?, NOCREATE nocreate:pure-token?, ITEMS items:pure-token, \
                 item:string*",
            ),
            (
                "key [CAPACITY|SIZE]",
                "key:key, single_value:oneof(CAPACITY capacity:pure-token, SIZE size:pure-token)?",
            ),
            (
                "key [EX seconds | PX milliseconds | KEEPTTL]",
                "key:key, choice:oneof(EX seconds:integer, PX milliseconds:integer, KEEPTTL keepttl:pure-token)?",
            ),
            (
                "[AUTH user password] [SETNAME label]",
                "user-block:block(AUTH user:string, password:string)?, SETNAME label:string?",
            ),
            ("[message]", "message:string?"),
        ] {
            let got = drawn(&arguments(syntax));
            assert_eq!(got, tree, "{syntax}");
        }
    }

    #[test]
    fn every_command_has_a_tree_without_leftover_brackets() {
        fn check(arguments: &[Argument]) {
            for argument in arguments {
                assert!(!argument.name.contains(['[', ']', '|', ' ']), "{argument:?}");
                assert!(!argument.name.is_empty() && argument.name != "...");
                check(&argument.arguments);
            }
        }
        for command in crate::table::all() {
            let tree = arguments(command.syntax);
            check(&tree);
            assert_eq!(tree.is_empty(), command.syntax.is_empty(), "{}", command.name);
        }
    }
}
