//! Removes secrets from requests before others see them: passwords, and the keys of filters.

use mayhap_command::Command;

use super::is;

const REDACTED: &[u8] = b"(redacted)";

/// The words of a request with secrets replaced.
pub(super) fn redacted<'w>(command: &Command, words: &[&'w [u8]]) -> Vec<&'w [u8]> {
    let mut shown = words.to_vec();
    let mut hide = |from: usize, to: usize| {
        let end = to.min(shown.len());
        shown.get_mut(from..end).into_iter().flatten().for_each(|word| *word = REDACTED);
    };
    match command.name {
        "auth" => hide(1, usize::MAX),
        "hello" => {
            for at in positions_after(words, "auth") {
                hide(at, at + 2);
            }
        }
        "acl" if words.get(1).is_some_and(|word| is(word, "setuser")) => hide(3, usize::MAX),
        "config" => {
            for at in positions_after(words, "requirepass") {
                hide(at, at + 1);
            }
        }
        "mf.reserve" | "mf.build" => {
            for at in positions_after(words, "key") {
                hide(at, at + 1);
            }
        }
        // The bytes of a filter contain its key.
        "restore" | "mf.load" | "bf.loadchunk" | "cf.loadchunk" => hide(3, 4),
        _ => {}
    }
    shown
}

/// The positions after each word `name`.
fn positions_after<'w>(words: &'w [&[u8]], wanted: &'w str) -> impl Iterator<Item = usize> + 'w {
    words.iter().enumerate().skip(1).filter(move |(_, word)| is(word, wanted)).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use mayhap_command::table;

    use super::*;

    #[test]
    fn passwords_and_keys_are_redacted() {
        for line in [
            "AUTH secret",
            "AUTH ada secret",
            "HELLO 3 SETNAME me auth ada secret",
            "ACL setuser ada on >secret",
            "CONFIG SET port 1 RequirePass secret",
            "MF.RESERVE f CAPACITY 10 KEY secret",
            "MF.BUILD f BEGIN key secret",
            "RESTORE f 0 secret",
            "MF.LOAD f 0 secret",
            "BF.LOADCHUNK f 1 secret",
        ] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let shown = redacted(table::find(words[0]).unwrap(), &words);
            assert_eq!(shown.len(), words.len(), "{line}");
            assert!(shown.contains(&REDACTED) && !shown.contains(&&b"secret"[..]), "{line}");
            assert!(!shown.contains(&&b">secret"[..]), "{line}");
        }
        let words: Vec<&[u8]> = vec![b"BF.ADD", b"auth", b"key"];
        assert_eq!(redacted(table::find(words[0]).unwrap(), &words), words);
    }
}
