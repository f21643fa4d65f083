//! The two charts.

use mayhap::say;
use mayhap_advise::{Advice, Needs};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::restyle::PlotPart;
use super::{
    Canvas, DrawingError, FAINT, GREY, INK, SCALE, curves, legend, mark, percent, short, text, units,
};

/// Draws the false-positive rate against the load.
pub(super) fn rate_by_fill(area: &Canvas<'_>, needs: &Needs, advice: &Advice) -> Result<(), DrawingError> {
    let curves = curves::while_filling(needs, advice);
    let asked = needs.target_fpr.log10();
    // Low enough to show how the lines rise, and the end of each.
    let ends = curves.iter().filter_map(|curve| curve.points.last()).map(|end| end.1);
    let (low, high) = (ends.fold(asked - 2.6, f64::min).floor(), 0.0);
    let decades = (low as i32..=0).map(f64::from);
    let shares = (0..=6).map(|halves| f64::from(halves) * 0.5);
    let mut chart = chart(
        area,
        "False-positive rate by load",
        Axis::new(0.0..3.04, shares),
        Axis::new(low..high, decades),
    )?;
    mesh(
        &mut chart,
        ("load (inserted ÷ capacity)", &|share: &f64| format!("{:.0}%", share * 100.0)),
        ("false-positive rate", &|power: &f64| percent(10_f64.powf(*power))),
    )?;
    let guide = GREY.stroke_width(SCALE);
    chart.draw_series([
        PathElement::new(vec![(0.0, asked), (3.04, asked)], guide),
        PathElement::new(vec![(1.0, low), (1.0, high)], guide),
    ])?;
    for curve in &curves {
        let colour = mark(PlotPart::Fill, curve.index);
        let inside: Vec<(f64, f64)> =
            curve.points.iter().copied().filter(|point| (low..=high).contains(&point.1)).collect();
        let Some(&last) = inside.last() else { continue };
        if inside.len() > 1 && !curve.is_fixed {
            chart.draw_series([PathElement::new(inside, colour.stroke_width(2 * SCALE))])?;
        }
        if curve.is_fixed {
            chart.draw_series([TriangleMarker::new(
                last,
                units(6),
                mark(PlotPart::Point, curve.index).filled(),
            )])?;
        } else if curve.ends {
            let ring = mark(PlotPart::End, curve.index).stroke_width(2 * SCALE);
            chart.draw_series([
                Circle::new(last, units(5), WHITE.filled()),
                Circle::new(last, units(5), ring),
            ])?;
        }
    }
    let note = |text_at: (f64, f64), label: String, position: Pos, offset: (i32, i32)| {
        EmptyElement::at(text_at)
            + Text::new(label, offset, text(13.0, mark(PlotPart::Note, 0)).pos(position))
    };
    let rate = percent(needs.target_fpr);
    chart.draw_series([note(
        (0.0, asked),
        format!("target FPR, {rate}"),
        Pos::new(HPos::Left, VPos::Bottom),
        (units(8), units(-5)),
    )])?;
    chart.draw_series([note(
        (1.0, high),
        format!("full: {}", say::items(needs.items)),
        Pos::new(HPos::Right, VPos::Top),
        (units(-8), units(6)),
    )])?;
    Ok(())
}

/// Draws the bits per item against the rate.
pub(super) fn size_by_rate(
    canvas: &Canvas<'_>,
    area: &Canvas<'_>,
    needs: &Needs,
    advice: &Advice,
) -> Result<(), DrawingError> {
    let asked = -needs.target_fpr.log10();
    let (left, right) = (asked.floor().clamp(0.0, 1.0), (asked + 0.4).max(6.0));
    let curves = curves::by_rate(needs, advice, (left, right));
    let heights = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.1);
    let highest = heights().fold(5.0, f64::max);
    // A full bitmap of a range takes one bit per item.
    let lowest = heights().fold(bound(left.max(0.3)).log2(), f64::min);
    let (low, high) = ((lowest - 0.7).floor(), highest.ceil());
    let octaves = (low as i32..=high as i32).map(f64::from);
    let decades = (left.ceil() as i32..=right as i32).map(f64::from);
    let mut chart = chart(
        area,
        "Memory by false-positive rate",
        Axis::new(left..right, decades),
        Axis::new(low..high, octaves),
    )?;
    let items = needs.items as f64;
    mesh(
        &mut chart,
        ("false-positive rate", &|power: &f64| percent(10_f64.powf(-power))),
        ("memory per item, and in total", &|power: &f64| {
            let bits = power.exp2();
            let memory = say::bytes((bits * items / 8.0).round() as u64);
            match bits {
                _ if bits < 1.0 => format!("{bits:.1} bits, {memory}"),
                1.0 => format!("1 bit, {memory}"),
                _ => format!("{bits:.0} bits, {memory}"),
            }
        }),
    )?;
    let guide = GREY.stroke_width(SCALE);
    chart.draw_series([PathElement::new(vec![(asked, low), (asked, high)], guide)])?;
    let limit = needs.memory_limit_bytes.map(|bytes| (bytes, (bytes as f64 * 8.0 / items).log2()));
    let limit = limit.filter(|(_, power)| (low..high).contains(power));
    if let Some((_, power)) = limit {
        chart.draw_series([PathElement::new(vec![(left, power), (right, power)], guide)])?;
    }
    for curve in &curves {
        let points = curve.points.clone();
        let colour = mark(PlotPart::Size, curve.index).stroke_width(2 * SCALE);
        chart.draw_series([PathElement::new(points, colour)])?;
    }
    let least = (0..=400).map(|step| left + (right - left) * f64::from(step) / 400.0);
    let least = least.map(|power| (power, bound(power).log2())).filter(|point| point.1 >= low);
    chart.draw_series([PathElement::new(
        least.collect::<Vec<_>>(),
        mark(PlotPart::Bound, 0).stroke_width(2 * SCALE),
    )])?;
    legend::name_lines(canvas, &chart, &curves, right)?;
    let note_style = || text(13.0, mark(PlotPart::Note, 0));
    if let Some((bytes, power)) = limit {
        let label = format!("the limit, {}", say::bytes(bytes));
        // At a place without lines, if there is one.
        let is_below = power + 0.3 < bound(right).log2();
        let (x, side, offset) = if is_below { (right, HPos::Right, -8) } else { (left, HPos::Left, 8) };
        let style = note_style().pos(Pos::new(side, VPos::Bottom));
        chart.draw_series([
            EmptyElement::at((x, power)) + Text::new(label, (units(offset), units(-5)), style)
        ])?;
    }
    // There is never a line below the bound.
    let best = advice.recommended().and_then(|best| Some((best, best.cost?)));
    let drawn = best.filter(|(best, _)| curves.iter().any(|curve| curve.structure == best.structure));
    let label = drawn.map_or_else(
        || format!("target FPR, {}", percent(needs.target_fpr)),
        |(best, cost)| format!("the plan: {}, {} bits per item", best.structure, short(cost.bits_per_item)),
    );
    let near_the_end = asked > left + (right - left) * 0.6;
    let (side, offset) = if near_the_end { (HPos::Right, -8) } else { (HPos::Left, 8) };
    let style = note_style().pos(Pos::new(side, VPos::Bottom));
    chart.draw_series([
        EmptyElement::at((asked, low)) + Text::new(label, (units(offset), units(-7)), style)
    ])?;
    if let Some((_, cost)) = drawn {
        let power = cost.bits_per_item.log2();
        if (low..=high).contains(&power) {
            let ring = mark(PlotPart::Chosen, 0).stroke_width(2 * SCALE);
            chart.draw_series([Circle::new((asked, power), units(8), ring)])?;
        }
    }
    Ok(())
}

/// `log2(1/p)` for the rate `10^-power`: the minimum number of bits per item for any filter.
fn bound(power: f64) -> f64 {
    power * std::f64::consts::LOG2_10
}

pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

fn chart<'a, 'b>(
    area: &'a Canvas<'b>,
    caption: &str,
    x: Axis,
    y: Axis,
) -> Result<Chart<'a, 'b>, DrawingError> {
    ChartBuilder::on(area)
        .caption(caption, text(16.0, INK))
        .margin(units(8))
        .x_label_area_size(units(52))
        .y_label_area_size(units(160))
        .build_cartesian_2d(x, y)
}

/// The quantity of an axis, and the format of its numbers.
type Scale<'f> = (&'f str, &'f dyn Fn(&f64) -> String);

fn mesh(chart: &mut Chart<'_, '_>, x: Scale<'_>, y: Scale<'_>) -> Result<(), DrawingError> {
    chart
        .configure_mesh()
        .bold_line_style(FAINT.stroke_width(SCALE))
        .light_line_style(TRANSPARENT)
        .axis_style(GREY.stroke_width(SCALE))
        .set_all_tick_mark_size(units(5))
        .label_style(text(13.0, INK))
        .axis_desc_style(text(14.0, INK))
        .x_desc(x.0)
        .y_desc(y.0)
        .x_label_formatter(&|value| x.1(value))
        .y_label_formatter(&|value| y.1(value))
        .draw()
}
