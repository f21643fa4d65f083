//! What is about the connection or the server itself: the rows of the table, the words behind them, and what a client is refused
//! with. The server does the work, and in a module its host.

use std::fmt;

use crate::command::{Arity, Command, Family, Flags, Names};
use crate::run::Run;

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

/// A word behind a command that is a command of its own: `CLIENT LIST`.
#[derive(Debug)]
pub struct Subcommand {
    /// The command it stands behind.
    pub of: Server,
    /// In lower case.
    pub name: &'static str,
    /// How many words a request has, both of the command's own included.
    pub arity: Arity,
    /// What it may do.
    pub flags: Flags,
    /// One line of help.
    pub summary: &'static str,
    /// The words behind it, as the manual writes them.
    pub syntax: &'static str,
}

/// The subcommand of this name, however it is spelled.
#[must_use]
pub fn subcommand(of: Server, name: &[u8]) -> Option<&'static Subcommand> {
    subcommands(of).find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
}

/// All of one command.
pub fn subcommands(of: Server) -> impl Iterator<Item = &'static Subcommand> {
    SUBCOMMANDS.iter().filter(move |row| row.of == of)
}

/// All are about no name, but for one.
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
        run: Run::Server(run),
    }
}

const fn sub(
    of: Server,
    name: &'static str,
    arity: Arity,
    flags: Flags,
    syntax: &'static str,
    summary: &'static str,
) -> Subcommand {
    Subcommand { of, name, arity, flags, summary, syntax }
}

const SLOW: Flags = Flags { fast: false, ..Flags::NEITHER };

use Arity::{AtLeast, Exactly};
use Family::{Connection as C, Server as S};

/// The family's rows of the table.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    row("hello", AtLeast(1), Flags::NEITHER, (C, Server::Hello), "[protover [AUTH username password] [SETNAME clientname]]", "6.0.0", "Shakes hands and chooses the protocol"),
    row("auth", AtLeast(2), Flags::NEITHER, (C, Server::Auth), "[username] password", "1.0.0", "Says who the client is"),
    row("ping", AtLeast(1), Flags::NEITHER, (C, Server::Ping), "[message]", "1.0.0", "Answers PONG, or what it was given"),
    row("echo", Exactly(2), Flags::NEITHER, (C, Server::Echo), "message", "1.0.0", "Answers what it was given"),
    row("quit", AtLeast(1), Flags::NEITHER, (C, Server::Quit), "", "1.0.0", "Says OK and closes the connection"),
    row("reset", Exactly(1), Flags::NEITHER, (C, Server::Reset), "", "6.2.0", "Makes the connection what it was when it was opened"),
    row("select", Exactly(2), Flags::NEITHER, (C, Server::Select), "index", "1.0.0", "Chooses the database, of which there is one: 0"),
    row("client", AtLeast(2), SLOW, (C, Server::Client), "subcommand", "2.4.0", "What a connection says about itself and about others"),
    row("multi", Exactly(1), Flags::NEITHER, (C, Server::Multi), "", "1.2.0", "Begins a transaction"),
    row("exec", Exactly(1), SLOW, (C, Server::Exec), "", "1.2.0", "Runs the transaction, with nobody else running anything"),
    row("discard", Exactly(1), Flags::NEITHER, (C, Server::Discard), "", "2.0.0", "Forgets the transaction"),
    Command { names: Names::ALL, ..row("watch", AtLeast(2), Flags::NEITHER, (C, Server::Watch), "key [key ...]", "2.2.0", "Has the next EXEC do nothing if one of the names was changed until then") },
    row("unwatch", Exactly(1), Flags::NEITHER, (C, Server::Unwatch), "", "2.2.0", "Forgets what is watched"),
    row("command", AtLeast(1), SLOW, (S, Server::Command), "[subcommand]", "2.8.13", "Lists all commands"),
    row("info", AtLeast(1), SLOW, (S, Server::Info), "[section [section ...]]", "1.0.0", "Says how the server is"),
    row("config", AtLeast(2), Flags::ADMIN, (S, Server::Config), "subcommand", "2.0.0", "Reads and sets parameters"),
    row("slowlog", AtLeast(2), Flags::ADMIN, (S, Server::SlowLog), "subcommand", "2.2.12", "What took long"),
    row("latency", AtLeast(2), Flags::ADMIN, (S, Server::Latency), "subcommand", "2.8.13", "How long it took"),
    row("cluster", AtLeast(2), SLOW, (S, Server::Cluster), "subcommand", "3.0.0", "There is no cluster"),
    row("debug", AtLeast(2), Flags::ADMIN, (S, Server::Debug), "subcommand", "1.0.0", "For tests"),
    row("shutdown", AtLeast(1), Flags::ADMIN, (S, Server::Shutdown), "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", "1.0.0", "Stops the server"),
    row("time", Exactly(1), Flags::NEITHER, (S, Server::Time), "", "2.6.0", "Seconds since 1970, and microseconds"),
    row("role", Exactly(1), Flags::NEITHER, (S, Server::Role), "", "2.8.12", "Says that this server has no master and no replicas"),
    row("replicaof", Exactly(3), Flags::ADMIN, (S, Server::ReplicaOf), "host port", "5.0.0", "There is no replication: NO ONE alone is accepted"),
    row("slaveof", Exactly(3), Flags::ADMIN, (S, Server::ReplicaOf), "host port", "1.0.0", "There is no replication: NO ONE alone is accepted"),
    row("readonly", Exactly(1), Flags::NEITHER, (C, Server::ReadOnly), "", "3.0.0", "There is no cluster"),
    row("readwrite", Exactly(1), Flags::NEITHER, (C, Server::ReadOnly), "", "3.0.0", "There is no cluster"),
    row("asking", Exactly(1), Flags::NEITHER, (C, Server::ReadOnly), "", "3.0.0", "There is no cluster"),
    row("module", AtLeast(2), Flags::ADMIN, (S, Server::Module), "subcommand", "4.0.0", "What is built in"),
    row("acl", AtLeast(2), Flags::ADMIN, (S, Server::Acl), "subcommand", "6.0.0", "Who may do what"),
];

/// The words behind the commands that have such.
#[rustfmt::skip]
pub static SUBCOMMANDS: &[Subcommand] = &[
    sub(Server::Acl, "cat", AtLeast(2), SLOW, "[category]", "Lists the categories, or the commands of one"),
    sub(Server::Acl, "deluser", AtLeast(3), Flags::ADMIN, "username [username ...]", "Removes users and closes their connections"),
    sub(Server::Acl, "dryrun", AtLeast(4), Flags::ADMIN, "username command [arg [arg ...]]", "Says whether a user might run a command, and does not run it"),
    sub(Server::Acl, "genpass", AtLeast(2), SLOW, "[bits]", "Makes a password nobody guesses"),
    sub(Server::Acl, "getuser", Exactly(3), Flags::ADMIN, "username", "What a user may do"),
    sub(Server::Acl, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Acl, "list", Exactly(2), Flags::ADMIN, "", "All users, as a file of rules has them"),
    sub(Server::Acl, "load", Exactly(2), Flags::ADMIN, "", "Reads the file of users again: all of it or nothing"),
    sub(Server::Acl, "log", AtLeast(2), Flags::ADMIN, "[count | RESET]", "What was refused lately, and to whom"),
    sub(Server::Acl, "save", Exactly(2), Flags::ADMIN, "", "Writes all users to the file of users"),
    sub(Server::Acl, "setuser", AtLeast(3), Flags::ADMIN, "username [rule [rule ...]]", "Makes or changes a user: all of the rules or none"),
    sub(Server::Acl, "users", Exactly(2), Flags::ADMIN, "", "The names of all users"),
    sub(Server::Acl, "whoami", Exactly(2), SLOW, "", "The name of the connection's user"),
    sub(Server::Client, "getname", Exactly(2), SLOW, "", "The name of the connection"),
    sub(Server::Client, "getredir", Exactly(2), SLOW, "", "Where notices of tracking go: nowhere, for there are none"),
    sub(Server::Client, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Client, "id", Exactly(2), SLOW, "", "The number of the connection"),
    sub(Server::Client, "info", Exactly(2), SLOW, "", "What is known of the connection"),
    sub(Server::Client, "kill", AtLeast(3), Flags::ADMIN, "ip:port | [ID id] [TYPE type] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME yes|no]", "Closes connections"),
    sub(Server::Client, "list", AtLeast(2), Flags::ADMIN, "[TYPE type] [ID id [id ...]]", "What is known of all connections"),
    sub(Server::Client, "no-evict", Exactly(3), Flags::ADMIN, "ON|OFF", "Accepted: no connection is ever closed to make room"),
    sub(Server::Client, "no-touch", Exactly(3), SLOW, "ON|OFF", "Accepted: looking at a name never makes it live longer"),
    sub(Server::Client, "pause", AtLeast(3), Flags::ADMIN, "timeout [WRITE|ALL]", "Runs no requests, or none that change something, for so many milliseconds"),
    sub(Server::Client, "reply", Exactly(3), SLOW, "ON|OFF|SKIP", "Whether requests are answered"),
    sub(Server::Client, "setinfo", Exactly(4), SLOW, "LIB-NAME libname | LIB-VER libver", "What the client's library is"),
    sub(Server::Client, "setname", Exactly(3), SLOW, "connection-name", "Names the connection"),
    sub(Server::Client, "unblock", AtLeast(3), Flags::ADMIN, "client-id [TIMEOUT|ERROR]", "No command waits: answers 0"),
    sub(Server::Client, "unpause", Exactly(2), Flags::ADMIN, "", "Ends a pause"),
    sub(Server::Cluster, "countkeysinslot", Exactly(3), SLOW, "slot", "There is no cluster"),
    sub(Server::Cluster, "help", Exactly(2), SLOW, "", "There is no cluster"),
    sub(Server::Cluster, "info", Exactly(2), SLOW, "", "Says that there is no cluster"),
    sub(Server::Cluster, "keyslot", Exactly(3), SLOW, "key", "The slot a name would have in a cluster"),
    sub(Server::Cluster, "myid", Exactly(2), SLOW, "", "The server's identity"),
    sub(Server::Cluster, "nodes", Exactly(2), SLOW, "", "There is no cluster"),
    sub(Server::Cluster, "shards", Exactly(2), SLOW, "", "There is no cluster"),
    sub(Server::Cluster, "slots", Exactly(2), SLOW, "", "There is no cluster"),
    sub(Server::Command, "count", Exactly(2), SLOW, "", "How many commands there are"),
    sub(Server::Command, "docs", AtLeast(2), SLOW, "[command-name [command-name ...]]", "What commands do"),
    sub(Server::Command, "getkeys", AtLeast(4), SLOW, "command [arg [arg ...]]", "The names in a request"),
    sub(Server::Command, "getkeysandflags", AtLeast(4), SLOW, "command [arg [arg ...]]", "The names in a request, and what is done to them"),
    sub(Server::Command, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Command, "info", AtLeast(2), SLOW, "[command-name [command-name ...]]", "What commands are like"),
    sub(Server::Command, "list", AtLeast(2), SLOW, "[FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]", "The names of all commands"),
    sub(Server::Config, "get", AtLeast(3), Flags::ADMIN, "parameter [parameter ...]", "Reads parameters"),
    sub(Server::Config, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Config, "resetstat", Exactly(2), Flags::ADMIN, "", "Counts from zero again"),
    sub(Server::Config, "rewrite", Exactly(2), Flags::ADMIN, "", "Writes the parameters to the file they came from"),
    sub(Server::Config, "set", AtLeast(4), Flags::ADMIN, "parameter value [parameter value ...]", "Sets parameters"),
    sub(Server::Debug, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Debug, "reload", AtLeast(2), Flags::ADMIN, "[NOSAVE]", "Writes a snapshot, if there is a folder, and loads every value again from its stored bytes"),
    sub(Server::Debug, "sleep", Exactly(3), Flags::ADMIN, "seconds", "Has the connection wait, for 10 seconds at the most"),
    sub(Server::Latency, "doctor", Exactly(2), Flags::ADMIN, "", "Says in words what took long"),
    sub(Server::Latency, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Latency, "history", Exactly(3), Flags::ADMIN, "event", "When an event took how long"),
    sub(Server::Latency, "latest", Exactly(2), Flags::ADMIN, "", "How long each event took last, and at the most"),
    sub(Server::Latency, "reset", AtLeast(2), Flags::ADMIN, "[event [event ...]]", "Forgets"),
    sub(Server::Module, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::Module, "list", Exactly(2), Flags::ADMIN, "", "Lists the module whose commands are built in"),
    sub(Server::Module, "load", AtLeast(3), Flags::ADMIN, "path [arg [arg ...]]", "Refused"),
    sub(Server::Module, "unload", Exactly(3), Flags::ADMIN, "name", "Refused"),
    sub(Server::SlowLog, "get", AtLeast(2), Flags::ADMIN, "[count]", "The requests that took long, the latest first"),
    sub(Server::SlowLog, "help", Exactly(2), SLOW, "", "Prints this help"),
    sub(Server::SlowLog, "len", Exactly(2), Flags::ADMIN, "", "How many there are"),
    sub(Server::SlowLog, "reset", Exactly(2), Flags::ADMIN, "", "Forgets them"),
];

/// Why the server refuses what is about itself or the connection: part of [`Refusal`](crate::Refusal).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionRefusal {
    /// A non-member asks.
    NoAuth,
    /// `HELLO`: a non-member asks.
    HelloNoAuth,
    /// No such user, or not the password.
    WrongPass,
    /// `AUTH`: there is no password.
    NoPassword,
    /// `HELLO`: neither 2 nor 3.
    UnsupportedProtocol,
    /// `HELLO`: not a number.
    BadProtocol,
    /// `HELLO`: a word it does not know, or with something missing behind it.
    HelloOption(String),
    /// A name with blanks in it.
    ClientName,
    /// `CLIENT SETINFO`: a value with blanks in it.
    ClientInfo(&'static str),
    /// `CLIENT SETINFO`: a word it does not know.
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
    /// `EXEC` after a request that was refused.
    ExecAbort,
    /// The transaction would take too much memory.
    TransactionTooLarge {
        /// Bytes it may take.
        limit: usize,
    },
    /// `EXEC`: the request was run, but its reply does not fit behind those of the others.
    RepliesTooLarge {
        /// Bytes they may take.
        limit: usize,
    },
    /// `SLOWLOG GET`.
    SlowLogCount,
    /// There is no cluster.
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
        /// The command, with its subcommand behind a `|`.
        command: String,
    },
    /// The user may not do this to one of the names.
    NoName,
    /// `EXEC`: what was allowed when it was queued no longer is.
    NoLonger(Box<SessionRefusal>),
    /// `ACL DRYRUN`: the user may not do this to this name.
    NoSuchName {
        /// The user.
        user: String,
        /// The name.
        name: String,
    },
    /// Nobody may run it.
    Off {
        /// The command, in upper case.
        command: String,
        /// How that came to be.
        why: &'static str,
    },
    /// `ACL SETUSER`: a rule that is none.
    Rule {
        /// The rule, unless it is a password.
        rule: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// `ACL SETUSER`: a name with blanks in it.
    UserName,
    /// `ACL DELUSER`.
    DefaultUser,
    /// `ACL DRYRUN`.
    UserNotFound(String),
    /// `ACL DRYRUN`.
    CommandNotFound(String),
    /// `ACL GENPASS`.
    PasswordBits,
    /// `ACL SAVE`, `ACL LOAD`: there is no file of users.
    NoUsersFile,
    /// `ACL SAVE`, `ACL LOAD`: it went wrong.
    UsersFile(String),
    /// The server is open to other machines, and would be open to everybody there.
    WouldExpose,
    /// `SHUTDOWN ABORT`.
    NoShutdown,
    /// `SHUTDOWN`: saving failed.
    ShutdownFailed,
    /// `DEBUG SLEEP`.
    NotAFloat,
    /// `COMMAND GETKEYS`: no such command.
    InvalidCommand,
    /// `COMMAND GETKEYS`: the number of words does not fit.
    InvalidArguments,
    /// `COMMAND GETKEYS`: it has none.
    NoNames,
    /// Nothing is written to disk: there is no folder for it.
    NoFolder,
    /// Writing to disk, or reading from it, failed.
    SaveFailed(String),
    /// `DEBUG RELOAD`: a value is not what its bytes say.
    ReloadFailed(String),
    /// `SAVE` while one is under way.
    SaveUnderWay,
    /// `CONFIG SET`: there is no such parameter.
    UnknownParameter(String),
    /// `CONFIG SET`: a value that is not taken.
    BadParameter {
        /// The parameter.
        name: &'static str,
        /// Why not, in Redis's words.
        why: &'static str,
    },
    /// `CONFIG SET`: a value that cannot be taken as things are.
    NotApplied {
        /// The parameter.
        name: &'static str,
        /// Why not.
        why: String,
    },
    /// `CONFIG REWRITE`: there is no file.
    NoConfigFile,
    /// `CONFIG REWRITE`: the file cannot be written.
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
                "ERR This server is not configured to use an ACL file: it is started with --users FILE then"
            }
            Self::UsersFile(why) => return write!(f, "ERR {why}"),
            Self::WouldExpose => {
                "ERR the server is open to other machines: a user that is on needs a password, unless it is started with \
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
    fn every_subcommand_is_there_once_and_its_arity_counts_both_words() {
        for (index, row) in SUBCOMMANDS.iter().enumerate() {
            let (Exactly(words) | AtLeast(words)) = row.arity;
            assert!(words >= 2, "{}", row.name);
            assert_eq!(row.name, row.name.to_lowercase());
            let same = |other: &Subcommand| other.of == row.of && other.name == row.name;
            assert_eq!(SUBCOMMANDS.iter().position(same), Some(index), "{}", row.name);
            let found = subcommand(row.of, row.name.to_uppercase().as_bytes()).unwrap();
            assert!(std::ptr::eq(found, row));
        }
    }
}
