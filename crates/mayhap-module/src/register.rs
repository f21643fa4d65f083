//! Registers every filter command of the table with the host.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

use mayhap_command::syntax::{self, Argument, Kind};
use mayhap_command::{Access, Arity, Command, Family, Names, Run, table};

use crate::effect;
use crate::host::{self, Ctx, HostString, Level, OK, c_text, call, has, raw};
use crate::run::{self, Call};

/// Returns `true` for commands of the module. Commands for names, strings and connections are the host's.
pub(crate) fn is_ours(command: &Command) -> bool {
    matches!(command.family, Family::Bloom | Family::Cuckoo | Family::Mayhap)
}

/// The module's commands.
static COMMANDS: LazyLock<Vec<&'static Command>> =
    LazyLock::new(|| table::all().filter(|command| is_ours(command)).collect());

/// The keyspace event of each command, in the order of the table.
static EVENTS: LazyLock<Vec<CString>> =
    LazyLock::new(|| table::all().map(|command| c_text(command.name)).collect());

/// The keyspace event of a command: its name.
pub(crate) fn event_of(command: &'static Command) -> &'static CStr {
    table::number(command).and_then(|number| EVENTS.get(number)).map_or(c"mf.change", |event| event)
}

type Entry = unsafe extern "C" fn(Ctx, *mut HostString, c_int) -> c_int;

/// One function per command: the host calls a command's function without saying which command it is.
macro_rules! entries {
    ($($number:literal)*) => { [$(entry::<$number>),*] };
}

static ENTRIES: [Entry; 64] = entries! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
};

/// The entry point of the command with this number.
unsafe extern "C" fn entry<const NUMBER: usize>(ctx: Ctx, argv: *mut HostString, argc: c_int) -> c_int {
    let command = COMMANDS[NUMBER];
    // SAFETY: the host passes `argc` strings, and they live until this call returns.
    let strings = unsafe { std::slice::from_raw_parts(argv, usize::try_from(argc).unwrap_or(0)) };
    // `CF.COMPACT` checks for a missing name itself.
    if !command.arity.admits(strings.len()) || strings.len() <= command.names.first {
        // SAFETY: nothing was answered yet.
        return unsafe { call!(RedisModule_WrongArity(ctx)) };
    }
    // SAFETY: as above.
    unsafe { run::serve(Call { ctx, command, strings, redo: None }) }
}

/// Registers all commands.
///
/// # Errors
/// If the host rejects a command.
///
/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn register(ctx: Ctx) -> Result<(), String> {
    let own_categories = has!(RedisModule_AddACLCategory) && has!(RedisModule_SetCommandACLCategories);
    // SAFETY: guaranteed by the caller, for the whole block.
    unsafe {
        if own_categories {
            let families = [Family::Bloom, Family::Cuckoo, Family::Mayhap].map(Family::name);
            for category in families.into_iter().chain(["dump"]) {
                // Redis 8 has some of these categories already.
                call!(RedisModule_AddACLCategory(ctx, c_text(category).as_ptr()));
            }
        }
        for (command, entry) in COMMANDS.iter().zip(ENTRIES) {
            register_one(ctx, command, entry, own_categories)?;
        }
        if COMMANDS.len() > ENTRIES.len() {
            return Err(format!("{} commands, but entry points for {}", COMMANDS.len(), ENTRIES.len()));
        }
        create(ctx, c"mf.redo", effect::redo, c"write admin", Names::ONE)?;
        describe_redo(ctx, own_categories)
    }
}

/// Describes `MF.REDO`: it has more names than its own if the command it repeats has more.
///
/// # Safety
/// As [`register`].
unsafe fn describe_redo(ctx: Ctx, own_categories: bool) -> Result<(), String> {
    let gathers = COMMANDS.iter().filter(|command| matches!(command.run, Run::Gather(_)));
    let words: Vec<CString> = gathers.map(|command| c_text(command.name)).collect();
    let mut names = vec![spec(CHANGES, 1, 0)];
    names.extend(words.iter().map(|word| NameSpec {
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_KEYWORD,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            keyword: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_2 {
                keyword: word.as_ptr(),
                startfrom: effect::AHEAD as c_int,
            },
        },
        ..spec(LOOKS, 0, -1)
    }));
    // SAFETY: guaranteed by the caller. The arguments live until the call returns, and the host copies them.
    unsafe {
        let registered = call!(RedisModule_GetCommand(ctx, c"mf.redo".as_ptr()));
        let mut help = Help::bare(names, -(effect::AHEAD as c_int + 2));
        if registered.is_null() || !help.tell(registered, false) {
            return Err("the host rejected the key positions of mf.redo".into());
        }
        if own_categories {
            call!(RedisModule_SetCommandACLCategories(registered, c"write admin dangerous".as_ptr()));
        }
    }
    Ok(())
}

/// # Safety
/// As [`register`].
unsafe fn create(ctx: Ctx, name: &CStr, entry: Entry, flags: &CStr, names: Names) -> Result<(), String> {
    let (first, step) = (names.first as c_int, names.step as c_int);
    let last = c_int::try_from(names.last).unwrap_or(0);
    // SAFETY: guaranteed by the caller; the host copies both texts.
    let taken = unsafe {
        call!(RedisModule_CreateCommand(ctx, name.as_ptr(), Some(entry), flags.as_ptr(), first, last, step))
    };
    match taken {
        OK => Ok(()),
        _ => Err(format!("the host rejected the command {name:?}; another module may already define it")),
    }
}

/// # Safety
/// As [`register`].
unsafe fn register_one(
    ctx: Ctx,
    command: &'static Command,
    entry: Entry,
    own_categories: bool,
) -> Result<(), String> {
    let name = c_text(command.name);
    // SAFETY: guaranteed by the caller. The arguments live until the call returns, and the host copies them.
    unsafe {
        create(ctx, &name, entry, &c_text(&flags(command)), command.names)?;
        let registered = call!(RedisModule_GetCommand(ctx, name.as_ptr()));
        if registered.is_null() {
            return Err(format!("the host cannot find the command {name:?} after its registration"));
        }
        if own_categories {
            let categories = c_text(&command.categories().join(" "));
            call!(RedisModule_SetCommandACLCategories(registered, categories.as_ptr()));
        }
        let mut help = Help::of(command);
        if !help.tell(registered, true) && !help.tell(registered, false) {
            host::log(
                ctx,
                Level::Warning,
                &format!("mayhap: the host rejected the help of {}", command.name),
            );
        }
    }
    Ok(())
}

/// The flags of a command in the host's syntax. `CF.COMPACT` changes the filter, so it is a write command
/// here: a replica must not run it on its own.
fn flags(command: &Command) -> String {
    let mut flags = Vec::new();
    match (command.flags.declared, command.changes()) {
        (_, true) => flags.push("write"),
        // The host puts every command with this flag in `@read`.
        (Access::Read, _) if !command.tells_key() => flags.push("readonly"),
        _ => {}
    }
    for (flag, name) in
        [(command.flags.deny_oom, "deny-oom"), (command.flags.fast, "fast"), (command.flags.admin, "admin")]
    {
        if flag {
            flags.push(name);
        }
    }
    flags.join(" ")
}

/// Everything that `COMMAND INFO` and `COMMAND DOCS` show for a command, in the host's structs. They point to
/// texts that are stored here.
struct Help {
    texts: Vec<CString>,
    /// Boxed before anything points to them, so that their addresses stay the same.
    arguments: Vec<Box<[raw::RedisModuleCommandArg]>>,
    top: *mut raw::RedisModuleCommandArg,
    names: Vec<raw::RedisModuleCommandKeySpec>,
    info: [*const c_char; 4],
    arity: c_int,
}

impl Help {
    fn of(command: &Command) -> Self {
        let arity = match command.arity {
            Arity::Exactly(words) => words as c_int,
            Arity::AtLeast(words) => -(words as c_int),
        };
        let mut help = Self::bare(names(command), arity);
        let tips = command.traits.tips.join(" ");
        let texts = [command.summary, command.complexity, command.since, &tips];
        help.info = texts.map(|text| if text.is_empty() { null() } else { help.text(text) });
        let mut next_name = 0;
        help.top = help.list(&syntax::arguments(command.syntax), &mut next_name);
        help
    }

    /// Key positions and arity only.
    const fn bare(names: Vec<NameSpec>, arity: c_int) -> Self {
        Self { texts: Vec::new(), arguments: Vec::new(), top: null_mut(), names, info: [null(); 4], arity }
    }

    fn text(&mut self, text: &str) -> *const c_char {
        self.texts.push(c_text(text));
        self.texts.last().map_or(null(), |text| text.as_ptr())
    }

    /// Arguments, followed by an empty one.
    fn list(&mut self, arguments: &[Argument], next_name: &mut c_int) -> *mut raw::RedisModuleCommandArg {
        if arguments.is_empty() {
            return null_mut();
        }
        let mut list: Vec<_> = arguments.iter().map(|argument| self.argument(argument, next_name)).collect();
        list.push(NO_ARGUMENT);
        self.arguments.push(list.into_boxed_slice());
        self.arguments.last_mut().map_or(null_mut(), |list| list.as_mut_ptr())
    }

    fn argument(&mut self, argument: &Argument, next_name: &mut c_int) -> raw::RedisModuleCommandArg {
        let mut flags = raw::REDISMODULE_CMD_ARG_NONE;
        if argument.optional {
            flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL;
        }
        if argument.multiple {
            flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE;
        }
        let key_spec_index = match argument.kind {
            Kind::Key if *next_name < self.names.len() as c_int => {
                *next_name += 1;
                *next_name - 1
            }
            _ => -1,
        };
        raw::RedisModuleCommandArg {
            name: self.text(&argument.name),
            type_: kind(argument.kind),
            key_spec_index,
            token: argument.token.as_ref().map_or(null(), |token| self.text(token)),
            flags: flags.cast_signed(),
            subargs: self.list(&argument.arguments, next_name),
            ..NO_ARGUMENT
        }
    }

    /// Passes this to the host. Returns `false` if the host rejects it.
    ///
    /// # Safety
    /// The command was registered while the module is being loaded.
    unsafe fn tell(&mut self, command: *mut raw::RedisModuleCommand, with_arguments: bool) -> bool {
        let version = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        let [summary, complexity, since, tips] = self.info;
        let mut names = self.names.clone();
        names.push(NO_NAME);
        let info = raw::RedisModuleCommandInfo {
            version: &raw const version,
            summary,
            complexity,
            since,
            history: null_mut(),
            tips,
            arity: self.arity,
            key_specs: names.as_mut_ptr(),
            args: if with_arguments { self.top } else { null_mut() },
        };
        // SAFETY: guaranteed by the caller. All pointers are valid until the call returns, lists end with an
        // empty element, and the host copies everything.
        unsafe { call!(RedisModule_SetCommandInfo(command, &raw const info)) == OK }
    }
}

const NO_ARGUMENT: raw::RedisModuleCommandArg = raw::RedisModuleCommandArg {
    name: null(),
    type_: raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
    key_spec_index: -1,
    token: null(),
    summary: null(),
    since: null(),
    flags: 0,
    deprecated_since: null(),
    subargs: null_mut(),
    display_text: null(),
};

const fn kind(kind: Kind) -> raw::RedisModuleCommandArgType {
    match kind {
        Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
        Kind::String => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
        Kind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
        Kind::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
        Kind::PureToken => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
        Kind::OneOf => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
        Kind::Block => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
    }
}

type NameSpec = raw::RedisModuleCommandKeySpec;

/// The names from word `first` on: up to `last` more words, or to the end.
const fn spec(flags: u32, first: c_int, last: c_int) -> NameSpec {
    NameSpec {
        notes: null(),
        flags: flags as u64,
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: first },
        },
        find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
        fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
            range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
                lastkey: last,
                keystep: 1,
                limit: 0,
            },
        },
    }
}

/// The end of a list of key specs.
const NO_NAME: NameSpec = NameSpec {
    begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INVALID,
    ..spec(0, 0, 0)
};

/// What a command does to a name.
const LOOKS: u32 = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;
const CHANGES: u32 = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE;

/// The positions of a command's names, and what the command does to them.
fn names(command: &Command) -> Vec<NameSpec> {
    let flags = if command.changes() { CHANGES } else { LOOKS };
    match (command.names.first as c_int, command.run) {
        (0, _) => Vec::new(),
        // The target, then the sources.
        (first, Run::Gather(_)) => vec![spec(flags, first, 0), spec(LOOKS, first + 1, -1)],
        (first, _) => vec![spec(flags, first, c_int::try_from(command.names.last).unwrap_or(0) - first)],
    }
}
