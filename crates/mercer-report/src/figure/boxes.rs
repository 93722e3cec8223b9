//! Box plots from summaries: quartiles, whiskers, the mean and outliers.

use super::axis::Axis;
use super::draw::{Area, SMALL};
use super::panel::Panel;
use super::quantiles::quantile;
use super::series::{Look, Series};
use super::svg::{Anchor, Svg, grouped, number};
use super::thin::pick;

/// The number of outliers that [`BoxSummary::of`] keeps, and that are drawn per box.
const FLIERS: usize = 100;

/// What a box plot shows of a set of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxSummary {
    /// The mean, marked by a diamond.
    pub mean: f64,
    /// The first quartile.
    pub q1: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub q3: f64,
    /// The end of the lower whisker.
    pub low_whisker: f64,
    /// The end of the upper whisker.
    pub high_whisker: f64,
    /// Numbers beyond the whiskers, or some of them.
    pub fliers: Vec<f64>,
    /// How many numbers are beyond the whiskers.
    pub n_fliers: usize,
    /// How many numbers of the set were not finite and are not summarised.
    pub n_skipped: usize,
}

impl BoxSummary {
    /// The summary of a set; none if it has no finite numbers. Quartiles are interpolated. Whiskers end at the last
    /// number within 1.5 times the distance of the quartiles from the box. At most 100 outliers are kept, with both ends.
    pub fn of(values: &[f64]) -> Option<Self> {
        let axis = Axis::linear("");
        let mut sorted: Vec<f64> = values.iter().copied().filter(|&x| axis.drawable(x)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|p| quantile(&sorted, p));
        let (q1, median, q3) = (q1?, median?, q3?);
        let reach = 1.5 * (q3 - q1);
        let inside = |x: &&f64| (q1 - reach..=q3 + reach).contains(*x);
        let low_whisker = sorted.iter().find(inside).map_or(q1, |&x| x.min(q1));
        let high_whisker = sorted.iter().rev().find(inside).map_or(q3, |&x| x.max(q3));
        let fliers: Vec<f64> = sorted.iter().copied().filter(|x| !inside(&x)).collect();
        let mean = sorted.iter().map(|x| x / sorted.len() as f64).sum();
        let n_skipped = values.len() - sorted.len();
        let (n_fliers, fliers) = (fliers.len(), fewer(&fliers));
        Some(Self { mean, q1, median, q3, low_whisker, high_whisker, fliers, n_fliers, n_skipped })
    }

    fn frame(&self) -> [f64; 5] {
        [self.low_whisker, self.q1, self.median, self.q3, self.high_whisker]
    }

    fn is_drawable(&self, axis: &Axis) -> bool {
        self.frame().into_iter().all(|x| axis.drawable(x))
    }

    /// The drawn outliers, without those that the axis cannot show.
    fn drawn(&self, axis: &Axis) -> Vec<f64> {
        fewer(&self.fliers.iter().copied().filter(|&x| axis.drawable(x)).collect::<Vec<_>>())
    }

    /// Outliers that exist but are not drawn.
    pub(super) fn hidden(&self) -> usize {
        self.n_fliers.saturating_sub(self.fliers.len().min(FLIERS))
    }

    /// What this axis cannot show: the box as a whole, its mean, outliers.
    pub(super) fn undrawable(&self, axis: &Axis) -> usize {
        let lost = self.fliers.iter().filter(|&&x| !axis.drawable(x)).count();
        self.n_skipped + lost + usize::from(!self.is_drawable(axis) || !axis.drawable(self.mean))
    }

    /// All vertical positions, with room for the count above.
    pub(super) fn heights(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.frame().into_iter().chain([self.mean]).chain(self.fliers.clone()).collect();
        all.retain(|x| x.abs() <= 1e300);
        if self.hidden() > 0 {
            let ends = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
            all.push(ends.1 + 0.06 * (ends.1 - ends.0));
        }
        all
    }
}

/// As many numbers as are drawn, with both ends.
fn fewer(fliers: &[f64]) -> Vec<f64> {
    let points: Vec<(f64, f64)> = fliers.iter().map(|&x| (x, 0.0)).collect();
    pick(&points, FLIERS).into_iter().map(|at| fliers[at]).collect()
}

impl Panel {
    /// Box plots over names, in groups side by side: every group has a box per name, or none. Each group has a colour,
    /// and is in the legend if it has a name. The diamond is the mean. Boxes with a number that cannot be drawn are left
    /// out and count as [skipped](super::Figure::skipped), as do such means and outliers.
    pub fn boxes<S: Into<String>, N: Into<String>, B: Into<Option<BoxSummary>>, I: IntoIterator<Item = B>>(
        title: impl Into<String>,
        names: impl IntoIterator<Item = S>,
        y: Axis,
        groups: impl IntoIterator<Item = (N, I)>,
    ) -> Self {
        let groups: Vec<(N, I)> = groups.into_iter().collect();
        let room = 0.8 / groups.len().max(1) as f64;
        let series = groups.into_iter().enumerate().map(|(group, (name, boxes))| {
            let shift = (group as f64 + 0.5) * room - 0.4;
            let boxes = boxes.into_iter().enumerate().filter_map(|(at, summary)| Some((at, summary.into()?)));
            let (places, boxes): (Vec<usize>, Vec<BoxSummary>) = boxes.unzip();
            let points = places.iter().zip(&boxes).map(|(&at, summary)| (at as f64 + shift, summary.median));
            Series::new(name, points.collect::<Vec<_>>(), Look::Boxes(0.8 * room, boxes))
        });
        Self::lines(title, Axis::names("", names), y, series.collect::<Vec<_>>())
    }
}

pub(super) fn draw(
    svg: &mut Svg,
    panel: &Panel,
    (series, width, boxes): (&Series, f64, &[BoxSummary]),
    paint: &str,
    area: &Area<'_>,
) {
    let thin = format!("stroke=\"{paint}\" stroke-width=\"1.2\"");
    for (&(x, _), summary) in series.points.iter().zip(boxes) {
        if !summary.is_drawable(&panel.y) {
            continue;
        }
        let at = |y: f64| area.point((x, y));
        let left = |y: f64| area.point((x - width / 2.0, y));
        let right = |y: f64| area.point((x + width / 2.0, y));
        let (cap, middle) = ((right(summary.q1).0 - left(summary.q1).0) / 4.0, at(summary.median).0);
        for (from, to) in [(summary.q1, summary.low_whisker), (summary.q3, summary.high_whisker)] {
            let end = at(to);
            svg.line(at(from), end, &thin);
            svg.line((end.0 - cap, end.1), (end.0 + cap, end.1), &thin);
        }
        let fill = format!("fill=\"{paint}\" fill-opacity=\"0.25\" {thin} class=\"box\"");
        svg.rectangle(left(summary.q1), right(summary.q3), &fill);
        svg.line(left(summary.median), right(summary.median), &format!("stroke=\"{paint}\" stroke-width=\"2.2\""));
        if panel.y.drawable(summary.mean) {
            let (x, y) = at(summary.mean);
            let size = (0.8 * cap).clamp(1.5, 4.0);
            let corners = [(x - size, y), (x, y - size), (x + size, y), (x, y + size)];
            svg.path(&corners, true, &format!("fill=\"#fff\" stroke=\"{paint}\" stroke-width=\"1.2\""));
        }
        let fliers = summary.drawn(&panel.y);
        if !fliers.is_empty() {
            let radius = (0.6 * cap).clamp(0.8, 1.8);
            svg.put(&format!("<g fill=\"none\" stroke=\"{paint}\" stroke-opacity=\"0.8\">"));
            for &flier in &fliers {
                svg.put(&format!(
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
                    number(middle),
                    number(at(flier).1),
                    number(radius)
                ));
            }
            svg.put("</g>");
        }
        if summary.hidden() > 0 {
            let highest = fliers.iter().copied().fold(summary.high_whisker, f64::max);
            let more = format!("+{}", grouped(summary.hidden()));
            svg.text((middle, (at(highest).1 - 5.0).max(8.0)), &more, SMALL - 1.5, Anchor::Middle, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    #[test]
    fn summaries_are_tukeys() {
        let summary = BoxSummary::of(&[f64::NAN, 4.0, 1.0, 2.0, 3.0, 100.0]).unwrap();
        assert_eq!((summary.q1, summary.median, summary.q3, summary.mean), (2.0, 3.0, 4.0, 22.0));
        assert_eq!((summary.low_whisker, summary.high_whisker), (1.0, 4.0));
        assert_eq!((summary.fliers.as_slice(), summary.n_fliers, summary.n_skipped), (&[100.0][..], 1, 1));
        assert!(BoxSummary::of(&[]).is_none() && BoxSummary::of(&[f64::INFINITY]).is_none());
        let same = BoxSummary::of(&[2.0; 3]).unwrap();
        assert_eq!((same.low_whisker, same.q3, same.n_fliers), (2.0, 2.0, 0));
        let many: Vec<f64> =
            (0..5000).map(|at| if at % 5 == 0 { 1e3 + f64::from(at) } else { f64::from(at % 7) }).collect();
        let many = BoxSummary::of(&many).unwrap();
        assert_eq!((many.n_fliers, many.fliers.len(), many.hidden()), (1000, 100, 900));
        assert_eq!((many.fliers[0], many.fliers[99]), (1000.0, 5995.0));
    }

    /// From 0 to 10 on an axis without room, so that positions can be computed by hand.
    #[test]
    fn boxes_are_where_their_quartiles_are() {
        let summary = BoxSummary {
            mean: 6.0,
            q1: 2.0,
            median: 5.0,
            q3: 8.0,
            low_whisker: 1.0,
            high_whisker: 9.0,
            fliers: vec![10.0, f64::NAN],
            n_fliers: 1234,
            n_skipped: 0,
        };
        let y = Axis::linear("attribution").range(0.0, 10.0);
        let broken = BoxSummary { q1: f64::NAN, fliers: vec![], n_fliers: 0, ..summary.clone() };
        let panel = Panel::boxes("b", ["cat", "<dog>", "owl"], y, [("a", [Some(summary), None, Some(broken)])]);
        let figure = Figure::new("").panel(panel);
        assert_eq!(figure.skipped(), 2, "a flier and a box");
        let svg = figure.to_svg();
        assert!(svg.contains("&lt;dog&gt;") && svg.contains(">+1,232<") && svg.contains("further outliers"));
        let area = svg.lines().find(|line| line.starts_with("<svg x=")).unwrap();
        let read = |line: &str, name: &str| {
            let at = line.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
            line[at..].split('"').next().unwrap().parse::<f64>().unwrap()
        };
        let high = read(area, "height");
        let boxes: Vec<&str> = svg.lines().filter(|line| line.contains("class=\"box\"")).collect();
        assert_eq!(boxes.len(), 1, "a box that cannot be drawn is left out");
        assert!(
            (read(boxes[0], "y") - 0.2 * high).abs() < 0.02 && (read(boxes[0], "height") - 0.6 * high).abs() < 0.02
        );
        let median = svg.lines().find(|line| line.contains("stroke-width=\"2.2\"")).unwrap();
        assert!((read(median, "y1") - 0.5 * high).abs() < 0.02);
        assert_eq!(svg.matches("<circle").count(), 1);
        // Three names share the width: the first box is around a sixth of it.
        let wide = read(area, "width");
        let centre = read(boxes[0], "x") + read(boxes[0], "width") / 2.0;
        assert!((centre - wide / 6.0).abs() < 0.02, "{centre} of {wide}");
    }
}
