//! The plan as a picture: the false-positive rate of every kind by load, and its size by rate.
//!
//! The plotters library draws the lines. It writes whole pixels, no dashes and no names. So the picture is drawn at four times
//! its size, and every line gets a colour that identifies it; [`restyle`] then replaces the colours.

mod axis;
mod charts;
mod curves;
mod legend;
mod restyle;

use std::io;
use std::path::Path;

use mayhap::say;
use mayhap_advise::{Advice, Needs};
use plotters::coord::Shift;
use plotters::prelude::*;

use self::restyle::PlotPart;
use super::{Solved, circumstances, title};
use crate::error::CliError;
use crate::whole_file;

/// Units of the drawing per pixel of the picture.
const SCALE: u32 = 4;
/// The size of the picture, in pixels.
const WIDTH: u32 = 1200;
const HEIGHT: u32 = 1210;
/// The position of the first chart, and the size of both.
const TOP: u32 = 96;
const CHART_HEIGHT: u32 = 548;
const CHART_WIDTH: u32 = 848;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawingError = DrawingAreaErrorKind<io::Error>;

/// Draws a plan as SVG.
pub(super) fn draw(needs: &Needs, solved: Solved, advice: &Advice) -> Result<String, CliError> {
    let mut svg = String::new();
    let drawn = draw_in(&mut svg, needs, solved, advice);
    drawn.map_err(|error| CliError::Usage(format!("cannot draw the plot: {error}")))?;
    Ok(restyle::restyle(&svg, (WIDTH, HEIGHT), &title(needs, solved, advice)))
}

/// Writes `svg` to `path`, completely or not at all.
pub(super) fn save(path: &Path, svg: &str) -> Result<(), CliError> {
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    if !is_svg {
        let what =
            format!("--plot: only SVG is supported, so the name must end in .svg, got {}", path.display());
        return Err(CliError::Usage(what));
    }
    whole_file::write(path, svg.as_bytes())
}

fn draw_in(svg: &mut String, needs: &Needs, solved: Solved, advice: &Advice) -> Result<(), DrawingError> {
    let canvas = SVGBackend::with_string(svg, (WIDTH * SCALE, HEIGHT * SCALE)).into_drawing_area();
    canvas.fill(&WHITE)?;
    heading(&canvas, needs, solved, advice)?;
    let chart = |top: u32| {
        canvas.clone().shrink((8 * SCALE, top * SCALE), (CHART_WIDTH * SCALE, CHART_HEIGHT * SCALE))
    };
    charts::rate_by_fill(&chart(TOP), needs, advice)?;
    charts::size_by_rate(&canvas, &chart(TOP + CHART_HEIGHT + 8), needs, advice)?;
    legend::draw(&canvas, needs, solved, advice)?;
    canvas.present()
}

/// Pixels of the picture, in units of the drawing.
const fn units(pixels: i32) -> i32 {
    pixels * SCALE as i32
}

/// A text style of this many pixels. (The backend divides the size by 1.24.)
fn text(pixels: f64, colour: RGBColor) -> TextStyle<'static> {
    font(pixels).color(&colour)
}

fn font(pixels: f64) -> FontDesc<'static> {
    ("sans-serif", pixels * f64::from(SCALE) * 1.24).into_font()
}

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GREY: RGBColor = RGBColor(0x66, 0x66, 0x66);
const FAINT: RGBColor = RGBColor(0xE4, 0xE4, 0xE4);

fn heading(canvas: &Canvas<'_>, needs: &Needs, solved: Solved, advice: &Advice) -> Result<(), DrawingError> {
    let bold = font(21.0).style(FontStyle::Bold).color(&INK);
    canvas.draw(&Text::new(title(needs, solved, advice), (units(24), units(18)), bold))?;
    let recommended = advice.recommended().and_then(|best| Some((best, best.cost?)));
    let recommended = recommended.map_or_else(
        || "Nothing suits.".to_owned(),
        |(best, cost)| {
            let bytes = say::bytes(cost.memory_bytes);
            format!("Recommended: {}, {bytes}, {} bits per item.", best.structure, short(cost.bits_per_item))
        },
    );
    let circumstances = circumstances(needs).join(", ");
    let lines = [recommended, circumstances];
    for (line, y) in lines.iter().filter(|line| !line.is_empty()).zip([48, 68]) {
        canvas.draw(&Text::new(line.as_str(), (units(24), units(y)), text(14.0, INK)))?;
    }
    Ok(())
}

/// A colour that identifies a line until the picture is restyled.
fn mark(part: PlotPart, curve: usize) -> RGBColor {
    let [red, green, blue] = restyle::mark(part, curve);
    RGBColor(red, green, blue)
}

/// A rate in a few characters: `10%`, `0.01%`, `1e-5`.
fn percent(rate: f64) -> String {
    let label = say::rate(rate);
    if label.ends_with('%') || rate <= 0.0 {
        return label;
    }
    let digits = format!("{rate:.1e}");
    digits.replace(".0e", "e")
}

/// Three digits.
fn short(number: f64) -> String {
    match number {
        _ if number < 10.0 => format!("{number:.2}"),
        _ if number < 100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
