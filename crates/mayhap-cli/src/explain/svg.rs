//! The explanation as a picture: the item, its hash, the positions, the reason.

mod arrays;
mod blocks;
mod canvas;
mod contents;

use std::path::Path;

use mayhap::explain::Lookup;

use self::canvas::{
    ACROSS, Canvas, FAINT, Font, Frame, GREY, INK, LEFT, MISSING, Paint, RIGHT, THERE, WHITE,
};
use super::how_it_works::how_it_works;
use super::{Explained, Subject, shown, text};

/// Draws the lookup of the item.
pub(super) fn draw(subject: &Subject<'_>, explained: &Explained) -> String {
    let explanation = &explained.explanation;
    let mut sheet = Canvas::default();
    let mut y = header(&mut sheet, subject, explained);
    let from = origin(&mut sheet, y, explained);
    y = from.1;
    let end = match &explanation.lookup {
        Lookup::Number(lookup) => arrays::number(&mut sheet, subject, lookup, y),
        Lookup::Bits(lookup) => arrays::bits(&mut sheet, subject, lookup, from),
        Lookup::Counters(lookup) => arrays::counters(&mut sheet, subject, lookup, from),
        Lookup::Layers(lookup) => arrays::layers(&mut sheet, subject, lookup, from),
        Lookup::Dual(lookup) => arrays::dual(&mut sheet, subject, lookup, from),
        Lookup::Blocks(lookup) => blocks::blocks(&mut sheet, subject, lookup, from),
        Lookup::Generations(lookup) => blocks::generations(&mut sheet, subject, lookup, y),
        Lookup::Buckets(lookup) => contents::buckets(&mut sheet, subject, lookup, from),
        Lookup::Run(lookup) => contents::run(&mut sheet, subject, lookup, from),
        Lookup::Slots(lookup) => contents::slots(&mut sheet, lookup, from),
        Lookup::Rows(lookup) => contents::rows(&mut sheet, lookup, y),
        Lookup::Values(lookup) => contents::values(&mut sheet, lookup, from),
        _ => y,
    };
    footer(&mut sheet, subject, explained, end + 14.0);
    let title = format!("{} in {}", shown::item(&explained.given, 60), subject.name);
    sheet.finish(&title, &explanation.reason())
}

/// Draws the filter's name and figures. Returns the height for what follows.
fn header(sheet: &mut Canvas, subject: &Subject<'_>, explained: &Explained) -> f64 {
    let verdict = explained.explanation.verdict();
    let colour = if explained.explanation.answer { THERE } else { MISSING };
    let title = Font::plain(19.0).bold();
    // The folder does not matter in the picture.
    let name = Path::new(&subject.name)
        .file_name()
        .map_or(subject.name.clone().into(), |name| name.to_string_lossy());
    let name = shortened(&name, title.letters(ACROSS - title.width(verdict.len() + 4)));
    sheet.text(LEFT, 42.0, &name, title);
    sheet.text(RIGHT, 42.0, verdict, title.colour(colour).end());
    let plain = Font::plain(13.0).colour(GREY);
    let y = sheet.lines(LEFT, 66.0, ACROSS, &text::headline(subject.filter), plain);
    sheet.lines(LEFT, y, ACROSS, &text::rates(subject.filter), plain)
}

/// Cuts a long name at its beginning, because the end distinguishes it.
fn shortened(name: &str, most: usize) -> String {
    let letters = name.chars().count();
    if letters <= most {
        return name.into();
    }
    let kept: String = name.chars().skip(letters - most.saturating_sub(1)).collect();
    format!("…{kept}")
}

/// Draws the item and its hash. Returns where arrows begin.
fn origin(sheet: &mut Canvas, y: f64, explained: &Explained) -> (f64, f64) {
    let explanation = &explained.explanation;
    let (label, mono) = (Font::plain(11.0).colour(GREY), Font::mono(13.0));
    let encoded = explanation
        .item
        .as_ref()
        .filter(|&hashed| explanation.encoding.is_some() && *hashed != explained.given);
    let (width, height) = (390.0, if encoded.is_some() { 64.0 } else { 48.0 });
    let boxed = Paint::new(WHITE, FAINT, 1.2);
    let given = Frame { x: LEFT, y, width, height };
    sheet.rounded(given, boxed, 4.0);
    let bytes = super::how_it_works::plural(explained.given.len(), "byte");
    sheet.text(LEFT + 12.0, y + 18.0, &format!("item, {bytes}"), label);
    let room = mono.letters(width - 24.0);
    // Two quotes and the dots.
    sheet.text(LEFT + 12.0, y + 37.0, &shown::item(&explained.given, room - 3), mono);
    if let (Some(encoding), Some(hashed)) = (explanation.encoding, encoded) {
        let small = Font::mono(11.0).colour(GREY);
        let digits = shown::digits(hashed, small.letters(width - 24.0) - encoding.name().len() - 7);
        sheet.text(LEFT + 12.0, y + 54.0, &format!("as {encoding}: {digits}"), small);
    }
    let Some(function) = &explanation.function else { return (LEFT + width / 2.0, y + height) };
    let x = LEFT + width + 60.0;
    let hash = Frame { x, y, width: RIGHT - x, height };
    sheet.rounded(hash, boxed, 4.0);
    sheet.arrow((LEFT + width, y + height / 2.0), (x, y + height / 2.0), INK);
    sheet.text(x + 12.0, y + 18.0, function, label);
    match explanation.hash {
        Some(hash) => sheet.text(x + 12.0, y + 37.0, &shown::hash(hash), mono),
        None => sheet.text(x + 12.0, y + 37.0, "no single hash of 128 bits", Font::plain(13.0)),
    }
    (x + hash.width / 2.0, y + height)
}

/// Draws the reason, its weight, and how the kind works.
fn footer(sheet: &mut Canvas, subject: &Subject<'_>, explained: &Explained, y: f64) {
    let colour = if explained.explanation.answer { THERE } else { MISSING };
    let reason = Font::plain(14.0).bold();
    sheet.open("reason");
    let mut end = sheet.lines(LEFT + 16.0, y + 20.0, ACROSS - 16.0, &explained.explanation.reason(), reason);
    sheet.close();
    let plain = Font::plain(13.0);
    if let Some(odds) = text::odds(explained) {
        end = sheet.lines(LEFT + 16.0, end, ACROSS - 16.0, &odds, plain);
    }
    sheet.line((LEFT + 3.0, y + 6.0), (LEFT + 3.0, end - 12.0), colour, 4.0);
    sheet.lines(
        LEFT,
        end + 14.0,
        ACROSS,
        &how_it_works(subject.filter, &explained.explanation),
        plain.colour(GREY),
    );
}
