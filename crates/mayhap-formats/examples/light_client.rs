//! A Bitcoin light client: finds the blocks that pay a wallet, and downloads no other block (BIP 157 and 158).
//!
//! A full node makes one small filter of all scripts in a block. The client downloads every filter, asks it about the scripts of its
//! wallet, and downloads a block only where the filter says *maybe*. The server learns which blocks it downloads, not which scripts it has.
//!
//! ```text
//! node    block ─▶ filter, 21 bits per script ─▶ header of the filter, linked to the header before
//! client  filter ─▶ is the header right? ─▶ any of my scripts? ─▶ maybe: download the block
//! ```
//!
//! `cargo run --release -p mayhap --example light_client -- 5000` runs it with 5,000 blocks. It checks its own claims.

use std::collections::BTreeSet;

use mayhap::{Answers, ItemEncoding};
use mayhap_formats::block_filter::{self, BASIC};

type Error = Box<dyn std::error::Error>;
type Script = [u8; 22];

/// Outputs and spent outputs of a block. Real blocks have some thousands.
const SCRIPTS: u64 = 1_000;
/// Approximate bytes of a block per script: a share of a transaction.
const BYTES_PER_SCRIPT: u64 = 250;
/// Scripts of the wallet.
const OWN: u64 = 40;

/// The output script of an address: OP_0, and a hash of 20 bytes.
fn script(number: u64) -> Script {
    let mut script = [0; 22];
    script[1] = 20;
    for (at, piece) in script[2..].chunks_mut(8).enumerate() {
        let word = number.wrapping_add(at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        piece.copy_from_slice(&word.to_be_bytes()[..piece.len()]);
    }
    script
}

fn own_script(number: u64) -> Script {
    script((1 << 40) + number * 16)
}

/// A full node and the data it serves.
struct Node {
    blocks: Vec<Block>,
}

struct Block {
    hash: [u8; 32],
    scripts: Vec<Script>,
    filter: Vec<u8>,
    /// Commits to this filter and to all before it.
    filter_header: [u8; 32],
}

impl Node {
    fn new(blocks: u64, paid: &BTreeSet<u64>) -> Result<Self, Error> {
        let mut chain: Vec<Block> = Vec::new();
        for height in 0..blocks {
            let mut hash = [0x43; 32];
            hash[..8].copy_from_slice(&height.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
            let mut scripts: Vec<Script> =
                (0..SCRIPTS).map(|number| script((height * SCRIPTS + number) * 16)).collect();
            if paid.contains(&height) {
                scripts[500] = own_script(height % OWN);
            }
            let key = block_filter::key_of_block(&hash);
            let set = block_filter::build(scripts.iter(), BASIC, key, ItemEncoding::Bytes)?;
            let mut filter = Vec::new();
            block_filter::write(&set, &mut filter)?;
            let previous = chain.last().map_or([0; 32], |block| block.filter_header);
            let filter_header = block_filter::header(&filter, &previous);
            chain.push(Block { hash, scripts, filter, filter_header });
        }
        Ok(Self { blocks: chain })
    }
}

/// The downloads and results of the client.
struct Scan {
    /// Blocks that pay the wallet.
    payments: BTreeSet<u64>,
    /// Blocks that were downloaded and do not pay it.
    needless: u64,
    filter_bytes: u64,
    block_bytes: u64,
}

/// Scans the chain with filters only. `last_header` comes from a source the client trusts.
fn scan(node: &Node, last_header: &[u8; 32]) -> Result<Scan, Error> {
    let own: Vec<Script> = (0..OWN).map(own_script).collect();
    let mut scan = Scan { payments: BTreeSet::new(), needless: 0, filter_bytes: 0, block_bytes: 0 };
    let mut header = [0; 32];
    let mut matches = Vec::new();
    for (height, block) in node.blocks.iter().enumerate() {
        header = block_filter::header(&block.filter, &header);
        scan.filter_bytes += block.filter.len() as u64;
        let key = block_filter::key_of_block(&block.hash);
        let filter = block_filter::read(&block.filter, BASIC, key, ItemEncoding::Bytes)?;
        let mut answers = Answers::new();
        filter.may_contain_batch(&own, &mut answers);
        if answers.iter().any(|maybe| maybe) {
            matches.push(height);
        }
    }
    // A filter that was changed on the way could hide a payment.
    if header != *last_header {
        return Err("a filter is not the one that its header commits to".into());
    }
    for height in matches {
        let block = &node.blocks[height];
        scan.block_bytes += block.scripts.len() as u64 * BYTES_PER_SCRIPT;
        match block.scripts.iter().any(|script| own.contains(script)) {
            true => {
                scan.payments.insert(height as u64);
            }
            false => scan.needless += 1,
        }
    }
    Ok(scan)
}

fn main() -> Result<(), Error> {
    let blocks = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 500,
    };
    let paid: BTreeSet<u64> = (0..blocks).filter(|height| height % 97 == 5).collect();
    let node = Node::new(blocks, &paid)?;
    let scan = scan(&node, &node.blocks.last().ok_or("a chain has a block")?.filter_header)?;
    let all = blocks * SCRIPTS * BYTES_PER_SCRIPT;
    println!(
        "{blocks} blocks of {} kB, {} of them pay the wallet",
        SCRIPTS * BYTES_PER_SCRIPT / 1_000,
        paid.len()
    );
    println!(
        "filters: {} bytes, {:.1} bits per script",
        scan.filter_bytes,
        scan.filter_bytes as f64 * 8.0 / (blocks * SCRIPTS) as f64
    );
    println!("blocks downloaded: {} that pay, {} that do not", scan.payments.len(), scan.needless);
    println!(
        "downloaded in all: {:.2} % of the chain",
        100.0 * (scan.filter_bytes + scan.block_bytes) as f64 / all as f64
    );
    check(&scan, &paid, blocks)
}

/// Every payment is found, and a script matches a foreign block in one of 784,931 cases.
fn check(scan: &Scan, paid: &BTreeSet<u64>, blocks: u64) -> Result<(), Error> {
    if scan.payments != *paid {
        return Err(format!("found {} of {} payments", scan.payments.len(), paid.len()).into());
    }
    let expected = (blocks * OWN) as f64 / BASIC.values_per_item as f64;
    if scan.needless as f64 > expected + 6.0 * expected.sqrt() + 2.0 {
        return Err(format!("{} needless downloads, {expected:.2} expected", scan.needless).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payment_is_found_and_a_changed_filter_is_detected() {
        let paid: BTreeSet<u64> = [0, 7, 30, 59].into();
        let mut node = Node::new(60, &paid).unwrap();
        let last = node.blocks[59].filter_header;
        check(&scan(&node, &last).unwrap(), &paid, 60).unwrap();

        // A server that hides a payment by serving the filter of another block.
        node.blocks[7].filter = node.blocks[8].filter.clone();
        assert!(scan(&node, &last).is_err());
    }
}
