//! Payloads with changed fields and correct checksums, as an attacker would send them: loaded, used, dumped again. Nothing may crash, hang, or use memory
//! out of proportion. Takes a few seconds in `./test`; `just mutate 600` continues for ten minutes with new seeds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mayhap_command::Reply;
use mayhap_engine::{Engine, snapshot};
use mayhap_fuzz::mutate::{ModuleValue, change_plain};
use mayhap_fuzz::payloads::{MAKERS, value};
use mayhap_fuzz::random::Random;
use mayhap_fuzz::test_engine::{ALL_BYTES, CERTAIN_KINDS, Memory, OTHER_KINDS, ask, ask_line as run, engine};
use mayhap_fuzz::{exercise, meter, seal};
use mayhap_testkit::alloc_meter::AllocMeter;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

/// The memory limit while loading: twice the limit of all filters (the bytes, and the filter made of them), plus the received data.
const MOST_BYTES: u64 = 3 * ALL_BYTES;
/// One round takes microseconds; a round of this length is a hang, on any machine.
const LONGEST: Duration = Duration::from_secs(10);

/// Data that can be loaded, before it is changed.
enum Specimen {
    Payload(ModuleValue),
    /// A header and its chunks, with their iterators.
    Chunks {
        load: &'static str,
        chunks: Vec<(i64, Vec<u8>)>,
    },
    Mayhap(Vec<u8>),
    Snapshot(Vec<u8>),
}

fn chunks(lines: &[&str]) -> Specimen {
    let (engine, _) = engine();
    lines.iter().for_each(|line| drop(run(&engine, line)));
    let (dump, load) = match lines[0].starts_with("bf") {
        true => ("bf.scandump", "bf.loadchunk"),
        false => ("cf.scandump", "cf.loadchunk"),
    };
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        let Reply::Array(parts) = run(&engine, &format!("{dump} v {iterator}")) else { panic!("{lines:?}") };
        // The end of a dump has one of two forms.
        let [Reply::Integer(next @ 1..), Reply::Bulk(chunk)] = &parts[..] else {
            return Specimen::Chunks { load, chunks };
        };
        chunks.push((*next, chunk.clone()));
        iterator = *next;
    }
}

fn specimens() -> Vec<Specimen> {
    let mut specimens: Vec<Specimen> =
        (0..MAKERS.len()).map(|number| Specimen::Payload(value(number))).collect();
    specimens.extend(MAKERS.iter().take(6).map(|lines| chunks(lines)));
    for kind in CERTAIN_KINDS.into_iter().chain(OTHER_KINDS) {
        let (engine, _) = engine();
        assert_eq!(run(&engine, &format!("mf.reserve v {kind}")), Reply::Ok, "{kind}");
        run(&engine, "mf.madd v 1 2 3 4 5 6 7");
        let Reply::Array(parts) = run(&engine, "mf.dump v 0") else { panic!("{kind}") };
        let [Reply::Integer(0), Reply::Bulk(file)] = &parts[..] else { panic!("{kind}") };
        specimens.push(Specimen::Mayhap(file.clone()));
        run(&engine, "bf.add b a");
        run(&engine, "cf.reserve c 8");
        run(&engine, "set t text");
        let disk = Memory::default();
        snapshot::save(&engine, &disk).unwrap();
        specimens.push(Specimen::Snapshot(disk.get(snapshot::FILE).unwrap()));
    }
    specimens
}

/// Loads a changed specimen as `v` (a snapshot has its own names). Returns whether it was accepted.
fn load(engine: &Engine, specimen: &Specimen, random: &mut Random) -> bool {
    let times = 1 + random.below(3);
    match specimen {
        Specimen::Payload(value) => {
            let mut value = value.clone();
            (0..times).for_each(|_| value.change(random));
            let mut bytes = value.to_bytes();
            if random.below(8) == 0 {
                random.bytes(&mut bytes);
            }
            ask(engine, &[b"restore", b"v", b"0", &seal::redis_payload(&bytes)]) == Some(Reply::Ok)
        }
        Specimen::Chunks { load, chunks } => {
            let mut accepted = false;
            for (number, (iterator, chunk)) in chunks.iter().enumerate() {
                let (mut iterator, mut chunk) = (*iterator, chunk.clone());
                // Usually the header, which describes everything else.
                if number == 0 || random.below(4) == 0 {
                    (0..times).for_each(|_| change_plain(&mut chunk, 128, random));
                }
                if random.below(8) == 0 {
                    iterator = random.number(iterator as u64) as i64;
                }
                accepted |= ask(engine, &[load.as_bytes(), b"v", iterator.to_string().as_bytes(), &chunk])
                    == Some(Reply::Ok);
            }
            accepted
        }
        Specimen::Mayhap(file) => {
            let mut bytes = file.clone();
            (0..times).for_each(|_| change_plain(&mut bytes, seal::MAYHAP_HEADER + 256, random));
            seal::mayhap(&mut bytes);
            let at = random.below(bytes.len() + 1);
            // In one piece, or in two.
            let pieces =
                if random.below(2) == 0 { vec![&bytes[..]] } else { vec![&bytes[..at], &bytes[at..]] };
            let (mut from, mut last) = (0, None);
            for piece in pieces {
                last = ask(engine, &[b"mf.load", b"v", from.to_string().as_bytes(), piece]);
                from += piece.len();
            }
            last == Some(Reply::Integer(0))
        }
        Specimen::Snapshot(file) => {
            let mut bytes = file.clone();
            let fields = bytes.len();
            (0..times).for_each(|_| change_plain(&mut bytes, fields, random));
            seal::snapshot(&mut bytes);
            let disk = Memory::default();
            disk.put(snapshot::FILE, &bytes);
            snapshot::load(engine, &disk).is_ok()
        }
    }
}

/// Sends random requests about `v`, and then uses it in every way.
fn round(specimen: &Specimen, seed: u64) -> bool {
    const LINES: [&str; 16] = [
        "bf.add v x",
        "bf.madd v p q r s t",
        "bf.exists v x",
        "bf.card v",
        "cf.add v x",
        "cf.insertnx v items p q r",
        "cf.del v x",
        "cf.compact v",
        "mf.add v 3",
        "mf.madd v 1 2 9 10",
        "mf.del v 2",
        "mf.clear v",
        "mf.info v",
        "copy v w replace",
        "rename v v",
        "expire v 100",
    ];
    let mut random = Random(seed);
    let (engine, clock) = engine();
    let accepted = load(&engine, specimen, &mut random);
    for _ in 0..random.below(12) {
        run(&engine, random.of::<&str>(&LINES));
        clock.advance(random.below(10_000) as u64);
    }
    for name in [&b"v"[..], b"w", b"b", b"c", b"t"] {
        exercise::all(&engine, name);
    }
    run(&engine, "dump v");
    run(&engine, "flushall");
    accepted
}

#[test]
fn changed_payloads_with_correct_checksums_are_harmless() {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    static DONE: AtomicBool = AtomicBool::new(false);
    let seconds: Option<u64> = std::env::var("MAYHAP_MUTATE_SECS").ok().and_then(|text| text.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let begin = match (seconds, std::env::var("MAYHAP_MUTATE_SEED").ok().and_then(|text| text.parse().ok())) {
        (_, Some(seed)) => seed,
        (Some(_), None) => time.as_nanos() as u64,
        (None, None) => 0,
    };
    println!("MAYHAP_MUTATE_SEED={begin} repeats this run");
    // A thread that hangs cannot report it.
    let watch = std::thread::spawn(|| {
        let (mut seen, mut since) = (0, Instant::now());
        while !DONE.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let now = ROUND.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > LONGEST {
                eprintln!("round {now} hangs");
                std::process::exit(1);
            }
        }
    });
    let specimens = specimens();
    let (mut accepted, mut most) = (0_u64, 0);
    let mut longest = meter::take_longest();
    let mut rounds = 0;
    while end.map_or(rounds < 6_000, |end| Instant::now() < end) {
        let seed = begin.wrapping_add(rounds);
        ROUND.store(seed, Ordering::Relaxed);
        let specimen = &specimens[(seed % specimens.len() as u64) as usize];
        let mixed = Random(seed).next();
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            AllocMeter::measure(|| round(specimen, mixed))
        }));
        let (was_accepted, measured) = told.unwrap_or_else(|panic| {
            eprintln!("MAYHAP_MUTATE_SEED={seed} repeats the failure");
            std::panic::resume_unwind(panic)
        });
        accepted += u64::from(was_accepted);
        most = measured.peak_bytes.max(most);
        assert!(
            measured.peak_bytes <= MOST_BYTES,
            "MAYHAP_MUTATE_SEED={seed}: {} bytes",
            measured.peak_bytes
        );
        let request = meter::take_longest();
        if request.took >= meter::LONGEST_REQUEST {
            let again = meter::longest_of(|| {
                let _ = round(specimen, mixed);
            });
            assert!(again.took < meter::LONGEST_REQUEST, "MAYHAP_MUTATE_SEED={seed}: {again:?}");
        } else if request.took > longest.took {
            longest = request;
        }
        rounds += 1;
    }
    DONE.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    println!("{rounds} payloads, {accepted} accepted, at most {most} bytes in use, {longest:?}");
    // If almost nothing is accepted, almost nothing was tested.
    assert!(accepted * 20 > rounds && accepted * 10 < rounds * 9, "{accepted} of {rounds} accepted");
}
