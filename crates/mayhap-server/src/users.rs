//! Who may do what.
//!
//! ```text
//! AUTH ─▶ Users::enter ─▶ User ─▶ User::may(request) ─▶ run, or NOPERM
//! ```
//!
//! * Rules are Redis's (`ACL SETUSER ada on >secret ~a:* +@read`), and so are the refusals and the file of users.
//! * A connection holds its [`User`] and asks [`Users::epoch`] once for each batch of requests whether anything changed since: a change
//!   counts for whatever is run from then on, and for who may do everything nothing is looked at request by request.
//! * [`Secret`] is all that is kept of a password, and it has one way to be compared.

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

/// Why users are not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeError {
    /// No such name.
    Name,
    /// A rule that is none.
    Rule { rule: String, error: RuleError },
    /// Everybody on other machines could come in.
    Exposes,
}

/// All users.
#[derive(Debug)]
pub struct Users {
    all: RwLock<Arc<ByName>>,
    /// Counts the changes.
    epoch: AtomicU64,
    /// The number of the user that was made last.
    last_id: AtomicU64,
    file: Option<PathBuf>,
    /// The password of the default user that the server was started with, whatever the file says.
    password: Option<Password>,
    /// Is it open to other machines, and must nobody come in without a password?
    guarded: bool,
    off: Off,
    refusals: Refusals,
    back_off: BackOff,
}

impl Users {
    /// The users that `settings` name.
    ///
    /// # Errors
    /// The file cannot be read, a rule is none, or the server would be open to everybody.
    pub fn open(settings: &Settings) -> Result<Self, UsersError> {
        let users = Self {
            all: RwLock::default(),
            epoch: AtomicU64::new(0),
            last_id: AtomicU64::new(0),
            file: settings.users.clone(),
            password: settings.password.clone(),
            guarded: settings.reached_by_others().is_some() && !settings.unprotected,
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

    /// Takes these in place of all there are.
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
            // Connections of a user that is still there stay.
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

    /// Counts the changes: as long as it is the same, so are all users.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Arc<BTreeMap<Vec<u8>, Arc<User>>> {
        Arc::clone(&self.all.read())
    }

    /// The one of this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.all.read().get(name).cloned()
    }

    /// The one that connections are of at first.
    #[must_use]
    pub fn default_user(&self) -> Arc<User> {
        // It is always there; who found it missing would get nothing.
        self.get(DEFAULT).unwrap_or_else(|| Arc::new(User::new(DEFAULT)))
    }

    /// The user of this name, if the password is one of his. Takes as long if there is no such user.
    #[must_use]
    pub fn enter(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let given = Secret::of(password);
        let user = self.get(name);
        let mut stranger = User::new(DEFAULT);
        if user.is_none() {
            // A password that nobody has: it is compared with one in any case.
            stranger.set_password(Some(&Password::from("")));
        }
        let known = user.as_deref().unwrap_or(&stranger).knows(&given);
        user.filter(|user| user.is_on() && (known || user.is_open()))
    }

    /// Applies rules to a user, who is made if need be: all of them or none.
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

    /// From now on the default user needs this password, or none.
    pub(crate) fn set_password(&self, password: Option<&Password>) {
        let mut current = self.all.write();
        let mut user = current.get(DEFAULT).map_or_else(User::everybody, |user| User::clone(user));
        user.set_password(password);
        // Refused only where there must be one and there is none.
        let _ = self.put(&mut current, user);
    }

    /// Must nobody come in without a password, for the server is open to other machines?
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

    /// Removes users, and says how many there were. The default user stays.
    pub(crate) fn remove(&self, names: &[&[u8]]) -> u64 {
        let mut current = self.all.write();
        let all = Arc::make_mut(&mut current);
        let removed =
            names.iter().filter(|name| **name != DEFAULT && all.remove(**name).is_some()).count() as u64;
        self.epoch.fetch_add(1, Ordering::Release);
        removed
    }

    /// Is there a file of users?
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

    /// What nobody may run.
    pub(crate) const fn off(&self) -> &Off {
        &self.off
    }

    /// What was refused lately.
    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Who has to wait.
    pub(crate) const fn back_off(&self) -> &BackOff {
        &self.back_off
    }
}

impl Users {
    /// The lines of the settings that make these users, where they are not in a file. The default user is among them unless all
    /// that there is to say of him is his password.
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

/// A line of the settings as they keep it: with the hash of every password in its place. Nothing if it is none.
pub(crate) fn settings_line(text: &str) -> Option<String> {
    let mut words = text.split_ascii_whitespace().map(str::as_bytes).peekable();
    // As it stands in Redis's files.
    words.next_if_eq(&b"user".as_slice());
    let user = file::user_of(words, "").ok()??;
    String::from_utf8([user.name(), b" ", &user.rules()].concat()).ok()
}
