//! The blocks of all generations, interleaved: the blocks that may hold an item's bits are adjacent.
//!
//! ```text
//!            block 0                     block 1
//! counts   ┃ gen 0, gen 1, gen 2, gen 3 ┃ gen 0, gen 1, gen 2, gen 3 ┃ …
//! ```
//!
//! An item has the same block, and the same bits in it, in every generation. With a separate filter for each
//! generation, a lookup would wait for one cache line per generation. Interleaved, four blocks of 256 bits
//! are two adjacent lines. The price: clearing a generation passes over the whole array instead of a part of
//! it, once per generation.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::WindowShape;
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::blocked::{BlockPlace, BlockedLayout, BlockedPlacement, place};
use crate::explain::BlockLookup;
use crate::hash::{HashScheme, ItemHash};
use crate::simd::{self, Avx2, generic, prefetch, prefetch_words, side_by_side};
use crate::sizing::window::MAX_GENERATIONS;
use crate::store::Lines;

/// Items prefetched together.
const CHUNK: usize = 16;

/// Returns the places of an item's `R` blocks in generation 0.
#[inline(always)]
fn first_of<const R: usize>(hash: ItemHash, shape: &WindowShape) -> [BlockPlace; R] {
    // As in a single filter, with the blocks of all generations in place of each block.
    let alone = match shape.generation().layout() {
        BlockedLayout::Split256 => [place::split(hash, shape.generation().blocks()); R],
        BlockedLayout::Line512 => place::lines::<R>(hash, shape.generation()),
    };
    alone.map(|place| BlockPlace { word: place.word * shape.generations() as usize, ..place })
}

/// Returns the same blocks in generation `index`.
#[inline(always)]
fn in_generation<const R: usize>(
    first: [BlockPlace; R],
    index: usize,
    shape: &WindowShape,
) -> [BlockPlace; R] {
    first.map(|place| BlockPlace { word: place.word + index * shape.block_words(), ..place })
}

/// Calls a function with the number of an item's blocks in a generation as a constant.
macro_rules! by_blocks {
    ($shape:expr, $function:ident($($argument:expr),*)) => {
        match $shape.generation().lines_per_item() {
            0..=1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            _ => $function::<3>($($argument),*),
        }
    };
}

/// Returns one bit per generation: set if it has all bits of the item. `blocks` are the words after the
/// counts.
#[inline]
pub(super) fn holding(blocks: &[AtomicU64], shape: &WindowShape, hash: ItemHash) -> u64 {
    by_blocks!(shape, holding_in(blocks, shape, hash))
}

#[inline(always)]
fn holding_in<const R: usize>(blocks: &[AtomicU64], shape: &WindowShape, hash: ItemHash) -> u64 {
    holding_at::<R>(blocks, shape, first_of(hash, shape))
}

#[inline(always)]
fn holding_at<const R: usize>(blocks: &[AtomicU64], shape: &WindowShape, first: [BlockPlace; R]) -> u64 {
    let generations = shape.generations() as usize;
    match shape.generation().layout() {
        BlockedLayout::Split256 => side_by_side::covering(blocks, first[0], generations),
        BlockedLayout::Line512 => {
            let mut places = [first; MAX_GENERATIONS as usize];
            for (index, place) in places[..generations].iter_mut().enumerate() {
                *place = in_generation(first, index, shape);
            }
            simd::line_covers_chunk(blocks, &places[..generations], shape.generation().probes())
        }
    }
}

/// Traces what [`holding`] reads in generation `index`.
pub(super) fn trace(blocks: &[AtomicU64], shape: &WindowShape, index: usize, hash: ItemHash) -> BlockLookup {
    by_blocks!(shape, trace_in(blocks, shape, index, hash))
}

fn trace_in<const R: usize>(
    blocks: &[AtomicU64],
    shape: &WindowShape,
    index: usize,
    hash: ItemHash,
) -> BlockLookup {
    let (generation, first) = (shape.generation(), first_of::<R>(hash, shape));
    let rule = BlockedPlacement::ours(generation.layout());
    // The adjacent blocks of all generations count as one.
    let side_by_side = shape.generations() as usize * shape.block_words();
    let probed = in_generation(first, index, shape)
        .map(|place| generation.trace_block(blocks, place, place.word / side_by_side, rule));
    generation.trace(probed.into())
}

/// Answers *maybe* for every item that one of the generations in `alive` holds.
pub(super) fn answer_all(
    blocks: &[AtomicU64],
    shape: &WindowShape,
    alive: u64,
    scheme: &HashScheme,
    items: &[impl Hashed],
    answers: &mut Answers,
) {
    by_blocks!(shape, answer_all_in(blocks, shape, alive, scheme, items, answers));
}

#[inline(always)]
fn answer_all_in<const R: usize>(
    blocks: &[AtomicU64],
    shape: &WindowShape,
    alive: u64,
    scheme: &HashScheme,
    items: &[impl Hashed],
    answers: &mut Answers,
) where
    [BlockPlace; R]: Default,
{
    answers.reset(items.len());
    let generations = shape.generations() as usize;
    let start = |hash| {
        let places = first_of::<R>(hash, shape);
        for_each_line(places, shape, |word| prefetch(blocks, word));
        places
    };
    hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |first, located: &[[BlockPlace; R]]| {
        let held = match shape.generation().layout() {
            BlockedLayout::Split256 => {
                side_by_side::covered_chunk(blocks, located.as_flattened(), generations, alive)
            }
            BlockedLayout::Line512 => {
                generic::chunk(located, |places| holding_at(blocks, shape, *places) & alive != 0)
            }
        };
        answers.words_mut()[first / 64] |= held << (first % 64);
    });
}

/// Calls `load` with a word of every cache line that holds the blocks of an item, in all generations.
#[inline(always)]
fn for_each_line<const R: usize>(places: [BlockPlace; R], shape: &WindowShape, mut load: impl FnMut(usize)) {
    let words = shape.generations() as usize * shape.block_words();
    for place in places {
        (place.word..place.word + words).step_by(generic::LINE_WORDS).for_each(&mut load);
    }
}

/// The result of inserting some items.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recorded {
    /// Items that no alive generation held before.
    pub(super) new: u64,
    /// Items that changed a bit of the newest generation.
    pub(super) changed: u64,
}

/// Inserts all items into generation `newest`. The generations in `alive` decide which of them are new.
pub(super) fn record_all(
    lines: &mut Lines,
    shape: &WindowShape,
    newest: usize,
    alive: u64,
    scheme: &HashScheme,
    items: &[impl Hashed],
) -> Recorded {
    by_blocks!(shape, record_all_in(lines, shape, newest, alive, scheme, items))
}

#[inline(always)]
fn record_all_in<const R: usize>(
    lines: &mut Lines,
    shape: &WindowShape,
    newest: usize,
    alive: u64,
    scheme: &HashScheme,
    items: &[impl Hashed],
) -> Recorded
where
    [BlockPlace; R]: Default,
{
    let head = shape.head_words();
    let prefetch = prefetch_words(&mut lines.words_mut()[head..]);
    let start = |hash| {
        let places = first_of::<R>(hash, shape);
        for_each_line(places, shape, |word| prefetch.at(word));
        places
    };
    let mut recorded = Recorded::default();
    hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |_, located| {
        for &places in located {
            let (held, changed) = record_at(lines, shape, newest, places);
            recorded.new += u64::from(held & alive == 0);
            recorded.changed += u64::from(changed);
        }
    });
    recorded
}

/// Inserts one item into generation `newest`. Returns which generations held it before, and whether a bit
/// changed.
#[inline]
pub(super) fn record(lines: &mut Lines, shape: &WindowShape, newest: usize, hash: ItemHash) -> (u64, bool) {
    by_blocks!(shape, record_in(lines, shape, newest, hash))
}

#[inline(always)]
fn record_in<const R: usize>(
    lines: &mut Lines,
    shape: &WindowShape,
    newest: usize,
    hash: ItemHash,
) -> (u64, bool) {
    record_at::<R>(lines, shape, newest, first_of(hash, shape))
}

#[inline(always)]
fn record_at<const R: usize>(
    lines: &mut Lines,
    shape: &WindowShape,
    newest: usize,
    places: [BlockPlace; R],
) -> (u64, bool) {
    let head = shape.head_words();
    let held = holding_at(&lines.words()[head..], shape, places);
    // An item that the newest generation already holds is not written.
    if held >> newest & 1 == 1 {
        return (held, false);
    }
    let blocks = &mut lines.words_mut()[head..];
    let places = in_generation(places, newest, shape);
    let changed = match (shape.generation().layout(), Avx2::detect()) {
        (BlockedLayout::Split256, Some(avx2)) => {
            let all = (blocks.len() / generic::SPLIT_WORDS) as u64;
            simd::split_set_avx2(avx2, blocks, all, places[0])
        }
        (BlockedLayout::Split256, None) => generic::split_set(blocks, places[0]),
        (BlockedLayout::Line512, _) => generic::lines_set(blocks, places, shape.generation().probes()),
    };
    (held, changed)
}

/// Empties generation `index`.
pub(super) fn clear(blocks: &mut [u64], shape: &WindowShape, index: usize) {
    let (block, all) = (shape.block_words(), shape.generations() as usize * shape.block_words());
    for side_by_side in blocks.chunks_exact_mut(all) {
        side_by_side[index * block..(index + 1) * block].fill(0);
    }
}

/// Adds all items of generation `from` to generation `into`.
pub(super) fn merge(blocks: &mut [u64], shape: &WindowShape, from: usize, into: usize) {
    let (block, all) = (shape.block_words(), shape.generations() as usize * shape.block_words());
    for side_by_side in blocks.chunks_exact_mut(all) {
        for word in 0..block {
            side_by_side[into * block + word] |= side_by_side[from * block + word];
        }
    }
}

/// Returns the number of set bits of generation `index`.
pub(super) fn ones(blocks: &[AtomicU64], shape: &WindowShape, index: usize) -> u64 {
    let (block, all) = (shape.block_words(), shape.generations() as usize * shape.block_words());
    let words =
        blocks.chunks_exact(all).flat_map(|side_by_side| &side_by_side[index * block..(index + 1) * block]);
    words.map(|word| u64::from(word.load(Relaxed).count_ones())).sum()
}
