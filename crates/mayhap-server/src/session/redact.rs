//! Removes secrets from requests before others see them: passwords, and the keys of filters.

use mayhap_command::Command;
use mayhap_command::traits::Secrets;

use super::is;

const REDACTED: &[u8] = b"(redacted)";

/// The words of a request with secrets replaced.
pub(super) fn redacted<'w>(command: &Command, words: &[&'w [u8]]) -> Vec<&'w [u8]> {
    let mut shown = words.to_vec();
    let mut hide = |from: usize, to: usize| {
        let end = to.min(shown.len());
        shown.get_mut(from..end).into_iter().flatten().for_each(|word| *word = REDACTED);
    };
    let subcommand = words.get(1).and_then(|word| command.subcommand(word)).map(|row| row.secrets);
    for secrets in [Some(command.traits.secrets), subcommand].into_iter().flatten() {
        match secrets {
            Secrets::None => {}
            Secrets::At(at) => hide(at, at + 1),
            Secrets::From(at) => hide(at, usize::MAX),
            Secrets::After { word, count } => {
                for (at, _) in words.iter().enumerate().skip(1).filter(|(_, one)| is(one, word)) {
                    hide(at + 1, at + 1 + count);
                }
            }
        }
    }
    shown
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
            "MF.INSERT f CAPACITY 10 key secret ITEMS a",
            "MF.BUILD f BEGIN key secret",
            "RESTORE f 0 secret",
            "MF.LOAD f 0 secret",
            "BF.LOADCHUNK f 1 secret",
            "CF.LOADCHUNK f 1 secret",
        ] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let shown = redacted(table::find(words[0]).unwrap(), &words);
            assert_eq!(shown.len(), words.len(), "{line}");
            assert!(shown.contains(&REDACTED) && !shown.contains(&&b"secret"[..]), "{line}");
            assert!(!shown.contains(&&b">secret"[..]), "{line}");
        }
        // Every option that is a filter's key is known to the table.
        for command in table::all().filter(|command| command.syntax.contains("KEY hex")) {
            assert_eq!(command.traits.secrets, Secrets::After { word: "key", count: 1 }, "{}", command.name);
        }
        let words: Vec<&[u8]> = vec![b"BF.ADD", b"auth", b"key"];
        assert_eq!(redacted(table::find(words[0]).unwrap(), &words), words);
    }
}
