//! The slot of a key, and the slot maps of servers. No I/O; every reply is checked.

use redis::Value;

/// The number of slots of a cluster.
pub(crate) const SLOTS: u16 = 16_384;
/// There cannot be more ranges than slots.
const MOST_RANGES: usize = SLOTS as usize;
/// The maximum number of replicas per master.
const MOST_REPLICAS: usize = 64;
/// The maximum length of a host name.
const MOST_HOST_BYTES: usize = 253;

/// The slot of `key`. It follows from the text between the first `{` and the next `}`, unless that is empty,
/// else from the whole key.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    crc16(tag_of(key)) % SLOTS
}

/// The part of `key` that decides its slot: its hash tag, or the whole key if it has none.
pub(super) fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|&byte| byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc: u16, _| {
            crc << 1 ^ if crc >> 15 == 1 { 0x1021 } else { 0 }
        })
    })
}

/// The host and port of a node. An empty host means the host of the node that gave the address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeAddress {
    pub(super) host: String,
    pub(super) port: u16,
}

/// A range of slots of one master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) master: NodeAddress,
    pub(super) replicas: Vec<NodeAddress>,
}

/// Parses the reply to `CLUSTER SLOTS`. `None` if it is invalid.
pub(super) fn parse_slots(reply: &Value) -> Option<Vec<SlotRange>> {
    let Value::Array(ranges) = reply else { return None };
    if ranges.len() > MOST_RANGES {
        return None;
    }
    ranges.iter().map(parse_range).collect()
}

fn parse_range(reply: &Value) -> Option<SlotRange> {
    let Value::Array(parts) = reply else { return None };
    let [Value::Int(from), Value::Int(to), master, replicas @ ..] = parts.as_slice() else { return None };
    let slot = |number: i64| u16::try_from(number).ok().filter(|&slot| slot < SLOTS);
    let (from, to) = (slot(*from)?, slot(*to)?);
    if from > to {
        return None;
    }
    let replicas = replicas.iter().take(MOST_REPLICAS).filter_map(parse_node).collect();
    Some(SlotRange { from, to, master: parse_node(master)?, replicas })
}

fn parse_node(reply: &Value) -> Option<NodeAddress> {
    let Value::Array(parts) = reply else { return None };
    let [host, Value::Int(port), ..] = parts.as_slice() else { return None };
    let host = match host {
        Value::Nil => String::new(),
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        Value::SimpleString(host) => host.clone(),
        _ => return None,
    };
    // A node that does not know its own name sends this.
    let host = if host == "?" { String::new() } else { host };
    address(&host, *port)
}

fn address(host: &str, port: i64) -> Option<NodeAddress> {
    let port = u16::try_from(port).ok().filter(|&port| port != 0)?;
    (host.len() <= MOST_HOST_BYTES).then(|| NodeAddress { host: host.to_owned(), port })
}

/// The slot and the address in `MOVED slot host:port` or `ASK slot host:port`, given the text after the first
/// word.
pub(super) fn parse_redirection(text: &str) -> Option<(u16, NodeAddress)> {
    let mut words = text.split_ascii_whitespace();
    let slot = words.next()?.parse().ok().filter(|&slot| slot < SLOTS)?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    Some((slot, address(host, port.parse().ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{foo}bar"), 12_182);
        assert_eq!(slot_of(b"a{foo}{bar}"), 12_182);
        assert_eq!(slot_of(b"{}foo"), crc16(b"{}foo") % SLOTS, "an empty tag is not a tag");
        assert_eq!(slot_of(b"{foo"), crc16(b"{foo") % SLOTS, "an open tag is not a tag");
        assert_eq!(slot_of(b"foo{{bar}}"), slot_of(b"{bar"));
    }

    #[test]
    fn redirections_are_parsed_or_rejected() {
        let address = |host: &str, port| NodeAddress { host: host.into(), port };
        assert_eq!(parse_redirection("3999 127.0.0.1:6381"), Some((3999, address("127.0.0.1", 6381))));
        assert_eq!(parse_redirection("0 ::1:6381"), Some((0, address("::1", 6381))));
        assert_eq!(parse_redirection("7 :6381"), Some((7, address("", 6381))));
        let long = format!("1 {}:6379", "a".repeat(300));
        for odd in ["", "1", "16384 a:1", "-1 a:1", "1 a", "1 a:0", "1 a:65536", "1 a:b", long.as_str()] {
            assert_eq!(parse_redirection(odd), None, "{odd}");
        }
    }

    #[test]
    fn invalid_slot_maps_are_rejected() {
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let range = |from, to, node| Value::Array(vec![Value::Int(from), Value::Int(to), node]);
        let good = Value::Array(vec![range(0, 16_383, node(text("h"), 1))]);
        assert_eq!(parse_slots(&good).unwrap()[0].master, NodeAddress { host: "h".into(), port: 1 });
        let nameless = Value::Array(vec![range(0, 0, node(Value::Nil, 1)), range(1, 1, node(text("?"), 2))]);
        assert!(parse_slots(&nameless).unwrap().iter().all(|range| range.master.host.is_empty()));
        for odd in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(0, 16_384, node(text("h"), 1))]),
            Value::Array(vec![range(-1, 2, node(text("h"), 1))]),
            Value::Array(vec![range(3, 2, node(text("h"), 1))]),
            Value::Array(vec![range(0, 2, node(text("h"), 0))]),
            Value::Array(vec![range(0, 2, node(text("h"), 70_000))]),
            Value::Array(vec![range(0, 2, node(Value::BulkString(vec![255]), 7))]),
            Value::Array(vec![range(0, 2, Value::Int(1))]),
            Value::Array(vec![range(0, 0, node(text("h"), 1)); 16_385]),
        ] {
            assert_eq!(parse_slots(&odd), None);
        }
    }
}
