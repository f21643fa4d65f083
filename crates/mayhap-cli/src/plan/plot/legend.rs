//! The legend.

use mayhap_advise::{Advice, Needs, Price};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::Solved;
use super::charts::Chart;
use super::curves::{self, Curve};
use super::restyle::PlotPart;
use super::{Canvas, DrawingError, GREY, HEIGHT, INK, SCALE, TOP, mark, percent, short, text, units};

/// Draws the names of the lines in the order of the plan, with figures that the charts do not show.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    needs: &Needs,
    solved: Solved,
    advice: &Advice,
) -> Result<(), DrawingError> {
    const LEFT: i32 = 872;
    const ROW: i32 = 26;
    let write = |label: String, x: i32, y: i32, side: HPos, style: TextStyle<'static>| {
        canvas.draw(&Text::new(label, (units(x), units(y)), style.pos(Pos::new(side, VPos::Center))))
    };
    let by_rate = solved.is_rate_of_each();
    let head = TOP as i32 + 34;
    let columns =
        [(LEFT, HPos::Left, "kind"), (1116, HPos::Right, if by_rate { "FPR" } else { "bits/item" })];
    for (x, side, label) in columns {
        write(label.into(), x, head, side, text(13.0, GREY))?;
    }
    write("at 200%".into(), 1186, head, HPos::Right, text(13.0, GREY))?;
    let mut y = head;
    for curve in curves::drawn(advice) {
        y += ROW;
        let line = mark(PlotPart::Legend, curve.index).stroke_width(2 * SCALE);
        canvas.draw(&PathElement::new(vec![(units(LEFT), units(y)), (units(LEFT + 40), units(y))], line))?;
        let best = advice.recommended().is_some_and(|best| best.structure == curve.structure);
        let colour = if curve.price.suits() { INK } else { GREY };
        if best {
            write("*".into(), LEFT - 13, y + 3, HPos::Left, text(16.0, INK))?;
        }
        write(curve.structure.to_string(), LEFT + 48, y, HPos::Left, text(13.5, colour))?;
        let Some(cost) = curve.price.cost else { continue };
        let number = match by_rate {
            true if curve.is_too_large() => "-".to_owned(),
            true => percent(cost.target_fpr),
            false => short(cost.bits_per_item),
        };
        write(number, 1116, y, HPos::Right, text(13.5, colour))?;
        let too_large = by_rate && curve.is_too_large();
        let doubled = if too_large { "too large".into() } else { doubled(needs, curve.price) };
        write(doubled, 1186, y, HPos::Right, text(13.5, colour))?;
    }
    y += ROW;
    let line = mark(PlotPart::Bound, 0).stroke_width(2 * SCALE);
    canvas.draw(&PathElement::new(vec![(units(LEFT), units(y)), (units(LEFT + 40), units(y))], line))?;
    write("log2(1/FPR), the minimum".into(), LEFT + 48, y, HPos::Left, text(13.5, INK))?;
    // The notes are below the line names of the second chart.
    let mut notes = vec!["* recommended; grey: does not suit this plan"];
    if by_rate {
        notes.push("FPR: the lowest in this memory");
    }
    notes.push("at 200%: FPR with twice as many items");
    y = HEIGHT as i32 - 150;
    for note in notes {
        write(note.into(), LEFT, y, HPos::Left, text(13.0, INK))?;
        y += 22;
    }
    y += 2;
    let ring = INK.stroke_width(2 * SCALE);
    canvas.draw(&Circle::new((units(LEFT + 8), units(y)), units(5), ring))?;
    write("full: may reject items, FPR stays".into(), LEFT + 24, y, HPos::Left, text(13.0, INK))?;
    y += 23;
    canvas.draw(&TriangleMarker::new((units(LEFT + 8), units(y)), units(6), INK.filled()))?;
    write("static: built from all its items".into(), LEFT + 24, y, HPos::Left, text(13.0, INK))
}

/// The rate with twice as many items, or a word if there is none.
fn doubled(needs: &Needs, price: &Price) -> String {
    let Some(filling) = Curve::filling(needs, price) else { return "exact".into() };
    match filling.expected_fpr(price.sized(needs).items.saturating_mul(2)) {
        Some(rate) => percent(rate),
        None if filling.is_fixed() => "fixed".into(),
        None => "rejects".into(),
    }
}

/// Draws the name of every line at its right end, moved apart if ends are close.
pub(super) fn name_lines(
    canvas: &Canvas<'_>,
    chart: &Chart<'_, '_>,
    curves: &[Curve],
    right: f64,
) -> Result<(), DrawingError> {
    const APART: i32 = 17;
    const LEFT: i32 = 884;
    let mut ends: Vec<(i32, &Curve)> = Vec::new();
    for curve in curves {
        // A line that ends before the axis does is named in the legend only.
        let end = curve.points.last().filter(|end| end.0 > right - 0.1);
        ends.extend(end.map(|&end| (chart.backend_coord(&end).1, curve)));
    }
    ends.sort_by_key(|(y, _)| *y);
    let first = chart.plotting_area().get_pixel_range().1.start;
    let tops = spread(&ends.iter().map(|(y, _)| *y).collect::<Vec<_>>(), units(APART), first);
    for ((end, curve), top) in ends.iter().zip(tops) {
        let x = chart.backend_coord(&(right, 0.0)).0;
        let leader = vec![(x + units(3), *end), (units(LEFT - 22), top), (units(LEFT - 5), top)];
        canvas.draw(&PathElement::new(leader, mark(PlotPart::Leader, curve.index).stroke_width(SCALE)))?;
        let style = text(13.0, INK).pos(Pos::new(HPos::Left, VPos::Center));
        canvas.draw(&Text::new(curve.structure.name(), (units(LEFT), top), style))?;
    }
    Ok(())
}

/// Moves sorted `heights` as little as needed to keep them `apart`, and none above `first`.
fn spread(heights: &[i32], apart: i32, first: i32) -> Vec<i32> {
    // A group of labels that touch is centred on the mean of their positions.
    let mut groups: Vec<(i64, i64)> = Vec::new(); // sum and number of the heights
    let top = |&(sum, count): &(i64, i64)| sum / count - (count - 1) * i64::from(apart) / 2;
    for &height in heights {
        groups.push((i64::from(height), 1));
        while let [.., above, below] = groups[..]
            && top(&above) + above.1 * i64::from(apart) > top(&below)
        {
            groups.truncate(groups.len() - 2);
            groups.push((above.0 + below.0, above.1 + below.1));
        }
    }
    let laid =
        groups.iter().flat_map(|group| (0..group.1).map(|index| top(group) + index * i64::from(apart)));
    let mut next = first;
    laid.map(|y| {
        let y = next.max(y as i32);
        next = y + apart;
        y
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_apart_only_as_far_as_needed() {
        assert_eq!(spread(&[10, 50, 90], 20, 0), [10, 50, 90]);
        assert_eq!(spread(&[50, 50, 50], 20, 0), [30, 50, 70]);
        assert_eq!(spread(&[0, 100, 104, 300], 20, 0), [0, 92, 112, 300]);
        assert!(spread(&[], 20, 0).is_empty());
        assert_eq!(spread(&[50, 50, 50, 200], 20, 40), [40, 60, 80, 200]);
        let crowded = spread(&[100, 101, 102, 130, 131, 500], 20, 0);
        assert!(crowded.windows(2).all(|pair| pair[1] - pair[0] >= 20), "{crowded:?}");
    }
}
