//! Requests about the connection and the server are answered as a real Redis answers them, byte for byte,
//! including the texts of refusals.

#[path = "../../mayhap-formats/tests/real/mod.rs"]
mod real;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use mayhap_server::{Server, Settings};
use real::{Folder, redis};

/// Each block is one connection; each line is a request.
const SCRIPT: &str = r#"
HELLO 4
HELLO abc
HELLO 3 AUTH
HELLO 3 SETNAME "a b"
HELLO 3 FOO
AUTH
AUTH x
AUTH default x
AUTH nobody x
AUTH a b c
PING
PING a
PING a b
ECHO
ECHO a
SELECT 0
SELECT 16
SELECT -1
SELECT abc
SELECT
RESET

CLIENT
CLIENT FOO
CLIENT ID x
CLIENT GETNAME
CLIENT SETNAME foo
CLIENT GETNAME
CLIENT SETNAME "foo bar"
CLIENT SETNAME
CLIENT MAINT_NOTIFICATIONS ON
CLIENT CAPA redirect
CLIENT LIST TYPE foo
CLIENT LIST ID 99999 99998
CLIENT LIST ID x
CLIENT LIST FOO
CLIENT KILL 127.0.0.1:1
CLIENT KILL ID 99999
CLIENT KILL ID x
CLIENT KILL TYPE foo
CLIENT KILL FOO x
CLIENT KILL ADDR 1.1.1.1:1
CLIENT KILL SKIPME maybe
CLIENT KILL USER nobody
CLIENT KILL ID
CLIENT NO-EVICT ON
CLIENT NO-EVICT FOO
CLIENT GETREDIR
CLIENT UNPAUSE
CLIENT UNBLOCK 1
CLIENT UNBLOCK x
CLIENT REPLY ON
CLIENT REPLY FOO
!CLIENT REPLY SKIP
!PING
PING
!CLIENT REPLY OFF
!PING
!CLIENT REPLY SKIP
!PING
CLIENT REPLY ON

MULTI
MULTI
PING
WATCH a
UNWATCH
FOO
EXEC
EXEC
DISCARD
MULTI
DEL
PING
EXEC
MULTI
PING
ECHO a
DISCARD
MULTI
PING
SELECT 99
DEL nothing
ECHO b
EXEC
MULTI
SAVE
EXEC
WATCH a
WATCH
UNWATCH
MULTI
RESET
MULTI
QUIT

SLOWLOG
SLOWLOG FOO
SLOWLOG GET x
SLOWLOG GET -2
SLOWLOG RESET
LATENCY
LATENCY LATEST
LATENCY HISTORY
LATENCY HISTORY foo
LATENCY RESET
LATENCY RESET foo
LATENCY FOO
CLUSTER
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER NODES
CLUSTER COUNTKEYSINSLOT 1
CLUSTER HELP
CLUSTER FOO
READONLY
READWRITE
ASKING
WAIT 0 0
TIME x
ROLE
REPLICAOF NO ONE
REPLICAOF x
REPLICAOF 127.0.0.1 x
SLAVEOF NO ONE
MODULE
MODULE FOO
ACL
ACL WHOAMI
ACL CAT foo
ACL USERS
ACL LIST
ACL GETUSER default
ACL GETUSER nobody
ACL FOO
BGSAVE FOO
SAVE x
SHUTDOWN FOO
SHUTDOWN SAVE NOSAVE
SHUTDOWN ABORT
DEBUG
FOO
FOO a b c
FOO "a\r\nb"
foo|bar
COMMAND FOO
COMMAND COUNT x
COMMAND INFO foo
COMMAND DOCS foo
COMMAND GETKEYS
COMMAND GETKEYS FOO a
COMMAND GETKEYS PING
COMMAND GETKEYS ECHO a
COMMAND GETKEYS EXPIRE a
COMMAND GETKEYS DEL a b
COMMAND GETKEYSANDFLAGS DEL a b
COMMAND LIST x
COMMAND LIST FILTERBY FOO x
COMMAND LIST FILTERBY PATTERN expiret*
COMMAND INFO expiretime

HELLO 3 SETNAME a
MULTI
EXEC
CLIENT GETNAME
CLIENT SETNAME ""
CLIENT GETNAME
ACL GETUSER default
COMMAND INFO expiretime
COMMAND INFO foo
CLUSTER SLOTS
ROLE

ACL SETUSER ada
ACL LIST
ACL GETUSER ada
ACL SETUSER ada on >secret ~a:* %R~b:* %W~c:* +get
ACL GETUSER ada
ACL LIST
ACL SETUSER ada !2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b
ACL SETUSER ada #0
ACL SETUSER ada yes
ACL SETUSER ada +@nosuch
ACL SETUSER ada +nosuch
ACL SETUSER ada on off %X~a
ACL SETUSER ada allkeys ~a
ACL SETUSER ada allkeys resetkeys ~a resetkeys
ACL SETUSER ada &news:* &x
ACL LIST
ACL SETUSER "a b"
ACL SETUSER ada reset on nopass ~a:* +get +set +strlen +acl|whoami +copy +rename +exists +multi +exec
ACL USERS
ACL DRYRUN nobody get x
ACL DRYRUN ada nosuch x
ACL DRYRUN ada get
ACL DRYRUN ada get a:x
ACL GENPASS 0
ACL GENPASS 5000
ACL GENPASS x
ACL LOG RESET
ACL LOG x
ACL LOG -1
ACL LOG
ACL DELUSER default
ACL DELUSER nobody
AUTH ada anything
ACL WHOAMI
ACL LIST
GET a:x
GET b:x
DEL a:x
STRLEN b:x
EXISTS a:x b:x
COPY a:x b:x
COPY b:x a:x
RENAME a:x b:x
MULTI
SET a:x 1
SET b:x 1
EXEC
MULTI
SET a:x 1
EXEC
CONFIG GET port
CONFIG
AUTH default
AUTH default wrong
ACL WHOAMI

AUTH nobody x
HELLO 3 AUTH nobody x
HELLO 3 AUTH ada x SETNAME b
ACL WHOAMI
RESET
ACL WHOAMI
ACL DELUSER ada nobody
ACL USERS

"unbalanced
"#;

/// Reads one reply with all its bytes. Returns nothing at the end of the connection.
fn reply(from: &mut BufReader<UnixStream>) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_until(b'\n', &mut bytes).unwrap();
    let Some(marker) = bytes.first() else { return bytes };
    let number = || std::str::from_utf8(&bytes[1..bytes.len() - 2]).unwrap().parse::<i64>().unwrap();
    let nested = match marker {
        b'$' | b'=' => {
            if let Ok(length) = usize::try_from(number()) {
                let mut bulk = vec![0; length + 2];
                from.read_exact(&mut bulk).unwrap();
                bytes.extend_from_slice(&bulk);
            }
            return bytes;
        }
        b'*' | b'~' => number().max(0),
        b'%' => 2 * number(),
        _ => 0,
    };
    for _ in 0..nested {
        let element = reply(from);
        bytes.extend_from_slice(&element);
    }
    bytes
}

/// Converts refusals for missing permissions to the wording of Redis 7.2, which this server reports as its
/// version.
fn as_later(reply: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(reply) else { return reply.to_vec() };
    let text = text.replace(
        "NOPERM this user has no permissions to access one of the keys used as arguments",
        "NOPERM No permissions to access a key",
    );
    text.replace("NOPERM this user has no permissions to run", "NOPERM User ada has no permissions to run")
        .into_bytes()
}

#[test]
fn sessions_answer_like_redis() {
    let Some(redis_server) = redis::Server::start() else { return };
    let folder = Folder::new("session");
    let ours = folder.path().join("mayhap");
    let settings =
        Settings { port: None, unix_socket: Some(ours.clone()), workers: 1, ..Settings::default() };
    let _server = Server::start(settings).unwrap();
    let mut differing = Vec::new();
    for block in SCRIPT.trim().split("\n\n") {
        let (mut redis, mut mayhap) = (redis_server.connect(), redis::connect(&ours));
        for line in block.lines() {
            // Marked as a request without a reply. If there is one, the next line gets it.
            let (silent, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
            let mut replies = [Vec::new(), Vec::new()];
            for (connection, got) in [&mut redis, &mut mayhap].into_iter().zip(&mut replies) {
                connection.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
                if !silent {
                    *got = reply(connection);
                }
            }
            replies[0] = as_later(&replies[0]);
            // The reply of HELLO contains the name of the server.
            if !line.starts_with("HELLO 3 SETNAME a")
                && !line.starts_with("HELLO 3 AUTH ada")
                && replies[0] != replies[1]
            {
                let [redis, mayhap] = replies.map(|reply| reply.escape_ascii().to_string());
                differing.push(format!("{line}\n  redis:  {redis}\n  mayhap: {mayhap}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
