//! All commands, by name.

use std::sync::LazyLock;

use crate::command::Command;
use crate::server::Subcommand;
use crate::{bf, bits, cf, keyspace, mf, server};

/// The families, in the order of the manual.
static FAMILIES: [&[Command]; 6] =
    [bf::COMMANDS, cf::COMMANDS, mf::COMMANDS, bits::COMMANDS, keyspace::COMMANDS, server::COMMANDS];

/// An upper bound of the length of a command name.
const LONGEST: usize = 32;

/// Slots of the hash table. There are far more slots than commands, so collisions are rare.
const PLACES: usize = 1_024;

static BY_NAME: LazyLock<Box<[Option<&'static Command>; PLACES]>> = LazyLock::new(|| {
    let mut places = Box::new([None; PLACES]);
    for command in all() {
        let mut place = hash(command.name.as_bytes());
        while places[place % PLACES].is_some() {
            place += 1;
        }
        places[place % PLACES] = Some(command);
    }
    places
});

/// FNV-1a. Command names are short, and clients cannot choose them.
fn hash(name: &[u8]) -> usize {
    name.iter().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
        as usize
}

/// Returns every command.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().copied().flatten()
}

/// Returns every subcommand with its command.
pub fn subcommands() -> impl Iterator<Item = (&'static Command, &'static Subcommand)> {
    all().flat_map(|command| command.traits.subcommands.iter().map(move |row| (command, row)))
}

/// Returns the position of a command in [`all`], for tables that are parallel to this one; `None` for a row of another table.
#[must_use]
pub fn number(command: &'static Command) -> Option<usize> {
    let mut before = 0;
    for family in FAMILIES {
        let offset = std::ptr::from_ref(command).addr().wrapping_sub(family.as_ptr().addr());
        if offset < size_of_val(family) {
            return Some(before + offset / size_of::<Command>());
        }
        before += family.len();
    }
    None
}

/// Returns the command with this name, in upper or lower case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; LONGEST];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let mut place = hash(lower);
    while let Some(command) = BY_NAME[place % PLACES] {
        if command.name.as_bytes() == lower {
            return Some(command);
        }
        place += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_lower_case_and_found_in_any_case() {
        assert_eq!(BY_NAME.iter().flatten().count(), all().count());
        const { assert!(PLACES.is_power_of_two()) };
        assert!(4 * all().count() < PLACES);
        for (number, command) in all().enumerate() {
            assert_eq!(super::number(command), Some(number));
            assert!(command.name.len() <= LONGEST && command.name == command.name.to_lowercase());
            let found = find(command.name.to_uppercase().as_bytes()).unwrap();
            assert!(std::ptr::eq(found, command));
        }
        assert!(find(b"no.such").is_none() && find(&[b'a'; 1_000]).is_none());
    }
}
