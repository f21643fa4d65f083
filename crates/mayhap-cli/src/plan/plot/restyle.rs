//! Turns the SVG of plotters into the final picture: dashes, names, and text that can be read over lines.
//!
//! The SVG of plotters has no dashes and no names of lines. So every line is drawn in a colour that encodes its part and its index:
//! `#FA`, then both. This module replaces these colours with the final style.

use std::fmt::Write;

use mayhap::BlockedLayout;
use mayhap_advise::Structure;

/// The first byte of every colour that encodes a line. No visible colour begins with it.
const MARK: u8 = 0xFA;

/// The part of the picture that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlotPart {
    /// The chart of rate by load.
    Fill,
    /// A point in that chart.
    Point,
    /// The end of a line in that chart.
    End,
    /// The chart of size by rate.
    Size,
    Legend,
    /// The information-theoretic minimum.
    Bound,
    /// A link from a line to its name.
    Leader,
    /// The recommended structure.
    Chosen,
    /// Text among lines.
    Note,
}

const PARTS: [PlotPart; 9] = [
    PlotPart::Fill,
    PlotPart::Point,
    PlotPart::End,
    PlotPart::Size,
    PlotPart::Legend,
    PlotPart::Bound,
    PlotPart::Leader,
    PlotPart::Chosen,
    PlotPart::Note,
];

/// The colour that encodes a line.
pub(super) fn mark(part: PlotPart, structure: usize) -> [u8; 3] {
    let part = PARTS.iter().position(|other| *other == part).unwrap_or_default();
    [MARK, part as u8, structure as u8]
}

/// Colours that colour-blind readers can tell apart, by family; dashes within a family. Lines that run close together, such as bloom
/// and counting-bloom or cuckoo and quotient, have different colours, and one of them is dashed.
fn look(structure: Structure) -> (&'static str, &'static str) {
    const SOLID: &str = "";
    const DASHES: &str = "9 5";
    const DOTS: &str = "2.5 4";
    const DASH_DOT: &str = "11 4 2.5 4";
    match structure {
        Structure::Bloom => ("#0072B2", SOLID),
        Structure::ScalableBloom => ("#0072B2", DASH_DOT),
        Structure::CountingBloom => ("#56B4E9", DASHES),
        Structure::DualBloom => ("#56B4E9", DOTS),
        Structure::BlockedBloom(BlockedLayout::Split256) => ("#E69F00", SOLID),
        Structure::BlockedBloom(_) => ("#E69F00", DASHES),
        Structure::Cuckoo => ("#D55E00", SOLID),
        Structure::CuckooSemiSorted => ("#7A1F4B", DOTS),
        Structure::GrowableCuckoo => ("#D55E00", DASH_DOT),
        Structure::Quotient => ("#009E73", DASHES),
        Structure::Growing => ("#009E73", DASH_DOT),
        Structure::DLeft => ("#009E73", DOTS),
        Structure::Ribbon => ("#CC79A7", SOLID),
        Structure::Gcs => ("#CC79A7", DASHES),
        Structure::BinaryFuse => ("#CC79A7", DOTS),
        Structure::Xor => ("#CC79A7", DASH_DOT),
        Structure::Window => ("#8A6D3B", DASHES),
        _ => ("#8A6D3B", SOLID),
    }
}

/// Whether its line is solid. Solid lines are drawn first, so that dashed ones show on them.
pub(super) fn is_solid(structure: Structure) -> bool {
    look(structure).1.is_empty()
}

/// The final picture, `size` pixels large.
pub(super) fn restyle(svg: &str, size: (u32, u32), title: &str) -> String {
    let mut dressed = String::with_capacity(svg.len() * 5 / 4);
    for line in svg.lines() {
        if line.starts_with("<svg ") {
            head(&mut dressed, line, size, title);
        } else {
            element(&mut dressed, line);
            dressed.push('\n');
        }
    }
    dressed
}

/// The `<svg>` element with its size in pixels, and a title for screen readers.
fn head(dressed: &mut String, line: &str, (width, height): (u32, u32), title: &str) {
    let view = line.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let title = escaped(title);
    // Writing to a string cannot fail.
    let _ = writeln!(
        dressed,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"{view}\" role=\"img\">\n\
         <title>{title}</title>"
    );
}

/// One element, or a line of text.
fn element(dressed: &mut String, line: &str) {
    let Some((part, structure, marked)) = marked(line).filter(|_| line.starts_with('<')) else {
        dressed.push_str(line);
        return;
    };
    let (colour, dashes) = match part {
        PlotPart::Bound => ("#222222", "5 4"),
        PlotPart::Chosen | PlotPart::Note => ("#222222", ""),
        _ => structure.map_or(("#222222", ""), look),
    };
    let mut line = line.replace(&marked, colour);
    // The drawing is larger than the picture, and so are its dashes.
    let dashes = dashes.split_whitespace().filter_map(|length| length.parse::<f64>().ok());
    let dashes: Vec<String> = dashes.map(|length| format!("{}", length * 4.0)).collect();
    let is_line = line.starts_with("<polyline");
    let mut more = String::new();
    if is_line && part != PlotPart::Leader && !dashes.is_empty() {
        more += &format!(" stroke-dasharray=\"{}\"", dashes.join(" "));
    }
    if is_line {
        more += " stroke-linejoin=\"round\"";
    }
    let chart = match part {
        PlotPart::Fill | PlotPart::Point => Some("fill"),
        PlotPart::Size => Some("size"),
        _ => None,
    };
    let name = structure.map(Structure::name).filter(|_| chart.is_some());
    if let (Some(chart), Some(name)) = (chart, name) {
        more += &format!(" id=\"{chart}-{}\"", name.replace(' ', "-"));
    }
    if part == PlotPart::Note {
        more += " stroke=\"#FFFFFF\" stroke-width=\"16\" stroke-linejoin=\"round\" paint-order=\"stroke\"";
    }
    match (name, line.strip_suffix("/>")) {
        (Some(name), Some(open)) => {
            let tag = line[1..].split(' ').next().unwrap_or_default();
            let _ = write!(dressed, "{open}{more}><title>{name}</title></{tag}>");
        }
        _ => {
            let end = if line.ends_with("/>") { line.len() - 2 } else { line.len() - 1 };
            line.insert_str(end, &more);
            dressed.push_str(&line);
        }
    }
}

/// Decodes a colour that encodes a line; returns the line and the colour.
fn marked(line: &str) -> Option<(PlotPart, Option<Structure>, String)> {
    let at = line.find(&format!("\"#{MARK:02X}"))? + 1;
    let colour = line.get(at..at + 7)?;
    let byte = |from: usize| usize::from_str_radix(&colour[from..from + 2], 16).ok();
    Some((*PARTS.get(byte(3)?)?, Structure::all().nth(byte(5)?), colour.to_owned()))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_looks_different() {
        let kinds = Structure::all().filter(|structure| structure.kind().is_some());
        let mut looks: Vec<_> = kinds.map(look).collect();
        let all = looks.len();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), all);
    }

    #[test]
    fn encoded_colours_become_styles_and_names() {
        let bloom = Structure::all().position(|structure| structure == Structure::ScalableBloom).unwrap();
        let [red, green, blue] = mark(PlotPart::Size, bloom);
        let line = format!("<polyline stroke=\"#{red:02X}{green:02X}{blue:02X}\" points=\"0,0 1,1\"/>");
        let svg = restyle(&line, (10, 10), "");
        assert_eq!(
            svg,
            "<polyline stroke=\"#0072B2\" points=\"0,0 1,1\" stroke-dasharray=\"44 16 10 16\" stroke-linejoin=\"round\" \
             id=\"size-scalable-bloom\"><title>scalable-bloom</title></polyline>\n"
        );
        assert_eq!(restyle("#FA0000 is a colour", (1, 1), ""), "#FA0000 is a colour\n", "words stay words");
    }
}
