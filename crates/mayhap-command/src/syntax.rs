//! The syntax line of a command as a tree of arguments, for `COMMAND DOCS`.
//!
//! ```text
//! key error_rate capacity [EXPANSION expansion] [NONSCALING] ITEMS item [item ...]
//! └key┘└ numbers ───────┘ └ token, optional ──┘ └ token ───┘ └ token, multiple ──┘
//! ```
//!
//! * Words in capitals are tokens; a word behind a token is its value. Anything else is an argument, and its name says its type.
//! * `[…]` is optional. `[item ...]` behind `item` says that there may be many.
//! * `a|b` is a choice of two words; `[a x | b y]` one of all that stands between the strokes.

/// An argument, or some that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The word in front of it, or the word that it is.
    pub token: Option<String>,
    /// May it be left out?
    pub optional: bool,
    /// May there be many?
    pub multiple: bool,
    /// What a choice or a block is made of.
    pub arguments: Vec<Argument>,
}

/// What an argument is, in the words of `COMMAND DOCS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name of the keyspace.
    Key,
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Double,
    /// A word that stands for itself.
    PureToken,
    /// One of some.
    OneOf,
    /// Some, one behind the other.
    Block,
}

impl Kind {
    /// As `COMMAND DOCS` says it.
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

/// The token in front of items.
const ITEMS: &str = "ITEMS";

/// The arguments that `syntax` says.
#[must_use]
pub fn arguments(syntax: &str) -> Vec<Argument> {
    let spaced = syntax.replace('[', " [ ").replace(']', " ] ");
    sequence(&mut spaced.split_whitespace())
}

/// Up to the end, or to the bracket that closes.
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

/// A bracket that closed: more of what stands in front of it, or something that may be left out.
fn optional(inside: Vec<Argument>, now: &mut Vec<Argument>) {
    let many = inside.last().is_some_and(|last| last.multiple);
    if let (true, [first, ..], Some(before)) = (many, &inside[..], now.last_mut())
        && before.name == first.name
    {
        before.multiple = true;
        // RedisBloom has this token as an argument of its own.
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
        // The word behind a token is its value.
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

/// By its name.
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
    // One of several words that stand for themselves is called as in RedisBloom.
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

/// Some arguments as one.
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

    /// `name:kind`, a token in front, `?` for optional, `*` for many, parts in brackets.
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
    fn syntax_lines_become_trees() {
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
    fn every_command_has_a_tree_and_nothing_is_left_of_brackets() {
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
