//! Random histories of generations, across snapshots, restarts and the log: there is never a false negative.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mayhap_command::{Reply, Request, Scratch, table};
use mayhap_testkit::generations::{Done, Server, history};
use mayhap_testkit::host::Wire;

use super::model::{Dice, FixedClock, Memory, difference, engine, line, quiet, recovered, run, state};
use crate::engine::Engine;
use crate::journal::Spoilt;
use crate::log::Policy;

/// An engine, and the disk it is restarted from.
struct Durable {
    engine: Engine,
    clock: Arc<FixedClock>,
    disk: Memory,
    dice: Dice,
    spoilt: Option<Spoilt>,
    /// Differences after a restart.
    differs: Option<String>,
}

impl Durable {
    fn new(seed: u64, spoilt: Option<Spoilt>) -> Self {
        let (engine, clock) = engine(seed);
        *engine.spoilt.lock() = spoilt;
        let disk = Memory::default();
        engine.recover_quiet(Arc::new(disk.clone()), Policy::No, quiet()).unwrap();
        Self { engine, clock, disk, dice: Dice(seed), spoilt, differs: None }
    }
}

impl Server for Durable {
    fn ask(&mut self, words: &[Vec<u8>]) -> Wire {
        if self.dice.below(25) == 0 {
            self.engine.snapshot(&self.disk).unwrap();
        }
        let transaction = self.dice.below(20) == 0;
        wire(&run(&self.engine, &[words.to_vec()], transaction)[0])
    }

    fn restart(&mut self, crash: bool) {
        if !crash {
            self.engine.snapshot(&self.disk).unwrap();
        }
        self.engine.log().unwrap().sync().unwrap();
        let (engine, clock) = recovered(&self.disk, &self.clock, self.spoilt);
        self.differs = self.differs.take().or_else(|| difference(&state(&self.engine), &state(&engine)));
        (self.engine, self.clock) = (engine, clock);
    }
}

fn wire(reply: &Reply) -> Wire {
    match reply {
        Reply::Ok => Wire::Simple("OK".into()),
        Reply::Integer(number) => Wire::Integer(*number),
        Reply::Boolean(flag) => Wire::Boolean(*flag),
        Reply::Bulk(bytes) => Wire::Bulk(bytes.clone()),
        Reply::Refused(refusal) => Wire::Refused(refusal.to_string()),
        Reply::Array(replies) => Wire::Array(replies.iter().map(wire).collect()),
        Reply::Booleans(answers) => Wire::Array(answers.iter().map(Wire::Boolean).collect()),
        other => Wire::Simple(format!("{other:?}")),
    }
}

/// Returns what is wrong with this history.
fn wrong(seed: u64, spoilt: Option<Spoilt>) -> Result<Done, String> {
    let mut server = Durable::new(seed, spoilt);
    let done = history(seed, 80, &mut server)?;
    server.restart(seed.is_multiple_of(2));
    server.differs.map_or(Ok(done), Err)
}

#[test]
fn no_false_negative_after_any_restart_during_a_build() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let count = number("MAYHAP_GENERATIONS").unwrap_or(150);
    let mut commits = 0;
    for seed in number("MAYHAP_SEED").unwrap_or(0)..count {
        match wrong(seed, None) {
            Ok(done) => commits += done.commits,
            Err(wrong) => panic!("MAYHAP_SEED={seed}: {wrong}"),
        }
    }
    println!("{count} histories, {commits} commits of builds with concurrent changes");
    assert!(commits > count / 4, "{commits}");
}

#[test]
fn a_log_without_concurrent_additions_is_detected() {
    for spoilt in [Spoilt::Words("mf.madd"), Spoilt::Words("mf.merge"), Spoilt::Words("mf.build")] {
        let noticed = (0..100).any(|seed| {
            // A history that cannot be replayed counts as detected.
            !matches!(std::panic::catch_unwind(|| wrong(seed, Some(spoilt))), Ok(Ok(_)))
        });
        assert!(noticed, "{spoilt:?} was not detected");
    }
}

#[test]
fn a_name_serves_while_its_next_generation_is_committed() {
    const ITEMS: u64 = 600_000;
    let server = Durable::new(1, None);
    let engine = &server.engine;
    let ask = |text: &str| run(engine, &[line(text)], false).remove(0);
    assert_eq!(ask("MF.RESERVE f KIND bloom CAPACITY 1000"), Reply::Ok);
    assert_eq!(ask("MF.BUILD f BEGIN KIND ribbon FPR 0.0001"), Reply::Ok);
    for from in (0..ITEMS).step_by(20_000) {
        let items: String = (from..from + 20_000).map(|item| format!(" {item}")).collect();
        ask(&format!("MF.BUILD f ADD{items}"));
    }
    let begun = Instant::now();
    let (mut answered, mut longest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| {
            let words = [&b"MF.BUILD"[..], b"f", b"COMMIT"];
            let request = Request { command: table::find(words[0]).unwrap(), words: &words };
            let mut replies = Vec::new();
            engine.execute_long(request, &mut Scratch::default(), &mut replies);
            replies.remove(0)
        });
        while !commit.is_finished() {
            let asked = Instant::now();
            // One item is added in the middle.
            let text = if answered == 20 { "MF.ADD f late" } else { "MF.EXISTS f late" };
            assert!(matches!(ask(text), Reply::Boolean(_)));
            longest = longest.max(asked.elapsed());
            answered += 1;
            std::thread::sleep(Duration::from_micros(200));
        }
        assert_eq!(commit.join().unwrap(), Reply::Integer(2));
    });
    let whole = begun.elapsed();
    assert!(
        answered > 20 && longest < whole * 2 / 3,
        "{answered} answers, one after {longest:?} of {whole:?}"
    );
    for item in ["late".to_owned(), "0".into(), (ITEMS - 1).to_string()] {
        assert_eq!(ask(&format!("MF.EXISTS f {item}")), Reply::Boolean(true), "{item}");
    }
    engine.log().unwrap().sync().unwrap();
    let (again, _) = recovered(&server.disk, &server.clock, None);
    assert_eq!(difference(&state(engine), &state(&again)), None);
}
