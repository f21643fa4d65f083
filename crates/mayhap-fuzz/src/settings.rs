//! Settings from TOML: accepted settings must be the same when they are written and read again.

use std::path::PathBuf;
use std::sync::LazyLock;

use mayhap_server::Settings;

/// A file that only this process uses.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("mayhap-fuzz-{}.toml", std::process::id())));

fn read(bytes: &[u8]) -> Option<Settings> {
    std::fs::write(&*FILE, bytes).expect("the temporary folder is writable");
    let mut settings = Settings::of_program();
    let outcome = settings.apply_file(&FILE);
    let _ = std::fs::remove_file(&*FILE);
    match outcome {
        Ok(()) => Some(settings),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// Runs the target; the bytes are a settings file.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let Some(settings) = read(data) else { return };
    let text = settings.to_toml();
    let again = read(text.as_bytes()).unwrap_or_else(|| panic!("not read again: {text}"));
    assert_eq!(again.to_toml(), text);
}
