//! The dialogues with a server that the pages show are real: every request is sent, and the reply is the one on the page.
//!
//! Two kinds of blocks are read. In a `resp` block a line is a request, at least two spaces, and its reply; the reply may
//! also stand alone on the next line, indented. In a `sh by-hand` block, lines of the form
//! `redis-cli -p 6399 REQUEST  # REPLY` are read. What follows a colon, a semicolon, a full-width comma or a bracket is a
//! note for the reader. A request without a reply must succeed. Lines that begin with `…` are skipped.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use program::server::Server;

/// Pages with dialogues, with the number of requests that each has at least.
const PAGES: [(&str, usize); 9] = [
    ("docs/guide/cache-penetration.md", 6),
    ("docs/guide/coupons.md", 5),
    ("docs/guide/feed-tiers.md", 4),
    ("docs/guide/message-queue.md", 6),
    ("docs/zh/guide/cache-penetration.md", 6),
    ("docs/zh/guide/coupons.md", 5),
    ("docs/zh/guide/feed-tiers.md", 4),
    ("docs/zh/guide/message-queue.md", 6),
    ("docs/zh/server-first-hour.md", 25),
];

/// A request and the reply that the page shows.
#[derive(Debug, PartialEq, Eq)]
struct Exchange {
    request: String,
    reply: Option<String>,
}

/// The exchanges of a page, in order.
fn exchanges(page: &str) -> Vec<Exchange> {
    let mut all = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let block = lines.by_ref().take_while(|line| *line != "```");
        match line {
            "```resp" => block.for_each(|line| read_resp(line, &mut all)),
            "```sh by-hand" => all.extend(block.filter_map(read_redis_cli)),
            line if line.starts_with("```") => block.for_each(drop),
            _ => {}
        }
    }
    all
}

fn read_resp(line: &str, all: &mut Vec<Exchange>) {
    if line.trim().is_empty() || line.starts_with('…') {
        return;
    }
    if line.starts_with(' ') {
        let last = all.last_mut().unwrap_or_else(|| panic!("a reply without a request: {line}"));
        last.reply = Some(without_note(line));
        return;
    }
    let (request, reply) = line.split_once("  ").unwrap_or((line, ""));
    let reply = Some(without_note(reply)).filter(|reply| !reply.is_empty());
    all.push(Exchange { request: request.to_owned(), reply });
}

fn read_redis_cli(line: &str) -> Option<Exchange> {
    let (request, reply) = line.strip_prefix("redis-cli -p 6399 ")?.split_once(" # ")?;
    Some(Exchange { request: request.trim().to_owned(), reply: Some(without_note(reply)) })
}

fn without_note(reply: &str) -> String {
    let ends = [": ", "; ", "：", "；", "，", "（", " ("];
    let end = ends.iter().filter_map(|end| reply.find(end)).min().unwrap_or(reply.len());
    reply[..end].replace(',', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a reply and writes it as the pages do: the elements of an array one after the other.
fn read_reply(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("the server replies");
    let line = line.trim_end();
    let (kind, rest) = line.split_at(1);
    let number = || rest.parse::<i64>().expect("a length");
    match kind {
        "+" | ":" | "-" => rest.to_owned(),
        "$" if number() < 0 => "(nil)".to_owned(),
        "$" => {
            let mut bytes = vec![0; number() as usize + 2];
            from.read_exact(&mut bytes).expect("a bulk string");
            String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned()
        }
        "*" => (0..number()).map(|_| read_reply(from)).collect::<Vec<_>>().join(" "),
        _ => panic!("unknown reply {line}"),
    }
}

/// Sends all requests of a page. Returns the first reply that differs.
fn replay(server: &Server, page: &str) -> Result<usize, String> {
    let stream: TcpStream = server.connect();
    let mut replies = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut send = |request: &str| {
        (&stream).write_all(format!("{request}\r\n").as_bytes()).expect("the server reads");
        read_reply(&mut replies)
    };
    assert_eq!(send("FLUSHALL"), "OK");
    let exchanges = exchanges(page);
    for Exchange { request, reply } in &exchanges {
        let got = send(request);
        let fits = match reply.as_deref() {
            Some(expected) => got == expected || got.starts_with(&format!("{expected} ")),
            None => !got.starts_with("ERR") && !got.starts_with("NOTREADY"),
        };
        if !fits {
            return Err(format!("{request}: the page says {reply:?}, the server {got:?}"));
        }
    }
    Ok(exchanges.len())
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transcripts").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder of the test");
    folder
}

#[test]
fn every_dialogue_of_the_pages_is_real() {
    let server = Server::in_folder(&scratch("pages"), &[]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, fewest) in PAGES {
        let page = fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let sent = replay(&server, &page).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(sent >= fewest, "{name} has only {sent} requests");
        // A translation shows the same requests.
        if let Some(english) = name.strip_prefix("docs/zh/guide/") {
            let english =
                fs::read_to_string(root.join("docs/guide").join(english)).expect("the English page");
            assert_eq!(exchanges(&page), exchanges(&english), "{name}");
        }
    }
}

#[test]
fn a_wrong_dialogue_is_detected() {
    let server = Server::in_folder(&scratch("wrong"), &[]);
    let wrong = |page: &str| replay(&server, page).unwrap_err();
    assert_eq!(
        replay(&server, "```resp\nBF.ADD seen ada    1: new\nBF.MEXISTS seen ada bob\n    1, 0\n```\n"),
        Ok(2)
    );
    assert!(wrong("```resp\nBF.ADD seen ada    0\n```\n").contains("the server \"1\""));
    assert!(wrong("```resp\nBF.ADD seen\n```\n").contains("ERR"), "a request without a reply must succeed");
    assert!(
        wrong("```sh by-hand\nredis-cli -p 6399 BF.EXISTS seen bob   # 1，可能存在\n```\n").contains("\"0\"")
    );
    assert!(wrong("```resp\nMF.EXISTS seen bob    0\n```\n").contains("NOTREADY"));
}
