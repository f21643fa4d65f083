//! Replaces a bitmap by another in one step.
//!
//! The new bitmap is sent to a name of its own in the same slot, in pieces. Then a script renames it, so no
//! client ever sees half of it. The new bitmap gets the expiry of the old one. If the sender dies, the name
//! that it used expires.

use std::ops::ControlFlow;

use redis::Value;

use crate::java_bitmap::number;
use crate::{Access, Link, RemoteError, Request};

/// The maximum size of a piece, and the number of pieces per batch.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_AT_ONCE: usize = 8;
/// The expiry of the name that is sent to. Every batch renews it.
const LOADING_EXPIRY_MS: u64 = 600_000;
/// How long the server remembers that a rename was done, in case the request is sent twice.
const REMEMBERED_MILLIS: u64 = 600_000;

/// `KEYS`: the sent bitmap, the name, a key that records that this was done, and the config if there is one.
/// `ARGV`: whether the first key must exist, how long the third is kept, and the fields of the config.
const RENAME: &str = "\
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
/// A name with a hash tag keeps it. A name without one becomes the tag, unless it has a closing brace, which
/// would end the tag too early. Then the result is in the same slot only by chance, and a cluster returns an
/// error. (Redisson's own config is in another slot then, too.)
pub(crate) fn name_in_slot(name: &str, what: &str) -> String {
    let has_tag = name.split_once('{').and_then(|(_, tag)| tag.find('}')).is_some_and(|len| len > 0);
    if has_tag || name.contains('}') { format!("{name}{what}") } else { format!("{{{name}}}{what}") }
}

/// The new bitmap, and its config if there is one.
pub(crate) struct Successor<'a> {
    pub(crate) name: &'a str,
    /// Empty: the key is removed.
    pub(crate) bitmap: &'a [u8],
    /// The key of the config, and its fields.
    pub(crate) config: Option<(&'a str, [(&'static str, String); 4])>,
}

impl Successor<'_> {
    /// Sends the bitmap and renames it. `watch` gets the number of bytes that have arrived, and may stop the
    /// transfer.
    pub(crate) async fn replace(
        &self,
        link: &Link,
        watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        let token = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
        let loading = name_in_slot(self.name, &format!(":loading:{token:016x}"));
        let done = match self.send(link, &loading, watch).await {
            Ok(()) => self.take_name(link, &loading).await,
            Err(cause) => Err(cause),
        };
        if done.is_err() {
            // If this fails as well, the name expires.
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
            let expire = || Request::write("PEXPIRE", loading.as_bytes()).arg(LOADING_EXPIRY_MS);
            let pieces = batch.chunks(PIECE_BYTES).enumerate().map(|(index, piece)| {
                Request::write("SETRANGE", loading.as_bytes()).arg(sent + index * PIECE_BYTES).arg(piece)
            });
            // The pieces before must still exist, or the bitmap would have a hole.
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
        command.arg(RENAME).arg(keys.len()).arg(keys).arg(words);
        match number(&link.ask_one(Request::whole(command, self.name.as_bytes(), Access::Write)).await?)? {
            1 => Ok(()),
            _ => Err(self.gone()),
        }
    }

    fn gone(&self) -> RemoteError {
        RemoteError::Unready { name: self.name.to_owned(), what: "the data sent for it was removed" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loading_name_is_in_the_same_slot() {
        for (name, expected) in [
            ("seen", "{seen}:x"),
            ("a{b", "{a{b}:x"),
            ("{users}:seen", "{users}:seen:x"),
            ("seen:{users}", "seen:{users}:x"),
            ("{}seen", "{}seen:x"),
            ("a}b", "a}b:x"),
            ("a}{b}", "a}{b}:x"),
        ] {
            assert_eq!(name_in_slot(name, ":x"), expected);
        }
    }
}
