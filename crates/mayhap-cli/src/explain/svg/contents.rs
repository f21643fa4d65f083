//! Stored contents: buckets, runs, slots, rows and values.

use mayhap::explain::{
    BucketLookup, BucketProbe, BucketSlot, RowLookup, RunEntry, RunLookup, SlotLookup, ValueLookup,
};
use mayhap::say;

use super::Subject;
use super::arrays::{Mark, densities, left_out, probe_paint, sections, strip};
use super::canvas::{
    ACROSS, Canvas, FAINT, FILLED, Font, Frame, GREY, INK, LEFT, MISSING, Paint, RIGHT, THERE, WHITE,
};
use crate::explain::shown;

/// The most buckets to draw; the rest is only counted.
const MOST_BUCKETS: usize = 16;
/// The most entries of a run to draw; the rest is only counted.
const MOST_ENTRIES: usize = 40;

/// Draws a box with a small title and its content.
fn boxed(sheet: &mut Canvas, frame: Frame, title: &str, content: &str, paint: Paint, ink: &'static str) {
    sheet.rounded(frame, paint, 3.0);
    let middle = frame.x + frame.width / 2.0;
    // The largest size that fits.
    let largest = Font::mono(13.0);
    let size = largest.size * ((frame.width - 10.0) / largest.width(content.chars().count())).min(1.0);
    if title.is_empty() {
        let y = frame.y + frame.height / 2.0 + size * 0.36;
        return sheet.text(middle, y, content, Font::mono(size).middle().colour(ink));
    }
    sheet.text(
        middle,
        frame.y + 14.0,
        title,
        Font::plain(10.0).middle().colour(if ink == WHITE { WHITE } else { GREY }),
    );
    sheet.text(middle, frame.y + 31.0, content, Font::mono(size).middle().colour(ink));
}

/// The style of a slot, by whether it matches.
const fn slot_paint(matches: bool) -> (Paint, &'static str) {
    if matches { (probe_paint(true).1, WHITE) } else { (Paint::new(FILLED, GREY, 0.8), INK) }
}

pub(super) fn buckets(
    sheet: &mut Canvas,
    subject: &Subject<'_>,
    lookup: &BucketLookup,
    from: (f64, f64),
) -> f64 {
    const PER_ROW: usize = 4;
    let hex = |number| shown::hex(number, lookup.fingerprint_bits);
    let fingerprint = Frame { x: from.0 - 110.0, y: from.1 + 26.0, width: 220.0, height: 40.0 };
    sheet.arrow(from, (from.0, fingerprint.y), INK);
    let title = format!("fingerprint, {} bits", lookup.fingerprint_bits);
    boxed(sheet, fingerprint, &title, &hex(lookup.fingerprint), Paint::new(WHITE, THERE, 2.0), INK);
    let from = (from.0, fingerprint.y + fingerprint.height);
    let columns = lookup.buckets.len().clamp(1, PER_ROW);
    let step = ACROSS / columns as f64;
    let most_slots = lookup.buckets.iter().map(|bucket| bucket.slots.len()).max().unwrap_or(0);
    let width = (step - 24.0).min(190.0 * most_slots.div_ceil(COLUMN_SLOTS).clamp(1, 2) as f64);
    let tables = lookup.buckets.iter().any(|bucket| bucket.table > 0);
    let mut y = from.1 + 44.0;
    for row in lookup.buckets[..lookup.buckets.len().min(MOST_BUCKETS)].chunks(PER_ROW) {
        let mut end = y;
        for (column, bucket) in row.iter().enumerate() {
            let x = LEFT + column as f64 * step + (step - width) / 2.0;
            let colour = if bucket.holds() { THERE } else { MISSING };
            // Arrows to further rows would cross the first.
            if y - from.1 < 60.0 {
                sheet.arrow(from, (x + width / 2.0, y), colour);
            }
            end = end.max(self::bucket(sheet, lookup, bucket, tables, (x, y), width));
        }
        y = end + 16.0;
    }
    y = left_out(sheet, lookup.buckets.len(), MOST_BUCKETS, "bucket", y);
    for density in densities(subject.filter).iter().take(4) {
        let title = if density.name.is_empty() { "the whole table" } else { &density.name };
        let of = lookup
            .buckets
            .iter()
            .filter(|bucket| density.name.is_empty() || density.name.ends_with(&bucket.table.to_string()));
        let total = lookup.buckets.iter().map(|bucket| bucket.table as u64).max().unwrap_or(0) + 1;
        // One array may hold all tables in sequence.
        let place = |bucket: &BucketProbe| {
            let before = if density.name.is_empty() { bucket.table as u64 * bucket.of } else { 0 };
            let all = if density.name.is_empty() { total * bucket.of } else { bucket.of };
            ((before + bucket.bucket) as f64 + 0.5) / all as f64
        };
        let marks: Vec<Mark> = of
            .map(|bucket| Mark { at: place(bucket), label: say::count(bucket.bucket), there: bucket.holds() })
            .collect();
        y = strip(sheet, title, Some(density), &marks, None, y);
    }
    y
}

/// The rows of slots in a bucket, and the most slots to draw: buckets of other programs may have hundreds.
const COLUMN_SLOTS: usize = 16;
const MOST_SLOTS: usize = 4 * COLUMN_SLOTS;

/// The slots to draw: the first ones, and always the one that matches.
fn drawn_slots(slots: &[Option<BucketSlot>]) -> Vec<Option<BucketSlot>> {
    let mut drawn: Vec<_> = slots.iter().take(MOST_SLOTS).copied().collect();
    let matching = slots.iter().skip(MOST_SLOTS).find(|slot| slot.is_some_and(|slot| slot.matches));
    if let (Some(matching), Some(last)) = (matching, drawn.last_mut()) {
        *last = *matching;
    }
    drawn
}

/// Draws one bucket with its slots in a column. Returns where it ends.
fn bucket(
    sheet: &mut Canvas,
    lookup: &BucketLookup,
    bucket: &BucketProbe,
    tables: bool,
    (x, y): (f64, f64),
    width: f64,
) -> f64 {
    const HEIGHT: f64 = 25.0;
    let table = if tables { format!("table {}, ", bucket.table) } else { String::new() };
    let middle = x + width / 2.0;
    let name = format!("{table}bucket {}", say::count(bucket.bucket));
    sheet.text(middle, y + 16.0, &name, Font::plain(12.0).bold().middle());
    let of = format!("of {}", say::count(bucket.of));
    sheet.text(middle, y + 31.0, &of, Font::plain(10.0).middle().colour(GREY));
    let top = y + 38.0;
    let slots = drawn_slots(&bucket.slots);
    let columns = slots.len().div_ceil(COLUMN_SLOTS).max(1);
    let rows = slots.len().div_ceil(columns);
    let slot_width = width / columns as f64;
    for (index, slot) in slots.iter().enumerate() {
        let (x, y) = (x + (index / rows) as f64 * slot_width, top + (index % rows) as f64 * HEIGHT);
        let frame = Frame { x, y, width: slot_width, height: HEIGHT };
        match slot {
            None => {
                sheet.open("slot free");
                boxed(sheet, frame, "", "free", Paint::new(WHITE, FAINT, 0.8), GREY);
            }
            Some(slot) => {
                let (paint, ink) = slot_paint(slot.matches);
                sheet.open(if slot.matches { "slot match" } else { "slot taken" });
                let copies = if lookup.counts { format!(" ×{}", slot.copies) } else { String::new() };
                let same = if slot.matches { " =" } else { "" };
                let content = shown::hex(slot.fingerprint, lookup.fingerprint_bits);
                boxed(sheet, frame, "", &format!("{content}{copies}{same}"), paint, ink);
            }
        }
        sheet.close();
    }
    let end = top + rows as f64 * HEIGHT;
    let (label, colour) = if bucket.holds() { ("holds it", THERE) } else { ("does not hold it", MISSING) };
    sheet.text(middle, end + 16.0, label, Font::plain(11.0).bold().middle().colour(colour));
    end + 22.0
}

pub(super) fn run(sheet: &mut Canvas, subject: &Subject<'_>, lookup: &RunLookup, from: (f64, f64)) -> f64 {
    let end = run_slots(sheet, lookup, from);
    let mark = Mark {
        at: (lookup.home as f64 + 0.5) / lookup.homes.max(1) as f64,
        label: format!("home {}", say::count(lookup.home)),
        there: lookup.holds(),
    };
    let title = format!("all {} homes", say::count(lookup.homes));
    strip(sheet, &title, densities(subject.filter).first(), &[mark], None, end)
}

/// Draws the home and what is stored for it.
fn run_slots(sheet: &mut Canvas, lookup: &RunLookup, from: (f64, f64)) -> f64 {
    const PER_ROW: usize = 8;
    const STEP: f64 = ACROSS / PER_ROW as f64;
    let digits = |number, bits| {
        if lookup.any_length { shown::first_bits(number, bits) } else { shown::hex(number, bits) }
    };
    let y = from.1 + 44.0;
    let home = Frame { x: LEFT, y, width: 250.0, height: 40.0 };
    let stored = Frame { x: RIGHT - 430.0, y, width: 430.0, height: 40.0 };
    let plain = Paint::new(WHITE, GREY, 1.2);
    let title = format!("home, of {}", say::count(lookup.homes));
    boxed(sheet, home, &title, &say::count(lookup.home), plain, INK);
    let title = match lookup.any_length {
        true => format!("fingerprint, {} bits, the first leftmost", lookup.fingerprint_bits),
        false => format!("remainder, {} bits", lookup.fingerprint_bits),
    };
    let content = digits(lookup.fingerprint, lookup.fingerprint_bits);
    boxed(sheet, stored, &title, &content, Paint::new(WHITE, THERE, 2.0), INK);
    sheet.arrow(from, (home.x + home.width - 20.0, y), INK);
    sheet.arrow(from, (stored.x + stored.width / 2.0, y), INK);
    let top = y + 40.0 + 46.0;
    if lookup.entries.is_empty() {
        let none = Frame { x: LEFT, y: top, width: 250.0, height: 36.0 };
        sheet.arrow((home.x + 60.0, y + 40.0), (LEFT + 60.0, top), MISSING);
        sheet.open("slot free");
        boxed(sheet, none, "", "no slots", Paint::new(WHITE, MISSING, 2.0), MISSING);
        sheet.close();
        return top + 46.0;
    }
    let (first, last) = (say::count(lookup.slots.start), say::count(lookup.slots.end - 1));
    let title = match lookup.slots.end - lookup.slots.start {
        1 => format!("the run of this home, slot {first}"),
        _ => format!("the run of this home, slots {first} to {last}"),
    };
    sheet.text(LEFT + 80.0, top - 10.0, &title, Font::plain(12.0).colour(GREY));
    sheet.arrow((home.x + 50.0, y + 40.0), (LEFT + 50.0, top), INK);
    let drawn = &lookup.entries[..lookup.entries.len().min(MOST_ENTRIES)];
    for (place, entry) in drawn.iter().enumerate() {
        let frame = Frame {
            x: LEFT + (place % PER_ROW) as f64 * STEP,
            y: top + (place / PER_ROW) as f64 * 62.0,
            width: STEP - 8.0,
            height: 40.0,
        };
        entry_box(sheet, entry, frame, &digits);
    }
    let rows = drawn.len().div_ceil(PER_ROW) as f64;
    left_out(sheet, lookup.entries.len(), drawn.len(), "fingerprint", top + rows * 62.0)
}

fn entry_box(sheet: &mut Canvas, entry: &RunEntry, frame: Frame, digits: &dyn Fn(u64, u32) -> String) {
    let (paint, ink) = slot_paint(entry.matches);
    sheet.open(if entry.matches { "slot match" } else { "slot taken" });
    let content = match entry.fingerprint_bits {
        0 => "void".into(),
        bits => digits(entry.fingerprint, bits),
    };
    let title = format!("slot {}", say::count(entry.slots.start));
    boxed(sheet, frame, &title, &content, paint, ink);
    let label = match (entry.matches, entry.copies) {
        (true, 1) => "matches".into(),
        (true, copies) => format!("matches, ×{}", say::count(copies)),
        (false, 1) => String::new(),
        (false, copies) => format!("×{}", say::count(copies)),
    };
    let below = Font::plain(10.0).bold().middle().colour(if entry.matches { THERE } else { GREY });
    sheet.text(frame.x + frame.width / 2.0, frame.y + 53.0, &label, below);
    sheet.close();
}

pub(super) fn slots(sheet: &mut Canvas, lookup: &SlotLookup, from: (f64, f64)) -> f64 {
    const WIDTH: f64 = 168.0;
    const SIGN: f64 = 36.0;
    if lookup.stored.is_empty() {
        sheet.text(LEFT, from.1 + 30.0, "the filter is empty and has no slots", Font::plain(13.0));
        return from.1 + 40.0;
    }
    let mark = |(name, slot): (&str, &mayhap::explain::StoredSlot)| Mark {
        at: (slot.slot as f64 + 0.5) / lookup.slots.max(1) as f64,
        label: format!("{name}: {}", say::count(slot.slot)),
        there: true,
    };
    let marks: Vec<Mark> = ["a", "b", "c"].into_iter().zip(&lookup.stored).map(mark).collect();
    let shard = match lookup.shards {
        1 => String::new(),
        shards => format!(" in {shards} shards (this item: shard {})", lookup.shard),
    };
    let title = format!(
        "all {} slots{shard}, in segments of {}",
        say::count(lookup.slots),
        say::count(lookup.segment_slots)
    );
    let segments = lookup.slots as f64 / lookup.segment_slots.max(1) as f64;
    let y = sections(sheet, &title, segments, &marks, from) + 14.0;
    let hex = |number| shown::hex(number, lookup.fingerprint_bits);
    let mut x = LEFT + 20.0;
    let frame_at = |x: f64, y: f64| Frame { x, y, width: WIDTH, height: 42.0 };
    let sign = Font::plain(20.0).middle();
    for (name, slot) in ["a", "b", "c"].into_iter().zip(&lookup.stored) {
        sheet.open("slot taken");
        let title = format!("slot {name}, {}", say::count(slot.slot));
        boxed(sheet, frame_at(x, y), &title, &hex(slot.fingerprint), Paint::new(FILLED, GREY, 0.8), INK);
        sheet.close();
        x += WIDTH + SIGN;
        let symbol = if name == "c" { "=" } else { "⊕" };
        sheet.text(x - SIGN / 2.0, y + 28.0, symbol, sign);
    }
    let (holds, sum) = (lookup.holds(), frame_at(x, y));
    let (colour, paint) = probe_paint(holds);
    sheet.open(if holds { "sum match" } else { "sum differs" });
    boxed(sheet, sum, "their XOR is", &hex(lookup.sum()), paint, if holds { WHITE } else { MISSING });
    sheet.close();
    let below = y + 42.0 + 40.0;
    let wanted = frame_at(x, below);
    boxed(
        sheet,
        wanted,
        "the item's fingerprint",
        &hex(lookup.fingerprint),
        Paint::new(WHITE, THERE, 2.0),
        INK,
    );
    let symbol = if holds { "=" } else { "≠" };
    sheet.text(x + WIDTH / 2.0, below - 13.0, symbol, sign.bold().colour(colour));
    let label = if holds { "equal: maybe" } else { "not equal: no" };
    sheet.text(x - 14.0, below + 27.0, label, Font::plain(13.0).bold().end().colour(colour));
    below + 52.0
}

pub(super) fn rows(sheet: &mut Canvas, lookup: &RowLookup, y: f64) -> f64 {
    const SIDE: f64 = 10.0;
    const NAMES: f64 = 104.0;
    let small = Font::plain(11.0).colour(GREY);
    let mut y = y + 8.0;
    for (number, layer) in (1..).zip(&lookup.layers) {
        let (start, rows) = (say::count(layer.start), say::count(layer.rows));
        let bumped = match layer.threshold {
            Some(threshold) if layer.bumped => {
                format!(
                    ": its bucket moves rows before {threshold} to the next layer, this is row {}",
                    layer.in_bucket
                )
            }
            Some(_) => ": it stays here".into(),
            None => String::new(),
        };
        y += 18.0;
        sheet.text(
            LEFT,
            y,
            &format!("layer {number}: starts at row {start} of {rows}{bumped}"),
            Font::plain(12.0),
        );
    }
    if lookup.layers.is_empty() {
        sheet.text(LEFT, y + 20.0, "the filter is empty and has no rows", Font::plain(13.0));
        return y + 30.0;
    }
    y += 30.0;
    let x_of = |row: usize| LEFT + NAMES + row as f64 * SIDE;
    sheet.text(LEFT, y + 9.0, "selected rows", small);
    for row in 0..64 {
        let counts = lookup.coefficients >> row & 1 == 1;
        let frame = Frame { x: x_of(row), y, width: SIDE, height: SIDE };
        sheet.frame(frame, Paint::new(if counts { INK } else { WHITE }, FAINT, 0.6));
    }
    sheet.text(RIGHT, y + 9.0, "ones in them", small.end());
    y += SIDE + 6.0;
    for (number, column) in (1..).zip(&lookup.columns) {
        let agrees = column.parity == column.wanted;
        let (colour, _) = probe_paint(agrees);
        sheet.open(if agrees { "probe set" } else { "probe clear" });
        sheet.text(LEFT, y + 9.5, &format!("column {number}"), small);
        for row in 0..64 {
            let (counts, one) = (lookup.coefficients >> row & 1 == 1, column.rows >> row & 1 == 1);
            let frame = Frame { x: x_of(row), y, width: SIDE, height: SIDE };
            let fill = match (counts, one) {
                (true, true) => THERE,
                (false, true) => FILLED,
                _ => WHITE,
            };
            sheet.frame(frame, Paint::new(fill, FAINT, 0.6));
        }
        let parity = |odd: bool| if odd { "odd" } else { "even" };
        let label = match agrees {
            true => format!("{}, as wanted", parity(column.parity)),
            false => format!("{}, wanted {}", parity(column.parity), parity(column.wanted)),
        };
        sheet.text(RIGHT, y + 9.5, &label, Font::plain(11.0).bold().end().colour(colour));
        sheet.close();
        y += SIDE + 5.0;
    }
    let entries =
        [(INK, "row is selected"), (THERE, "one in a selected row"), (FILLED, "one in another row")];
    let mut x = LEFT;
    for (fill, meaning) in entries {
        let font = Font::plain(11.0);
        sheet.frame(Frame { x, y: y + 6.0, width: 11.0, height: 11.0 }, Paint::new(fill, FAINT, 0.6));
        sheet.text(x + 18.0, y + 15.5, meaning, font);
        x += 18.0 + font.width(meaning.len()) + 24.0;
    }
    y + 26.0
}

pub(super) fn values(sheet: &mut Canvas, lookup: &ValueLookup, from: (f64, f64)) -> f64 {
    let mark = Mark {
        at: (lookup.value as f64 + 0.5) / lookup.range.max(1) as f64,
        label: say::count(lookup.value),
        there: lookup.found,
    };
    let title = format!(
        "all {} possible values, in {} buckets",
        say::count(lookup.range),
        say::count(lookup.buckets)
    );
    let y = sections(sheet, &title, lookup.buckets as f64, &[mark], from) + 8.0;
    let (bucket, buckets) = (say::count(lookup.bucket), say::count(lookup.buckets));
    let (start, end) = (say::count(lookup.bits.start), say::count(lookup.bits.end));
    let decoded = crate::explain::how_it_works::plural(lookup.decoded as usize, "value");
    let title =
        format!("bucket {bucket} of {buckets}, bits {start} to {end} of the codes; {decoded} decoded");
    sheet.text(LEFT, y + 14.0, &title, Font::plain(12.0).colour(GREY));
    let longest =
        [lookup.value].iter().chain(&lookup.before).chain(&lookup.behind).max().copied().unwrap_or(0);
    let width = (Font::mono(13.0).width(say::count(longest).len()) + 16.0).max(96.0);
    // As many neighbours as there is room for, the same number on both sides.
    let each = (((ACROSS / (width + 10.0)) as usize).saturating_sub(1) / 2).max(1);
    let before = &lookup.before[lookup.before.len().saturating_sub(each)..];
    let after = &lookup.behind[..lookup.behind.len().min(each)];
    let mut x = LEFT;
    let top = y + 26.0;
    let (_, own) = probe_paint(lookup.found);
    let own_ink = if lookup.found { WHITE } else { MISSING };
    let stored = (Paint::new(FILLED, GREY, 0.8), INK, "stored");
    let searched = (own, own_ink, if lookup.found { "the item's, stored" } else { "the item's, missing" });
    let all = before.iter().map(|&value| (value, stored));
    let all = all.chain([(lookup.value, searched)]).chain(after.iter().map(|&value| (value, stored)));
    for (value, (paint, ink, title)) in all {
        let class = match (value == lookup.value, lookup.found) {
            (true, true) => "value match",
            (true, false) => "value missing",
            _ => "value stored",
        };
        sheet.open(class);
        let room = width.max(Font::plain(10.0).width(title.len()) + 10.0);
        let frame = Frame { x, y: top, width: room, height: 42.0 };
        boxed(sheet, frame, title, &say::count(value), paint, ink);
        sheet.close();
        x += room + 10.0;
    }
    top + 52.0
}
