//! A canvas for shapes and text, written as SVG.

use std::fmt::Write as _;

/// Text and lines.
pub(super) const INK: &str = "#222222";
/// Secondary text.
pub(super) const GREY: &str = "#5f6670";
/// Frames that are only context.
pub(super) const FAINT: &str = "#b9c0c8";
/// Set or taken, but not probed.
pub(super) const FILLED: &str = "#cfd6dd";
/// Probed, and present. This and the next colour are from the palette of Okabe and Ito, which colour-blind readers can tell apart.
pub(super) const THERE: &str = "#0072b2";
/// Probed, and absent.
pub(super) const MISSING: &str = "#c44e00";
/// Nothing.
pub(super) const WHITE: &str = "#ffffff";

/// The width of every picture, and its margin.
pub(super) const WIDTH: f64 = 960.0;
pub(super) const LEFT: f64 = 40.0;
pub(super) const RIGHT: f64 = WIDTH - LEFT;
pub(super) const ACROSS: f64 = RIGHT - LEFT;

/// The anchor of text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The style of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Font {
    pub(super) size: f64,
    pub(super) colour: &'static str,
    pub(super) anchor: Anchor,
    pub(super) mono: bool,
    pub(super) bold: bool,
}

impl Font {
    pub(super) const fn plain(size: f64) -> Self {
        Self { size, colour: INK, anchor: Anchor::Start, mono: false, bold: false }
    }

    /// A monospaced font.
    pub(super) const fn mono(size: f64) -> Self {
        Self { mono: true, ..Self::plain(size) }
    }

    pub(super) const fn colour(self, colour: &'static str) -> Self {
        Self { colour, ..self }
    }

    pub(super) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(super) const fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub(super) const fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    /// The maximum width of this many characters in common fonts.
    pub(super) fn width(self, letters: usize) -> f64 {
        let per_letter = match (self.mono, self.bold) {
            (true, _) => 0.605,
            (false, true) => 0.64,
            (false, false) => 0.57,
        };
        letters as f64 * per_letter * self.size
    }

    /// The number of characters that fit in this width.
    pub(super) fn letters(self, room: f64) -> usize {
        (room / self.width(1)).max(1.0) as usize
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The style of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) fill: &'static str,
    pub(super) stroke: &'static str,
    pub(super) thick: f64,
}

impl Paint {
    pub(super) const fn new(fill: &'static str, stroke: &'static str, thick: f64) -> Self {
        Self { fill, stroke, thick }
    }
}

/// The canvas. It grows downwards as needed.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
    reached: f64,
}

impl Canvas {
    // Writing to a string cannot fail, so the results below are ignored.

    /// Everything drawn until [`close`](Self::close) gets these classes.
    pub(super) fn open(&mut self, classes: &str) {
        let _ = writeln!(self.body, r#"<g class="{classes}">"#);
    }

    pub(super) fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub(super) fn frame(&mut self, frame: Frame, paint: Paint) {
        self.rounded(frame, paint, 0.0);
    }

    pub(super) fn rounded(&mut self, frame: Frame, paint: Paint, radius: f64) {
        let Frame { x, y, width, height } = frame;
        let Paint { fill, stroke, thick } = paint;
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="{radius}" fill="{fill}" stroke="{stroke}" stroke-width="{thick}"/>"#
        );
        self.reach(y + height);
    }

    /// A frame without a border. `share` is its darkness; 0 is white.
    pub(super) fn shade(&mut self, frame: Frame, share: f64) {
        let Frame { x, y, width, height } = frame;
        let from_white = |full: f64| (255.0 - (255.0 - full) * share.clamp(0.0, 1.0)).round() as u8;
        let (red, green, blue) = (from_white(70.0), from_white(86.0), from_white(104.0));
        let _ = writeln!(
            self.body,
            r##"<rect x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{height:.1}" fill="#{red:02x}{green:02x}{blue:02x}"/>"##
        );
    }

    pub(super) fn dot(&mut self, x: f64, y: f64, radius: f64, paint: Paint) {
        let Paint { fill, stroke, thick } = paint;
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" stroke="{stroke}" stroke-width="{thick}"/>"#
        );
        self.reach(y + radius);
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, thick: f64) {
        let ((x, y), (to_x, to_y)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x:.1}" y1="{y:.1}" x2="{to_x:.1}" y2="{to_y:.1}" stroke="{colour}" stroke-width="{thick}"/>"#
        );
        self.reach(y.max(to_y));
    }

    /// A line with an arrowhead at its end.
    pub(super) fn arrow(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let (along, across) = (to.0 - from.0, to.1 - from.1);
        let length = along.hypot(across).max(1.0);
        let (along, across) = (along / length, across / length);
        let back =
            |head: f64, side: f64| (to.0 - along * head - across * side, to.1 - across * head + along * side);
        let (neck, left, right) = (back(6.0, 0.0), back(8.0, 3.5), back(8.0, -3.5));
        self.line(from, neck, colour, 1.2);
        let _ = writeln!(
            self.body,
            r#"<polygon points="{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}" fill="{colour}"/>"#,
            to.0, to.1, left.0, left.1, right.0, right.1
        );
    }

    pub(super) fn text(&mut self, x: f64, y: f64, text: &str, font: Font) {
        let anchor = match font.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let family = if font.mono { "mono" } else { "sans" };
        let weight = if font.bold { r#" font-weight="bold""# } else { "" };
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" class="{family}" font-size="{}" fill="{}" text-anchor="{anchor}"{weight}>{}</text>"#,
            font.size,
            font.colour,
            escaped(text)
        );
        self.reach(y + font.size * 0.35);
    }

    /// Draws text in lines of at most `room`; returns the height of the next line.
    pub(super) fn lines(&mut self, x: f64, mut y: f64, room: f64, text: &str, font: Font) -> f64 {
        for line in textwrap::wrap(text, font.letters(room)) {
            self.text(x, y, &line, font);
            y += font.size * 1.45;
        }
        y
    }

    fn reach(&mut self, y: f64) {
        self.reached = self.reached.max(y);
    }

    /// The whole picture.
    pub(super) fn finish(self, title: &str, description: &str) -> String {
        let (height, body) = ((self.reached + 24.0).ceil(), self.body);
        let (title, description) = (escaped(title), escaped(description));
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">
<title>{title}</title>
<desc>{description}</desc>
<style>
.sans {{ font-family: "DejaVu Sans", Verdana, "Segoe UI", Arial, sans-serif; }}
.mono {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
text {{ white-space: pre; }}
</style>
<rect width="{WIDTH}" height="{height}" fill="{WHITE}"/>
{body}</svg>
"#
        )
    }
}

/// Escapes text for XML; characters that XML forbids become a box.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(' '),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push('▯'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_the_picture() {
        assert_eq!(escaped("<a & \"b\">\u{0}\u{1b}\u{ffff}é"), "&lt;a &amp; &quot;b&quot;&gt;▯▯▯é");
    }

    #[test]
    fn the_canvas_grows_with_what_is_drawn() {
        let mut canvas = Canvas::default();
        canvas.frame(Frame { x: 0.0, y: 90.0, width: 5.0, height: 10.0 }, Paint::new(WHITE, INK, 1.0));
        assert!(canvas.finish("", "").contains(r#"viewBox="0 0 960 124""#));
    }
}
