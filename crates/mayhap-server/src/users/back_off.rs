//! Wrong passwords make whoever sends them wait.
//!
//! Every wrong password of an address is a strike, and one is forgotten every few seconds. The first few cost next to nothing; from then on
//! every answer about a password, the right one's as well, comes the later the more strikes there are: who guesses on many connections at
//! once learns nothing from what comes early. Nothing waits but the answer: no thread does.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Strikes that nobody else at the address is to wait for.
const FREE: u32 = 3;
/// After the first strike; each further one doubles it.
const SHORTEST: Duration = Duration::from_millis(25);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(2);
/// How long it takes for a strike to be forgotten.
const FORGIVEN: Duration = Duration::from_secs(5);
/// More strikes are not counted: all is forgotten in some minutes.
const MOST: u32 = 20;
/// Addresses that are remembered at once.
const ADDRESSES: usize = 4_096;
/// Wrong passwords after which a connection is closed.
pub(crate) const LAST: u32 = 10;

/// Where wrong passwords come from: an address, a network of version 6 that somebody has for himself, or the Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source(Option<IpAddr>);

impl Source {
    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        Self(address.map(|address| match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            address => address,
        }))
    }
}

/// Who has to wait.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    strikes: Mutex<HashMap<Source, Strikes>>,
}

#[derive(Clone, Copy, Debug)]
struct Strikes {
    count: u32,
    /// When one was last added or forgotten.
    since: Instant,
}

impl Strikes {
    fn at(self, now: Instant) -> Self {
        let intervals = now.saturating_duration_since(self.since).as_secs() / FORGIVEN.as_secs();
        let forgiven = u32::try_from(intervals).unwrap_or(u32::MAX);
        match self.count.saturating_sub(forgiven) {
            0 => Self { count: 0, since: now },
            count => Self { count, since: self.since + FORGIVEN * forgiven },
        }
    }
}

impl BackOff {
    /// A wrong password came, the connection's `own`-th: how long its answer is to wait.
    pub(crate) fn wrong(&self, source: Source, own: u32, now: Instant) -> Duration {
        let mut all = self.strikes.lock();
        if all.len() >= ADDRESSES && !all.contains_key(&source) {
            make_room(&mut all, now);
        }
        let strikes = all.entry(source).or_insert(Strikes { count: 0, since: now });
        let before = strikes.at(now);
        *strikes = Strikes { count: (before.count + 1).min(MOST), since: now };
        wait(strikes.count.max(own))
    }

    /// The right password came: how long its answer is to wait.
    pub(crate) fn right(&self, source: Source, now: Instant) -> Duration {
        let count = self.strikes.lock().get(&source).map_or(0, |strikes| strikes.at(now).count);
        if count > FREE { wait(count) } else { Duration::ZERO }
    }
}

/// Forgets whoever has nothing to wait for any more, and those who waited longest if that is not enough.
fn make_room(all: &mut HashMap<Source, Strikes>, now: Instant) {
    all.retain(|_, strikes| strikes.at(now).count > 0);
    while all.len() >= ADDRESSES {
        let Some(oldest) = all.iter().min_by_key(|(_, strikes)| strikes.since).map(|(source, _)| *source)
        else {
            return;
        };
        all.remove(&oldest);
    }
}

fn wait(strikes: u32) -> Duration {
    match strikes.checked_sub(1) {
        None => Duration::ZERO,
        Some(doubled) => SHORTEST.saturating_mul(1 << doubled.min(16)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Source {
        Source::of(Some(address.parse().unwrap()))
    }

    #[test]
    fn waits_double_to_a_limit_and_are_forgiven() {
        let (back_off, now) = (BackOff::default(), Instant::now());
        let (guesser, other) = (from("10.0.0.1"), from("10.0.0.2"));
        let waits: Vec<u128> = (1..=9).map(|own| back_off.wrong(guesser, own, now).as_millis()).collect();
        assert_eq!(waits, [25, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        // Who guesses on connection after connection gains nothing, and neither does the right password among the wrong ones.
        assert_eq!(back_off.wrong(guesser, 1, now), LONGEST);
        assert_eq!(back_off.right(guesser, now), LONGEST);
        assert_eq!((back_off.right(other, now), back_off.wrong(other, 1, now)), (Duration::ZERO, SHORTEST));
        let later = now + FORGIVEN * 6 + Duration::from_millis(1);
        assert_eq!(back_off.right(guesser, later), Duration::from_millis(200));
        assert_eq!(back_off.right(guesser, now + FORGIVEN * 7), Duration::ZERO);
        assert_eq!(back_off.wrong(guesser, 1, now + FORGIVEN * 10), SHORTEST);
    }

    #[test]
    fn a_few_mistakes_cost_others_at_the_address_nothing() {
        let (back_off, now) = (BackOff::default(), Instant::now());
        let here = from("::1");
        for _ in 0..FREE {
            back_off.wrong(here, 1, now);
        }
        assert_eq!(back_off.right(here, now), Duration::ZERO);
        back_off.wrong(here, 1, now);
        assert!(back_off.right(here, now) > Duration::ZERO);
    }

    #[test]
    fn a_network_of_version_6_is_one_source_and_memory_is_bounded() {
        assert_eq!(from("2001:db8::1"), from("2001:db8::ffff"));
        assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
        assert_eq!(from("::ffff:10.0.0.1"), from("10.0.0.1"));
        let (back_off, now) = (BackOff::default(), Instant::now());
        for number in 0..10_000_u32 {
            let source = Source::of(Some(IpAddr::from(number.to_be_bytes())));
            back_off.wrong(source, 1, now + Duration::from_micros(number.into()));
        }
        assert_eq!(back_off.strikes.lock().len(), ADDRESSES);
    }
}
