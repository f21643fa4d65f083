//! `DEBUG RELOAD`: stores every value and loads it again.

use std::fmt;

use mayhap_command::Value;

use crate::engine::Engine;
use crate::keyspace::Position;

/// The number of names that are looked up together.
const AT_ONCE: u64 = 100;

/// A value that could not be stored or loaded again. It stays as it was, and so do values that were not
/// reached yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError {
    /// Its name.
    pub name: Vec<u8>,
    /// The reason.
    pub why: String,
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot reload {:?}: {}", String::from_utf8_lossy(&self.name), self.why)
    }
}

impl std::error::Error for ReloadError {}

impl Engine {
    /// Replaces every value by the one decoded from its stored bytes, while no request runs. Returns the
    /// number of values.
    ///
    /// # Errors
    /// [`ReloadError`].
    pub fn reload(&self) -> Result<u64, ReloadError> {
        let _closed = self.gate.close();
        let (mut cursor, mut reloaded): (Position, u64) = (0, 0);
        loop {
            let (next, entries) = self.walk_all(cursor, AT_ONCE);
            for entry in &entries {
                let failed = |why: String| ReloadError { name: entry.name().to_vec(), why };
                let outcome = self.hold(entry.name(), self.now(), |hold| {
                    let Some(value) = hold.value_mut() else { return Ok(0) };
                    // A snapshot that is copying this value begins again.
                    self.copying.changed(entry);
                    *value = self.again(value)?;
                    Ok(1)
                });
                reloaded += outcome.map_err(failed)?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(reloaded);
            }
        }
    }

    /// Decodes the stored bytes of `value`.
    fn again(&self, value: &mut Value) -> Result<Value, String> {
        let mut bytes = Vec::new();
        let room = usize::try_from(value.memory_bytes()).unwrap_or(usize::MAX);
        bytes.try_reserve_exact(room).map_err(|_| format!("not enough memory for {room} bytes"))?;
        value.store(&mut bytes).map_err(|error| error.to_string())?;
        self.with_unlimited(|context| Value::load(value.form(), &bytes, context))
            .map_err(|error| error.to_string())
    }
}
