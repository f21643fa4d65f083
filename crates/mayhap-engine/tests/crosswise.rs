//! Many threads on the same few names: there are no deadlocks, and the totals are right.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use mayhap_command::run::Source;
use mayhap_command::{
    Arity, Command, Context, Family, Flags, Limits, Names, Refusal, Reply, Request, Run, Scratch, Slot,
    Traits, Value,
};
use mayhap_engine::{Engine, System};
use support::{Dice, one, run};

/// Enough time even for a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Copies the last source with a value to the target.
static LAST: Command = Command {
    name: "test.last",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE,
    names: Names::ALL,
    family: Family::Keyspace,
    summary: "",
    syntax: "",
    since: "",
    complexity: "",
    traits: Traits::USUAL,
    run: Run::Gather(last),
};

fn last(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    sources: &[Source<'_>],
    _: &Context<'_>,
) -> Result<Reply, Refusal> {
    assert_eq!(sources.len(), request.words.len() - 2);
    let mut last: Option<Value> = None;
    for (source, name) in sources.iter().zip(&request.words[2..]) {
        assert_eq!(matches!(source, Source::Target), *name == request.words[1]);
        if let Source::Other(Some(value)) = source {
            last = Some(value.try_clone()?);
        }
    }
    match last {
        Some(value) => slot.put(value),
        None => drop(slot.take()),
    }
    Ok(Reply::Ok)
}

fn gather(engine: &Engine, names: &[String]) -> Reply {
    let mut words: Vec<&[u8]> = vec![b"test.last"];
    words.extend(names.iter().map(String::as_bytes));
    let mut replies = Vec::new();
    engine.execute(&[Request { command: &LAST, words: &words }], &mut Scratch::default(), &mut replies);
    replies.remove(0)
}

#[test]
fn a_gathering_command_sees_every_source_and_the_target() {
    let (engine, _) = support::engine();
    run(&engine, &["BF.ADD a 1", "BF.ADD b 2", "EXPIRE c 100"]);
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(gather(&engine, &names(&["c", "a", "b", "a", "b", "none"])), Reply::Ok);
    assert_eq!(one(&engine, "BF.EXISTS c 2"), Reply::Boolean(true));
    run(&engine, &["EXPIRE c 100"]);
    assert_eq!(gather(&engine, &names(&["c", "c", "a", "c"])), Reply::Ok);
    assert_eq!(run(&engine, &["BF.EXISTS c 1", "TTL c"]), [Reply::Boolean(true), Reply::Integer(-1)]);
    assert_eq!(gather(&engine, &names(&["c", "none"])), Reply::Ok);
    assert_eq!(one(&engine, "EXISTS c none"), Reply::Integer(0));
    assert_eq!(engine.totals().names, 2);
}

#[test]
fn threads_that_merge_rename_copy_and_remove_do_not_deadlock() {
    const THREADS: u64 = 4;
    const STEPS: u64 = 5_000;
    const NAMES: u64 = 5;
    let engine = Arc::new(Engine::new(Limits::default(), Arc::new(System)));
    let (sender, receiver) = channel();
    let work = |thread: u64, engine: Arc<Engine>| {
        let mut dice = Dice(thread);
        for step in 0..STEPS {
            let mut name = || format!("name:{}", dice.below(NAMES));
            let (one_name, other, third) = (name(), name(), name());
            match dice.below(9) {
                0 => drop(one(&engine, &format!("BF.MADD {one_name} {step} a b c"))),
                1 => drop(one(&engine, &format!("RENAME {one_name} {other}"))),
                2 => drop(one(&engine, &format!("RENAMENX {one_name} {other}"))),
                3 => drop(one(&engine, &format!("COPY {one_name} {other} REPLACE"))),
                4 => drop(one(&engine, &format!("DEL {one_name} {other}"))),
                5 => drop(gather(&engine, &[one_name, other, third])),
                6 => drop(one(&engine, &format!("PEXPIRE {one_name} {}", dice.below(3)))),
                7 => drop(one(&engine, &format!("CF.ADD {one_name} {step}"))),
                _ if dice.below(20) == 0 => drop(one(&engine, "FLUSHALL")),
                _ => drop(engine.sweep(Duration::from_millis(1))),
            }
        }
    };
    for thread in 0..THREADS {
        let (engine, sender) = (Arc::clone(&engine), sender.clone());
        thread::spawn(move || {
            work(thread, engine);
            sender.send(()).unwrap();
        });
    }
    for _ in 0..THREADS {
        receiver.recv_timeout(PATIENCE).expect("threads are deadlocked, or panicked");
    }
    thread::sleep(Duration::from_millis(5));
    engine.sweep(PATIENCE);
    let page = engine.page(0, u64::MAX, None);
    let totals = engine.totals();
    assert_eq!(totals.memory_bytes, page.details.iter().map(|detail| detail.total_bytes).sum::<u64>());
    assert_eq!(totals.names, page.details.len() as u64);
    assert_eq!(totals.items, page.details.iter().map(|detail| detail.description.items).sum::<u64>());
    one(&engine, &format!("DEL{}", (0..NAMES).map(|name| format!(" name:{name}")).collect::<String>()));
    assert_eq!((engine.budget().used(), engine.totals().names, engine.totals().items), (0, 0, 0));
}

#[test]
fn threads_make_fill_and_grow_the_same_filters_and_lose_nothing() {
    let engine = Engine::new(Limits::default(), Arc::new(System));
    thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for item in 0..2_000 {
                    let name = format!("filter:{}", item % 7);
                    run(engine, &[format!("BF.ADD {name} {thread}:{item}")]);
                    let held = run(engine, &[format!("BF.EXISTS {name} {thread}:{item}")]);
                    assert_eq!(held, [Reply::Boolean(true)]);
                }
            });
        }
    });
    let page = engine.page(0, 100, Some(b"filter:*"));
    assert_eq!(page.details.len(), 7);
    assert_eq!(
        engine.totals().items,
        page.details.iter().map(|detail| detail.description.items).sum::<u64>()
    );
    assert_eq!(engine.totals().hits, 8_000);
    assert_eq!(page.details.iter().map(|detail| detail.hits).sum::<u64>(), 8_000);
}

#[test]
fn a_scan_misses_no_lasting_name_while_others_come_and_go() {
    let engine = Engine::new(Limits::default(), Arc::new(System));
    let stay: Vec<String> = (0..3_000).map(|number| format!("BF.RESERVE stay:{number} 0.1 1")).collect();
    run(&engine, &stay);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (engine, done) = (&engine, &done);
            scope.spawn(move || {
                for round in 0.. {
                    let lines = |verb: &str, rest: &str| -> Vec<String> {
                        (0..2_000).map(|i| format!("{verb} go:{thread}:{round}:{i}{rest}")).collect()
                    };
                    run(engine, &lines("BF.RESERVE", " 0.1 1"));
                    if done.load(Relaxed) {
                        return;
                    }
                    if round % 4 > 0 {
                        run(engine, &lines("DEL", ""));
                    }
                }
            });
        }
        for _ in 0..10 {
            let (mut cursor, mut seen) = (0, HashSet::new());
            loop {
                let page = engine.page(cursor, 50, Some(b"stay:*"));
                for detail in page.details {
                    assert!(seen.insert(detail.name), "met twice");
                }
                cursor = page.next;
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(seen.len(), 3_000);
        }
        done.store(true, Relaxed);
    });
}
