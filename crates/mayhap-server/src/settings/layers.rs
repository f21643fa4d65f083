//! Reads settings from a file and from the environment, and writes them to a file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::Settings;
use super::error::{Origin, SettingsError};
use super::table::{Setting, Shape, Shown};

/// The environment variable that names the settings file.
pub const CONFIG_VARIABLE: &str = "MAYHAP_CONFIG";
/// The environment variable that holds the password.
pub const PASSWORD_VARIABLE: &str = "MAYHAP_PASSWORD";

impl Settings {
    /// Applies the settings in the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, has an unknown key or an invalid value.
    pub fn apply_file(&mut self, path: &Path) -> Result<(), SettingsError> {
        let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        self.apply_text(&text, path)?;
        // An absolute path: the working directory of the process may change later.
        self.config_file = Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        Ok(())
    }

    fn apply_text(&mut self, text: &str, path: &Path) -> Result<(), SettingsError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(before).filter(|byte| *byte == b'\n').count();
            SettingsError::NotToml { path: path.to_owned(), line, what: error.message().replace('\n', ", ") }
        })?;
        for (key, value) in &table {
            let Some(setting) = Setting::find(key) else {
                let (key, path, meant) = (key.clone(), path.to_owned(), meant(key));
                return Err(SettingsError::UnknownKey { key, path, meant });
            };
            let values = values_of(value, setting.shape());
            let values: Option<Vec<&str>> =
                values.as_ref().map(|values| values.iter().map(String::as_str).collect());
            if values.and_then(|values| setting.set(self, &values)).is_none() {
                let origin = Origin::File { key: key.clone(), path: path.to_owned() };
                let value = match value {
                    Value::String(text) => text.clone(),
                    value => value.to_string(),
                };
                return Err(SettingsError::BadValue { origin, value, allowed: setting.allowed() });
            }
        }
        Ok(())
    }

    /// Applies the settings in environment variables. `variable` looks one up.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn apply_environment(
        &mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), SettingsError> {
        for setting in Setting::all() {
            let name = setting.variable();
            let Some(value) = variable(&name) else { continue };
            let text = value.to_string_lossy();
            let values: Vec<&str> = match setting.shape() {
                Shape::Many => text.split(',').map(str::trim).collect(),
                Shape::One | Shape::Switch => vec![&*text],
            };
            if value.to_str().and_then(|_| setting.set(self, &values)).is_none() {
                let (origin, value) = (Origin::Variable(name), text.into_owned());
                return Err(SettingsError::BadValue { origin, value, allowed: setting.allowed() });
            }
        }
        if let Some(password) = variable(PASSWORD_VARIABLE) {
            let password = password.into_string().ok().filter(|password| !password.is_empty());
            let refused = || SettingsError::BadValue {
                origin: Origin::Variable(PASSWORD_VARIABLE.into()),
                value: String::new(),
                allowed: "a non-empty text",
            };
            self.password = Some(password.ok_or_else(refused)?.into());
        }
        Ok(())
    }

    /// Applies a flag of the command line.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn apply_flag(&mut self, setting: Setting, values: &[&str]) -> Result<(), SettingsError> {
        setting.set(self, values).ok_or_else(|| SettingsError::BadValue {
            origin: Origin::Flag(format!("--{}", setting.name())),
            value: values.join(", "),
            allowed: setting.allowed(),
        })
    }

    /// Reads the password file, if the settings name one. Call it after all other settings are applied.
    ///
    /// # Errors
    /// The file cannot be read, or its first line is empty.
    pub fn read_password(&mut self) -> Result<(), SettingsError> {
        let Some(path) = &self.password_file else { return Ok(()) };
        let unreadable = |source| SettingsError::Unreadable { path: path.clone(), source };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let password = text.lines().next().filter(|line| !line.is_empty());
        let password = password.ok_or_else(|| SettingsError::NoPassword { path: path.clone() })?;
        self.password = Some(password.into());
        Ok(())
    }

    /// Returns the settings as a TOML file that [`apply_file`](Self::apply_file) reads. It never contains
    /// passwords.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::from("# Settings of `mayhap serve`; docs/server.md explains them.\n");
        for setting in Setting::all() {
            let (name, help) = (setting.name(), setting.help());
            if matches!(setting, Setting::Own(_)) {
                text.push_str(&format!("\n# {help}\n"));
            } else if name == "bf-error-rate" {
                text.push_str(
                    "\n# Defaults for new filters; CONFIG SET changes them while the server runs\n",
                );
            }
            match setting.get(self) {
                Shown::Nothing => text.push_str(&format!("# {name} = \"\"\n")),
                Shown::Number(number) => text.push_str(&format!("{name} = {number}\n")),
                Shown::Fraction(fraction) => text.push_str(&format!("{name} = {fraction}\n")),
                Shown::Text(value) => text.push_str(&format!("{name} = {}\n", Value::String(value))),
                Shown::Switch(yes) => text.push_str(&format!("{name} = {yes}\n")),
                Shown::Texts(values) => {
                    let values: Vec<Value> = values.into_iter().map(Value::String).collect();
                    text.push_str(&format!("{name} = {}\n", Value::Array(values)));
                }
            }
        }
        text
    }
}

/// Returns the texts of a value in the file.
fn values_of(value: &Value, shape: Shape) -> Option<Vec<String>> {
    match (value, shape) {
        (Value::String(text), Shape::One | Shape::Many) => Some(vec![text.clone()]),
        (Value::Integer(number), Shape::One) => Some(vec![number.to_string()]),
        (Value::Float(number), Shape::One) => Some(vec![number.to_string()]),
        (Value::Boolean(yes), Shape::Switch) => Some(vec![yes.to_string()]),
        (Value::Array(values), Shape::Many) => {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

/// Returns the setting whose name is most similar to `key`, if one is similar.
fn meant(key: &str) -> Option<&'static str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
    let key = plain(key);
    let near = Setting::all().map(|setting| (distance(&plain(setting.name()), &key), setting.name()));
    near.filter(|(distance, name)| *distance <= name.len() / 4).min().map(|(_, name)| name)
}

/// The number of letters to change, insert, delete or swap with their neighbour to turn `one` into `other`.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.chars().take(64).collect::<Vec<char>>();
    let (one, other) = (letters(one), letters(other));
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let same = one[i - 1] == other[j - 1];
            let mut least =
                (rows[i - 1][j - 1] + usize::from(!same)).min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Secret;

    fn read(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::of_program();
        settings.apply_text(text, Path::new("m.toml")).map_err(|error| error.to_string())?;
        Ok(settings)
    }

    #[test]
    fn a_file_is_read_and_written_back_the_same() {
        let settings = read(
            "port = 7000\nbind = [\"127.0.0.1\", \"::1\"]\nmax-memory = \"4GiB\"\nunprotected = true\nhttp-port = \"off\"\n\
             bf-error-rate = 0.001\nsave-interval = \"5m\"\ndir = \"a \\\"b\\\" é\"\n",
        )
        .unwrap();
        assert_eq!((settings.port, settings.http_port, settings.bind.len()), (Some(7_000), None, 2));
        assert_eq!((settings.max_memory.bytes(), settings.save_interval_secs), (4 << 30, 300));
        assert_eq!(settings.parameters.bf_error_rate, 0.001);
        let again = read(&settings.to_toml()).unwrap();
        assert_eq!(format!("{settings:?}"), format!("{again:?}"));
        assert_eq!(settings.to_toml(), again.to_toml());
    }

    #[test]
    fn errors_name_the_wrong_key_or_value_and_what_is_allowed() {
        for (text, error) in [
            (
                "port = 70000",
                "m.toml: port: \"70000\" is not allowed, it must be a port from 0 (any free port) to 65535, or off",
            ),
            ("prot = 7", "m.toml: unknown key \"prot\", did you mean \"port\"?"),
            ("max_memory = 7", "m.toml: unknown key \"max_memory\", did you mean \"max-memory\"?"),
            ("colour = 7", "m.toml: unknown key \"colour\", `mayhap serve --print-config` lists all keys"),
            (
                "log-level = \"loud\"",
                "m.toml: log-level: \"loud\" is not allowed, it must be error, warn, info, debug or trace",
            ),
            ("unprotected = 3", "m.toml: unprotected: \"3\" is not allowed, it must be true or false"),
            (
                "bind = []",
                "m.toml: bind: \"[]\" is not allowed, it must be an IP address of this machine, for example 127.0.0.1, ::1 or 0.0.0.0 (all)",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), error);
        }
        let error = read("port = 1\nbind = [").unwrap_err();
        assert!(error.starts_with("m.toml: line 2: "), "{error}");
    }

    #[test]
    fn passwords_from_the_environment_are_never_shown() {
        let mut settings = Settings::default();
        let variables = |name: &str| match name {
            "MAYHAP_BIND" => Some("127.0.0.1, ::1".into()),
            "MAYHAP_UNPROTECTED" => Some("1".into()),
            "MAYHAP_PASSWORD" => Some("tell nobody".into()),
            _ => None,
        };
        settings.apply_environment(variables).unwrap();
        assert_eq!((settings.bind.len(), settings.unprotected), (2, true));
        assert_eq!(settings.password.as_ref().unwrap().secret(), Secret::of(b"tell nobody"));
        assert!(
            !settings.to_toml().contains("tell nobody") && !format!("{settings:?}").contains("tell nobody")
        );
        let wrong = |name: &str| (name == "MAYHAP_PORT").then(|| "six".into());
        let error = settings.apply_environment(wrong).unwrap_err().to_string();
        assert!(error.starts_with("MAYHAP_PORT: \"six\" is not allowed, "), "{error}");
    }
}
