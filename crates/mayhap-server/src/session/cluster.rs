//! `CLUSTER`: replies that the server is not a cluster, in the words clients look for.

use mayhap_command::server::SessionRefusal;
use mayhap_command::{Refusal, Reply};

use super::{Session, is};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

impl Session {
    /// Runs `CLUSTER subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn cluster(&self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        if is(words[1], "keyslot") {
            Ok(Reply::Integer(i64::from(slot(words[2]))))
        } else if is(words[1], "myid") {
            Ok(Reply::bulk(self.shared.run_id()))
        } else if is(words[1], "info") {
            let text = "cluster_enabled:0\r\ncluster_state:ok\r\ncluster_slots_assigned:0\r\ncluster_slots_ok:0\r\n\
                        cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:0\r\n\
                        cluster_current_epoch:0\r\ncluster_my_epoch:0\r\n";
            Ok(Reply::Text(text.to_owned()))
        } else {
            Err(SessionRefusal::NoCluster.into())
        }
    }
}

/// Returns the slot of a name: that of the text between the first `{` and the next `}`, or of the whole name
/// if that is empty.
fn slot(name: &[u8]) -> u16 {
    let tag = name.iter().position(|byte| *byte == b'{').and_then(|open| {
        let after = &name[open + 1..];
        let close = after.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &after[..close])
    });
    crc16(tag.unwrap_or(name)) % SLOTS
}

/// CRC-16/XMODEM, which assigns names to slots in Redis Cluster.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_the_cluster_specification() {
        // From the cluster specification: the checksum of 123456789 is 31C3.
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_ne!(slot(b"a"), slot(b"b"));
    }
}
