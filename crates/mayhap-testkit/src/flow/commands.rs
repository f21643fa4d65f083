//! The replies of `COMMAND INFO`, and requests with too few or too many words.

use super::{Case, Flow};
use crate::host::Wire;

pub(super) const CASES: &[Case] = &[
    Case { name: "commands have RedisBloom's arity, flags and keys", run: table },
    Case { name: "requests with too few or too many words are rejected", run: arity },
];

/// The flags of a command.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    /// `write denyoom`.
    Writes,
    /// `write`, without `denyoom`.
    Frees,
    /// `readonly`.
    Reads,
}

const COMMANDS: [(&str, i64, Sort); 24] = [
    ("bf.reserve", -4, Sort::Writes),
    ("bf.add", 3, Sort::Writes),
    ("bf.madd", -3, Sort::Writes),
    ("bf.insert", -4, Sort::Writes),
    ("bf.exists", 3, Sort::Reads),
    ("bf.mexists", -3, Sort::Reads),
    ("bf.card", 2, Sort::Reads),
    ("bf.info", -2, Sort::Reads),
    ("bf.debug", 2, Sort::Reads),
    ("bf.scandump", 3, Sort::Reads),
    ("bf.loadchunk", 4, Sort::Writes),
    ("cf.reserve", -3, Sort::Writes),
    ("cf.add", 3, Sort::Writes),
    ("cf.addnx", 3, Sort::Writes),
    ("cf.insert", -4, Sort::Writes),
    ("cf.insertnx", -4, Sort::Writes),
    ("cf.exists", 3, Sort::Reads),
    ("cf.mexists", -3, Sort::Reads),
    ("cf.count", 3, Sort::Reads),
    ("cf.del", 3, Sort::Frees),
    ("cf.info", 2, Sort::Reads),
    ("cf.debug", 2, Sort::Reads),
    ("cf.scandump", 3, Sort::Reads),
    ("cf.loadchunk", 4, Sort::Writes),
];

fn table(flow: &mut Flow) {
    for (name, arity, sort) in COMMANDS {
        let reply = flow.ask(&format!("COMMAND INFO {}", name.to_uppercase()));
        let [Wire::Array(row)] = reply.list() else { panic!("{name}: {reply:?}") };
        assert_eq!((row[0].text().as_str(), row[1].integer()), (name, arity));
        let flags: Vec<String> = row[2].list().iter().map(Wire::text).collect();
        let has = |flag: &str| flags.iter().any(|there| there == flag);
        assert_eq!(has("readonly"), sort == Sort::Reads, "{name}: {flags:?}");
        assert_eq!(has("write"), sort != Sort::Reads, "{name}: {flags:?}");
        assert_eq!(has("denyoom"), sort == Sort::Writes, "{name}: {flags:?}");
        assert_eq!([3, 4, 5].map(|at| row[at].integer()), [1; 3], "{name}: position of its key");
    }
}

fn arity(flow: &mut Flow) {
    for (name, arity, _) in COMMANDS {
        let wrong = format!("ERR wrong number of arguments for '{name}' command");
        let words = usize::try_from(arity.unsigned_abs()).unwrap();
        let of =
            |count: usize| [name.to_owned(), vec!["1"; count - 1].join(" ")].join(" ").trim_end().to_owned();
        flow.refused(&of(words - 1), &wrong);
        if arity > 0 {
            flow.refused(&of(words + 1), &wrong);
        }
    }
    for line in ["BF.RESERVE f 0.01 9 NONSCALING a b c", "CF.RESERVE f 9 BUCKETSIZE", "BF.INFO f SIZE ITEMS"]
    {
        match flow.ask(line) {
            Wire::Refused(text) => {
                assert!(text.starts_with("ERR wrong number of arguments"), "{line}: {text}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
}
