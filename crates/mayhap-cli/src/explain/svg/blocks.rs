//! Blocks, bit by bit.

use mayhap::explain::{BlockLookup, BlockProbe, GenerationLookup};
use mayhap::say;

use super::Subject;
use super::arrays::{Mark, densities, left_out, legend, probe_paint, strip};
use super::canvas::{ACROSS, Canvas, FAINT, FILLED, Font, Frame, GREY, LEFT, MISSING, Paint, THERE, WHITE};

/// The most generations to draw; the rest is only counted.
const MOST_GENERATIONS: usize = 8;

pub(super) fn blocks(
    sheet: &mut Canvas,
    subject: &Subject<'_>,
    lookup: &BlockLookup,
    from: (f64, f64),
) -> f64 {
    let all = lookup.blocks * lookup.probed.len() as u64;
    let title = format!("the whole array, {} blocks of {} bits", say::count(all), lookup.block_bits);
    let mark = |block: &BlockProbe| Mark {
        at: (block.block as f64 + 0.5) / all.max(1) as f64,
        label: format!("block {}", say::count(block.block)),
        there: block.bits.iter().all(|probe| probe.set),
    };
    let marks: Vec<Mark> = lookup.probed.iter().map(mark).collect();
    let mut y = strip(sheet, &title, densities(subject.filter).first(), &marks, Some(from), from.1);
    let mut nth = 1;
    for block in &lookup.probed {
        let title = format!("block {}", say::count(block.block));
        y = grid(sheet, lookup, block, &title, (LEFT, y + 8.0), ACROSS, &mut nth) + 8.0;
    }
    legend(sheet, y, "bit")
}

pub(super) fn generations(
    sheet: &mut Canvas,
    subject: &Subject<'_>,
    lookup: &GenerationLookup,
    mut y: f64,
) -> f64 {
    let densities = densities(subject.filter);
    for (place, generation) in lookup.generations.iter().enumerate().take(MOST_GENERATIONS) {
        let mut nth = 1;
        let holds = if generation.blocks.holds() { "holds it" } else { "does not hold it" };
        let newest = if generation.age == 0 { " (newest)" } else { "" };
        let fill = densities.get(place).map_or(0.0, |density| density.share * 100.0);
        let title = format!(
            "generation {}{newest}: {} of {} items, {fill:.1}% of bits set, {holds}",
            generation.age,
            say::count(generation.inserted),
            say::count(generation.capacity),
        );
        sheet.text(LEFT, y + 26.0, &title, Font::plain(12.0).bold());
        y += 32.0;
        let blocks = &generation.blocks;
        // Several blocks of a generation are drawn side by side.
        let room = ACROSS / blocks.probed.len() as f64 - 14.0;
        let room = if blocks.lane_bits == 32 { room.min(600.0) } else { room };
        let ends = blocks.probed.iter().enumerate().map(|(column, block)| {
            let x = LEFT + column as f64 * (room + 14.0);
            let title = format!("block {}", say::count(block.block));
            grid(sheet, blocks, block, &title, (x, y), room, &mut nth)
        });
        y = ends.fold(y, f64::max);
    }
    y = left_out(sheet, lookup.generations.len(), MOST_GENERATIONS, "generation", y);
    legend(sheet, y + 4.0, "bit")
}

/// Draws the bits of a block, one lane per row. Returns the height for what follows.
fn grid(
    sheet: &mut Canvas,
    lookup: &BlockLookup,
    block: &BlockProbe,
    title: &str,
    (x, y): (f64, f64),
    room: f64,
    nth: &mut usize,
) -> f64 {
    let lanes = lookup.block_bits / lookup.lane_bits;
    let side = ((room - 52.0) / lookup.lane_bits as f64).min(19.0);
    let small = side < 9.5;
    let (name, top) = (if lookup.lane_bits == 32 { "lane" } else { "word" }, y + 18.0);
    sheet.text(x, y + 12.0, title, Font::plain(12.0).colour(GREY));
    let frame_of = |bit: u64| Frame {
        x: x + 52.0 + (bit % lookup.lane_bits) as f64 * side,
        y: top + (bit / lookup.lane_bits) as f64 * side,
        width: side,
        height: side,
    };
    for lane in 0..lanes {
        let at = top + (lane as f64 + 0.5) * side + 3.5;
        sheet.text(
            x,
            at,
            &format!("{name} {lane}"),
            Font::plain(if small { 8.0 } else { 10.0 }).colour(GREY),
        );
    }
    for bit in 0..lookup.block_bits {
        let set = block.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
        sheet.frame(frame_of(bit), Paint::new(if set { FILLED } else { WHITE }, FAINT, 0.6));
    }
    for probe in &block.bits {
        let frame = frame_of(probe.position % lookup.block_bits);
        let (_, paint) = probe_paint(probe.set);
        sheet.open(if probe.set { "probe set" } else { "probe clear" });
        sheet.frame(frame, paint);
        if !small {
            let ink = if probe.set { WHITE } else { MISSING };
            let font = Font::plain((side * 0.62).min(10.0)).bold().middle().colour(ink);
            sheet.text(frame.x + side / 2.0, frame.y + side / 2.0 + font.size * 0.36, &nth.to_string(), font);
        }
        sheet.close();
        *nth += 1;
    }
    let clear = block.bits.iter().filter(|probe| !probe.set).count();
    let label = match clear {
        0 => format!("all {} bits are set", block.bits.len()),
        clear => format!("{clear} of {} bits clear", block.bits.len()),
    };
    let colour = if clear == 0 { THERE } else { MISSING };
    let end = top + lanes as f64 * side;
    sheet.text(x + 52.0, end + 15.0, &label, Font::plain(11.0).bold().colour(colour));
    end + 20.0
}
