//! Arrays of bits and counters: the whole as a strip, and windows around the probes.

use mayhap::explain::{BitLookup, BitProbe, CounterLookup, Density, DualLookup, LayerLookup, NumberLookup};
use mayhap::{Filter, say};

use super::Subject;
use super::canvas::{
    ACROSS, Canvas, FAINT, FILLED, Font, Frame, GREY, INK, LEFT, MISSING, Paint, RIGHT, THERE, WHITE, WIDTH,
};

/// The number of parts of a strip.
pub(super) const PARTS: usize = 220;
const STRIP_HEIGHT: f64 = 26.0;
/// The height of arrows down to a strip, and the width of a caption next to them.
const ARROWS: f64 = 56.0;
const NARROW: f64 = 430.0;
/// The most layers or steps to draw; the rest is only counted.
const MOST_STRIPS: usize = 12;
/// The most windows to draw; the rest is only counted.
const MOST_WINDOWS: usize = 24;

/// A mark on a strip.
pub(super) struct Mark {
    /// Its position, from 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
    pub(super) there: bool,
}

/// The densities of a filter's arrays.
pub(super) fn densities(filter: &Filter) -> Vec<Density> {
    filter.densities(PARTS)
}

/// Draws a strip with marks, and arrows to them from `from`, if given. Returns the height for what follows.
pub(super) fn strip(
    sheet: &mut Canvas,
    title: &str,
    density: Option<&Density>,
    marks: &[Mark],
    from: Option<(f64, f64)>,
    y: f64,
) -> f64 {
    strip_and_top(sheet, title, density, marks, from, y).1
}

/// The same; also returns where the strip begins.
fn strip_and_top(
    sheet: &mut Canvas,
    title: &str,
    density: Option<&Density>,
    marks: &[Mark],
    from: Option<(f64, f64)>,
    y: f64,
) -> (f64, f64) {
    let caption = match density {
        Some(density) => {
            let about = if density.exact { "" } else { "about " };
            format!("{title}: {about}{:.1}% of {} (darker is fuller)", density.share * 100.0, density.what)
        }
        None => title.to_owned(),
    };
    // Above the arrows, and narrow enough that they pass below it.
    let room = if from.is_some() { NARROW } else { ACROSS };
    let below = sheet.lines(LEFT, y + 18.0, room, &caption, Font::plain(12.0).colour(GREY));
    let top = below - 9.0 + if from.is_some() { ARROWS } else { 0.0 };
    if let Some(density) = density {
        let part = ACROSS / density.shares.len().max(1) as f64;
        for (index, &share) in density.shares.iter().enumerate() {
            let x = LEFT + index as f64 * part;
            // Slightly wider than the part, so that there are no gaps.
            let width = (part + 0.4).min(RIGHT - x);
            sheet.shade(Frame { x, y: top, width, height: STRIP_HEIGHT }, share);
        }
    }
    let whole = Frame { x: LEFT, y: top, width: ACROSS, height: STRIP_HEIGHT };
    sheet.frame(whole, Paint::new("none", GREY, 1.0));
    (top, marks_below(sheet, marks, from, top))
}

/// Draws a strip without densities, divided into `sections` equal sections if they are few enough to be seen.
pub(super) fn sections(
    sheet: &mut Canvas,
    title: &str,
    sections: f64,
    marks: &[Mark],
    from: (f64, f64),
) -> f64 {
    const MOST: f64 = 110.0;
    let (top, end) = strip_and_top(sheet, title, None, marks, Some(from), from.1);
    if sections <= MOST {
        for section in 1..sections.ceil() as u32 {
            let x = LEFT + f64::from(section) / sections * ACROSS;
            sheet.line((x, top + 1.0), (x, top + STRIP_HEIGHT - 1.0), FAINT, 1.0);
        }
    }
    end
}

/// Draws the marks of a strip that begins at `top`. Their labels are below it, in as few rows as keep them apart.
fn marks_below(sheet: &mut Canvas, marks: &[Mark], from: Option<(f64, f64)>, top: f64) -> f64 {
    const ROWS: usize = 5;
    let font = Font::plain(11.0).bold();
    let bottom = top + STRIP_HEIGHT;
    let mut order: Vec<&Mark> = marks.iter().collect();
    order.sort_by(|one, other| one.at.total_cmp(&other.at));
    let mut ends = [f64::NEG_INFINITY; ROWS];
    let mut rows = 1;
    for mark in order {
        let x = LEFT + mark.at * ACROSS;
        let (colour, paint) = probe_paint(mark.there);
        sheet.open(if mark.there { "mark set" } else { "mark clear" });
        if let Some(from) = from {
            sheet.arrow(from, (x, top), colour);
        }
        sheet.line((x, top), (x, bottom + 5.0), colour, 1.6);
        sheet.dot(x, bottom + 8.0, 4.0, paint);
        let half = font.width(mark.label.chars().count()) / 2.0 + 3.0;
        if let Some(row) = ends.iter().position(|&end| end < x - half) {
            ends[row] = x + half;
            rows = rows.max(row + 1);
            let inside = x.clamp(half + 4.0, WIDTH - half - 4.0);
            sheet.text(inside, bottom + 25.0 + 13.0 * row as f64, &mark.label, font.colour(colour).middle());
        }
        sheet.close();
    }
    bottom + if marks.is_empty() { 10.0 } else { 22.0 + 13.0 * rows as f64 }
}

/// Filled for present, hollow for absent, so that colour is not needed to tell them apart.
pub(super) const fn probe_paint(there: bool) -> (&'static str, Paint) {
    if there { (THERE, Paint::new(THERE, THERE, 2.0)) } else { (MISSING, Paint::new(WHITE, MISSING, 2.0)) }
}

/// The marks of bits in an array of this size.
fn bit_marks(probes: &[BitProbe], bits: u64) -> Vec<Mark> {
    let mark = |(nth, probe): (usize, &BitProbe)| Mark {
        at: (probe.position as f64 + 0.5) / bits.max(1) as f64,
        label: nth.to_string(),
        there: probe.set,
    };
    (1..).zip(probes).map(mark).collect()
}

pub(super) fn number(sheet: &mut Canvas, subject: &Subject<'_>, lookup: &NumberLookup, y: f64) -> f64 {
    let title = format!("the bits of all {} numbers", say::count(lookup.bits));
    let marks: Vec<Mark> = lookup
        .probe
        .iter()
        .map(|probe| Mark {
            at: (probe.position as f64 + 0.5) / lookup.bits.max(1) as f64,
            label: say::count(lookup.first + probe.position),
            there: probe.set,
        })
        .collect();
    let end = strip(sheet, &title, densities(subject.filter).first(), &marks, None, y + 6.0);
    let probes: Vec<BitProbe> = lookup.probe.into_iter().collect();
    let end = bit_windows(sheet, &probes, end);
    legend(sheet, end, "bit")
}

pub(super) fn bits(sheet: &mut Canvas, subject: &Subject<'_>, lookup: &BitLookup, from: (f64, f64)) -> f64 {
    let title = format!("the whole array, {} bits", say::count(lookup.bits));
    let marks = bit_marks(&lookup.probes, lookup.bits);
    let end = strip(sheet, &title, densities(subject.filter).first(), &marks, Some(from), from.1);
    let end = bit_windows(sheet, &lookup.probes, end);
    legend(sheet, end, "bit")
}

pub(super) fn layers(
    sheet: &mut Canvas,
    subject: &Subject<'_>,
    lookup: &LayerLookup,
    from: (f64, f64),
) -> f64 {
    let densities = densities(subject.filter);
    // Arrows lead to the first strip only: they would cross it on their way to the others.
    let (mut y, mut arrows, mut found) = (from.1, Some(from), false);
    for (layer, density) in lookup.layers.iter().zip(&densities).take(MOST_STRIPS) {
        let (inserted, capacity) = (say::count(layer.inserted), say::count(layer.capacity));
        let answer = match (found, layer.bits.holds()) {
            (true, _) => "not checked, a newer layer holds it",
            (false, true) => "holds it",
            (false, false) => "does not hold it",
        };
        let title = format!(
            "layer {} ({answer}), {inserted} of {capacity} items, {} bits",
            layer.number,
            say::count(layer.bits.bits)
        );
        let marks = bit_marks(&layer.bits.probes, layer.bits.bits);
        y = strip(sheet, &title, Some(density), &marks, arrows.take(), y) + 6.0;
        found |= layer.bits.holds();
    }
    y = left_out(sheet, lookup.layers.len(), MOST_STRIPS, "older layer", y);
    legend(sheet, y, "bit")
}

pub(super) fn dual(sheet: &mut Canvas, subject: &Subject<'_>, lookup: &DualLookup, from: (f64, f64)) -> f64 {
    let densities = densities(subject.filter);
    let (mut y, mut arrows) = (from.1, Some(from));
    for step in lookup.steps.iter().take(MOST_STRIPS / 2) {
        let both = [("put in", Some(&step.added)), ("removed", step.removed.as_ref())];
        for ((what, bits), density) in both.into_iter().zip(&densities) {
            let Some(bits) = bits else { continue };
            let answer = if bits.holds() { "mayhap" } else { "certainly not" };
            let title =
                format!("generation {}, {what}? {answer}; {} bits", step.generation, say::count(bits.bits));
            let marks = bit_marks(&bits.probes, bits.bits);
            y = strip(sheet, &title, Some(density), &marks, arrows.take(), y) + 6.0;
        }
    }
    y = left_out(sheet, lookup.steps.len(), MOST_STRIPS / 2, "generation", y);
    legend(sheet, y, "bit")
}

/// Writes how many are not drawn, if any.
pub(super) fn left_out(sheet: &mut Canvas, all: usize, drawn: usize, what: &str, y: f64) -> f64 {
    if all <= drawn {
        return y;
    }
    let more = super::super::how_it_works::plural(all - drawn, what);
    sheet.text(LEFT, y + 16.0, &format!("… and {more} more"), Font::plain(12.0).colour(GREY));
    y + 22.0
}

/// Windows per row, and the distance between them.
const WINDOWS_PER_ROW: usize = 4;
const WINDOW_STEP: f64 = ACROSS / WINDOWS_PER_ROW as f64;
const WINDOW_HEIGHT: f64 = 62.0;

/// The position of window `nth`.
fn window_at(nth: usize, y: f64) -> (f64, f64) {
    let (row, column) = (nth / WINDOWS_PER_ROW, nth % WINDOWS_PER_ROW);
    (LEFT + column as f64 * WINDOW_STEP, y + row as f64 * WINDOW_HEIGHT)
}

fn rows_of(windows: usize) -> f64 {
    windows.div_ceil(WINDOWS_PER_ROW) as f64 * WINDOW_HEIGHT
}

/// The probes to draw: the first ones, and always the first clear one.
fn drawn(probes: &[BitProbe]) -> Vec<(usize, &BitProbe)> {
    let mut drawn: Vec<(usize, &BitProbe)> = (1..).zip(probes).take(MOST_WINDOWS).collect();
    let clear = (1..).zip(probes).find(|(_, probe)| !probe.set);
    if let (Some(clear), Some(last)) = (clear, drawn.last_mut())
        && clear.0 > MOST_WINDOWS
    {
        *last = clear;
    }
    drawn
}

/// Draws the bits around every probe.
fn bit_windows(sheet: &mut Canvas, probes: &[BitProbe], y: f64) -> f64 {
    const SIDE: f64 = 12.0;
    const AROUND: i64 = 8;
    let drawn = drawn(probes);
    for (place, &(nth, probe)) in drawn.iter().enumerate() {
        let (x, y) = window_at(place, y + 10.0);
        let (colour, paint) = probe_paint(probe.set);
        sheet.open(if probe.set { "probe set" } else { "probe clear" });
        let number = if probes.len() > 1 { format!("{nth}: ") } else { String::new() };
        sheet.text(x, y + 12.0, &format!("{number}bit {}", say::count(probe.position)), {
            Font::plain(12.0).bold().colour(colour)
        });
        let at = (probe.position % 64) as i64;
        let squares = (at - AROUND..=at + AROUND).enumerate().filter(|(_, bit)| (0..64).contains(bit));
        // The probe last, so that its frame is on top.
        let (others, own): (Vec<_>, Vec<_>) = squares.partition(|&(_, bit)| bit != at);
        for (index, bit) in others.into_iter().chain(own) {
            let set = probe.word >> bit & 1 == 1;
            let frame = Frame { x: x + index as f64 * SIDE, y: y + 19.0, width: SIDE, height: SIDE + 4.0 };
            let (paint, ink) = match (bit == at, set) {
                (true, true) => (paint, WHITE),
                (true, false) => (paint, MISSING),
                (false, set) => (Paint::new(if set { FILLED } else { WHITE }, FAINT, 0.8), GREY),
            };
            sheet.frame(frame, paint);
            let digit = Font::mono(10.0).middle().colour(ink);
            sheet.text(frame.x + SIDE / 2.0, frame.y + 12.0, if set { "1" } else { "0" }, digit);
        }
        let word = format!("word {}, bit {at}", say::count(probe.position / 64));
        sheet.text(x, y + 48.0, &word, Font::plain(10.0).colour(GREY));
        sheet.close();
    }
    let end = y + 10.0 + rows_of(drawn.len());
    left_out(sheet, probes.len(), drawn.len(), "bit", end)
}

pub(super) fn counters(
    sheet: &mut Canvas,
    subject: &Subject<'_>,
    lookup: &CounterLookup,
    from: (f64, f64),
) -> f64 {
    const SIDE: f64 = 12.8;
    let title = format!("the whole array, {} counters", say::count(lookup.counters));
    let mark = |(nth, probe): (usize, &mayhap::explain::CounterProbe)| Mark {
        at: (probe.position as f64 + 0.5) / lookup.counters.max(1) as f64,
        label: nth.to_string(),
        there: probe.count > 0,
    };
    let marks: Vec<Mark> = (1..).zip(&lookup.probes).map(mark).collect();
    let end = strip(sheet, &title, densities(subject.filter).first(), &marks, Some(from), from.1);
    for (place, probe) in lookup.probes.iter().enumerate().take(MOST_WINDOWS) {
        let (x, y) = window_at(place, end + 10.0);
        let (colour, paint) = probe_paint(probe.count > 0);
        sheet.open(if probe.count > 0 { "probe set" } else { "probe clear" });
        let title = format!("{}: counter {}", place + 1, say::count(probe.position));
        sheet.text(x, y + 12.0, &title, Font::plain(12.0).bold().colour(colour));
        let at = probe.position % 16;
        for counter in (0..16).filter(|&counter| counter != at).chain([at]) {
            let count = probe.word >> (4 * counter) & 15;
            let frame = Frame { x: x + counter as f64 * SIDE, y: y + 19.0, width: SIDE, height: 17.0 };
            let (paint, ink) = match (counter == at, count > 0) {
                (true, there) => (paint, if there { WHITE } else { MISSING }),
                (false, there) => (Paint::new(if there { FILLED } else { WHITE }, FAINT, 0.8), GREY),
            };
            sheet.frame(frame, paint);
            let digit = Font::mono(10.0).middle().colour(ink);
            sheet.text(frame.x + SIDE / 2.0, frame.y + 12.5, &format!("{count:x}"), digit);
        }
        let count = format!("counts {}", probe.count);
        sheet.text(x, y + 50.0, &count, Font::plain(10.0).colour(GREY));
        sheet.close();
    }
    let drawn = lookup.probes.len().min(MOST_WINDOWS);
    let end = left_out(sheet, lookup.probes.len(), drawn, "counter", end + 10.0 + rows_of(drawn));
    legend(sheet, end, "counter")
}

/// Draws the legend of the squares.
pub(super) fn legend(sheet: &mut Canvas, y: f64, what: &str) -> f64 {
    let (there, missing) = match what {
        "counter" => ("the item's, above zero", "the item's, zero"),
        _ => ("the item's, set", "the item's, clear"),
    };
    let others = match what {
        "counter" => "of other items (hexadecimal)",
        _ => "set by other items",
    };
    let entries = [
        (Paint::new(FILLED, FAINT, 0.8), others),
        (probe_paint(true).1, there),
        (probe_paint(false).1, missing),
    ];
    let font = Font::plain(11.0).colour(INK);
    let mut x = LEFT;
    for (paint, meaning) in entries {
        sheet.frame(Frame { x, y: y + 6.0, width: 11.0, height: 11.0 }, paint);
        sheet.text(x + 18.0, y + 15.5, meaning, font);
        x += 18.0 + font.width(meaning.len()) + 24.0;
    }
    y + 26.0
}
