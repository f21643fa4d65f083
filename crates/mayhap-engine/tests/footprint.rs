//! What a name takes beyond what it holds, measured.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::{Budget, Context, Limits, Parameters, Reply, Request, Run, Slot, Value, table};
use support::{Played, engine, run};

const NAMES: u64 = 200_000;

/// Counts what is taken as the system's allocator takes it: with a word of its own, in steps of 16 bytes, at least 32.
struct Counting;

static TAKEN: AtomicU64 = AtomicU64::new(0);

fn chunk_bytes(layout: Layout) -> u64 {
    (layout.size() as u64 + 8).next_multiple_of(16).max(32)
}

// SAFETY: the system's allocator does the work; counting beside it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(chunk_bytes(layout), Relaxed);
        // SAFETY: what the caller owes us it owes the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(chunk_bytes(layout), Relaxed);
        // SAFETY: as above, and `pointer` is of the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `CF.RESERVE` makes, without a name.
fn made() -> Value {
    let words: [&[u8]; 3] = [b"CF.RESERVE", b"a", b"8"];
    let request = Request { command: table::find(words[0]).unwrap(), words: &words };
    let Run::Change(change) = request.command.run else { panic!("{:?}", request.command.run) };
    let (budget, clock) = (Budget::default(), Played::new(1));
    let context = Context {
        limits: &Limits::default(),
        budget: &budget,
        parameters: &Parameters::default(),
        environment: &*clock,
    };
    let mut value = None;
    assert_eq!(change(&request, &mut Slot::new(&mut value), &context), Ok(Reply::Ok));
    value.unwrap()
}

/// Alone in its binary, so that nobody else takes memory meanwhile.
#[test]
fn a_name_of_twelve_bytes_takes_little_beyond_what_it_holds() {
    let bytes_of = |work: &mut dyn FnMut()| {
        let before = TAKEN.load(Relaxed);
        work();
        (TAKEN.load(Relaxed) - before) as f64 / NAMES as f64
    };
    let mut values = Vec::with_capacity(NAMES as usize);
    let alone = bytes_of(&mut || values.extend((0..NAMES).map(|_| made())));
    let (engine, _) = engine();
    let named = bytes_of(&mut || {
        for names in (0..NAMES).collect::<Vec<_>>().chunks(1_000) {
            let lines: Vec<String> =
                names.iter().map(|name| format!("CF.RESERVE name:{name:07} 8")).collect();
            assert!(run(&engine, &lines).iter().all(|reply| *reply == Reply::Ok));
        }
    });
    // An entry has the value itself inside; the vector was there before.
    let beyond = named - alone - size_of::<Value>() as f64;
    let booked = engine.budget().used() as f64 / NAMES as f64;
    eprintln!("{named:.1} bytes a name, {beyond:.1} of them beyond the value; {booked:.1} booked");
    // Eight of them are the number of its last record in the log.
    assert!(beyond < 98.0, "{beyond:.1} bytes a name beyond its value");
    drop(values);
}
