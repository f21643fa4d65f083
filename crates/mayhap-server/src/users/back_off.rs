//! Delays replies after wrong passwords.
//!
//! Every wrong password from an address is a strike. One strike is forgotten every five seconds. The first
//! few strikes cost next to nothing. After that, the reply to every password, including the right one, is
//! delayed, and longer for more strikes: a client that guesses on many connections in parallel learns nothing
//! from early replies. Only the reply waits; no thread is blocked.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Strikes of other clients at the same address that cause no delay.
const FREE: u32 = 3;
/// The delay after the first strike. Each further strike doubles it.
const SHORTEST: Duration = Duration::from_millis(25);
/// The maximum delay.
const LONGEST: Duration = Duration::from_secs(2);
/// The time after which one strike is forgotten.
const FORGIVEN: Duration = Duration::from_secs(5);
/// The maximum number of strikes, so that all are forgotten within minutes.
const MOST: u32 = 20;
/// The maximum number of addresses with strikes.
const ADDRESSES: usize = 4_096;
/// Wrong passwords after which a connection is closed.
pub(crate) const LAST: u32 = 10;

/// The source of wrong passwords: an IPv4 address, an IPv6 network (which usually has a single owner), or the
/// Unix socket.
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

/// The strikes of all sources.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    strikes: Mutex<HashMap<Source, Strikes>>,
}

#[derive(Clone, Copy, Debug)]
struct Strikes {
    count: u32,
    /// When a strike was last added or forgotten.
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
    /// Records a wrong password, the `own`-th of its connection, and returns the delay of its reply.
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

    /// Returns the delay of the reply to a right password.
    pub(crate) fn right(&self, source: Source, now: Instant) -> Duration {
        let count = self.strikes.lock().get(&source).map_or(0, |strikes| strikes.at(now).count);
        if count > FREE { wait(count) } else { Duration::ZERO }
    }
}

/// Forgets sources without strikes, then the oldest ones if there is still no room.
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
    fn delays_double_up_to_a_limit_and_strikes_are_forgotten() {
        let (back_off, now) = (BackOff::default(), Instant::now());
        let (guesser, other) = (from("10.0.0.1"), from("10.0.0.2"));
        let waits: Vec<u128> = (1..=9).map(|own| back_off.wrong(guesser, own, now).as_millis()).collect();
        assert_eq!(waits, [25, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        // New connections do not help a client that guesses, and the right password is delayed as well.
        assert_eq!(back_off.wrong(guesser, 1, now), LONGEST);
        assert_eq!(back_off.right(guesser, now), LONGEST);
        assert_eq!((back_off.right(other, now), back_off.wrong(other, 1, now)), (Duration::ZERO, SHORTEST));
        let later = now + FORGIVEN * 6 + Duration::from_millis(1);
        assert_eq!(back_off.right(guesser, later), Duration::from_millis(200));
        assert_eq!(back_off.right(guesser, now + FORGIVEN * 7), Duration::ZERO);
        assert_eq!(back_off.wrong(guesser, 1, now + FORGIVEN * 10), SHORTEST);
    }

    #[test]
    fn a_few_strikes_do_not_delay_other_clients_of_the_address() {
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
    fn an_ipv6_network_is_one_source_and_memory_is_bounded() {
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
