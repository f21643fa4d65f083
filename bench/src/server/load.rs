//! A pipelined load: N requests in one write; all their replies are read before the next write.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// The sorts of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sort {
    /// `PING`.
    Ping,
    /// `GETBIT bits <random>` in a string of this many bits.
    GetBit(u64),
    /// `SETBIT bits <random> 1` in a string of this many bits.
    SetBit(u64),
    /// `BF.EXISTS seen <item>` in a filter of this many items: every other item is a member.
    Exists(u64),
    /// `BF.ADD new <item>`, always with a new item.
    Add,
    /// `BF.MEXISTS seen` with this many items, in a filter of this many items: every other item is a member.
    ManyExist(usize, u64),
    /// `BF.MADD new` with this many items.
    ManyAdd(usize),
    /// `CF.EXISTS seen.cf <item>` in a filter of this many items: every other item is a member.
    CuckooExists(u64),
    /// `CF.ADD new.cf <item>`, always with a new item.
    CuckooAdd,
}

impl Sort {
    /// Items in one request.
    pub(super) const fn items(self) -> usize {
        match self {
            Self::ManyExist(items, _) | Self::ManyAdd(items) => items,
            _ => 1,
        }
    }

    /// Line ends in one reply.
    pub(super) const fn lines(self) -> usize {
        match self {
            Self::ManyExist(items, _) | Self::ManyAdd(items) => items + 1,
            _ => 1,
        }
    }

    /// The command alone, as the server counts it.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::GetBit(_) => "getbit",
            Self::SetBit(_) => "setbit",
            Self::Exists(_) => "bf.exists",
            Self::Add => "bf.add",
            Self::ManyExist(..) => "bf.mexists",
            Self::ManyAdd(_) => "bf.madd",
            Self::CuckooExists(_) => "cf.exists",
            Self::CuckooAdd => "cf.add",
        }
    }

    /// The name in the table.
    pub(super) fn name(self) -> String {
        match self {
            Self::Ping => "PING".into(),
            Self::GetBit(_) => "GETBIT".into(),
            Self::SetBit(_) => "SETBIT".into(),
            Self::Exists(_) => "BF.EXISTS".into(),
            Self::Add => "BF.ADD".into(),
            Self::ManyExist(items, _) => format!("BF.MEXISTS x{items}"),
            Self::ManyAdd(items) => format!("BF.MADD x{items}"),
            Self::CuckooExists(_) => "CF.EXISTS".into(),
            Self::CuckooAdd => "CF.ADD".into(),
        }
    }
}

/// Members have numbers below the number of items; non-members begin here.
const NON_MEMBERS: u64 = 1 << 62;

/// An endless stream of requests.
pub(super) struct Requests {
    state: u64,
    /// The number of the next new item.
    fresh: u64,
}

impl Requests {
    /// Creates a stream. Streams with different seeds have different items.
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, fresh: seed << 40 }
    }

    /// Xorshift: fast and good enough to spread the accesses.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn asked(&mut self, of: u64) -> u64 {
        let random = self.random();
        if random & 1 == 0 { (random >> 1) % of } else { NON_MEMBERS + (random >> 4) }
    }

    fn fresh(&mut self) -> u64 {
        self.fresh += 1;
        self.fresh
    }

    /// Appends one request.
    pub(super) fn write(&mut self, sort: Sort, out: &mut Vec<u8>) {
        match sort {
            Sort::Ping => out.extend_from_slice(b"*1\r\n$4\r\nPING\r\n"),
            Sort::GetBit(bits) => {
                out.extend_from_slice(b"*3\r\n$6\r\nGETBIT\r\n$4\r\nbits\r\n");
                decimal(self.random() % bits, out);
            }
            Sort::SetBit(bits) => {
                out.extend_from_slice(b"*4\r\n$6\r\nSETBIT\r\n$4\r\nbits\r\n");
                decimal(self.random() % bits, out);
                out.extend_from_slice(b"$1\r\n1\r\n");
            }
            Sort::Exists(of) => {
                out.extend_from_slice(b"*3\r\n$9\r\nBF.EXISTS\r\n$4\r\nseen\r\n");
                item(self.asked(of), out);
            }
            Sort::Add => {
                out.extend_from_slice(b"*3\r\n$6\r\nBF.ADD\r\n$3\r\nnew\r\n");
                item(self.fresh(), out);
            }
            Sort::ManyExist(items, of) => {
                out.extend_from_slice(
                    format!("*{}\r\n$10\r\nBF.MEXISTS\r\n$4\r\nseen\r\n", items + 2).as_bytes(),
                );
                (0..items).for_each(|_| item(self.asked(of), out));
            }
            Sort::ManyAdd(items) => {
                out.extend_from_slice(format!("*{}\r\n$7\r\nBF.MADD\r\n$3\r\nnew\r\n", items + 2).as_bytes());
                (0..items).for_each(|_| item(self.fresh(), out));
            }
            Sort::CuckooExists(of) => {
                out.extend_from_slice(b"*3\r\n$9\r\nCF.EXISTS\r\n$7\r\nseen.cf\r\n");
                item(self.asked(of), out);
            }
            Sort::CuckooAdd => {
                out.extend_from_slice(b"*3\r\n$6\r\nCF.ADD\r\n$6\r\nnew.cf\r\n");
                item(self.fresh(), out);
            }
        }
    }
}

/// A number as a bulk string.
fn decimal(number: u64, out: &mut Vec<u8>) {
    let text = number.to_string();
    out.extend_from_slice(format!("${}\r\n{text}\r\n", text.len()).as_bytes());
}

/// The item of a number: sixteen hexadecimal digits.
pub(super) fn item(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("$16\r\n{number:016x}\r\n").as_bytes());
}

/// Sends the requests in the buffer, and reads the replies to this many requests.
pub(super) fn exchange(stream: &mut TcpStream, sent: &[u8], sort: Sort, requests: usize) -> io::Result<()> {
    stream.write_all(sent)?;
    read_lines(stream, requests * sort.lines())
}

/// Reads this many lines. No reply may follow them.
pub(super) fn read_lines(stream: &mut TcpStream, lines: usize) -> io::Result<()> {
    let mut left = lines;
    while left > 0 {
        left = left.saturating_sub(read_some(stream)?);
    }
    Ok(())
}

/// Reads the available bytes, at least one, and returns the number of line ends in them. An error reply stops the measurement.
pub(super) fn read_some(stream: &mut TcpStream) -> io::Result<usize> {
    let mut buffer = [0; 64 << 10];
    let read = stream.read(&mut buffer)?;
    let said = &buffer[..read];
    if read == 0 || said[0] == b'-' {
        return Err(io::Error::other(format!("unexpected reply: {:?}", String::from_utf8_lossy(said))));
    }
    Ok(said.iter().filter(|&&byte| byte == b'\n').count())
}
