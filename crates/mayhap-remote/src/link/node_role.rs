//! The role of a server: single or in a cluster, master or replica. No I/O.

use redis::{Cmd, Value};

/// The role of a server. Fields are `None` if the server does not report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeRole {
    pub(super) is_clustered: Option<bool>,
    is_replica: Option<bool>,
    /// Is it connected to its master?
    is_following: bool,
    /// The replication id, which a master and its replicas share.
    history: Option<String>,
}

/// The commands whose replies [`NodeRole::read`] takes.
///
/// Every user may send `HELLO`, and a server answers it even while it loads its data. `INFO` may be denied.
/// Servers before Redis 6 have only `INFO`.
pub(super) fn questions() -> [Cmd; 3] {
    let info = |section: &str| redis::cmd("INFO").arg(section).take();
    [redis::cmd("HELLO"), info("cluster"), info("replication")]
}

impl NodeRole {
    /// Reads the replies to [`questions`].
    pub(super) fn read(answers: &[Value]) -> Self {
        let hello = |name: &str| answers.first().and_then(|hello| field_of_hello(hello, name));
        let info = |at: usize, name: &str| answers.get(at).and_then(|info| field_of_info(info, name));
        let is_clustered = hello("mode").map(|mode| mode == "cluster");
        let is_replica = hello("role").map(|role| role != "master");
        Self {
            is_clustered: is_clustered.or_else(|| info(1, "cluster_enabled").map(|number| number == "1")),
            is_replica: is_replica.or_else(|| info(2, "role").map(|role| role != "master")),
            is_following: info(2, "master_link_status").is_some_and(|status| status == "up"),
            history: info(2, "master_replid"),
        }
    }

    /// Is it a replica outside a cluster? Such a replica answers every request, however stale it is. In a
    /// cluster it redirects to its master.
    pub(super) fn is_lone_replica(&self) -> bool {
        self.is_replica == Some(true) && self.is_clustered != Some(true)
    }

    /// Is it a replica that follows this master?
    pub(super) fn follows(&self, master: &Self) -> bool {
        let is_same = self.history.is_some() && self.history == master.history;
        self.is_lone_replica() && self.is_following && is_same
    }
}

/// A field of the reply to `HELLO`, which is a map, or a list with the same contents.
fn field_of_hello(reply: &Value, name: &str) -> Option<String> {
    let is_it = |key: &Value| text(key).is_some_and(|key| key == name);
    match reply {
        Value::Map(pairs) => pairs.iter().find(|(key, _)| is_it(key)).and_then(|(_, value)| text(value)),
        Value::Array(list) => {
            list.chunks_exact(2).find(|pair| is_it(&pair[0])).and_then(|pair| text(&pair[1]))
        }
        _ => None,
    }
}

/// A field of the reply to `INFO`.
fn field_of_info(reply: &Value, name: &str) -> Option<String> {
    let text = text(reply)?;
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().map(|value| value.trim_end().to_owned())
}

/// The text of a reply.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn hello(mode: &str, role: &str) -> Value {
        Value::Array(["server", "redis", "mode", mode, "role", role].map(bulk).to_vec())
    }

    fn replication(role: &str, history: &str) -> Value {
        let status = if role == "slave" { "master_link_status:up\r\n" } else { "" };
        bulk(&format!(
            "# Replication\r\nrole:{role}\r\n{status}master_replid:{history}\r\nmaster_replid2:00\r\n"
        ))
    }

    #[test]
    fn the_role_is_read_from_hello_or_info() {
        let nothing = || Value::Nil;
        let said = |answers: [Value; 3]| {
            let role = NodeRole::read(&answers);
            (role.is_clustered, role.is_replica)
        };
        let pairs = [("mode", "cluster"), ("role", "replica")].map(|(name, value)| (bulk(name), bulk(value)));
        let cluster = |number: u8| bulk(&format!("# Cluster\r\ncluster_enabled:{number}\r\n"));
        assert_eq!(said([hello("standalone", "master"), nothing(), nothing()]), (Some(false), Some(false)));
        assert_eq!(said([Value::Map(pairs.to_vec()), nothing(), nothing()]), (Some(true), Some(true)));
        assert_eq!(said([nothing(), cluster(1), replication("slave", "7a")]), (Some(true), Some(true)));
        assert_eq!(said([nothing(), cluster(0), replication("master", "7a")]), (Some(false), Some(false)));
        assert_eq!(said([nothing(), nothing(), nothing()]), (None, None));
        assert_eq!(NodeRole::read(&[]), NodeRole::default());
        assert_eq!(NodeRole::read(&[Value::Array(vec![bulk("mode")])]), NodeRole::default());
    }

    #[test]
    fn a_replica_follows_the_master_with_the_same_replication_id() {
        let role =
            |mode: &str, role: &str, info: Value| NodeRole::read(&[hello(mode, role), Value::Nil, info]);
        let master = role("standalone", "master", replication("master", "7a"));
        let replica = role("standalone", "replica", replication("slave", "7a"));
        assert!(replica.is_lone_replica() && replica.follows(&master) && !master.follows(&master));
        let other = role("standalone", "replica", replication("slave", "7b"));
        assert!(other.is_lone_replica() && !other.follows(&master));
        let cut_off = bulk("role:slave\r\nmaster_link_status:down\r\nmaster_replid:7a\r\n");
        assert!(!role("standalone", "replica", cut_off).follows(&master));
        let secret = role("standalone", "replica", Value::Nil);
        assert!(secret.is_lone_replica() && !secret.follows(&role("standalone", "master", Value::Nil)));
        assert!(!role("cluster", "replica", replication("slave", "7a")).is_lone_replica());
    }
}
