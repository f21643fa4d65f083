//! The memory of a name beyond its value, measured.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::{Budget, Context, Limits, Parameters, Reply, Request, Run, Slot, Value, table};
use support::{FixedClock, engine, run};

const NAMES: u64 = 200_000;

/// Counts memory as the system allocator uses it: with a header of one word, in steps of 16 bytes, at least
/// 32.
struct Counting;

static TAKEN: AtomicU64 = AtomicU64::new(0);

fn chunk_bytes(layout: Layout) -> u64 {
    (layout.size() as u64 + 8).next_multiple_of(16).max(32)
}

// SAFETY: the system allocator does the work; the counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(chunk_bytes(layout), Relaxed);
        // SAFETY: the contract of the caller is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(chunk_bytes(layout), Relaxed);
        // SAFETY: as above, and `pointer` comes from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The value that `CF.RESERVE` creates, without a name.
fn made() -> Value {
    let words: [&[u8]; 3] = [b"CF.RESERVE", b"a", b"8"];
    let request = Request { command: table::find(words[0]).unwrap(), words: &words };
    let Run::Change(change) = request.command.run else { panic!("{:?}", request.command.run) };
    let (budget, clock) = (Budget::default(), FixedClock::new(1));
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

/// Alone in its binary, so that no other test allocates meanwhile.
#[test]
fn a_name_of_twelve_bytes_takes_little_memory_beyond_its_value() {
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
    // An entry contains the value itself. The vector existed before.
    let beyond = named - alone - size_of::<Value>() as f64;
    let booked = engine.budget().used() as f64 / NAMES as f64;
    eprintln!("{named:.1} bytes a name, {beyond:.1} of them beyond the value; {booked:.1} booked");
    // Eight of them are the number of its last log record.
    assert!(beyond < 98.0, "{beyond:.1} bytes a name beyond its value");
    drop(values);
}
