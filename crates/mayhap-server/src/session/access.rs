//! `ACL`: there is one user, who may do everything.

use mayhap_command::run::Server;
use mayhap_command::server::SessionRefusal;
use mayhap_command::{Refusal, Reply, table};

use super::commands::{CATEGORIES, categories};
use super::handshake::USER;
use super::{Session, help, list, map, shown};

impl Session {
    /// `ACL subcommand …`; there is such a subcommand and the number of words fits.
    pub(super) fn acl(&self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        let open = self.shared.password().is_none();
        match words[1].to_ascii_lowercase().as_slice() {
            b"whoami" => Ok(Reply::bulk(USER)),
            b"users" => Ok(list([USER])),
            b"cat" => cat(&words[2..]),
            b"list" => {
                // The password itself is shown to nobody.
                let password = if open { "nopass" } else { "#hidden" };
                Ok(list([format!("user default on {password} ~* &* +@all")]))
            }
            b"getuser" if words[2] == USER => Ok(map([
                (
                    "flags",
                    Reply::Set(match open {
                        true => vec![Reply::bulk("on"), Reply::bulk("nopass")],
                        false => vec![Reply::bulk("on")],
                    }),
                ),
                (
                    "passwords",
                    match open {
                        true => list::<&str>([]),
                        false => list(["hidden"]),
                    },
                ),
                ("commands", Reply::bulk("+@all")),
                ("keys", Reply::bulk("~*")),
                ("channels", Reply::bulk("&*")),
                ("selectors", list::<&str>([])),
            ])),
            b"getuser" => Ok(Reply::Null),
            _ => Ok(help::of("ACL", Server::Acl)),
        }
    }
}

/// `ACL CAT [category]`.
fn cat(words: &[&[u8]]) -> Result<Reply, Refusal> {
    match words {
        [] => Ok(list(CATEGORIES)),
        [category] => {
            let known = CATEGORIES.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(category));
            let known = known.ok_or_else(|| SessionRefusal::UnknownCategory(shown(category)))?;
            let of_it = table::all().filter(|command| categories(command).any(|one| one == *known));
            Ok(list(of_it.map(|command| command.name)))
        }
        _ => Err(Refusal::WrongSubcommandArity { command: "acl", word: "cat" }),
    }
}
