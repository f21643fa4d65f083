//! One user: passwords and permissions.

use std::fmt;

use mayhap_command::traits::Touches;
use mayhap_command::{Request, Touch};
use mayhap_engine::glob;
use subtle::{Choice, ConstantTimeEq as _};

use super::acts::{Act, Acts};
use super::category;
use super::secret::{Password, Secret};

/// The user of connections before they authenticate.
pub const DEFAULT: &[u8] = b"default";

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    /// A unique id. A user that is deleted and created again has a new one.
    pub(crate) id: u64,
    name: Vec<u8>,
    on: bool,
    /// Whether any password is accepted.
    open: bool,
    secrets: Vec<Secret>,
    acts: Acts,
    /// The rules that led to `acts`.
    rules: Vec<String>,
    names: Vec<Pattern>,
    /// There are no channels here. Rules about them are kept for other servers that read the file.
    channels: Vec<Vec<u8>>,
    /// Whether everything is allowed.
    unlimited: bool,
}

/// A pattern of names, and the access it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    glob: Vec<u8>,
    read: bool,
    write: bool,
}

impl Pattern {
    fn is_everything(&self) -> bool {
        self.glob == b"*" && self.read && self.write
    }

    /// The pattern as a rule.
    fn rule(&self) -> Vec<u8> {
        let before: &[u8] = match (self.read, self.write) {
            (true, true) => b"~",
            (true, false) => b"%R~",
            _ => b"%W~",
        };
        [before, &self.glob].concat()
    }
}

/// A missing permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// For this command, with its subcommand after a `|`.
    Command(String),
    /// For this name.
    Name(Vec<u8>),
}

/// Why a rule is invalid. `Display` has Redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// The text is not a rule.
    Syntax,
    /// There is no such command, subcommand or category.
    Unknown,
    /// The text is not the hash of a password.
    Hash,
    /// There is no such password.
    NoSuchPassword,
    /// All names are allowed already.
    AllNames,
    /// All channels are allowed already.
    AllChannels,
    /// Selectors (rules in parentheses) are not supported.
    Selector,
}

impl RuleError {
    /// In Redis's words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Syntax => "Syntax error",
            Self::Unknown => "Unknown command or category name in ACL",
            Self::Hash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Self::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            Self::AllNames => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. \
                 Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Self::Selector => "Selectors are not offered",
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl User {
    /// A new user: off, without a password and without any permission.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        Self {
            id: 0,
            name: name.to_vec(),
            on: false,
            open: false,
            secrets: Vec::new(),
            acts: Acts::all(false),
            rules: vec!["-@all".to_owned()],
            names: Vec::new(),
            channels: Vec::new(),
            unlimited: false,
        }
    }

    /// The initial default user: may do everything, without a password.
    #[must_use]
    pub fn unrestricted() -> Self {
        let mut user = Self::new(DEFAULT);
        for rule in ["on", "nopass", "allkeys", "allchannels", "allcommands"] {
            // These rules are valid.
            let _ = user.apply(rule.as_bytes());
        }
        user
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The name as text.
    #[must_use]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Whether the user is enabled.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Whether clients can log in as this user without a password.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.on && self.open
    }

    /// Whether every command is allowed, on every name.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.unlimited
    }

    /// Whether `given` is one of the passwords. Takes the same time for every password, right or wrong.
    #[must_use]
    pub fn has_password(&self, given: &Secret) -> bool {
        self.secrets.iter().fold(Choice::from(0), |found, secret| found | secret.ct_eq(given)).into()
    }

    /// Sets the only password. `None`: any password is accepted.
    pub fn set_password(&mut self, password: Option<&Password>) {
        self.secrets = password.map(Password::secret).into_iter().collect();
        self.open = password.is_none();
    }

    /// Checks that the user may run this request.
    ///
    /// # Errors
    /// The first missing permission.
    pub fn may(&self, request: &Request<'_>) -> Result<(), Denied> {
        if self.unlimited {
            return Ok(());
        }
        let command = request.command;
        let act = Act::of(command, request.words);
        if !self.acts.has(act) {
            return Err(Denied::Command(act.name()));
        }
        if command.traits.touches == Touches::Everything && !self.has_all_names() {
            return Err(Denied::Name(b"*".to_vec()));
        }
        match request.touches().find(|(name, touch)| !self.may_touch(name, *touch)) {
            Some((name, _)) => Err(Denied::Name(name.to_vec())),
            None => Ok(()),
        }
    }

    /// Whether the user may access the name in this way. Reading and writing may be allowed by different
    /// rules.
    #[must_use]
    pub fn may_touch(&self, name: &[u8], touch: Touch) -> bool {
        let any = |wanted: fn(&Pattern) -> bool| {
            self.names.iter().any(|pattern| wanted(pattern) && glob::matches(&pattern.glob, name))
        };
        match touch {
            Touch::Notice => any(|_| true),
            Touch::Read => any(|pattern| pattern.read),
            Touch::Write => any(|pattern| pattern.write),
            Touch::ReadWrite => any(|pattern| pattern.read) && any(|pattern| pattern.write),
        }
    }

    /// Whether all names are allowed.
    #[must_use]
    pub fn has_all_names(&self) -> bool {
        self.names.iter().any(Pattern::is_everything)
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// The rule is invalid. Nothing was changed.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"on" => self.on = true,
            b"off" => self.on = false,
            b"nopass" => {
                self.open = true;
                self.secrets.clear();
            }
            b"resetpass" => {
                self.open = false;
                self.secrets.clear();
            }
            b"allkeys" => self.names = vec![Pattern { glob: b"*".to_vec(), read: true, write: true }],
            b"resetkeys" => self.names.clear(),
            b"allchannels" => self.channels = vec![b"*".to_vec()],
            b"resetchannels" => self.channels.clear(),
            b"allcommands" | b"+@all" => {
                self.acts = Acts::all(true);
                self.rules = vec!["+@all".to_owned()];
            }
            b"nocommands" | b"-@all" => {
                self.acts = Acts::all(false);
                self.rules = vec!["-@all".to_owned()];
            }
            // The payload of RESTORE is always fully checked.
            b"sanitize-payload" | b"skip-sanitize-payload" | b"clearselectors" => {}
            b"reset" => *self = Self { id: self.id, ..Self::new(&self.name) },
            _ => self.apply_marked(rule)?,
        }
        self.unlimited = self.acts.is_all() && self.has_all_names();
        Ok(())
    }

    /// Applies a rule that begins with a special character.
    fn apply_marked(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let (&mark, rest) = rule.split_first().ok_or(RuleError::Syntax)?;
        match mark {
            b'>' => self.add(Secret::of(rest)),
            b'#' => self.add(Secret::from_hex(rest).ok_or(RuleError::Hash)?),
            b'<' => self.take(&Secret::of(rest))?,
            b'!' => self.take(&Secret::from_hex(rest).ok_or(RuleError::Hash)?)?,
            b'~' => self.add_names(rest, true, true)?,
            b'%' => {
                let tilde = rest.iter().position(|byte| *byte == b'~').ok_or(RuleError::Syntax)?;
                let (marks, glob) = (&rest[..tilde], &rest[tilde + 1..]);
                let has = |mark: u8| marks.iter().any(|one| one.eq_ignore_ascii_case(&mark));
                let others = marks.iter().any(|one| !b"RrWw".contains(one));
                if marks.is_empty() || others {
                    return Err(RuleError::Syntax);
                }
                self.add_names(glob, has(b'R'), has(b'W'))?;
            }
            b'&' => {
                is_clean(rest)?;
                let all = self.channels.iter().any(|one| one == b"*");
                match rest {
                    b"*" => self.channels = vec![b"*".to_vec()],
                    _ if all => return Err(RuleError::AllChannels),
                    _ if self.channels.iter().any(|one| one == rest) => {}
                    _ => self.channels.push(rest.to_vec()),
                }
            }
            b'+' | b'-' => self.apply_commands(mark == b'+', rest)?,
            b'(' => return Err(RuleError::Selector),
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn add(&mut self, secret: Secret) {
        if !self.has_password(&secret) {
            self.secrets.push(secret);
        }
        self.open = false;
    }

    fn take(&mut self, secret: &Secret) -> Result<(), RuleError> {
        if !self.has_password(secret) {
            return Err(RuleError::NoSuchPassword);
        }
        self.secrets.retain(|one| one != secret);
        Ok(())
    }

    fn add_names(&mut self, glob: &[u8], read: bool, write: bool) -> Result<(), RuleError> {
        is_clean(glob)?;
        if self.has_all_names() {
            return match glob == b"*" && read && write {
                true => Ok(()),
                false => Err(RuleError::AllNames),
            };
        }
        let pattern = Pattern { glob: glob.to_vec(), read, write };
        if pattern.is_everything() {
            self.names.clear();
        }
        match self.names.iter_mut().find(|one| one.glob == glob) {
            Some(known) => {
                known.read |= read;
                known.write |= write;
            }
            None => self.names.push(pattern),
        }
        Ok(())
    }

    fn apply_commands(&mut self, yes: bool, what: &[u8]) -> Result<(), RuleError> {
        let sign = if yes { '+' } else { '-' };
        let rule = if let Some(name) = what.strip_prefix(b"@") {
            let category = category::find(name).ok_or(RuleError::Unknown)?;
            self.acts.set_category(category, yes);
            let rule = format!("{sign}@{category}");
            // After `-@read`, `+@read` does not restore everything: dump commands stay denied.
            self.forget_rules(|one| one[1..] == rule[1..] && (!yes || one == rule));
            rule
        } else {
            let act = Act::find(what).ok_or(RuleError::Unknown)?;
            self.acts.set(act, yes);
            let name = act.name();
            // A rule about a command overrides earlier rules about its subcommands.
            self.forget_rules(|one| {
                one[1..].strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
            });
            format!("{sign}{name}")
        };
        self.rules.push(rule);
        Ok(())
    }

    /// Removes rules that a later one overrides.
    fn forget_rules(&mut self, is_void: impl Fn(&str) -> bool) {
        self.rules.retain(|rule| !is_void(rule));
    }

    /// The flags, such as `on`, as in `ACL GETUSER`.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.on { "on" } else { "off" }];
        if self.open {
            flags.push("nopass");
        }
        flags
    }

    pub(crate) fn hashes(&self) -> impl Iterator<Item = String> {
        self.secrets.iter().map(|secret| secret.to_hex())
    }

    /// The rules about commands, as text.
    pub(crate) fn command_rules(&self) -> String {
        self.rules.join(" ")
    }

    /// The rules about names, as text.
    pub(crate) fn name_rules(&self) -> Vec<u8> {
        self.names.iter().map(Pattern::rule).collect::<Vec<_>>().join(&b' ')
    }

    /// The rules about channels, as text.
    pub(crate) fn channel_rules(&self) -> Vec<u8> {
        let rules = self.channels.iter().map(|channel| [b"&", channel.as_slice()].concat());
        rules.collect::<Vec<_>>().join(&b' ')
    }

    /// All rules that make this user, as they follow its name in a file of users.
    #[must_use]
    pub fn rules(&self) -> Vec<u8> {
        let mut rules: Vec<Vec<u8>> = self.flags().iter().map(|flag| flag.as_bytes().to_vec()).collect();
        rules.extend(self.hashes().map(|hash| format!("#{hash}").into_bytes()));
        rules.extend(self.names.iter().map(Pattern::rule));
        if self.channels != [b"*"] {
            rules.push(b"resetchannels".to_vec());
        }
        rules.extend(self.channels.iter().map(|channel| [b"&", channel.as_slice()].concat()));
        rules.extend(self.rules.iter().map(|rule| rule.clone().into_bytes()));
        rules.join(&b' ')
    }
}

/// Whether a rule can stand in a line of a file: it has no blanks.
fn is_clean(pattern: &[u8]) -> Result<(), RuleError> {
    match pattern.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        true => Err(RuleError::Syntax),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use mayhap_command::table;
    use proptest::prelude::*;

    use super::*;

    fn user(rules: &str) -> User {
        let mut user = User::new(b"ada");
        for rule in rules.split_whitespace() {
            user.apply(rule.as_bytes()).unwrap_or_else(|error| panic!("{rule}: {error}"));
        }
        user
    }

    fn may(user: &User, line: &str) -> Result<(), Denied> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        user.may(&Request { command: table::find(words[0]).unwrap(), words: &words })
    }

    fn command(name: &str) -> Result<(), Denied> {
        Err(Denied::Command(name.to_owned()))
    }

    fn name(name: &str) -> Result<(), Denied> {
        Err(Denied::Name(name.as_bytes().to_vec()))
    }

    #[test]
    fn rules_apply_to_commands_and_their_subcommands() {
        let ada = user("+@all -config +config|get -flushall ~*");
        assert_eq!(may(&ada, "CONFIG GET port"), Ok(()));
        assert_eq!(may(&ada, "CONFIG SET port 1"), command("config|set"));
        assert_eq!(may(&ada, "FLUSHALL"), command("flushall"));
        assert_eq!(may(&ada, "FLUSHDB"), Ok(()));
        assert_eq!(ada.command_rules(), "+@all -config +config|get -flushall");
        assert_eq!(user("+@all +config|get -config").command_rules(), "+@all -config");
        assert!(!ada.is_unlimited() && user("+@all ~*").is_unlimited());
        assert!(!user("+@all -ping ~*").is_unlimited() && !user("+@all ~a*").is_unlimited());
        let reader = user("+@read ~*");
        assert_eq!((may(&reader, "BF.EXISTS f x"), may(&reader, "BF.ADD f x")), (Ok(()), command("bf.add")));
        assert_eq!(may(&reader, "CONFIG GET port"), command("config|get"));
        let operator = user("+@admin");
        assert_eq!((may(&operator, "CONFIG GET x"), may(&operator, "SAVE")), (Ok(()), Ok(())));
        assert_eq!(may(&operator, "PING"), command("ping"));
        for dangerous in
            ["FLUSHALL", "KEYS *", "RESTORE a 0 b", "DEBUG SLEEP 0", "SHUTDOWN", "CONFIG SET a b", "ACL LIST"]
        {
            assert!(may(&user("+@all -@dangerous ~*"), dangerous).is_err(), "{dangerous}");
            assert_eq!(may(&user("+@all ~*"), dangerous), Ok(()), "{dangerous}");
        }
    }

    /// Dumps contain the key of the filter.
    #[test]
    fn dump_commands_need_their_own_permission() {
        let lines = ["DUMP f", "MF.DUMP f 0", "MF.EXPLAIN f x", "BF.SCANDUMP f 0", "CF.SCANDUMP f 0"];
        for line in lines {
            for without in [
                "+@read",
                "+@keyspace +@slow +@fast +@bloom +@cuckoo +@mayhap",
                "+@all -@dump",
                "+@all -@read",
                "+@all -@read +@read",
            ] {
                let user = user(&format!("~* {without}"));
                assert!(matches!(may(&user, line), Err(Denied::Command(_))), "{without}: {line}");
            }
            for with in [
                "+@all",
                "+@dump",
                "+dump +mf.dump +mf.explain +bf.scandump +cf.scandump",
                "+@all -@read +@dump",
            ] {
                assert_eq!(may(&user(&format!("~* {with}")), line), Ok(()), "{with}: {line}");
            }
        }
        let dumping: Vec<&str> = category::commands("dump").map(|command| command.name).collect();
        assert_eq!(dumping, ["bf.scandump", "cf.scandump", "mf.explain", "mf.dump", "dump"]);
        assert!(category::commands("read").all(|command| !dumping.contains(&command.name)));
    }

    /// In `COMMAND INFO`, in `ACL CAT` and in rules.
    #[test]
    fn categories_agree_everywhere() {
        for category in category::CATEGORIES {
            let user = user(&format!("~* +@{category}"));
            for command in table::all() {
                let shown = category::shown(command).any(|one| one == category);
                let listed = category::commands(category).any(|one| one.name == command.name);
                assert_eq!(listed, shown, "ACL CAT {category}: {}", command.name);
                assert_eq!(user.acts.has_command(command), shown, "+@{category}: {}", command.name);
            }
        }
        let dump = table::find(b"dump").unwrap();
        assert_eq!(category::shown(dump).collect::<Vec<_>>(), ["dump"]);
    }

    #[test]
    fn reading_and_writing_names_have_separate_rules() {
        let ada = user("+@all ~both:* %R~in:* %W~out:*");
        assert_eq!(may(&ada, "COPY in:a out:b"), Ok(()));
        assert_eq!(may(&ada, "COPY out:b in:a"), name("out:b"));
        assert_eq!(may(&ada, "COPY in:a in:b"), name("in:b"));
        assert_eq!(may(&ada, "RENAME in:a out:b"), name("in:a"));
        assert_eq!(may(&ada, "RENAME both:a out:b"), Ok(()));
        assert_eq!(may(&ada, "BITOP OR out:a in:a both:a"), Ok(()));
        assert_eq!(may(&ada, "BITOP OR out:a in:a out:b"), name("out:b"));
        assert_eq!(may(&ada, "MF.MERGE out:a in:a in:b"), Ok(()));
        assert_eq!(may(&ada, "MF.MERGE in:a in:b"), name("in:a"));
        assert_eq!(may(&ada, "EXISTS in:a out:b both:c"), Ok(()));
        assert_eq!(may(&ada, "EXISTS in:a other"), name("other"));
        assert_eq!(may(&ada, "BF.ADD in:f x"), name("in:f"));
        assert_eq!(may(&ada, "BF.EXISTS out:f x"), name("out:f"));
        // Reading may be allowed by one rule and writing by another.
        let two = user("+@all %R~a %W~a");
        assert_eq!(may(&two, "SETBIT a 1 1"), Ok(()));
        assert_eq!(two.name_rules(), b"~a");
        // The command concerns all names.
        assert_eq!(may(&ada, "FLUSHALL"), name("*"));
        assert_eq!(may(&user("+@all %R~* %W~*"), "FLUSHDB"), Ok(()));
    }

    /// Every command with names refuses a name that the user may not access, at every position.
    #[test]
    fn no_command_touches_a_denied_name() {
        let ada = user("+@all ~mine:*");
        let mut tried = 0;
        for row in table::all().filter(|row| row.names.first > 0) {
            let least = match row.arity {
                mayhap_command::Arity::Exactly(words) | mayhap_command::Arity::AtLeast(words) => words,
            };
            let most = match row.arity {
                mayhap_command::Arity::Exactly(words) => words,
                mayhap_command::Arity::AtLeast(words) => words + 4,
            };
            for count in least.max(row.names.first + 1)..=most {
                let positions: Vec<usize> = row.names.positions(count).collect();
                assert!(!positions.is_empty(), "{}", row.name);
                let mut words: Vec<&[u8]> = vec![b"mine:x"; count];
                words[0] = row.name.as_bytes();
                assert_eq!(ada.may(&Request { command: row, words: &words }), Ok(()), "{}", row.name);
                for at in positions {
                    let mut words = words.clone();
                    words[at] = b"yours:x";
                    let request = Request { command: row, words: &words };
                    assert_eq!(ada.may(&request), name("yours:x"), "{} {at}", row.name);
                    tried += 1;
                }
            }
        }
        assert!(tried > 200, "{tried}");
    }

    #[test]
    fn passwords_are_added_and_removed() {
        let mut ada = user("on >one >two >one");
        assert_eq!(ada.hashes().count(), 2);
        assert!(ada.has_password(&Secret::of(b"one")) && ada.has_password(&Secret::of(b"two")));
        assert!(!ada.has_password(&Secret::of(b"three")) && !ada.is_open());
        assert_eq!(ada.apply(b"<three"), Err(RuleError::NoSuchPassword));
        ada.apply(b"<one").unwrap();
        assert!(!ada.has_password(&Secret::of(b"one")) && ada.has_password(&Secret::of(b"two")));
        ada.apply(b"nopass").unwrap();
        assert!(ada.is_open() && ada.hashes().count() == 0);
        ada.apply(b">three").unwrap();
        assert!(!ada.is_open());
        ada.apply(b"off").unwrap();
        ada.apply(b"reset").unwrap();
        assert_eq!(ada.rules(), b"off resetchannels -@all");
    }

    #[test]
    fn an_invalid_rule_changes_nothing() {
        for (rule, error) in [
            ("", RuleError::Syntax),
            ("yes", RuleError::Syntax),
            ("%X~a", RuleError::Syntax),
            ("%~a", RuleError::Syntax),
            ("%R", RuleError::Syntax),
            ("~a b", RuleError::Syntax),
            ("~a\n", RuleError::Syntax),
            ("+@nosuch", RuleError::Unknown),
            ("+nosuch", RuleError::Unknown),
            ("+config|nosuch", RuleError::Unknown),
            ("+get|x", RuleError::Unknown),
            ("#abc", RuleError::Hash),
            ("(+get ~a)", RuleError::Selector),
        ] {
            let mut ada = user("on >secret ~a +get");
            let before = ada.rules();
            assert_eq!(ada.apply(rule.as_bytes()), Err(error), "{rule:?}");
            assert_eq!(ada.rules(), before);
        }
        assert_eq!(user("~*").clone().apply(b"~a"), Err(RuleError::AllNames));
    }

    proptest! {
        /// The rules in a file of users make the same user again.
        #[test]
        fn rules_make_the_same_user_again(picks in proptest::collection::vec(0_usize..34, 0..24)) {
            const RULES: [&str; 34] = [
                "on", "off", ">pw", ">other", "nopass", "resetpass", "~a:*", "%R~b:*", "%W~b:*", "%RW~c", "resetkeys", "allkeys",
                "&x", "resetchannels", "allchannels", "+@all", "-@all", "+@read", "-@read", "+@write", "-@write", "+@dump",
                "-@dump", "+@admin", "-@dangerous", "+@keyspace", "-@keyspace", "+config", "-config", "+config|get",
                "-config|get", "+dump", "-dump", "+client|list",
            ];
            let mut ada = User::new(b"ada");
            for pick in picks {
                // Some rules exclude each other.
                let _ = ada.apply(RULES[pick].as_bytes());
            }
            let mut again = User::new(b"ada");
            for rule in ada.rules().split(|byte| *byte == b' ') {
                again.apply(rule).unwrap();
            }
            prop_assert_eq!(again.rules(), ada.rules());
            prop_assert_eq!(again.acts.clone(), ada.acts.clone());
            prop_assert_eq!((again.unlimited, again.open, again.on), (ada.unlimited, ada.open, ada.on));
        }
    }
}
