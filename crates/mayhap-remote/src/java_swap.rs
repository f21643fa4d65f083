//! A bitmap that takes the place of another in one step.
//!
//! It goes to a name of its own in the same slot of a cluster, piece by piece, and then a script renames it: nobody ever sees half of it.
//! Whatever expiry the old one had the new one gets. A sender that dies leaves a name behind that goes away by itself.

use std::ops::ControlFlow;

use redis::Value;

use crate::java_bitmap::number;
use crate::{Access, Link, RemoteError, Request};

/// No piece is larger, and so many go out together.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_AT_ONCE: usize = 8;
/// A name whose sender is gone goes away after so long; every batch begins it anew.
const FORGOTTEN_MILLIS: u64 = 600_000;
/// For so long a renaming that is asked for twice is known to be done.
const REMEMBERED_MILLIS: u64 = 600_000;

/// `KEYS`: what was sent, the name, what says that this was done, mayhap a config. `ARGV`: is anything to be there at the first of them, how long
/// the third is kept, and the fields of the config.
const TAKE_NAME: &str = "\
if redis.call('exists', KEYS[3]) == 1 then return 1 end
if ARGV[1] == '1' and redis.call('exists', KEYS[1]) == 0 then return 0 end
local expiry = redis.call('pttl', KEYS[2])
if ARGV[1] == '1' then
  redis.call('persist', KEYS[1])
  redis.call('rename', KEYS[1], KEYS[2])
else
  redis.call('del', KEYS[2])
end
if KEYS[4] then
  redis.call('del', KEYS[4])
  redis.call('hset', KEYS[4], unpack(ARGV, 3))
end
if expiry > 0 then
  redis.call('pexpire', KEYS[2], expiry)
  if KEYS[4] then redis.call('pexpire', KEYS[4], expiry) end
end
redis.call('set', KEYS[3], '', 'px', ARGV[2])
return 1";

/// A name in the same slot of a cluster as `name`.
///
/// A name with a tag keeps it. One without becomes the tag, unless it has a closing brace, which would end it too early: then there is no such name
/// but by luck, and a cluster says so. (Redisson's own config is in another slot then, too.)
pub(crate) fn beside(name: &str, what: &str) -> String {
    let has_tag = name.split_once('{').and_then(|(_, tag)| tag.find('}')).is_some_and(|len| len > 0);
    if has_tag || name.contains('}') { format!("{name}{what}") } else { format!("{{{name}}}{what}") }
}

/// What takes the place of the bitmap, and of the config beside it if there is one.
pub(crate) struct Successor<'a> {
    pub(crate) name: &'a str,
    /// Empty: then there is to be no such key.
    pub(crate) bitmap: &'a [u8],
    /// Its key, and its fields.
    pub(crate) config: Option<(&'a str, [(&'static str, String); 4])>,
}

impl Successor<'_> {
    /// Sends it, and puts it in place. `watch` is told how many bytes have arrived, and may stop it.
    pub(crate) async fn take_place(
        &self,
        link: &Link,
        watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        let token = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
        let loading = beside(self.name, &format!(":loading:{token:016x}"));
        let done = match self.send(link, &loading, watch).await {
            Ok(()) => self.take_name(link, &loading).await,
            Err(cause) => Err(cause),
        };
        if done.is_err() {
            // If even that cannot be done it goes away by itself.
            let _ = link.ask_one(Request::write("UNLINK", loading.as_bytes())).await;
        }
        done
    }

    async fn send(
        &self,
        link: &Link,
        loading: &str,
        mut watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        let mut sent = 0;
        for batch in self.bitmap.chunks(PIECE_BYTES * PIECES_AT_ONCE) {
            if watch(sent as u64).is_break() {
                return Err(RemoteError::Stopped);
            }
            let expire = || Request::write("PEXPIRE", loading.as_bytes()).arg(FORGOTTEN_MILLIS);
            let pieces = batch.chunks(PIECE_BYTES).enumerate().map(|(index, piece)| {
                Request::write("SETRANGE", loading.as_bytes()).arg(sent + index * PIECE_BYTES).arg(piece)
            });
            // What came before must still be there, or this would be a bitmap with a hole.
            let requests = [expire()].into_iter().chain(pieces).chain([expire()]).collect();
            let replies = link.ask(requests).await.into_iter().collect::<Result<Vec<Value>, _>>()?;
            let alive = replies.first().map(number).transpose()?;
            if sent > 0 && alive != Some(1) {
                return Err(self.gone());
            }
            sent += batch.len();
        }
        if watch(sent as u64).is_break() { Err(RemoteError::Stopped) } else { Ok(()) }
    }

    async fn take_name(&self, link: &Link, loading: &str) -> Result<(), RemoteError> {
        let done = format!("{loading}:done");
        let mut keys = vec![loading, self.name, &done];
        let mut words = vec![u8::from(!self.bitmap.is_empty()).to_string(), REMEMBERED_MILLIS.to_string()];
        if let Some((key, fields)) = &self.config {
            keys.push(key);
            words.extend(fields.iter().flat_map(|(field, value)| [(*field).to_owned(), value.clone()]));
        }
        let mut command = redis::cmd("EVAL");
        command.arg(TAKE_NAME).arg(keys.len()).arg(keys).arg(words);
        match number(&link.ask_one(Request::whole(command, self.name.as_bytes(), Access::Write)).await?)? {
            1 => Ok(()),
            _ => Err(self.gone()),
        }
    }

    fn gone(&self) -> RemoteError {
        RemoteError::Unready { name: self.name.to_owned(), what: "what was sent for it is gone again" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_another_is_in_its_slot() {
        for (name, expected) in [
            ("seen", "{seen}:x"),
            ("a{b", "{a{b}:x"),
            ("{users}:seen", "{users}:seen:x"),
            ("seen:{users}", "seen:{users}:x"),
            ("{}seen", "{}seen:x"),
            ("a}b", "a}b:x"),
            ("a}{b}", "a}{b}:x"),
        ] {
            assert_eq!(beside(name, ":x"), expected);
        }
    }
}
