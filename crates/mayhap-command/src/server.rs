//! The table rows of the commands on the connection and the server, their subcommands, and their error replies. The server runs
//! them; in the module, the host does.

use std::fmt;

use crate::command::{Arity, Changes, Command, Family, Flags, Names};
use crate::names;
use crate::run::Run;
use crate::touch::Touch;
use crate::traits::{InTransaction, Secrets, Touches, Traits, tips};

/// Commands on the connection and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Server {
    /// `ACL`.
    Acl,
    /// `AUTH`.
    Auth,
    /// `BGSAVE`.
    BackgroundSave,
    /// `BGREWRITEAOF`.
    RewriteLog,
    /// `CLIENT`.
    Client,
    /// `CLUSTER`.
    Cluster,
    /// `COMMAND`.
    Command,
    /// `CONFIG`.
    Config,
    /// `DEBUG`.
    Debug,
    /// `DISCARD`.
    Discard,
    /// `ECHO`.
    Echo,
    /// `EXEC`.
    Exec,
    /// `HELLO`.
    Hello,
    /// `INFO`.
    Info,
    /// `LASTSAVE`.
    LastSave,
    /// `LATENCY`.
    Latency,
    /// `MODULE`.
    Module,
    /// `MULTI`.
    Multi,
    /// `PING`.
    Ping,
    /// `QUIT`.
    Quit,
    /// `READONLY`, `READWRITE`.
    ReadOnly,
    /// `REPLICAOF`, `SLAVEOF`.
    ReplicaOf,
    /// `RESET`.
    Reset,
    /// `ROLE`.
    Role,
    /// `SAVE`.
    Save,
    /// `SELECT`.
    Select,
    /// `SHUTDOWN`.
    Shutdown,
    /// `SLOWLOG`.
    SlowLog,
    /// `TIME`.
    Time,
    /// `UNWATCH`.
    Unwatch,
    /// `WATCH`.
    Watch,
}

/// A subcommand, such as `CLIENT LIST`.
#[derive(Debug)]
pub struct Subcommand {
    /// In lower case.
    pub name: &'static str,
    /// The number of words of a request, including the command and the subcommand.
    pub arity: Arity,
    /// Its flags.
    pub flags: Flags,
    /// One line of help.
    pub summary: &'static str,
    /// The words after it, as the manual writes them.
    pub syntax: &'static str,
    /// Which of the words must not be shown to others, beside those of the command.
    pub secrets: Secrets,
    /// The hints of `COMMAND INFO`.
    pub tips: &'static [&'static str],
}

/// A row without keys. `WATCH`, the only command here with keys, sets them itself.
const fn row(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    (family, run): (Family, Server),
    syntax: &'static str,
    since: &'static str,
    summary: &'static str,
) -> Command {
    Command {
        name,
        arity,
        flags,
        names: Names::NONE,
        family,
        summary,
        syntax,
        since,
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Server(run),
    }
}

const fn sub(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    syntax: &'static str,
    summary: &'static str,
) -> Subcommand {
    Subcommand { name, arity, flags, summary, syntax, secrets: Secrets::None, tips: &[] }
}

const SLOW: Flags = Flags { fast: false, ..Flags::NEITHER };

/// The ACL category of the commands around `MULTI`.
const TRANSACTION: Option<&str> = Some("transaction");

use Arity::{AtLeast, Exactly};
use Family::{Connection as C, Server as S};

/// The family's rows of the table.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    Command { traits: Traits { needs_no_authentication: true, secrets: Secrets::After { word: "auth", count: 2 }, ..Traits::USUAL }, ..row("hello", AtLeast(1), Flags::NEITHER, (C, Server::Hello), "[protover [AUTH username password] [SETNAME clientname]]", "6.0.0", "Selects the protocol version; can also authenticate and name the connection") },
    Command { traits: Traits { needs_no_authentication: true, secrets: Secrets::From(1), ..Traits::USUAL }, ..row("auth", AtLeast(2), Flags::NEITHER, (C, Server::Auth), "[username] password", "1.0.0", "Authenticates the connection") },
    Command { traits: Traits { tips: tips::EVERY_SERVER, ..Traits::USUAL }, ..row("ping", AtLeast(1), Flags::NEITHER, (C, Server::Ping), "[message]", "1.0.0", "Returns PONG, or the message if there is one") },
    row("echo", Exactly(2), Flags::NEITHER, (C, Server::Echo), "message", "1.0.0", "Returns the message"),
    Command { traits: Traits { needs_no_authentication: true, in_transaction: InTransaction::AtOnce, ..Traits::USUAL }, ..row("quit", AtLeast(1), Flags::NEITHER, (C, Server::Quit), "", "1.0.0", "Replies OK and closes the connection") },
    Command { traits: Traits { needs_no_authentication: true, in_transaction: InTransaction::AtOnce, ..Traits::USUAL }, ..row("reset", Exactly(1), Flags::NEITHER, (C, Server::Reset), "", "6.2.0", "Resets the connection to its initial state") },
    row("select", Exactly(2), Flags::NEITHER, (C, Server::Select), "index", "1.0.0", "Selects the database; there is only database 0"),
    Command { traits: Traits { subcommands: CLIENT, ..Traits::USUAL }, ..row("client", AtLeast(2), SLOW, (C, Server::Client), "subcommand", "2.4.0", "Shows and manages client connections") },
    Command { traits: Traits { in_transaction: InTransaction::AtOnce, category: TRANSACTION, ..Traits::USUAL }, ..row("multi", Exactly(1), Flags::NEITHER, (C, Server::Multi), "", "1.2.0", "Starts a transaction") },
    Command { traits: Traits { in_transaction: InTransaction::AtOnce, category: TRANSACTION, long_reply: true, skips_slow_log: true, ..Traits::USUAL }, ..row("exec", Exactly(1), Flags { changes: Changes::WhatIsQueued, ..SLOW }, (C, Server::Exec), "", "1.2.0", "Runs the commands of the transaction; no other client's commands run in between") },
    Command { traits: Traits { in_transaction: InTransaction::AtOnce, category: TRANSACTION, ..Traits::USUAL }, ..row("discard", Exactly(1), Flags::NEITHER, (C, Server::Discard), "", "2.0.0", "Discards the transaction") },
    Command { names: Names::ALL, traits: Traits { in_transaction: InTransaction::AtOnce, category: TRANSACTION, touches: Touches::Each(Touch::Notice), ..Traits::USUAL }, ..row("watch", AtLeast(2), Flags::NEITHER, (C, Server::Watch), "key [key ...]", "2.2.0", "Makes the next EXEC do nothing if one of the keys changes before it") },
    Command { traits: Traits { category: TRANSACTION, ..Traits::USUAL }, ..row("unwatch", Exactly(1), Flags::NEITHER, (C, Server::Unwatch), "", "2.2.0", "Stops watching all keys") },
    Command { traits: Traits { subcommands: COMMAND, tips: tips::ANY_ORDER, ..Traits::USUAL }, ..row("command", AtLeast(1), SLOW, (S, Server::Command), "[subcommand]", "2.8.13", "Returns details of all commands") },
    Command { traits: Traits { dangerous: true, tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"], ..Traits::USUAL }, ..row(names::INFO, AtLeast(1), SLOW, (S, Server::Info), "[section [section ...]]", "1.0.0", "Returns information and statistics about the server") },
    Command { traits: Traits { subcommands: CONFIG, secrets: Secrets::After { word: "requirepass", count: 1 }, ..Traits::USUAL }, ..row("config", AtLeast(2), Flags::ADMIN, (S, Server::Config), "subcommand", "2.0.0", "Reads and sets parameters") },
    Command { traits: Traits { subcommands: SLOWLOG, ..Traits::USUAL }, ..row("slowlog", AtLeast(2), Flags::ADMIN, (S, Server::SlowLog), "subcommand", "2.2.12", "Shows the log of slow requests") },
    Command { traits: Traits { subcommands: LATENCY, ..Traits::USUAL }, ..row("latency", AtLeast(2), Flags::ADMIN, (S, Server::Latency), "subcommand", "2.8.13", "Shows latency statistics") },
    Command { traits: Traits { subcommands: CLUSTER, ..Traits::USUAL }, ..row("cluster", AtLeast(2), SLOW, (S, Server::Cluster), "subcommand", "3.0.0", "Refused, except INFO, KEYSLOT and MYID: there is no cluster mode") },
    Command { traits: Traits { subcommands: DEBUG, off_by_default: true, ..Traits::USUAL }, ..row("debug", AtLeast(2), Flags::ADMIN, (S, Server::Debug), "subcommand", "1.0.0", "Commands for testing") },
    Command { traits: Traits { in_transaction: InTransaction::Refused, ..Traits::USUAL }, ..row("shutdown", AtLeast(1), Flags::ADMIN, (S, Server::Shutdown), "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", "1.0.0", "Stops the server") },
    Command { traits: Traits { tips: tips::NONDETERMINISTIC, ..Traits::USUAL }, ..row("time", Exactly(1), Flags::NEITHER, (S, Server::Time), "", "2.6.0", "Returns the Unix time: seconds and microseconds") },
    Command { traits: Traits { tips: tips::NONDETERMINISTIC, ..Traits::USUAL }, ..row("role", Exactly(1), Flags::NEITHER, (S, Server::Role), "", "2.8.12", "Returns the replication role: always master, without replicas") },
    row("replicaof", Exactly(3), Flags::ADMIN, (S, Server::ReplicaOf), "host port", "5.0.0", "Accepts only NO ONE: there is no replication"),
    row("slaveof", Exactly(3), Flags::ADMIN, (S, Server::ReplicaOf), "host port", "1.0.0", "Accepts only NO ONE: there is no replication"),
    row("readonly", Exactly(1), Flags::NEITHER, (C, Server::ReadOnly), "", "3.0.0", "Refused: there is no cluster mode"),
    row("readwrite", Exactly(1), Flags::NEITHER, (C, Server::ReadOnly), "", "3.0.0", "Refused: there is no cluster mode"),
    row("asking", Exactly(1), Flags::NEITHER, (C, Server::ReadOnly), "", "3.0.0", "Refused: there is no cluster mode"),
    Command { traits: Traits { subcommands: MODULE, ..Traits::USUAL }, ..row("module", AtLeast(2), Flags::ADMIN, (S, Server::Module), "subcommand", "4.0.0", "Lists the built-in module") },
    Command { traits: Traits { subcommands: ACL, ..Traits::USUAL }, ..row("acl", AtLeast(2), Flags::ADMIN, (S, Server::Acl), "subcommand", "6.0.0", "Manages users and their permissions") },
];

#[rustfmt::skip]
static ACL: &[Subcommand] = &[
    sub("cat", AtLeast(2), SLOW, "[category]", "Lists the categories, or the commands of one"),
    sub("deluser", AtLeast(3), Flags::ADMIN, "username [username ...]", "Deletes users and closes their connections"),
    sub("dryrun", AtLeast(4), Flags::ADMIN, "username command [arg [arg ...]]", "Checks whether a user may run a command, without running it"),
    sub("genpass", AtLeast(2), SLOW, "[bits]", "Generates a random password"),
    sub("getuser", Exactly(3), Flags::ADMIN, "username", "Returns the rules of a user"),
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    sub("list", Exactly(2), Flags::ADMIN, "", "Lists all users and their rules, in the format of the users file"),
    sub("load", Exactly(2), Flags::ADMIN, "", "Reloads the users file; an error changes nothing"),
    sub("log", AtLeast(2), Flags::ADMIN, "[count | RESET]", "Lists recently denied requests and their users"),
    sub("save", Exactly(2), Flags::ADMIN, "", "Writes all users to the users file"),
    Subcommand { secrets: Secrets::From(3), ..sub("setuser", AtLeast(3), Flags::ADMIN, "username [rule [rule ...]]", "Creates or changes a user; if one rule is invalid, none is applied") },
    sub("users", Exactly(2), Flags::ADMIN, "", "Lists the names of all users"),
    sub("whoami", Exactly(2), SLOW, "", "Returns the user name of the connection"),
];

#[rustfmt::skip]
static CLIENT: &[Subcommand] = &[
    sub("getname", Exactly(2), SLOW, "", "Returns the name of the connection"),
    sub("getredir", Exactly(2), SLOW, "", "Returns -1: client tracking is not supported"),
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("id", Exactly(2), SLOW, "", "Returns the ID of the connection") },
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("info", Exactly(2), SLOW, "", "Returns information about the connection") },
    sub("kill", AtLeast(3), Flags::ADMIN, "ip:port | [ID id] [TYPE type] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME yes|no]", "Closes connections"),
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("list", AtLeast(2), Flags::ADMIN, "[TYPE type] [ID id [id ...]]", "Lists connections") },
    sub("no-evict", Exactly(3), Flags::ADMIN, "ON|OFF", "Accepted, but has no effect"),
    sub("no-touch", Exactly(3), SLOW, "ON|OFF", "Accepted, but has no effect"),
    sub("pause", AtLeast(3), Flags::ADMIN, "timeout [WRITE|ALL]", "Suspends all requests, or only writes, for a number of milliseconds"),
    sub("reply", Exactly(3), SLOW, "ON|OFF|SKIP", "Turns replies on or off"),
    sub("setinfo", Exactly(4), SLOW, "LIB-NAME libname | LIB-VER libver", "Sets the name or version of the client library"),
    sub("setname", Exactly(3), SLOW, "connection-name", "Sets the name of the connection"),
    sub("unblock", AtLeast(3), Flags::ADMIN, "client-id [TIMEOUT|ERROR]", "Returns 0: no command blocks"),
    sub("unpause", Exactly(2), Flags::ADMIN, "", "Ends a CLIENT PAUSE"),
];

#[rustfmt::skip]
static CLUSTER: &[Subcommand] = &[
    sub("countkeysinslot", Exactly(3), SLOW, "slot", "Refused: there is no cluster mode"),
    sub("help", Exactly(2), SLOW, "", "Refused: there is no cluster mode"),
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("info", Exactly(2), SLOW, "", "Returns the state of the cluster: disabled") },
    sub("keyslot", Exactly(3), SLOW, "key", "Returns the hash slot that a key would have in a cluster"),
    sub("myid", Exactly(2), SLOW, "", "Returns the ID of the server"),
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("nodes", Exactly(2), SLOW, "", "Refused: there is no cluster mode") },
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("shards", Exactly(2), SLOW, "", "Refused: there is no cluster mode") },
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("slots", Exactly(2), SLOW, "", "Refused: there is no cluster mode") },
];

#[rustfmt::skip]
static COMMAND: &[Subcommand] = &[
    sub("count", Exactly(2), SLOW, "", "Returns the number of commands"),
    Subcommand { tips: tips::ANY_ORDER, ..sub("docs", AtLeast(2), SLOW, "[command-name [command-name ...]]", "Returns the documentation of commands") },
    sub("getkeys", AtLeast(4), SLOW, "command [arg [arg ...]]", "Returns the keys in a request"),
    sub("getkeysandflags", AtLeast(4), SLOW, "command [arg [arg ...]]", "Returns the keys in a request and how each is accessed"),
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    sub("info", AtLeast(2), SLOW, "[command-name [command-name ...]]", "Returns details of commands"),
    Subcommand { tips: tips::ANY_ORDER, ..sub("list", AtLeast(2), SLOW, "[FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]", "Lists the names of commands") },
];

#[rustfmt::skip]
static CONFIG: &[Subcommand] = &[
    sub("get", AtLeast(3), Flags::ADMIN, "parameter [parameter ...]", "Reads parameters"),
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    Subcommand { tips: tips::EVERY_SERVER, ..sub("resetstat", Exactly(2), Flags::ADMIN, "", "Resets the statistics") },
    Subcommand { tips: tips::EVERY_SERVER, ..sub("rewrite", Exactly(2), Flags::ADMIN, "", "Writes the parameters to the configuration file") },
    Subcommand { tips: tips::EVERY_SERVER, ..sub("set", AtLeast(4), Flags::ADMIN, "parameter value [parameter value ...]", "Sets parameters") },
];

#[rustfmt::skip]
static DEBUG: &[Subcommand] = &[
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    sub("reload", AtLeast(2), Flags::ADMIN, "[NOSAVE]", "Writes a snapshot, if there is a data folder, and reloads every value from its stored bytes"),
    sub("sleep", Exactly(3), Flags::ADMIN, "seconds", "Delays the connection, by at most 10 seconds"),
];

#[rustfmt::skip]
static LATENCY: &[Subcommand] = &[
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("doctor", Exactly(2), Flags::ADMIN, "", "Describes in words what was slow") },
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("history", Exactly(3), Flags::ADMIN, "event", "Returns the recorded times and latencies of an event") },
    Subcommand { tips: tips::NONDETERMINISTIC, ..sub("latest", Exactly(2), Flags::ADMIN, "", "Returns the latest and the highest latency of every event") },
    sub("reset", AtLeast(2), Flags::ADMIN, "[event [event ...]]", "Deletes the recorded latencies"),
];

#[rustfmt::skip]
static MODULE: &[Subcommand] = &[
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    sub("list", Exactly(2), Flags::ADMIN, "", "Lists the module whose commands are built in"),
    sub("load", AtLeast(3), Flags::ADMIN, "path [arg [arg ...]]", "Refused: the built-in module is the only one"),
    sub("unload", Exactly(3), Flags::ADMIN, "name", "Refused: the built-in module is the only one"),
];

#[rustfmt::skip]
static SLOWLOG: &[Subcommand] = &[
    sub("get", AtLeast(2), Flags::ADMIN, "[count]", "Returns the slow requests, newest first"),
    sub("help", Exactly(2), SLOW, "", "Prints this help"),
    sub("len", Exactly(2), Flags::ADMIN, "", "Returns the number of entries"),
    sub("reset", Exactly(2), Flags::ADMIN, "", "Deletes all entries"),
];

/// Why a command on the connection or the server was refused: part of [`Refusal`](crate::Refusal).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionRefusal {
    /// The client has not authenticated.
    NoAuth,
    /// `HELLO`: the client has not authenticated.
    HelloNoAuth,
    /// The user does not exist, or the password is wrong.
    WrongPass,
    /// `AUTH`: no password is set.
    NoPassword,
    /// `HELLO`: the version is neither 2 nor 3.
    UnsupportedProtocol,
    /// `HELLO`: the version is not a number.
    BadProtocol,
    /// `HELLO`: an unknown option, or one with a missing value.
    HelloOption(String),
    /// A connection name that contains spaces.
    ClientName,
    /// `CLIENT SETINFO`: a value that contains spaces.
    ClientInfo(&'static str),
    /// `CLIENT SETINFO`: an unknown option.
    ClientInfoOption(String),
    /// `CLIENT LIST`: not a number.
    BadClientId,
    /// `CLIENT KILL`: not a number.
    ClientIdPositive,
    /// `CLIENT KILL`, `CLIENT LIST`.
    UnknownClientType(String),
    /// `CLIENT KILL`.
    NoSuchClient,
    /// `CLIENT KILL`.
    NoSuchUser(String),
    /// `MULTI` in a transaction.
    NestedMulti,
    /// `WATCH` in a transaction.
    WatchInMulti,
    /// `SAVE`, `SHUTDOWN` in a transaction.
    NotInMulti,
    /// `EXEC` without a transaction.
    ExecWithoutMulti,
    /// `DISCARD` without a transaction.
    DiscardWithoutMulti,
    /// `EXEC` after a queued request was refused.
    ExecAbort,
    /// The transaction would take too much memory.
    TransactionTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// `EXEC`: the request ran, but its reply exceeds the limit for the replies of a transaction.
    RepliesTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// `SLOWLOG GET`.
    SlowLogCount,
    /// There is no cluster mode.
    NoCluster,
    /// `REPLICAOF`: not a port.
    MasterPort,
    /// `REPLICAOF`: there is no replication.
    NoReplication,
    /// `MODULE LOAD`.
    NoModules,
    /// `ACL CAT`.
    UnknownCategory(String),
    /// The user may not run this command at all.
    NoCommand {
        /// The user.
        user: String,
        /// The command, followed by `|` and its subcommand.
        command: String,
    },
    /// The user may not access one of the keys in this way.
    NoName,
    /// `EXEC`: a request that was allowed when it was queued no longer is.
    NoLonger(Box<SessionRefusal>),
    /// `ACL DRYRUN`: the user may not access this key in this way.
    NoSuchName {
        /// The user.
        user: String,
        /// The key.
        name: String,
    },
    /// No client may run this command.
    Off {
        /// The command, in upper case.
        command: String,
        /// The reason.
        why: &'static str,
    },
    /// `ACL SETUSER`: an invalid rule.
    Rule {
        /// The rule, unless it is a password.
        rule: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// `ACL SETUSER`: a user name that contains spaces.
    UserName,
    /// `ACL DELUSER`.
    DefaultUser,
    /// `ACL DRYRUN`.
    UserNotFound(String),
    /// `ACL DRYRUN`.
    CommandNotFound(String),
    /// `ACL GENPASS`.
    PasswordBits,
    /// `ACL SAVE`, `ACL LOAD`: there is no users file.
    NoUsersFile,
    /// `ACL SAVE`, `ACL LOAD`: reading or writing the users file failed.
    UsersFile(String),
    /// The server accepts connections from other machines, and the change would allow one without a password.
    WouldExpose,
    /// `SHUTDOWN ABORT`.
    NoShutdown,
    /// `SHUTDOWN`: saving failed.
    ShutdownFailed,
    /// `DEBUG SLEEP`.
    NotAFloat,
    /// `COMMAND GETKEYS`: no such command.
    InvalidCommand,
    /// `COMMAND GETKEYS`: wrong number of arguments.
    InvalidArguments,
    /// `COMMAND GETKEYS`: the command has no keys.
    NoNames,
    /// Nothing can be written to disk: there is no data folder.
    NoFolder,
    /// Writing to disk, or reading from it, failed.
    SaveFailed(String),
    /// `DEBUG RELOAD`: a value differs from its stored bytes.
    ReloadFailed(String),
    /// `SAVE` while a snapshot is being written.
    SaveUnderWay,
    /// `CONFIG SET`: there is no such parameter.
    UnknownParameter(String),
    /// `CONFIG SET`: an invalid value.
    BadParameter {
        /// The parameter.
        name: &'static str,
        /// The reason, in Redis's words.
        why: &'static str,
    },
    /// `CONFIG SET`: a valid value that cannot be set in the current state.
    NotApplied {
        /// The parameter.
        name: &'static str,
        /// The reason.
        why: String,
    },
    /// `CONFIG REWRITE`: there is no configuration file.
    NoConfigFile,
    /// `CONFIG REWRITE`: writing the configuration file failed.
    RewriteFailed(String),
}

impl fmt::Display for SessionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DISABLED: &str = "ERR This instance has cluster support disabled";
        f.write_str(match self {
            Self::NoAuth => "NOAUTH Authentication required.",
            Self::HelloNoAuth => {
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
                 <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
            }
            Self::WrongPass => "WRONGPASS invalid username-password pair or user is disabled.",
            Self::NoPassword => {
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?"
            }
            Self::UnsupportedProtocol => "NOPROTO unsupported protocol version",
            Self::BadProtocol => "ERR Protocol version is not an integer or out of range",
            Self::HelloOption(word) => return write!(f, "ERR Syntax error in HELLO option '{word}'"),
            Self::ClientName => "ERR Client names cannot contain spaces, newlines or special characters.",
            Self::ClientInfo(what) => {
                return write!(f, "ERR {what} cannot contain spaces, newlines or special characters.");
            }
            Self::ClientInfoOption(word) => return write!(f, "ERR Unrecognized option '{word}'"),
            Self::BadClientId => "ERR Invalid client ID",
            Self::ClientIdPositive => "ERR client-id should be greater than 0",
            Self::UnknownClientType(word) => return write!(f, "ERR Unknown client type '{word}'"),
            Self::NoSuchClient => "ERR No such client",
            Self::NoSuchUser(name) => return write!(f, "ERR No such user '{name}'"),
            Self::NestedMulti => "ERR MULTI calls can not be nested",
            Self::WatchInMulti => "ERR WATCH inside MULTI is not allowed",
            Self::NotInMulti => "ERR Command not allowed inside a transaction",
            Self::ExecWithoutMulti => "ERR EXEC without MULTI",
            Self::DiscardWithoutMulti => "ERR DISCARD without MULTI",
            Self::ExecAbort => "EXECABORT Transaction discarded because of previous errors.",
            Self::TransactionTooLarge { limit } => {
                return write!(f, "ERR transaction too large, it may take {limit} bytes");
            }
            Self::RepliesTooLarge { limit } => {
                return write!(f, "ERR the replies of a transaction may take {limit} bytes: this one was left out");
            }
            Self::SlowLogCount => "ERR count should be greater than or equal to -1",
            Self::NoCluster => DISABLED,
            Self::MasterPort => "ERR Invalid master port",
            Self::NoReplication => "ERR replication is not offered",
            Self::NoModules => "ERR MODULE command not allowed. The commands of the module bf are built in.",
            Self::UnknownCategory(word) => return write!(f, "ERR Unknown category '{word}'"),
            Self::NoCommand { user, command } => {
                return write!(f, "NOPERM User {user} has no permissions to run the '{command}' command");
            }
            Self::NoName => "NOPERM No permissions to access a key",
            Self::NoLonger(refusal) => {
                let why = refusal.to_string();
                let why = why.strip_prefix("NOPERM ").unwrap_or(&why);
                return write!(
                    f,
                    "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                     command is no longer allowed for the following reason: {why}"
                );
            }
            Self::NoSuchName { user, name } => {
                return write!(f, "User {user} has no permissions to access the '{name}' key");
            }
            Self::Off { command, why } => return write!(f, "ERR {command} command not allowed. {why}"),
            Self::Rule { rule, why } => return write!(f, "ERR Error in ACL SETUSER modifier '{rule}': {why}"),
            Self::UserName => "ERR Usernames can't contain spaces or null characters",
            Self::DefaultUser => "ERR The 'default' user cannot be removed",
            Self::UserNotFound(name) => return write!(f, "ERR User '{name}' not found"),
            Self::CommandNotFound(name) => return write!(f, "ERR Command '{name}' not found"),
            Self::PasswordBits => {
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
            }
            Self::NoUsersFile => {
                "ERR This server is not configured to use an ACL file: start it with --users FILE"
            }
            Self::UsersFile(why) => return write!(f, "ERR {why}"),
            Self::WouldExpose => {
                "ERR the server accepts connections from other machines: every enabled user needs a password, unless the server runs with \
                 --unprotected"
            }
            Self::NoShutdown => "ERR No shutdown in progress.",
            Self::ShutdownFailed => "ERR Errors trying to SHUTDOWN. Check logs.",
            Self::NotAFloat => "ERR value is not a valid float",
            Self::InvalidCommand => "ERR Invalid command specified",
            Self::InvalidArguments => "ERR Invalid number of arguments specified for command",
            Self::NoNames => "ERR The command has no key arguments",
            Self::NoFolder => "ERR nothing is saved: the server was given no folder",
            Self::SaveFailed(why) | Self::ReloadFailed(why) => return write!(f, "ERR {why}"),
            Self::SaveUnderWay => "ERR Background save already in progress",
            Self::UnknownParameter(name) => {
                return write!(f, "ERR Unknown option or number of arguments for CONFIG SET - '{name}'");
            }
            Self::BadParameter { name, why } => {
                return write!(f, "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
            }
            Self::NotApplied { name, why } => {
                return write!(f, "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
            }
            Self::NoConfigFile => "ERR The server is running without a config file",
            Self::RewriteFailed(why) => return write!(f, "ERR Rewriting config file: {why}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_unique_and_arity_counts_both_words() {
        for command in COMMANDS {
            for (index, row) in command.traits.subcommands.iter().enumerate() {
                let (Exactly(words) | AtLeast(words)) = row.arity;
                assert!(words >= 2, "{}", row.name);
                assert_eq!(row.name, row.name.to_lowercase());
                let same = |other: &Subcommand| other.name == row.name;
                assert_eq!(command.traits.subcommands.iter().position(same), Some(index), "{}", row.name);
                let found = command.subcommand(row.name.to_uppercase().as_bytes()).unwrap();
                assert!(std::ptr::eq(found, row));
            }
        }
    }
}
