//! Users and their permissions.
//!
//! ```text
//! AUTH ─▶ Users::authenticate ─▶ User ─▶ User::may(request) ─▶ run, or NOPERM
//! ```
//!
//! * Rules, refusals and the file of users are those of Redis (`ACL SETUSER ada on >secret ~a:* +@read`).
//! * A connection holds its [`User`] and compares [`Users::epoch`] once per batch of requests. A change
//!   applies to all requests that run after it. Requests of an unrestricted user need no checks of their own.
//! * Of a password only its [`Secret`] is kept, and there is only one way to compare it.

pub(crate) mod acts;
pub(crate) mod back_off;
pub(crate) mod category;
mod file;
pub(crate) mod off;
pub(crate) mod refusals;
mod secret;
mod user;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::settings::Settings;
use back_off::BackOff;
use file::ByName;
use off::Off;
use refusals::Refusals;

pub use file::UsersError;
pub use secret::{Password, Secret};
pub use user::{DEFAULT, Denied, RuleError, User};

pub(crate) use file::{is_name, line, shown};
pub(crate) use secret::hex;

/// Why users were not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeError {
    /// The name is invalid.
    Name,
    /// A rule is invalid.
    Rule { rule: String, error: RuleError },
    /// The change would open the server to other machines without a password.
    Exposes,
}

/// All users.
#[derive(Debug)]
pub struct Users {
    all: RwLock<Arc<ByName>>,
    /// The number of changes.
    epoch: AtomicU64,
    /// The id of the newest user.
    last_id: AtomicU64,
    file: Option<PathBuf>,
    /// The password of the default user from the settings. It overrides the file.
    password: Option<Password>,
    /// Whether other machines can reach the server, so that no user may be open without a password.
    guarded: bool,
    off: Off,
    refusals: Refusals,
    back_off: BackOff,
}

impl Users {
    /// Loads the users from `settings`.
    ///
    /// # Errors
    /// The file cannot be read, a rule is invalid, or the server would be open to other machines without a
    /// password.
    pub fn open(settings: &Settings) -> Result<Self, UsersError> {
        let users = Self {
            all: RwLock::default(),
            epoch: AtomicU64::new(0),
            last_id: AtomicU64::new(0),
            file: settings.users.clone(),
            password: settings.password.clone(),
            guarded: settings.reachable_address().is_some() && !settings.unprotected,
            off: Off::new(&settings.enable, &settings.disable),
            refusals: Refusals::default(),
            back_off: BackOff::default(),
        };
        let all = match &settings.users {
            Some(_) if !settings.user.is_empty() => return Err(UsersError::Both),
            Some(path) => file::read(path)?,
            None => file::of_lines(&settings.user)?,
        };
        users.replace(all)?;
        Ok(users)
    }

    /// Replaces all users.
    fn replace(&self, all: ByName) -> Result<(), UsersError> {
        let mut current = self.all.write();
        let mut fresh = ByName::new();
        for (name, user) in all {
            let mut user = User::clone(&user);
            if name == DEFAULT && self.password.is_some() {
                user.set_password(self.password.as_ref());
            }
            if self.guarded && user.is_open() {
                return Err(UsersError::Open { name: user.shown() });
            }
            // Connections of a user that still exists stay open.
            user.id = current.get(&name).map_or_else(|| self.next_id(), |known| known.id);
            fresh.insert(name, Arc::new(user));
        }
        *current = Arc::new(fresh);
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of changes. While it is the same, so are all users.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// All users, by name.
    #[must_use]
    pub fn all(&self) -> Arc<BTreeMap<Vec<u8>, Arc<User>>> {
        Arc::clone(&self.all.read())
    }

    /// Returns the user with this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.all.read().get(name).cloned()
    }

    /// The default user, which new connections have.
    #[must_use]
    pub fn default_user(&self) -> Arc<User> {
        // It always exists. If it did not, a new user without any permissions would be safe.
        self.get(DEFAULT).unwrap_or_else(|| Arc::new(User::new(DEFAULT)))
    }

    /// Returns the user with this name if the password is right. Takes the same time if there is no such
    /// user.
    #[must_use]
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let given = Secret::of(password);
        let user = self.get(name);
        let mut unknown = User::new(DEFAULT);
        if user.is_none() {
            // Compare with a password even if there is no such user.
            unknown.set_password(Some(&Password::from("")));
        }
        let matches = user.as_deref().unwrap_or(&unknown).has_password(&given);
        user.filter(|user| user.is_on() && (matches || user.is_open()))
    }

    /// Applies rules to a user, all or none. Creates the user if there is none.
    pub(crate) fn change(&self, name: &[u8], rules: &[&[u8]]) -> Result<(), ChangeError> {
        if !is_name(name) {
            return Err(ChangeError::Name);
        }
        let mut current = self.all.write();
        let mut user = current.get(name).map_or_else(|| User::new(name), |user| User::clone(user));
        for rule in rules {
            user.apply(rule).map_err(|error| ChangeError::Rule { rule: shown(rule), error })?;
        }
        self.put(&mut current, user)
    }

    /// Sets the password of the default user, or removes it.
    pub(crate) fn set_password(&self, password: Option<&Password>) {
        let mut current = self.all.write();
        let mut user = current.get(DEFAULT).map_or_else(User::unrestricted, |user| User::clone(user));
        user.set_password(password);
        // Fails only if a password is required and none is given; `CONFIG SET` has checked that.
        let _ = self.put(&mut current, user);
    }

    /// Whether every user needs a password because other machines can reach the server.
    pub(crate) const fn wants_passwords(&self) -> bool {
        self.guarded
    }

    fn put(&self, current: &mut Arc<ByName>, mut user: User) -> Result<(), ChangeError> {
        if self.guarded && user.is_open() {
            return Err(ChangeError::Exposes);
        }
        if user.id == 0 {
            user.id = self.next_id();
        }
        Arc::make_mut(current).insert(user.name().to_vec(), Arc::new(user));
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes users and returns the number removed. The default user stays.
    pub(crate) fn remove(&self, names: &[&[u8]]) -> u64 {
        let mut current = self.all.write();
        let all = Arc::make_mut(&mut current);
        let removed =
            names.iter().filter(|name| **name != DEFAULT && all.remove(**name).is_some()).count() as u64;
        self.epoch.fetch_add(1, Ordering::Release);
        removed
    }

    /// Whether there is a file of users.
    pub(crate) const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file of users again.
    pub(crate) fn load(&self) -> Result<(), UsersError> {
        match &self.file {
            Some(path) => self.replace(file::read(path)?),
            None => Ok(()),
        }
    }

    /// Writes all users to their file.
    pub(crate) fn save(&self) -> Result<(), UsersError> {
        match &self.file {
            Some(path) => file::write(path, &self.all()),
            None => Ok(()),
        }
    }

    /// The disabled commands.
    pub(crate) const fn off(&self) -> &Off {
        &self.off
    }

    /// The latest refusals.
    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The delays after wrong passwords.
    pub(crate) const fn back_off(&self) -> &BackOff {
        &self.back_off
    }
}

impl Users {
    /// The settings lines that make these users, if they are not in a file. The default user is included
    /// unless its password is all that was set.
    pub(crate) fn settings_lines(&self, settings: &Settings) -> Vec<String> {
        if self.file.is_some() {
            return settings.user.clone();
        }
        let all = self.all();
        let told = |user: &&Arc<User>| {
            let of_settings = settings.user.iter().any(|line| line.as_bytes().starts_with(b"default "));
            user.name() != DEFAULT || of_settings || !user.is_on() || !user.is_unlimited()
        };
        let line = |user: &Arc<User>| String::from_utf8([user.name(), b" ", &user.rules()].concat()).ok();
        all.values().filter(told).filter_map(line).collect()
    }
}

/// Normalizes a line of the settings: replaces every password by its hash. `None` if the line is invalid.
pub(crate) fn settings_line(text: &str) -> Option<String> {
    let mut words = text.split_ascii_whitespace().map(str::as_bytes).peekable();
    // The word `user` may come first, as in Redis's files.
    words.next_if_eq(&b"user".as_slice());
    let user = file::user_of(words, "").ok()??;
    String::from_utf8([user.name(), b" ", &user.rules()].concat()).ok()
}
